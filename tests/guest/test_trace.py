#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The live trace has exactly the events of its time that pass its filters, in
their order, and says of each free what was freed; in the long form also across
a reset and a loadvm. Oracle: the journal of the same run, filtered here, with a
map of blocks of our own.

usage: test_trace.py [--short] [--kernel K]... [--smp N]...

The VM stands when a trace begins and when it ends. So the number of events that
`ka stat` says at these two times is the place of the trace in the journal.
"""
import fnmatch
import json
import os
import re
import signal
import subprocess
import tempfile
import time
from collections import Counter, namedtuple

from lib import oracle, programs
from lib.reset import reset
from lib.tap import Tap
from scripts.lib.guest import Guest
from scripts.lib.prepared import kernel_arch, paths
from scripts.lib.snapshot_disk import drive, make_disk

KERNELS = '6.12', '5.10', '6.1', '6.18', '7.3', 'arm64-6.12', 'riscv64-6.12'
WORK = ('for i in 1 2; do cat /proc/self/maps /proc/[0-9]/stat; '
        'ls -l /proc/self/fd /proc/self/ns; done >/dev/null 2>&1')
EVENT = re.compile(r' *(\d+)us (\w+) +([0-9a-f]{16}) '
                   r'\( *([0-9a-f]+)/ *([0-9a-f]+)\)(.*) \[(.*)\]$')
GAP = re.compile(r' *\d+us gap *$')
MARK = re.compile(r'-- (reset|clear|load) 0$')
END = re.compile(r'(\d+) events?, (\d+) overwritten$')
PAGE = 12

Event = namedtuple('Event', 'kind va size actual layer cache comm pid frames')
Block = namedtuple('Block', 'va end size layer cache comm pid frames')
Window = namedtuple('Window', 'name words passes ring first last text')


def program():
    return os.path.join(paths()['build'], 'monitor-cmds', 'ka')


# --- the journal, filtered ----------------------------------------------------

class Blocks:
    """Blocks by the pages that they touch. A freed block stays until its memory
    is allocated again."""

    def __init__(self):
        self.pages = {}

    @staticmethod
    def _pages(block):
        return range(block.va >> PAGE, (block.end >> PAGE) + 1)

    def copy(self):
        other = Blocks()
        other.pages = {page: dict(rows) for page, rows in self.pages.items()}
        return other

    def find(self, va):
        for block in self.pages.get(va >> PAGE, {}).values():
            if block.va <= va <= block.end:
                return block
        return None

    def _remove(self, block):
        for page in self._pages(block):
            del self.pages[page][block.va]

    def add(self, block):
        for page in self._pages(block):
            for old in list(self.pages.get(page, {}).values()):
                if old.va <= block.end and block.va <= old.end:
                    self._remove(old)
        for page in self._pages(block):
            self.pages.setdefault(page, {})[block.va] = block

    def apply(self, e):
        old = self.find(e.va)
        if e.kind == 'alloc':
            end = e.va + max(e.size, e.actual, 1) - 1
            self.add(Block(e.va, end, e.size, e.layer, e.cache, e.comm, e.pid,
                           e.frames))
        elif e.kind == 'resize' and old and old.va == e.va:
            end = max(old.end, e.va + e.size - 1)
            self.add(old._replace(size=e.size, end=end))


def parse(line):
    m = EVENT.match(line)
    if not m:
        return None
    words = dict(w.split('=', 1) for w in m[6].split())
    return Event(m[2], int(m[3], 16), int(m[4], 16), int(m[5], 16),
                 words.get('layer'), words.get('cache'), words.get('comm'),
                 int(words.get('pid', -1)), m[7])


def of_block(block):
    """The end of a line that says what is known of the block."""
    text = f' of ({block.size:5x}) layer={block.layer}'
    if block.cache:
        text += f' cache={block.cache}'
    if block.comm:
        text += f' comm={block.comm} pid={block.pid}'
    return text


def expected(journal, windows, saved=0):
    """Read the journal; return the lines of each window. SAVED: number of
    events before savevm."""
    found = {w.name: [] for w in windows}
    blocks, n, of_snapshot = Blocks(), 0, Blocks()
    with subprocess.Popen([program(), '-f', journal, 'events', '-x',
                           '-n', '0'],
                          stdout=subprocess.PIPE, text=True) as ka:
        for line in ka.stdout:
            line = line.rstrip('\n')
            e, block = parse(line), None
            mark = MARK.match(line)
            if mark:
                blocks = of_snapshot if mark[1] == 'load' else Blocks()
            elif not e and not GAP.match(line):
                continue
            else:
                n += 1
            if e and e.kind in ('free', 'rcu', 'resize'):
                block = blocks.find(e.va)
            for w in windows:
                if w.first < n + bool(mark) <= w.last and \
                        (not e or w.passes(e, block)):
                    found[w.name].append(line.rstrip() +
                                         (of_block(block) if block else ''))
            if e:
                blocks.apply(e)
            if n == saved:
                of_snapshot = blocks.copy()
    assert ka.returncode == 0, ka.returncode
    return found


# --- filters, as we understand them -------------------------------------------

def everything(e, block):
    del e, block
    return True


def of_task(pattern):
    return lambda e, b: any(x and x.comm and fnmatch.fnmatch(x.comm, pattern)
                            for x in (e, b))


def of_cache(pattern):
    return lambda e, b: any(x and x.cache and fnmatch.fnmatch(x.cache, pattern)
                            for x in (e, b))


def of_layer(layer):
    return lambda e, b: (e if e.kind == 'alloc' else b or e).layer == layer


def of_size(lo, hi):
    return lambda e, b: any(
        x and lo <= x.size <= hi
        for x in (e if e.kind in ('alloc', 'resize') else None, b))


def by_code(lo, hi):
    def passes(e, b):
        x = e if e.kind == 'alloc' else b
        return bool(x) and any(lo <= int(pc, 16) <= hi
                               for pc in x.frames.split('(')[0].split())
    return passes


def both(*tests):
    return lambda e, b: all(t(e, b) for t in tests)


def function(g, name):
    """Return the addresses of a function, from the guest's kallsyms."""
    text = g.shell(f"grep -A1 ' [tT] {name}$' /proc/kallsyms")
    first, second = re.findall(r'^([0-9a-f]{16}) ', text, re.M)[:2]
    return int(first, 16), int(second, 16) - 1


