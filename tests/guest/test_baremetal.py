#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Bare-metal kernels of our own are traced by the shipped profiles, on arm64
and riscv64. All that ka prints is right to the byte, by QMP, gdb and lldb.

Oracle: the commands and their output in baremetal/golden. With
KA_GOLDEN_UPDATE=1 the program writes these files from the first guest instead
of comparing them: review the diff.
"""
import os
import re
import subprocess
import tempfile

from lib.lldb_packets import lldb
from lib.tap import Tap
from scripts.lib.guest import Guest
from scripts.lib.prepared import ROOT

HERE = os.path.dirname(os.path.realpath(__file__))
BUILD = os.path.join(HERE, 'baremetal', 'build.sh')
PROFILES = os.path.join(ROOT, 'kalloc-tracer', 'hooks', 'profiles')

# More QEMU arguments. On a machine with firmware, these kernels replace it.
QEMU = {'aarch64': (), 'riscv64': ('-bios', 'none')}
LIKE = ('xnu', 'xv6')
UPDATE = set(LIKE if os.environ.get('KA_GOLDEN_UPDATE') else ())
MARK = 'KA-COMMAND'


def golden_file(like):
    return os.path.join(HERE, 'baremetal', 'golden', like)


def read_golden(like):
    """Return [(command, output)], each output with its newlines."""
    with open(golden_file(like), encoding='utf-8') as f:
        parts = re.split(r'^\$ (.*)\n', f.read(), flags=re.M)
    return list(zip(parts[1::2], parts[2::2]))


def write_golden(like, answers):
    with open(golden_file(like), 'w', encoding='utf-8') as f:
        for command, output in answers:
            f.write(f'$ {command}\n{output}')


def ask_qmp(guest, commands):
    return [guest.hmp_qmp(c) for c in commands]


def ask_gdb(guest, commands):
    words = []
    for c in commands:
        words += [f'echo {MARK}\\n', 'monitor ' + c]
    parts = guest.gdb(words).split(MARK + '\n')[1:]
    # gdb prints a line about itself when it detaches.
    parts[-1] = re.sub(r'^\[Inferior .* detached\]\n', '', parts[-1],
                       flags=re.M)
    return parts


def ask_lldb(guest, commands):
    return [text if text is None else text + '\n'
            for text in lldb(guest, commands)]


WAYS = {'QMP': ask_qmp, 'gdb': ask_gdb, 'lldb': ask_lldb}


def differences(golden, found):
    """Return the first lines that differ."""
    lines = []
    for (command, want), got in zip(golden, found):
        got = got or ''
        if got != want:
            lines.append(f'$ {command}')
            theirs = got.splitlines()
            lines += [f'-{x}' for x in want.splitlines() if x not in theirs]
            lines += [f'+{x}' for x in theirs if x not in want.splitlines()]
    return '\n'.join(lines[:20])


def check_listings(tap, guest, label, like):
    golden = read_golden(like)
    commands = [command for command, _ in golden]
    if like in UPDATE:
        UPDATE.remove(like)
        write_golden(like, zip(commands, ask_qmp(guest, commands)))
        golden = read_golden(like)
    for way, ask in WAYS.items():
        found = ask(guest, commands)
        same = found == [output for _, output in golden]
        tap.ok(same, f'{label}: {len(golden)} commands from {way}, to the '
               'byte', differences(golden, found))


def check_counters(tap, guest, label):
    """Counters of dropped events are 0, except for what the profile lacks."""
    stat = guest.stat()
    lost = {k: v for k, v in stat.items() if v and
            re.search(r'unknown|dropped|unreadable|stale|gap|end_bad', k)}
    tap.ok(not lost and stat['events.checked'] > 10,
           f'{label}: nothing is lost or unknown', str(lost))


def check(tap, arch, like, folder):
    kernel = os.path.join(folder, f'{arch}-{like}.elf')
    profile = os.path.join(PROFILES, like + '.profile')
    label = f'{arch}, like {like}'
    with Guest(kernel=kernel, arch=arch, symbols=kernel, end=None,
               plugin_opts='profile=' + profile, qemu=QEMU[arch],
               options=('--initrd', 'none', '--icount'),
               name=f'baremetal-{arch}-{like}') as g:
        g.wait_marker('KA-END')
        check_listings(tap, g, label, like)
        check_counters(tap, g, label)


def main():
    tap = Tap()
    with tempfile.TemporaryDirectory(prefix='ka-baremetal.') as folder:
        for arch in QEMU:
            built = subprocess.run([BUILD, arch, folder], check=False)
            if built.returncode == 77:
                tap.skip(arch, 'no compiler: scripts/setup --only cross-...')
                continue
            for like in LIKE:
                with tap.test(f'{arch}, like {like}: it runs'):
                    check(tap, arch, like, folder)
    tap.done()


if __name__ == '__main__':
    main()
