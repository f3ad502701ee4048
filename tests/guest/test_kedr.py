#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The example of KEDR's manual: each call that a module of a character device
makes is in the trace of its session. Oracle: the module's file (its relocations
say which instruction calls which function) and where the guest has loaded it.

usage: test_kedr.py [--short] [--kernel K]... [--smp N]...

The module is loaded, opened, written to and unloaded twice. Compared are the
order of the calls, sizes, results, and each return address. The journal must
give the same listings as the VM, in all forms.
"""
import json
import os
import re
import subprocess
import tempfile
from collections import defaultdict

from lib import oracle, programs
from lib.tap import Tap
from scripts.lib.guest import Guest
from scripts.lib.prepared import paths

MODULE = 'ka_chardev'
TEXT = 'hello, ka'
# What the module does: who calls, what it calls, and an argument.
ALLOC = re.compile(r'(__)?kmalloc(_cache)?(_node)?(_trace)?(_noprof)?'
                   r'|kmem_cache_alloc_trace')
COPY = re.compile(r'(_|__arch_|__asm_)copy_from_user')
FREE = re.compile(r'kfree')
WANT = [('init', ALLOC, 320), ('open', ALLOC, 4000),
        ('write', COPY, len(TEXT) + 1), ('release', FREE, None),
        ('exit', FREE, None)]
FORMS = ('calls -n 0', 'calls -s -n 0', 'calls -j -s -n 0',
         'calls --format ftrace', 'calls --format chrome',
         'calls --func kfree --task rmmod')
SECTION = re.compile(r"Relocation section '\.rela?(\S+)'")
RELOCATION = re.compile(r'([0-9a-f]+) +[0-9a-f]+ +(R_\S+) +[0-9a-f]+ +(\w+)')
# From the relocation to the return address.
CALLS = {'R_X86_64_PLT32': 4, 'R_X86_64_PC32': 4, 'R_AARCH64_CALL26': 4,
         'R_RISCV_CALL': 8, 'R_RISCV_CALL_PLT': 8}


def calls_of(path):
    """Return {(section, function): [offsets of return addresses]} of a
    module's file."""
    text = subprocess.run(['readelf', '-rW', path], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    found, section = defaultdict(list), None
    for line in text.splitlines():
        m = SECTION.match(line)
        section = m[1] if m else section
        m = RELOCATION.match(line)
        if m and m[2] in CALLS:
            found[section, m[3]].append(int(m[1], 16) + CALLS[m[2]])
    return found


def use(guest):
    """Load, use and unload the module. Return {section: address}."""
    text = guest.shell(
        f'insmod /share/{MODULE}.ko && echo {TEXT} >/dev/{MODULE}; '
        f'cd /sys/module/{MODULE}/sections && grep . .*; cd /; '
        f'rmmod {MODULE}')
    found = dict(re.findall(r'^(\.\S+):0x([0-9a-f]+)', text, re.M))
    assert '.init.text' in found, text
    return {name: int(va, 16) for name, va in found.items()}


def sessions(rows):
    """Return [[call]] of each session; nothing is outside of them."""
    found = []
    for row in rows:
        if row['type'] != 'session':
            found[-1].append(row)
        elif row['kind'] == 'begin':
            found.append([])
        else:
            assert row['module'] == MODULE, row
    return found


def value_of(row, last):
    """Return the argument "size" or "n", or the last register without types."""
    for arg in row['args']:
        if arg['name'] in ('size', 'n', 'count'):
            return int(arg['value'], 0)
    assert last < len(row['regs']), row
    return int(row['regs'][last], 16)


def check_call(row, want, sections, calls):
    """Check a call. Return its block: the result of an allocation, what else
    is freed."""
    where, function, value = want
    assert function.fullmatch(row['function']), f'{where}: {row}'
    name, _, module = re.split(r'([+].*?)(?=\[)', row['caller_symbol'])
    assert name == f'{MODULE}_{where}', f'{where}: {row}'
    assert module == f'[{MODULE}]', row
    at = {sections[section] + offset
          for (section, callee), offsets in calls.items()
          for offset in offsets
          if callee == row['function'] and section in sections}
    assert int(row['caller'], 16) in at, f'{row} is not of {at}'
    if value is not None:
        assert value_of(row, 2) == value, f'{value} bytes: {row}'
    return int(row['ret'] if function is ALLOC else row['regs'][0], 16)


def check_session(rows, sections, calls):
    assert len(rows) == len(WANT), rows
    block = [check_call(row, want, sections, calls)
             for row, want in zip(rows, WANT)]
    assert int(rows[2]['ret'], 16) == 0, rows[2]
    # What open() got is filled and freed, and what init got is freed.
    assert block[1] == block[2] == block[3], rows
    assert block[0] == block[4], rows
    assert len({int(row['caller'], 16) for row in rows}) == len(rows), rows


def check_ftrace(text):
    """Each call has its two lines, in the form of KEDR's manual."""
    events = re.findall(r'^ *\S+-\d+ +\[\d+\] \S+ +\d+\.\d+: (\w+): ', text,
                        re.M)
    one = ['ka_session'] + ['ka_call', 'ka_ret'] * len(WANT) + ['ka_session']
    assert events == one * 2, text


class Follow:
    """`ka calls --follow` until the end of a session, to a file and into a
    program, on a QMP socket of its own."""

    def __init__(self, folder):
        self.socket = os.path.join(folder, 'follow.sock')
        self.files = [os.path.join(folder, x) for x in ('copy', 'piped')]
        self.program = None

    def begin(self):
        ka = os.path.join(paths()['build'], 'monitor-cmds', 'ka')
        self.program = subprocess.Popen(
            [ka, '-q', self.socket, 'calls', '--follow', '-s', '--session',
             '-o', self.files[0], '-p', f'cat >{self.files[1]}'],
            stdin=subprocess.DEVNULL)

    def end(self):
        """Return what the copies have, once the program has ended."""
        assert self.program.wait(timeout=120) == 0
        texts = []
        for path in self.files:
            with open(path, encoding='ascii') as f:
                texts.append(f.read())
        return texts


def check_journal(guest, path, live):
    """`ka -f` prints what the VM printed."""
    program = os.path.join(paths()['build'], 'monitor-cmds', 'ka')
    guest.qmp('quit')
    guest.wait_exit()
    for words, want in live.items():
        got = subprocess.run([program, '-f', path, *words.split()], check=True,
                             text=True, stdout=subprocess.PIPE).stdout
        assert got.strip() == want.strip(), f'{words}: {got}\n---\n{want}'


def test(tap, kernel, smp, label, tmp):
    share = os.path.join(tmp, f'{kernel}-{smp}')
    oracle.make_share(share, [], kernel, modules=True)
    calls = calls_of(os.path.join(share, MODULE + '.ko'))
    journal = os.path.join(tmp, f'journal-{kernel}-{smp}')
    follow = Follow(share)
    with Guest(kernel=kernel, smp=smp, share=share, timeout=600, end='shell',
               journal=journal,
               qemu=('-qmp', f'unix:{follow.socket},server=on,wait=off'),
               name=f'kedr-{kernel}-{smp}') as g:
        g.shell('true')     # the kernel is found
        answer = g.hmp_qmp('ka calls add @common_mm,@uaccess '
                           f'--module {MODULE} --stack')
        assert answer.startswith('request 1: '), answer
        follow.begin()
        sections = [use(g)]
        with tap.test(f'{label}: a copy that follows ends with the session'):
            want = g.hmp_qmp('ka calls -s -n 0').splitlines()
            for text in follow.end():
                got = text.splitlines()
                assert sorted(got) == sorted(want), (got, want)
        sections.append(use(g))
        rows = [json.loads(x) for x in
                g.hmp_qmp('ka calls -j -s -n 0').splitlines()]
        print('# ' + answer)
        with tap.test(f'{label}: two sessions, {len(rows) - 4} calls'):
            found = sessions(rows)
            assert len(found) == 2, g.hmp_qmp('ka calls -s -n 0')
            for session, where in zip(found, sections):
                check_session(session, where, calls)
        with tap.test(f"{label}: lines of ftrace's form"):
            check_ftrace(g.hmp_qmp('ka calls --format ftrace -n 0'))
        with tap.test(f'{label}: the journal has the same'):
            check_journal(g, journal, {x: g.hmp_qmp('ka ' + x) for x in FORMS})


def main():
    ap = programs.arguments(__doc__, short='6.12 on 1 vCPU only')
    args, tap = programs.parse(ap), Tap()
    with tempfile.TemporaryDirectory(prefix='ka-kedr.') as tmp:
        programs.run_over(
            tap, args.kernel, args.smp, lambda tap, kernel, smp, label:
            test(tap, kernel, smp, label, tmp), test=None)
    tap.done()


if __name__ == '__main__':
    main()