# --- the guest ----------------------------------------------------------------

def lines_of(answer):
    """Split an answer; return its lines, and the numbers of its end."""
    *lines, end = answer.splitlines()
    m = END.match(end.removesuffix('; the trace has ended'))
    assert m, end
    shown = [line for line in lines if not MARK.match(line)]
    assert len(shown) == int(m[1]), (len(shown), end)
    return [line.rstrip() for line in lines], int(m[2])


def events_of(g):
    return g.stat()['events.checked']


def work(g, smp, command=WORK):
    line = f'({command}) & ' * (smp - 1) + f'({command}); wait; echo all done'
    assert 'all done' in g.shell(line), 'no end of the workload'


def begin(g, words):
    g.qmp('stop')
    answer = g.hmp_qmp('ka trace on ' + words)
    assert answer.startswith('tracing '), answer
    first = events_of(g)
    g.qmp('cont')
    return first


def finish(g):
    g.qmp('stop')
    assert g.hmp_qmp('ka trace off').startswith('the trace has ended; ')
    last = events_of(g)
    g.qmp('cont')
    return last


def window(g, smp, name, words, passes, command=WORK, ring=None):
    """Trace one workload; return what the trace has."""
    first = begin(g, words + (f' --ring {ring}' if ring else ' --ring 1000000'))
    work(g, smp, command)
    last = finish(g)
    return Window(name, words, passes, ring, first, last,
                  g.hmp_qmp('ka trace -x'))


class Follow:
    """ka -q SOCKET trace --follow, on a QMP socket of its own."""

    def __init__(self, folder):
        self.socket = os.path.join(folder, 'follow.sock')
        self.file = os.path.join(folder, 'followed')
        self.proc = None

    def begin(self):
        self.proc = subprocess.Popen(
            [program(), '-q', self.socket, 'trace', '--follow', '-x', '-o',
             self.file], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)

    def lines(self, n):
        """Wait for N lines; end the program, and return all lines."""
        end = time.monotonic() + 60
        while time.monotonic() < end and len(self._read()) < n:
            time.sleep(0.2)
        self.proc.send_signal(signal.SIGINT)
        out, _ = self.proc.communicate(timeout=60)
        lines = self._read()
        assert (self.proc.returncode, out) == (
            0, f'ka: follow ended: {len(lines)} events shown, 0 lost; a trace '
            'goes on until ka trace off\n'), (self.proc.returncode, out)
        return lines

    def _read(self):
        with open(self.file, encoding='ascii') as f:
            return [line.rstrip() for line in f.read().splitlines()]


