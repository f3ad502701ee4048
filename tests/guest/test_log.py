#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`ka log` has every line of the guest's log, byte for byte, in order, and with
the right writer: after a boot with many lines, with `quiet`, in the journal, in
a copy that follows the log, and after a panic.

Oracle: the guest's own /dev/kmsg and `dmesg -r`; the lines name the process
that wrote them. After a panic: the guest's console.

usage: test_log.py [--short] [--kernel K]... [--smp N]... [--lines N]
"""
import functools
import json
import os
import re
import subprocess
import tempfile
import time

from lib import oracle, programs
from lib.tap import Tap
from scripts.lib.guest import Guest
from scripts.lib.prepared import kernel_file, paths

KERNELS = '6.12', '5.10', '6.1', '7.3'
PANIC = 'echo c >/proc/sysrq-trigger'
LINE = re.compile(r'^\[ *(\d+\.\d{6})\] (.*)$')
WRITER = re.compile(r'ka-test \d+ \d+ of (\d+)$')
# /dev/kmsg does not refuse lines that come too fast, and the ring has room.
CMDLINE = 'printk.devkmsg=on log_buf_len=%s %s'


def program():
    return os.path.join(paths()['build'], 'monitor-cmds', 'ka')


def can_build_modules(kernel):
    """The tools that come with the headers of a newer Debian do not run on an
    older one."""
    try:
        oracle.build_modules(kernel)
    except subprocess.CalledProcessError:
        return False
    return True


def share_with(folder, kernel, modules=False, script=None):
    share = oracle.make_share(os.path.join(folder, 'share'), ['log.sh'],
                              kernel, modules=modules)
    if script:
        with open(os.path.join(share, 'end.sh'), 'w', encoding='ascii') as f:
            f.write(script + '\n')
    return share


# --- what the guest says ------------------------------------------------------

def read_kmsg(path):
    """Return {seq: (priority, microseconds, text)} of a copy of /dev/kmsg.
    Lines that begin with a blank are about the line before."""
    with open(path, encoding='ascii') as f:
        lines = f.read().splitlines()
    found = {}
    for line in lines:
        head, _, text = line.partition(';')
        if not line.startswith(' ') and head.count(',') >= 3:
            priority, seq, us = head.split(',')[:3]
            found[int(seq)] = int(priority), int(us), text
    return found


def escape(text):
    """As ka log and /dev/kmsg print bytes."""
    return ''.join(c if 0x20 <= ord(c) < 0x7f and c != '\\' else
                   f'\\x{ord(c):02x}' for c in text)


def read_dmesg(path):
    """Return the lines of dmesg -r, with bytes as ka log prints them."""
    with open(path, encoding='latin-1') as f:
        return [escape(line) for line in f.read().split('\n') if line]


# --- what ka says -------------------------------------------------------------

def rows(text):
    return [json.loads(line) for line in text.splitlines()]


def as_kmsg(row):
    return (row['facility'] << 3 | row['level'], row['ns'] // 1000,
            escape(row['text']))


def as_dmesg(text):
    """Split lines of ka log at newlines of the text, as dmesg does."""
    lines = []
    for line in text.splitlines():
        head = re.match(r'<\d+>\[ *\d+\.\d+\] ', line)[0]
        lines += [head + part for part in line[len(head):].split(r'\x0a')]
    return lines


def same_as_kmsg(ours, theirs):
    wrong = [(seq, theirs[seq], as_kmsg(ours[seq]) if seq in ours else None)
             for seq in sorted(theirs)
             if seq not in ours or as_kmsg(ours[seq]) != theirs[seq]]
    assert not wrong, f'{len(wrong)} of {len(theirs)} lines: {wrong[:5]}'
    extra = [seq for seq in ours
             if min(theirs) <= seq <= max(theirs) and seq not in theirs]
    assert not extra, extra[:5]


def writers_are_right(ours, n):
    """Each line says which process wrote it."""
    wrong, found = [], 0
    for row in ours.values():
        m = WRITER.match(row['text'])
        if m:
            found += 1
            if not row['seen'] or row['pid'] != int(m[1]) or \
                    row['comm'] != 'sh' or row['caller_pid'] != int(m[1]):
                wrong.append(row)
    assert found == n, f'{found} lines of {n}'
    assert not wrong, f'{len(wrong)} of {n}: {wrong[:3]}'


def module_is_right(ours):
    """The module's own lines have its name; those of processes have none."""
    lines = [r for r in ours.values() if r['text'].startswith('ka_life: ka_')]
    wrong = [r for r in lines if r.get('module') != 'ka_life']
    assert lines and not wrong, (len(lines), wrong[:3])
    others = [r for r in ours.values() if WRITER.match(r['text']) and
              'module' in r]
    assert not others, others[:3]


