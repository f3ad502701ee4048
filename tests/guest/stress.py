#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A storm of allocations on all vCPUs, while the tracer is asked without
pause, the VM is stopped each second, and a debugger single-steps through
hooked instructions: the tracer's own state holds (check=on), no error is
reported, what it says is live is what the module in the guest counts, and in
windows of some seconds each event of the guest's own trace is in the journal.

usage: stress.py [--short] [--kernel K]... [--cpus N] [--minutes M]
"""
import argparse
import contextlib
import os
import random
import re
import struct
import tempfile
import threading
import time
from collections import Counter, defaultdict, namedtuple

import ftrace
import kaguest
import ksyms
import oracle
from gdbserial import Stub
from kaguest import Guest, Tap

MARK_BYTES = 3000
END = 500               # mark of window N's end: N + END
BUFFER_KB = 16384       # of the guest's trace, for each vCPU
# What the module's kinds are called, and the sites that allocate them.
SITES = {
    'ka_stress_kmalloc': 'kmalloc', 'ka_stress_krealloc': 'kmalloc',
    'ka_stress_large': 'large', 'ka_stress_cache': 'cache',
    'ka_stress_bulk': 'cache', 'ka_stress_vmalloc': 'vmalloc',
    'ka_stress_percpu': 'percpu',
}
# Where the debugger steps: nearly every task passes there, and interrupts.
STEPPED = 'kfree', 'kmem_cache_alloc_noprof', 'kmem_cache_alloc', \
    '__kmalloc_noprof', '__kmalloc', 'kmem_cache_free'
# Counters that must be 0: what was lost, or is wrong.
ZERO = ('check.violations', 'errors.recorded', 'call.dropped',
        'call.unreadable', 'bulk.unreadable', 'block.dropped',
        'stack.dropped', 'error.dropped', 'cache.dropped', 'journal.lost',
        'free.unknown', 'gaps', 'call.stale')
QUERIES = ('ka stat', 'ka error', 'ka alloc ka_stress:ka_stress_kmalloc -n 50',
           'ka free ka_stress:ka_stress_free -n 50 -s', 'ka -n 200',
           'ka --layer cache -n 100 -v', 'ka check', 'ka {va} --history',
           'ka show {va} -s', 'ka {va}-{end} -j -n 100')

Window = namedtuple('Window', 'number folder')


# --- what disturbs -----------------------------------------------------------

class Disturber(threading.Thread):
    """Does a thing again and again until stop(), and rests for as long as it
    took in between, so that the guest gets on; an exception is kept."""

    def __init__(self, pause, *things):
        super().__init__(daemon=True)
        self.pause, self.things = pause, things
        self.done = Counter()
        self.error = None
        self._end = threading.Event()

    def run(self):
        i, took = 0, 0
        try:
            while not self._end.wait(max(self.pause, took)):
                thing = self.things[i % len(self.things)]
                begin = time.monotonic()
                thing()
                took = time.monotonic() - begin
                self.done[thing.__name__] += 1
                i += 1
        except Exception as e:      # told by the test
            self.error = e

    def stop(self):
        self._end.set()
        self.join(120)
        if self.error:
            raise self.error
        assert not self.is_alive(), 'a disturbance does not end'


class Disturbance:
    """All that goes on beside the storm."""

    def __init__(self, guest, symbols):
        self.guest, self.symbols = guest, symbols
        self.lock = threading.Lock()        # of the QMP connection
        self.vas = [0]
        self.rand = random.Random(1)
        stops = [self.hmp_stop, self.attach]
        if guest.arch.gdb_name == 'i386:x86-64':
            stops.append(self.single_step)
        self.threads = [Disturber(0.02, self.query), Disturber(0.5, *stops)]
        self.stepped = [va for va in map(symbols.address, STEPPED) if va]

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, kind, value, tb):
        for t in self.threads:
            with contextlib.nullcontext() if not kind else \
                    contextlib.suppress(Exception):
                t.stop()
        return False

    def done(self):
        return sum((t.done for t in self.threads), Counter())

    def ask(self, line):
        with self.lock:
            return self.guest.hmp_qmp(line)

    def query(self):
        va = self.rand.choice(self.vas)
        line = self.rand.choice(QUERIES).format(va=f'{va:x}',
                                                end=f'{va + 4096:x}')
        text = self.ask(line)
        found = re.findall(r'\bA ([0-9a-f]{16})-', text)
        if found:
            self.vas = [int(va, 16) for va in found[:50]]
        if line == 'ka check':
            assert text.startswith('ok: '), text
        assert not text.startswith('ka: '), f'{line}: {text}'

    def hmp_stop(self):
        self.guest.hmp('stop')
        time.sleep(0.02)
        self.guest.hmp('cont')

    def attach(self):
        with Stub(self.guest.path('gdb.sock')) as stub:
            stub.registers()

    def single_step(self):
        """Into a hooked function, and out of it again."""
        with Stub(self.guest.path('gdb.sock')) as stub:
            stub.run_to(self.rand.choice(self.stepped))
            # rax rbx rcx rdx rsi rdi rbp rsp: the eighth.
            sp, = struct.unpack_from('<Q', bytes.fromhex(
                stub.registers()[:128]), 56)
            ra, = struct.unpack('<Q', stub.memory(sp, 8))
            stub.step(3)
            stub.run_to(ra)
            stub.step(3)


# --- what is live ------------------------------------------------------------

def live_by_guest(text):
    """{kind: (blocks, bytes, sum)}"""
    return {kind: tuple(map(int, numbers)) for kind, *numbers in
            re.findall(r'^(\w+) (\d+) (\d+) (\d+)$', text, re.M)}


def live_by_tracer(ask, symbols):
    """The same of blocks whose first frame is a site; without those that
    kfree_rcu() has got."""
    sums = defaultdict(lambda: [0, 0, 0])
    ranges = {site: symbols.range(site) for site in SITES}
    for site, (lo, hi) in ranges.items():
        text = ask(f'ka alloc {lo:x}-{hi:x} --state A -n 0')
        for va, req, frame, rest in re.findall(
                r'A ([0-9a-f]{16})-[0-9a-f]{16} \( *([0-9a-f]+)/ *[0-9a-f]+\) '
                r'alloc\[([0-9a-f]+)(.*)$', text, re.M):
            if lo <= int(frame, 16) <= hi and ' rcu[' not in rest:
                row = sums[SITES[site]]
                row[0] += 1
                row[1] += int(req, 16)
                row[2] += int(va, 16)
    return {kind: (n, size, total % (1 << 64))
            for kind, (n, size, total) in sums.items()}


def same_live(theirs, ask, symbols, seconds=20):
    """Compare until they agree: vfree() in an interrupt is left to a
    worker. Returns ours."""
    end = time.monotonic() + seconds
    while True:
        ours = live_by_tracer(ask, symbols)
        if all(ours.get(kind, (0, 0, 0)) == row
               for kind, row in theirs.items()) or time.monotonic() > end:
            return ours
        time.sleep(0.5)


# --- events ------------------------------------------------------------------

class Matching(oracle.Matching):
    """Of a window: both sides begin and end with the same marks."""

    @staticmethod
    def _first(guest, traced):
        return 0


def is_mark(event, site, number, symbols, kind):
    return kind and event.req == MARK_BYTES + number and \
        symbols.name(site) == 'ka_stress_mark'


def guest_window(window):
    files = ftrace.read_out(window.folder)
    events = ftrace.load(files)
    expected = ftrace.expected_entries(files)
    assert len(events) == expected, \
        f'{len(events)} entries decoded, the guest counts {expected}'
    symbols = ksyms.Symbols(files['proc.kallsyms'])
    marks = [[i for i, e in enumerate(events)
              if is_mark(e, e.site, n, symbols, e.name == 'kmalloc')]
             for n in (window.number, window.number + END)]
    assert all(marks), f'window {window.number}: the guest has no mark'
    return events[marks[0][0]:marks[1][-1] + 1], symbols


def our_windows(path, windows):
    """(window, the guest's events, symbols, ours) of each, in one pass."""
    ours = oracle.our_events(path)
    for window in windows:
        guest, symbols = guest_window(window)
        events, begun, last = [], False, -1
        for event in ours:
            alloc = event.kind == 'alloc' and event.frames
            if not begun:
                begun = is_mark(event, event.frames[0] if alloc else 0,
                                window.number, symbols, alloc)
            if not begun:
                continue
            events.append(event)
            if is_mark(event, event.frames[0] if alloc else 0,
                       window.number + END, symbols, alloc):
                last = len(events)
            # The marks are in a row on their CPU.
            if last >= 0 and len(events) > last + 5000:
                break
        assert last >= 0, f'window {window.number}: no mark in the journal'
        yield window, guest, symbols, events[:last]


def compare_windows(tap, journal, windows, label):
    hooks = ksyms.HookTable()
    total = Counter()
    bad = []
    for window, guest, symbols, ours in our_windows(journal, windows):
        match = Matching(guest, ours, symbols, hooks)
        wrong = [pair for pair in match.pairs
                 if oracle.site_class(*pair, symbols, hooks) is None]
        tap.note(f'window {window.number}: guest {len(guest)}, ours '
                 f'{len(ours)}, matched {len(match.pairs)}, missing '
                 f'{len(match.missing)}, unexplained '
                 f'{len(match.unexplained)}, wrong {len(wrong)}')
        tap.note(f'  not compared: {dict(match.skipped)}')
        total.update(matched=len(match.pairs), missing=len(match.missing),
                     unexplained=len(match.unexplained), wrong=len(wrong))
        for event in (match.missing + match.unexplained)[:10]:
            bad.append(f'window {window.number}: '
                       f'{oracle.describe(event, symbols)}')
        bad += [f'site: {oracle.describe(e, symbols)}' for pair in wrong[:5]
                for e in pair]
    tap.figures('stress', label=label, windows=len(windows), **total)
    tap.ok(total['matched'] and not bad,
           f'{label}: every event of {len(windows)} windows is matched',
           '\n'.join(bad[:40]))


# --- one run -----------------------------------------------------------------

class Run:
    def __init__(self, tap, guest, args, tmp):
        self.tap, self.guest, self.args, self.tmp = tap, guest, args, tmp
        self.windows = []
        self.live = Counter()

    def script(self, *words):
        words = ' '.join(map(str, words))
        text = self.guest.shell(f'sh /share/stress-window.sh {words} 2>&1',
                                timeout=600)
        assert text.rstrip().endswith('ok'), f'{words}: {text}'
        return text

    def collect(self, name):
        """What the guest has just sent, in a folder."""
        self.guest.out = os.path.join(self.tmp, name)
        return self.guest.collect()

    def load(self):
        self.script('load', self.args.pace, self.args.low_mb)
        files = ftrace.read_out(self.collect('symbols'))
        return ksyms.Symbols(files['proc.kallsyms'])

    def window(self, disturbance):
        number = len(self.windows) + 1
        self.script('begin', number, BUFFER_KB)
        time.sleep(self.args.window)
        theirs = live_by_guest(self.script('end', number + END))
        ours = same_live(theirs, disturbance.ask, disturbance.symbols)
        self.live['same' if ours == theirs else 'different'] += 1
        if ours != theirs:
            self.tap.note(f'window {number}: live by the guest {theirs}, '
                          f'by the tracer {ours}')
        self.windows.append(
            Window(number, self.collect(f'window-{number}')))

    def storm(self, symbols):
        """Windows with the storm between them, until the time is over."""
        end = time.monotonic() + 60 * self.args.minutes
        with Disturbance(self.guest, symbols) as disturbance:
            while not self.windows or time.monotonic() < end:
                self.window(disturbance)
                self.guest.shell('echo 1 >/sys/module/ka_stress/parameters/run'
                                 )
                time.sleep(max(0, min(self.args.every - self.args.window,
                                      end - time.monotonic())))
        return disturbance.done()

    def finish(self, done, label):
        tap = self.tap
        self.script('rest')
        stat = self.guest.stat()
        check = self.guest.hmp_qmp('ka check').strip()
        work = self.guest.shell('cat /sys/module/ka_stress/parameters/done; '
                                'rmmod ka_stress; dmesg | grep -E '
                                '"BUG|Oops|WARNING|Call Trace"')
        tap.note(f'{label}: the module did {" ".join(work.split())}')
        tap.note(f'{label}: beside it {dict(done)}')
        tap.note(check)
        for name in sorted(stat):
            if name.startswith(('call.', 'return.', 'check.', 'events.',
                                'free.', 'cost.check')):
                tap.note(f'{name} {stat[name]}')
        tap.ok(check.startswith('ok: ') and stat.get('check.rounds', 0) and
               stat.get('check.whole', 0),
               f"{label}: the tracer's state holds together", check)
        bad = {name: stat[name] for name in ZERO if stat.get(name)}
        tap.ok(not bad, f'{label}: nothing is lost, no error is reported',
               bad and f'{bad}\n' + self.guest.hmp_qmp('ka error -s -n 5'))
        tap.ok(self.live['same'] and not self.live['different'],
               f'{label}: what is live is what the module counts',
               dict(self.live))
        tap.ok(all(done[what] for what in ('query', 'hmp_stop', 'attach')),
               f'{label}: the VM was stopped and asked meanwhile', done)
        tap.ok(not re.search('BUG|Oops|WARNING', work),
               f'{label}: the guest is as sound as before', work)
        tap.figures('stress-run', label=label, events=stat['events.checked'],
                    **done)


def run(tap, kernel, args):
    label = f'{kernel}, {args.cpus} vCPU'
    with tempfile.TemporaryDirectory(prefix='ka-stress.') as tmp:
        share = oracle.make_share(os.path.join(tmp, 'share'),
                                  ['stress-window.sh'], kernel, modules=True)
        journal = os.path.join(tmp, 'journal')
        with Guest(kernel=kernel, smp=args.cpus, end='shell', share=share,
                   out=os.path.join(tmp, 'out'), journal=journal,
                   plugin_opts='check=on', timeout=600,
                   mem=f'{512 + 64 * args.cpus}M',
                   name=f'stress-{kernel}-{args.cpus}') as g:
            g.wait_marker('KA-END')
            r = Run(tap, g, args, tmp)
            r.finish(r.storm(r.load()), label)
            tap.ok('check:' not in g.qemu_log, f'{label}: QEMU is quiet',
                   g.qemu_log)
        compare_windows(tap, journal, r.windows, label)


def main():
    ap = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    ap.add_argument('--short', action='store_true',
                    help='one kernel, 4 vCPUs, a minute')
    ap.add_argument('--kernel', action='append')
    ap.add_argument('--cpus', type=int, default=4, help='vCPUs, 1 to 16')
    ap.add_argument('--minutes', type=float, default=1)
    ap.add_argument('--window', type=float, default=3,
                    help='seconds that the guest traces itself')
    ap.add_argument('--every', type=float, default=20,
                    help='seconds from one such window to the next')
    ap.add_argument('--pace', type=int, default=2000,
                    help='microseconds that each thread rests after 32 steps')
    ap.add_argument('--low-mb', type=int, default=96,
                    help="the guest's memory is taken until so many MiB are "
                    'left')
    args = ap.parse_args()
    if not 1 <= args.cpus <= 16:
        ap.error(f'--cpus {args.cpus}: 1 to 16 are possible')
    tap = Tap()
    for kernel in args.kernel or (['6.12'] if args.short else
                                  ['6.12', '6.1']):
        with tap.test(f'{kernel}: runs and is read'):
            run(tap, kernel, args)
    tap.done()


if __name__ == '__main__':
    main()