def two_readers(g, smp, follow, module):
    """The monitor reads while the VM runs; another client follows the trace.
    Both get everything."""
    first = begin(g, '--ring 1000000')
    follow.begin()
    work(g, smp)
    parts = [g.hmp_qmp('ka trace -x')]
    if module:
        assert 'all done' in g.shell('insmod /share/ka_rules.ko; '
                                     'echo all done')
    parts += [g.hmp_qmp('ka trace -n 10 -x'), g.hmp_qmp('ka trace -x')]
    work(g, smp, 'ls -l /proc/self/fd >/dev/null')
    last = finish(g)
    parts.append(g.hmp_qmp('ka trace -x'))
    lines = []
    for part in parts:
        part = re.sub(r'^\.\.\. \d+ more\n', '', part, flags=re.M)
        got, overwritten = lines_of(part)
        assert not overwritten, overwritten
        lines += got
    followed = follow.lines(len(lines))
    text = '\n'.join(lines) + f'\n{len(lines)} events, 0 overwritten\n'
    return followed, Window('everything', '', everything, None, first, last,
                            text)


def all_windows(g, smp):
    lo, hi = function(g, 'alloc_empty_file')
    return [
        window(g, smp, 'a task', '--task ls', of_task('ls')),
        window(g, smp, 'a cache', '--cache filp', of_cache('filp')),
        window(g, smp, 'caches', '--cache kmalloc-*', of_cache('kmalloc-*')),
        window(g, smp, 'a layer and a size', '--layer kmalloc --size 11-40',
               both(of_layer('kmalloc'), of_size(0x11, 0x40))),
        window(g, smp, 'a function', f'--alloc {lo:x}-{hi:x}',
               by_code(lo, hi)),
        window(g, smp, 'all filters', f'--task cat --cache f* --layer cache '
               f'--alloc {lo:x}-{hi:x} --size 1-1000',
               both(of_task('cat'), of_cache('f*'), of_layer('cache'),
                    by_code(lo, hi), of_size(1, 0x1000))),
        window(g, smp, 'a small ring', '', everything, ring=1000),
    ]


# --- comparing ----------------------------------------------------------------

def same(window_, want):
    got, overwritten = lines_of(window_.text)
    kept = want[-window_.ring:] if window_.ring else want
    wrong = [(i, x, y) for i, (x, y) in enumerate(zip(kept, got)) if x != y]
    assert not wrong and len(got) == len(kept), \
        (len(kept), len(got), wrong[:2])
    assert overwritten == len(want) - len(kept), (overwritten, len(want))


def kinds(lines):
    events = (parse(line.split(' of (')[0]) for line in lines)
    return Counter(e.kind for e in events if e)


def has_other_tasks(lines, comm):
    """Frees of the task's blocks by others: RCU, interrupts, workers."""
    return sum(1 for line in lines
               if ' of (' in line and f'comm={comm} ' in line.split(' of (')[1]
               and f'comm={comm} ' not in line.split(' of (')[0])


def check_json(g):
    """A JSON object of each event, with the block that it is about."""
    begin(g, '--cache filp')
    work(g, 1, 'cat /proc/self/stat >/dev/null')
    finish(g)
    rows = [json.loads(x) for x in g.hmp_qmp('ka trace -j -s').splitlines()]
    end = rows.pop()
    assert (end['type'], end['events'], end['overwritten'], end['on']) == \
        ('trace_end', len(rows), 0, 0), end
    frees = [r for r in rows if r['kind'] == 'free']
    assert frees and all(r['type'] == 'traced' for r in rows), rows[:3]
    assert all(r['block_cache'] == 'filp' and r['block_layer'] == 'cache' and
               r['block_size'] for r in frees), frees[:3]


def groups_of(listing):
    """Return {directory: names} of the links in /sys/kernel/slab: all names of
    a merged cache link to one directory."""
    groups = {}
    for name, target in re.findall(r' (\S+) -> (\S+)$', listing, re.M):
        groups.setdefault(target, []).append(name)
    return groups


def merged_caches(g):
    """Each name of a merged cache finds it. Return the number of names that are
    not the kernel's own. Oracle: /sys/kernel/slab."""
    found = 0
    for names in groups_of(g.shell('ls -l /sys/kernel/slab')).values():
        known = {n: re.findall(r' cache=(\S+)',
                               g.hmp_qmp(f'ka --cache {n} -n 1 -v'))
                 for n in names}
        caches = {tuple(c) for n, c in known.items()}
        # Nothing is known of a cache that was never used.
        assert len(caches) == 1, known
        found += sum(1 for n, c in known.items() if c and c[0] != n)
    return found


