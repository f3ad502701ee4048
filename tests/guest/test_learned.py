#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What ka learns of a kernel without types is right, or unknown.

replay   A run is recorded, with the kernel's types (or those of its vmlinux, if
         it was built here: dwarf-6.12), and replayed without them (the
         plugin's option without=types). Oracle: the journal of the
         recorded run. Both have the same events; each task, cache and size of
         the replay is that of the record, or unknown. After the first 200 ms at
         most one in a thousand is unknown. Some of the tasks are threads. Then
         the same without variables (without=types+data): one in a hundred.
trace    A run without types on several vCPUs. Oracle: the guest's own trace,
         which has sizes and pids.
loadvm   A state of a VM has what was learned: after it is loaded, no event has
         an unknown task or cache.

The time of a replay counts instructions: one each nanosecond.

usage: test_learned.py [--short] [--case NAME] [--kernel K]...
"""
import itertools
import os
import shutil
import tempfile
from collections import Counter

import test_snapshot as snapshot
from test_faults import wait_stopped
from lib import ksyms, oracle, programs
from lib.tap import Tap
from scripts.lib.guest import Guest
from scripts.lib.prepared import kernel_file

WITHOUT = 'without=types'
EARLY_US = 200 * 1000
ENOUGH = 0.999
# Where struct pages are is learned from calls that are rare early in the boot.
ENOUGH_WITHOUT_DATA = 0.99
SLAB = 'kmalloc', 'cache'
KINDS = 'alloc', 'free', 'resize', 'rcu'


# --- a recorded run, and its replay ------------------------------------------

class Recorded:
    """Runs of one kernel with the same input: first recorded, then replayed."""

    def __init__(self, kernel, folder):
        self.kernel, self.folder = kernel, folder
        self.share = oracle.make_share(os.path.join(folder, 'share'),
                                       ['learned.sh'], kernel)
        shutil.copy(oracle.build_tool('ka_threads', kernel),
                    os.path.join(self.share, 'ka-threads'))
        self.icount = None

    def run(self, how, plugin_opts=None):
        """Run it, until where the recorded run was stopped. Return the journal
        and the numbers of `ka stat`."""
        rr = f'rr={how},rrfile={os.path.join(self.folder, "rr.bin")}'
        log = os.path.join(self.folder, how)
        with Guest(kernel=self.kernel, run='learned', mem='512M', timeout=900,
                   share=self.share, journal=log, plugin_opts=plugin_opts,
                   name=f'learned-{how}-{self.kernel}', options=['--icount'],
                   qemu=['-icount', rr, '-no-shutdown']) as g:
            if how == 'record':
                assert g.wait_done() == 0
                g.qmp('stop')
                self.icount = g.qmp('query_replay')['icount']
            else:
                g.qmp('replay_break', icount=self.icount)
                wait_stopped(g, 600)
            stat = g.stat()
        return [e for e in oracle.our_events(log) if e.kind in KINDS], stat


def judge(want, got):
    """Say of a value without types: right, wrong or unknown."""
    return 'right' if got == want else 'unknown' if got is None else 'wrong'


class Comparison:
    """Counts of right, wrong and unknown values, early and late in the boot."""

    def __init__(self):
        self.counts, self.wrong = Counter(), []

    def add(self, what, want, got, late, event):
        verdict = judge(want, got)
        self.counts[what, verdict, late] += 1
        if verdict == 'wrong':
            self.wrong.append((what, want, got, event))

    def late(self, verdict):
        return sum(n for (_, v, late), n in self.counts.items()
                   if v == verdict and late)

    def share(self):
        return self.late('right') / (self.late('right') + self.late('wrong') +
                                     self.late('unknown'))


# vfree() in an interrupt is queued; if it is not known whether a call is in
# an interrupt, it is the free, and the worker's call its second half.
AGAIN = 8               # KT_EVF_AGAIN
QUEUED, QUEUED_WITHOUT = ('rcu', 'vfree_atomic'), ('free', 'vfree')


def is_again(event, before):
    """Return true if the event is part of the free BEFORE it: vfree() jumped
    to vfree_atomic(), see capture/record-frees.c."""
    return event.hook == 'vfree_atomic' and event.flags & AGAIN and \
        (before.kind, before.hook, before.va) == (*QUEUED_WITHOUT, event.va)


def are_same(want, got):
    calls = [(e.kind, e.hook) for e in (want, got)]
    return (want.va, want.us) == (got.va, got.us) and (
        calls[0] == calls[1] or calls == [QUEUED, QUEUED_WITHOUT])


def compare(record, replay):
    found = Comparison()
    start = record[0].us
    for want, got in zip(record, replay):
        assert are_same(want, got), f'not the same run: {want}, {got}'
        late = want.us - start >= EARLY_US
        found.add('task', (want.pid, want.comm),
                  None if got.pid is None else (got.pid, got.comm), late, got)
        if want.kind == 'alloc' and want.layer in SLAB:
            found.add('cache', want.cache, got.cache, late, got)
            found.add('sizes', (want.req, want.act),
                      (got.req, got.act) if got.act else None, late, got)
        elif want.kind == 'free' and want.cache:
            found.add('cache', want.cache, got.cache, late, got)
        else:
            found.add('sizes', (want.req, want.act), (got.req, got.act), late,
                      got)
    return found


def threads_of(events):
    """Return the pids of the events of ka-threads."""
    return {e.pid for e in events if e.comm and e.comm == 'ka-threads'}


def check_replay(tap, kernel, record, runs, without, enough):
    replay, learned = runs.run('replay', without)
    replay = replay[:1] + [e for before, e in itertools.pairwise(replay)
                           if not is_again(e, before)]
    tap.note(f"{kernel}, {without}: {learned['types.learned']}")
    found = compare(record, replay)
    for key, n in sorted(found.counts.items()):
        tap.note(f'{kernel}: {n:7} {" ".join(map(str, key[:2]))} '
                 f'{"late" if key[2] else "early"}')
    tap.figures('learned', share=round(found.share(), 5),
                wrong=len(found.wrong))
    assert len(record) == len(replay), (len(record), len(replay))
    assert not found.wrong, found.wrong[:5]
    assert not learned['types.contradicted'], learned['types.learned']
    assert found.share() >= enough, found.share()


def types_of(kernel):
    """Return the plugin's option for a kernel that has no types of its own, but
    was built here with debug information; None if it needs none."""
    if oracle.has_types(kernel):
        return None
    return 'types=' + kernel_file(kernel, 'vmlinux')


def replayed(tap, kernel, folder):
    runs = Recorded(kernel, folder)
    record, stat = runs.run('record', types_of(kernel))
    assert stat['kernel.types'] in ('BTF', 'file'), 'nothing to compare with'
    assert len(threads_of(record)) > 10, 'no threads'
    check_replay(tap, kernel, record, runs, WITHOUT, ENOUGH)
    check_replay(tap, kernel, record, runs, WITHOUT + '+data',
                 ENOUGH_WITHOUT_DATA)


# --- the guest's own trace ---------------------------------------------------

def traced(tap, kernel, smp):
    run = oracle.traced_run(kernel, smp, 2, stacks=False, buffer='96M',
                            plugin_opts=WITHOUT)
    match = oracle.Matching(run.guest, run.ours, run.symbols,
                            ksyms.HookTable(), run.switched, types=False)
    found = Comparison()
    for event, our in match.pairs:
        found.add('pid', event.pid, our.pid, True, our)
    tap.note(f'{kernel}, {smp} vCPU: {len(match.pairs)} pairs, '
             f'{found.late("unknown")} with unknown task')
    assert not match.missing, match.missing[:5]
    assert not found.wrong, found.wrong[:5]
    assert found.late('right') > found.late('unknown')


# --- a state of the VM -------------------------------------------------------

UNKNOWN = 'task.unknown', 'cache.unknown'


def loaded(kernel):
    with snapshot.guest(kernel, 1, 'learned', plugin_opts=WITHOUT) as g:
        g.shell('echo')
        stat = g.stat()
        before = {key: stat[key] for key in ('types.learned', *UNKNOWN)}
        snapshot.save(g)
        snapshot.work(g)
        g.qmp('stop')
        snapshot.monitor(g, 'loadvm one')
        snapshot.work(g)
        stat = g.stat()
    assert 'unknown' not in before['types.learned'], before
    assert stat['vm.loads'] == 1 and not stat['errors.recorded'], stat
    assert {key: stat[key] for key in before} == before, (before, stat)


CASES = 'replay', 'trace', 'loadvm'


def main():
    ap = programs.arguments(__doc__, short='replay of 6.12 only', smp=False)
    ap.add_argument('--case', choices=CASES, help='all if not given')
    args, tap = programs.parse(ap), Tap()
    cases = [args.case] if args.case else CASES[:1] if args.short else CASES
    for kernel in args.kernel:
        if 'replay' in cases:
            with tap.test(f'{kernel}: learned values are right in a replay'), \
                    tempfile.TemporaryDirectory(prefix='ka-learned.') as tmp:
                replayed(tap, kernel, tmp)
        if 'trace' in cases:
            with tap.test(f'{kernel}: learned values are those of its trace'):
                traced(tap, kernel, 4)
        if 'loadvm' in cases:
            with tap.test(f'{kernel}: learned members survive loadvm'):
                loaded(kernel)
    tap.done()


if __name__ == '__main__':
    main()