def seen_share(ours):
    return sum(r['seen'] for r in ours.values()) / len(ours)


def check_counters(stat, n):
    assert stat['log.lines'] >= n, stat['log.lines']
    for name in 'log.lost', 'log.evicted', 'log.bad':
        assert not stat.get(name), (name, stat[name])


def same_text(theirs, ours):
    a, b = theirs.splitlines(), ours.splitlines()
    wrong = [(i, x, y) for i, (x, y) in enumerate(zip(a, b)) if x != y]
    assert not wrong and len(a) == len(b), (len(a), len(b), wrong[:3])


# --- many lines ---------------------------------------------------------------

class Follow:
    """ka -q SOCKET log --follow, on a QMP socket of its own."""

    def __init__(self, folder):
        self.socket = os.path.join(folder, 'follow.sock')
        self.file = os.path.join(folder, 'followed')
        self.proc = None

    def begin(self):
        self.proc = subprocess.Popen(
            [program(), '-q', self.socket, 'log', '--follow', '-o', self.file],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)

    def text(self):
        """The copy, after the VM has ended."""
        out, _ = self.proc.communicate(timeout=60)
        assert (self.proc.returncode, out) == (0, ''), (self.proc.returncode,
                                                       out)
        with open(self.file, encoding='ascii') as f:
            return f.read()


def offline(journal, *words):
    done = subprocess.run([program(), '-f', journal, 'log', *words],
                          capture_output=True, text=True, timeout=300,
                          check=False)
    assert done.returncode == 0, done
    return done.stdout


def markers(journal):
    done = subprocess.run([program(), '-f', journal, 'events', '-n', '0'],
                          capture_output=True, text=True, timeout=600,
                          check=False)
    lines = [line.split() for line in done.stdout.splitlines()
             if ' log ' in line[:24] and 'ka:' in line]
    return [line[2] for line in lines]