def run(tap, kernel, smp, label):
    module = kernel_arch(kernel) == 'x86_64' and \
        oracle.can_build_modules(kernel)
    with tempfile.TemporaryDirectory(prefix='ka-trace.') as tmp:
        journal, follow = os.path.join(tmp, 'journal'), Follow(tmp)
        share = oracle.make_share(os.path.join(tmp, 'share'), [], kernel,
                                  modules=module)
        with Guest(kernel=kernel, smp=smp, end='shell', share=share,
                   journal=journal, name='trace', timeout=300,
                   qemu=('-qmp',
                         f'unix:{follow.socket},server=on,wait=off')) as g:
            g.shell('true')
            nothing = g.hmp_qmp('ka trace')
            followed, first = two_readers(g, smp, follow, module)
            windows = [first, *all_windows(g, smp)]
            with tap.test(f'{label}: JSON'):
                check_json(g)
            with tap.test(f'{label}: names of merged caches'):
                tap.note(f'{merged_caches(g)} other names')
            stat, errors = g.stat(), g.hmp_qmp('ka error')
        want = expected(journal, windows)
        for w in windows:
            with tap.test(f'{label}: {w.name}: the events of the journal'):
                assert want[w.name]
                same(w, want[w.name])
        with tap.test(f'{label}: a client that follows has them, too'):
            assert followed == want['everything'], (len(followed),
                                                    len(want['everything']))
        with tap.test(f'{label}: kinds of events, and frees by others'):
            tap.note(f"{len(want['everything'])} events")
            assert {'alloc', 'free'} <= set(kinds(want['everything']))
            assert not module or {'rcu', 'resize'} <= \
                set(kinds(want['everything'])), kinds(want['everything'])
            assert has_other_tasks(want['a task'], 'ls'), 'no free by others'
        with tap.test(f'{label}: counters'):
            assert nothing.startswith('nothing is traced'), nothing
            assert stat['trace.overwritten'] >= \
                len(want['a small ring']) - 1000 > 0, stat['trace.overwritten']
            assert errors.startswith('no error'), errors


# --- boots --------------------------------------------------------------------

def monitor(g, line):
    text = g.hmp_qmp(line).strip()
    assert not text, f'{line}: {text}'


def boots(tap, kernel, smp, label):
    """A trace goes on after a loadvm and after a reset, with marks between."""
    with tempfile.TemporaryDirectory(prefix='ka-trace.') as tmp, \
            tap.test(f'{label}: across a loadvm and a reset'):
        journal = os.path.join(tmp, 'journal')
        disk = make_disk(os.path.join(tmp, 'snapshots.qcow2'))
        with Guest(kernel=kernel, smp=smp, end='shell', mem='512M',
                   journal=journal, qemu=drive(disk), name='trace',
                   timeout=600) as g:
            work(g, smp)
            g.qmp('stop')
            saved = events_of(g)
            monitor(g, 'savevm one')
            g.qmp('cont')
            first = begin(g, '--cache filp --ring 1000000')
            work(g, smp)
            g.qmp('stop')
            before = events_of(g)
            monitor(g, 'loadvm one')
            shift = before - events_of(g)
            assert shift > 0, shift
            g.qmp('cont')
            work(g, smp)
            reset(g)
            work(g, smp)
            last = finish(g) + shift
            text = g.hmp_qmp('ka trace')
            plain = g.hmp_qmp('ka trace --after 0 -x')
        w = Window('boots', '', of_cache('filp'), None, first, last,
                   plain.rpartition('-- next')[0] + text.splitlines()[-1])
        want = expected(journal, [w], saved)['boots']
        same(w, want)
        marks = [line for line in want if MARK.match(line)]
        assert marks == ['-- load 0', '-- reset 0'], marks
        old, new = text.split('-- reset 0')
        assert '+0x' not in old and '+0x' in new, text[:1000]


def main():
    ap = programs.arguments(__doc__, short='6.12 on 4 vCPUs only')
    args, tap = programs.parse(ap, kernels=KERNELS, short_smps=(4,)), Tap()
    programs.run_over(tap, args.kernel, args.smp, run, test=None)
    if not args.short:
        programs.run_over(tap, args.kernel, args.smp[-1:], boots, test=None)
    tap.done()


if __name__ == '__main__':
    main()
