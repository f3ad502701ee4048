#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest allocates without end, and the tracer may use 64 MiB. Resident
memory stays within that limit plus 16 MiB, and the storm takes at most twice
the CPU time that it takes with the tracer and no limit. Each block is
accounted for in `ka stat`; past lives are evicted first; blocks that are kept
are shown; a block that was not kept never becomes an error.

Oracle: QEMU without the tracer, and with a tracer without a limit, which run
the same module, ka_flood. It allocates and frees at once, keeps objects with
many backtraces each, and frees them. The CPU time without the tracer is
printed too, but is no limit here (docs/cost.md has the cost of an event).

usage: test_limits.py [--short] [--kernel K]... [--size N]
"""
import json
import os
import re
import tempfile
import threading
import time

from lib import oracle, programs
from lib.tap import Tap
from scripts.lib.guest import Guest

MIB = 1 << 20
BOUND = 64
SLACK = 16
RUN = '/sys/module/ka_flood/parameters/run'
LINE = re.compile(r'ka_flood: (\w+)\s* n=(\d+) us=(\d+) '
                  r'first=(\S+) last=(\S+)')
KEPT_FOR_BLOCKS = ('blocks.live', 'blocks.freed', 'history.rows',
                   'history.evicted', 'freed.evicted', 'block.dropped',
                   'alloc.again', 'blocks.forgotten')
# The phases in order, each with its number of objects as a function of --size.
# The last phase has as many objects as fit into the limit, whatever the size.
PHASES = (('churn', lambda size: size * 3 // 10), ('keep', lambda size: size),
          ('churn', lambda size: size * 3 // 10), ('free', lambda size: 0),
          ('keep', lambda size: 50000))


class Watch:
    """The peak of resident memory of QEMU since the last call."""

    def __init__(self, pid):
        self.pid, self.most, self.ended = pid, 0, threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def resident(self):
        with open(f'/proc/{self.pid}/statm', encoding='ascii') as f:
            return int(f.read().split()[1]) * os.sysconf('SC_PAGE_SIZE')

    def run(self):
        while not self.ended.wait(0.02):
            try:
                self.most = max(self.most, self.resident())
            except OSError:
                return

    def peak(self):
        peak = max(self.most, self.resident())
        self.most = 0
        return peak / MIB


def wait_line(g, seen):
    end = time.monotonic() + g.timeout
    while True:
        lines = LINE.findall(g.console)
        if len(lines) > seen:
            return lines[seen]
        assert g.alive() and time.monotonic() < end, g.console[-500:]
        time.sleep(0.05)


def flood(kernel, size, share, plugin_opts=None, plugin=True, look=None):
    """Run one guest; return [(phase, peak MiB, CPU seconds, seconds of the
    guest's clock)]. LOOK is called after each phase."""
    rows = []
    with Guest(kernel=kernel, plugin=plugin, plugin_opts=plugin_opts,
               share=share, end='shell', mem='1G', timeout=600,
               name='limits') as g:
        g.shell('echo 7 >/proc/sys/kernel/printk; '
                'insmod /share/ka_flood.ko bits=17')
        watch = Watch(g.proc.pid)
        for i, (what, number) in enumerate(PHASES):
            watch.peak()
            cpu = g.cpu_seconds()
            g.shell(f'echo "{what} {number(size)}" >{RUN}', 600)
            line = wait_line(g, i)
            cpu = g.cpu_seconds() - cpu
            rows.append((what, watch.peak(), cpu, int(line[2]) / 1e6))
            if look:
                look(g, i, line)
        watch.ended.set()
        log = g.qemu_log
    return rows, log


# --- what the bounded tracer says --------------------------------------------

def account(s):
    """Return None if all blocks of `ka stat` are accounted for."""
    made = s.get('events.alloc', 0) + s.get('blocks.split', 0)
    found = sum(s.get(key, 0) for key in KEPT_FOR_BLOCKS)
    checked = sum(s.get(key, 0) for key in
                  ('events.alloc', 'events.free', 'events.resize',
                   'events.rcu', 'gaps'))
    parts = {k: v for k, v in s.items() if k.startswith('memory.') and
             k not in ('memory.bytes', 'memory.limit', 'memory.state')}
    if made != found:
        return f'{made} blocks were made, {found} are reported'
    if s['events.checked'] != checked:
        return f"{s['events.checked']} events, {checked} by kind"
    if s['memory.bytes'] != sum(parts.values()):
        return f"{s['memory.bytes']} bytes, parts {parts}"
    if s['memory.bytes'] > s['memory.limit']:
        return f"{s['memory.bytes']} bytes of {s['memory.limit']}"
    return None


def state_of(g, va):
    rows = g.hmp_qmp(f'ka 0x{va} -j').splitlines()
    states = [json.loads(row).get('state') for row in rows]
    return next((state for state in states if state), None)


class Looker:
    """The checks after each phase."""

    def __init__(self, tap, kernel):
        self.tap, self.kernel, self.stats = tap, kernel, []

    def ok(self, good, name, found=''):
        if isinstance(found, dict):
            found = {k: v for k, v in found.items() if v and k != 'hits'}
        self.tap.ok(good, f'{self.kernel}: {name}', found)

    def after(self, g, i, line):
        s = g.stat()
        name = f'{line[0]} {line[1]} ({i + 1})'
        wrong = account(s)
        self.stats.append(s)
        self.ok(not wrong, f'every event is accounted for after {name}',
                wrong)
        errors = g.hmp_qmp('ka error')
        self.ok(errors.startswith('no errors;'),
                f'nothing is an error after {name}', errors)
        getattr(self, f'after_{i + 1}')(g, s, line)

    def after_1(self, g, s, line):
        self.ok(s['history.rows'] > 100000 and
                s['memory.state'] == 'ok', 'past lives are kept', s)
        self.ok(s.get('stack.dropped', 0) == 0 or
                s['memory.stacks'] > BOUND * MIB / 8,
                'backtraces have their share', s)

    def after_2(self, g, s, line):
        n, first, last = int(line[1]), line[3], line[4]
        self.ok(s['history.rows'] == 0, 'past lives went first', s)
        self.ok(0 < s.get('block.dropped', 0) < n, 'some are not kept', s)
        self.ok(s['memory.state'] != 'ok', 'which is reported', s)
        self.ok(state_of(g, first) == 'A', 'the first object is shown')
        self.ok(state_of(g, last) is None, 'the last one is not')
        self.first = first
        self.tap.note(f'{self.kernel}: {s["blocks.live"]} blocks are kept, '
                      f'{s["block.dropped"]} not')

    def after_3(self, g, s, line):
        self.ok(state_of(g, self.first) == 'A', 'and still is')

    def after_4(self, g, s, line):
        self.ok(state_of(g, self.first) == 'F', 'it is freed')
        self.ok(s.get('free.unknown', 0) > 0, 'others were not known', s)

    def after_5(self, g, s, line):
        self.ok(state_of(g, line[4]) == 'A', 'new ones are kept again', s)
        self.ok(s['memory.state'].startswith('ok again'),
                'which is reported, too', s)


# --- comparisons -------------------------------------------------------------

def check(tap, kernel, size):
    looker = Looker(tap, kernel)
    with tempfile.TemporaryDirectory(prefix='ka-limits.') as tmp:
        share = oracle.make_share(tmp, [], kernel, modules=True)
        without, _ = flood(kernel, size, share, plugin=False)
        free, _ = flood(kernel, size, share)
        bound, log = flood(kernel, size, share, f'mem={BOUND}M',
                           look=looker.after)
    looker.ok(log.count('live blocks alone fill') == 1,
              'one line on stderr says that blocks are not kept', log)
    for rows in zip(without, free, bound):
        mib, cpu, guest = zip(*(row[1:] for row in rows))
        tap.note(f'{rows[0][0]}: resident {mib[0]:.1f} MiB without ka, '
                 f'{mib[1]:.1f} with it, {mib[2]:.1f} with mem={BOUND}M; '
                 f'CPU {cpu[0]:.2f} s, {cpu[1]:.2f} s, {cpu[2]:.2f} s; '
                 f'in the guest {guest[0]:.2f} s, {guest[1]:.2f} s, '
                 f'{guest[2]:.2f} s')
    over = max(b[1] - a[1] for a, b in zip(without, bound))
    looker.ok(over <= BOUND + SLACK,
              f'QEMU has {BOUND} + {SLACK} MiB more at most than without ka',
              f'{over:.1f} MiB')
    slower = sum(b[2] for b in bound) / sum(f[2] for f in free)
    looker.ok(slower <= 2, 'the bound does not slow the tracer below half',
              f"{slower:.2f} times the unbounded tracer's processor time")
    guest = sum(b[3] for b in bound) / sum(w[3] for w in without)
    tap.figures('limits', kernel=kernel, over_mib=round(over, 1),
                slower=round(slower, 3), guest_slower=round(guest, 3))


def main():
    ap = programs.arguments(__doc__, short='6.12 only', smp=False)
    ap.add_argument('--size', type=int,
                    help='millions of objects (1 with --short, else 4)')
    args, tap = programs.parse(ap), Tap()
    millions = args.size or (1 if args.short else 4)
    for kernel in args.kernel:
        with tap.test(f'{kernel}: runs and is read'):
            check(tap, kernel, millions * 1000000)
    tap.done()


if __name__ == '__main__':
    main()
