#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`ka log` has every line of the guest's log, byte for byte, in order, and with
the right writer: after a boot with many lines, with `quiet`, in the journal, in
a copy that follows the log, after a panic, a reset and a loadvm.

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
from lib.reset import reset
from lib.tap import Tap
from scripts.lib.guest import Guest
from scripts.lib.prepared import kernel_file, paths
from scripts.lib.snapshot_disk import drive, make_disk

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

def parse_kmsg(copy):
    """Return {seq: (priority, microseconds, text)} of a copy of /dev/kmsg.
    Lines that begin with a blank are about the line before."""
    found = {}
    for line in copy.splitlines():
        head, _, text = line.partition(';')
        if not line.startswith(' ') and head.count(',') >= 3:
            priority, seq, us = head.split(',')[:3]
            found[int(seq)] = int(priority), int(us), text
    return found


def read_kmsg(path):
    with open(path, encoding='ascii') as f:
        return parse_kmsg(f.read())


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
        assert self.proc.returncode == 0 and re.fullmatch(
            r'ka: follow ended: \d+ lines shown, \d+ lost; the VM has ended\n',
            out), (self.proc.returncode, out)
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
            ours = by_seq(log_of(g))
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


def has_lost_some(line, ours):
    """The kernel waits 10 ms for its serial line, and then goes on: if the host
    is busy, a part of a line is missing on the console."""
    def fits(text):
        n = len(os.path.commonprefix([text, line[1]]))
        return text.endswith(line[1][n:])

    return any(at == line[0] and len(text) > len(line[1]) and fits(text)
               for at, text in ours)


def told_panic(told, ours):
    """The kernel prints a panic on the console, with quiet, too: every line
    from the one that says so, and the backtrace of who caused it."""
    at = next(i for i, (_, text) in enumerate(told)
              if text.startswith('Kernel panic - not syncing: '))
    shown = told[at:]
    assert any('write_sysrq_trigger' in text for _, text in shown), told
    mine = ours[ours.index(told[at]):]
    wrong = [(x, y) for x, y in zip(shown, mine)
             if x != y and not is_torn(x, [y]) and not has_lost_some(x, [y])]
    assert not wrong and len(shown) <= len(mine), wrong[:3]


def panic(tap, kernel, smp, label):
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
                     line.rstrip()) for r in log_of(g)
                    for line in r['text'].split('\n')]
            missing = [line for line in told
                       if line not in ours and not is_torn(line, ours)]
            lost = [line for line in missing if has_lost_some(line, ours)]
            missing = [line for line in missing if line not in lost]
            assert len(lost) <= len(told) // 20, lost
            assert not missing, missing[:5]
            told_panic(told, ours)
            assert any('Linux version' in line for _, line in ours)
            assert not any('Linux version' in line for _, line in told)


# --- another time of the VM's life --------------------------------------------

# A reader of /dev/kmsg waits for more at its end.
CAT_KMSG = 'cat /dev/kmsg & sleep 2; kill $!'


def say(g, text, n=1):
    """Write a line to the log, N times."""
    words = ' '.join(str(i) for i in range(n))
    g.shell(f"for i in {words}; do echo 'ka-time: {text}' >/dev/kmsg; done")


def kmsg_of(g):
    """Return what /dev/kmsg has now, as read_kmsg() does."""
    return parse_kmsg(g.shell(CAT_KMSG))


def log_of(g):
    return rows(g.hmp_qmp('ka log -j -n 0'))


def by_seq(lines):
    return {r['seq']: r for r in lines}


def in_order(lines):
    """The lines have the next numbers, and each sequence number once."""
    for a, b in zip(lines, lines[1:]):
        assert b['number'] == a['number'] + 1, (a, b)
        assert b['seq'] == a['seq'] + 1, (a, b)


def monitor(g, line):
    text = g.hmp_qmp(line).strip()
    assert not text, f'{line}: {text}'


def guest_with_disk(kernel, smp, folder, **how):
    """A guest with a shell, a journal, and a disk for snapshots."""
    disk = os.path.join(folder, 'snapshots.qcow2')
    if not os.path.exists(disk):
        make_disk(disk)
    qemu = (*drive(disk), *how.pop('qemu', ()))
    return Guest(kernel=kernel, smp=smp, end='shell', mem='512M',
                 cmdline=CMDLINE % ('1M', 'loglevel=1'), name='log',
                 timeout=300, qemu=qemu, **how)