def many_lines(tap, kernel, smp, label, n):
    quiet, modules = smp > 1, can_build_modules(kernel)
    label += f', {n} lines{", quiet" if quiet else ""}'
    with tempfile.TemporaryDirectory(prefix='ka-log.') as tmp:
        follow, journal = Follow(tmp), os.path.join(tmp, 'journal')
        out = os.path.join(tmp, 'out')
        with Guest(kernel=kernel, smp=smp, run='log', n=n, name='log', out=out,
                   share=share_with(tmp, kernel, modules), journal=journal,
                   cmdline=CMDLINE % ('32M', 'quiet' if quiet else
                                      'loglevel=1'),
                   qemu=('-qmp', f'unix:{follow.socket},server=on,wait=off'),
                   timeout=120 + n // 50) as g:
            g.wait_marker('KA-READY')
            follow.begin()
            assert g.wait_done() == 0
            g.collect()
            text, stat = g.hmp_qmp('ka log -n 0'), g.stat()
            ours = {r['seq']: r for r in rows(g.hmp_qmp('ka log -j -n 0'))}
        theirs = read_kmsg(os.path.join(out, 'kmsg'))
        dmesg = read_dmesg(os.path.join(out, 'dmesg'))
        with tap.test(f'{label}: every line of /dev/kmsg'):
            same_as_kmsg(ours, theirs)
            assert len(theirs) > n
        with tap.test(f'{label}: as dmesg -r'):
            mine = as_dmesg(text)
            at = mine.index(dmesg[0])
            assert mine[at:at + len(dmesg)] == dmesg
        with tap.test(f'{label}: every writer'):
            writers_are_right(ours, n // 4 * 4)
            tap.note(f'{seen_share(ours):.3%} of {len(ours)} lines were read '
                     'when they were stored')
        if modules:
            with tap.test(f'{label}: the module of its lines'):
                module_is_right(ours)
        else:
            tap.skip(f'{label}: the module of its lines',
                     'modules cannot be built here')
        with tap.test(f'{label}: nothing is lost'):
            check_counters(stat, n)
        with tap.test(f'{label}: the journal has the same lines'):
            same_text(offline(journal, '-n', '0'), text)
            assert markers(journal) == ['<12>ka:begin', '<12>ka:end']
        with tap.test(f'{label}: so has the copy that follows the log'):
            same_text(follow.text(), text)


# --- after a panic ------------------------------------------------------------

def console_lines(text):
    """Return the kernel's lines on the console: (seconds, text)."""
    found = (LINE.match(line) for line in text.splitlines())
    return [(m[1], m[2].rstrip()) for m in found if m]


def is_torn(line, ours):
    """A panic takes the console in the middle of a line: what was printed of it
    is then before the text of the next one."""
    return any(at == line[0] and text and line[1].endswith(text.strip())
               for at, text in ours)


def panic(tap, kernel, smp, label):
    """The kernel prints a panic on the console, with quiet, too."""
    with open(kernel_file(kernel, 'config'), encoding='ascii') as f:
        if 'CONFIG_MAGIC_SYSRQ=y' not in f.read():
            tap.skip(f'{label}, quiet: after a panic', 'nothing makes it panic')
            return
    with tempfile.TemporaryDirectory(prefix='ka-log.') as tmp:
        with Guest(kernel=kernel, smp=smp, run='end', name='log',
                   share=share_with(tmp, kernel, script=PANIC),
                   cmdline='quiet',
                   options=['--panic', 'pause']) as g, \
                tap.test(f'{label}, quiet: after a panic'):
            end = time.monotonic() + 120
            while 'is paused' not in g.qemu_log:
                assert g.alive() and time.monotonic() < end, g.qemu_log
                time.sleep(0.2)
            told = console_lines(g.settled_console())
            ours = [(f"{r['ns'] // 10**9}.{r['ns'] // 1000 % 10**6:06}",
                     line.rstrip()) for r in rows(g.hmp_qmp('ka log -j -n 0'))
                    for line in r['text'].split('\n')]
            missing = [line for line in told
                       if line not in ours and not is_torn(line, ours)]
            assert len(told) > 20, told
            assert not missing, missing[:5]
            assert any('Linux version' in line for _, line in ours)
            assert not any('Linux version' in line for _, line in told)


# --- log=off ------------------------------------------------------------------

def switched_off(tap, kernel):
    with Guest(kernel=kernel, plugin_opts='log=off', name='log') as g, \
            tap.test(f'{kernel}, log=off'):
        g.wait_done()
        text = g.hmp_qmp('ka log')
        assert text.strip() == 'no lines: the plugin has the option log=off', \
            text
        assert 'vprintk_store' in g.hmp_qmp('ka stat -v')
        row = [line for line in g.hmp_qmp('ka stat -v').splitlines()
               if 'vprintk_store' in line]
        assert 'log=off' in row[0], row


def main():
    ap = programs.arguments(
        __doc__, short='6.12 on 4 vCPUs only, 5,000 lines instead of 100,000')
    ap.add_argument('--lines', type=int, metavar='N')
    args = programs.parse(ap, KERNELS, short_smps=programs.SMPS[1:])
    n, tap = args.lines or (5000 if args.short else 100000), Tap()
    programs.run_over(tap, args.kernel, args.smp,
                      functools.partial(many_lines, n=n), test=None)
    programs.run_over(tap, args.kernel, args.smp, panic, test=None)
    switched_off(tap, args.kernel[0])
    tap.done()


if __name__ == '__main__':
    main()