def loaded_has(loaded, saved, other):
    """After loadvm: the lines of savevm again, with new numbers, and none of
    those that were printed between."""
    assert len(loaded) == len(saved), (len(loaded), len(saved))
    same_as_kmsg(by_seq(loaded), {r['seq']: as_kmsg(r) for r in saved})
    in_order(loaded)
    assert loaded[0]['number'] == other[-1]['number'] + 1, loaded[0]
    assert loaded[0]['boot'] > other[-1]['boot'], loaded[0]


def says(lines, text):
    return [r for r in lines if r['text'] == 'ka-time: ' + text]


def load_while_it_runs(g):
    """Save, print, load, print: return what ka lists at the end."""
    say(g, 'saved')
    g.qmp('stop')
    monitor(g, 'savevm one')
    saved = log_of(g)
    g.qmp('cont')
    say(g, 'other', 50)
    other = log_of(g)
    assert len(says(other, 'other')) == 50, other[-3:]
    g.qmp('stop')
    monitor(g, 'loadvm one')
    loaded_has(log_of(g), saved, other)
    g.qmp('cont')
    say(g, 'loaded', 3)
    theirs, ours = kmsg_of(g), log_of(g)
    same_as_kmsg(by_seq(ours), theirs)
    in_order(ours)
    new = says(ours, 'loaded')
    assert new[0]['seq'] <= says(other, 'other')[-1]['seq'], new
    assert len(new) == 3 and all(r['seen'] for r in new), new
    assert not says(ours, 'other') and says(ours, 'saved')
    check_counters(g.stat(), len(ours))
    return saved, g.hmp_qmp('ka log -n 0')


def after_load(tap, kernel, smp, label):
    """loadvm: the lines are those of the VM's time that was loaded. So they are
    in the journal, and in another process."""
    with tempfile.TemporaryDirectory(prefix='ka-log.') as tmp:
        journal = os.path.join(tmp, 'journal')
        saved = []
        with tap.test(f'{label}: after loadvm'):
            with guest_with_disk(kernel, smp, tmp, journal=journal) as g:
                saved, text = load_while_it_runs(g)
            same_text(offline(journal, '-n', '0'), text)
        with tap.test(f'{label}: after -loadvm in another process'), \
                guest_with_disk(kernel, smp, tmp,
                                qemu=('-loadvm', 'one', '-S')) as g:
            assert [as_kmsg(r) for r in log_of(g)] == \
                [as_kmsg(r) for r in saved]
            g.qmp('cont')
            say(g, 'elsewhere')
            theirs = kmsg_of(g)
            same_as_kmsg(by_seq(log_of(g)), theirs)
            assert says(log_of(g), 'elsewhere')[0]['seen']


def after_reset(tap, kernel, smp, label):
    """A reset keeps the lines, and those of the next boot follow."""
    with tempfile.TemporaryDirectory(prefix='ka-log.') as tmp, \
            tap.test(f'{label}: after a reset'):
        journal = os.path.join(tmp, 'journal')
        with guest_with_disk(kernel, smp, tmp, journal=journal) as g:
            say(g, 'first')
            first = log_of(g)
            reset(g)
            say(g, 'second')
            theirs, both = kmsg_of(g), log_of(g)
            text = g.hmp_qmp('ka log -n 0')
            check_counters(g.stat(), len(both))
        old = [r for r in both if r['boot'] == first[0]['boot']]
        new = both[len(old):]
        assert [as_kmsg(r) for r in old[:len(first)]] == \
            [as_kmsg(r) for r in first]
        in_order(old)
        in_order(new)
        assert new[0]['number'] == old[-1]['number'] + 1, new[0]
        assert new[0]['seq'] == 0 == min(theirs), new[0]
        same_as_kmsg(by_seq(new), theirs)
        assert says(old, 'first') and not says(new, 'first')
        assert says(new, 'second')[0]['seen']
        assert text.count('\n-- reset') == 1, text[:500]
        same_text(offline(journal, '-n', '0'), text)


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
    for test in after_load, after_reset:
        programs.run_over(tap, args.kernel[:1], args.smp[-1:], test, test=None)
    switched_off(tap, args.kernel[0])
    tap.done()


if __name__ == '__main__':
    main()
