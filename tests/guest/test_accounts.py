#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Accounts: the sums that `ka top` prints, in all and by caller, are right.

Oracle: the sums over the guest's own trace of its allocators, plus our events
that this trace cannot have, by reason. On both kernels, on 1 and 4 vCPUs.

usage: test_accounts.py [--short] [--kernel K]... [--smp N]... [--size N]

Amounts of events that both sides have come from the guest's trace alone: the
bytes of an allocation, and the bytes of a free from the latest allocation that
the guest traced at that address, as krealloc() changed it. The VM is stopped
before it is asked; the journal has all events until then, and must answer the
same.
"""
import json
import subprocess
import time
from collections import Counter, defaultdict

from lib import journal, ksyms, oracle, programs
from lib.tap import Tap


TRACED = "in the guest's trace"
NO_POINT = 'has no tracepoint'
OUTSIDE = 'while the guest did not trace'
AMOUNTS = ('allocs', 'asked', 'reserved', 'frees', 'freed', 'freed_reserved')
TABLES = ('caller', 'stack', 'cache', 'task', 'module', 'size')


class Sums:
    """Sums of amounts: of all events, by caller, and by reason."""

    def __init__(self):
        self.all, self.why = Counter(), defaultdict(Counter)
        self.caller = defaultdict(Counter)

    def add(self, why, caller, **amounts):
        for key, n in amounts.items():
            self.all[key] += n
            self.why[why][key] += n
            self.caller[caller][key] += n


def caller_of(event):
    return event.frames[0] if event.frames else 0


class Model:
    """Accounts from the journal's events. If the guest traced an event, its
    numbers are used."""

    def __init__(self, match):
        self.sums, self.live, self.stray = Sums(), {}, 0
        self.traced = {our.seq: guest for guest, our in match.pairs}

    def why(self, event):
        if event.seq in self.traced:
            return TRACED
        return OUTSIDE if oracle.tracepoint(event) else NO_POINT

    def apply(self, event):
        if event.kind == 'alloc':
            self.alloc(event)
        elif event.kind == 'free':
            self.free(event)
        elif event.kind == 'resize':
            self.resize(event)

    def alloc(self, event):
        guest = self.traced.get(event.seq, event)
        caller = caller_of(event)
        block = [guest.req, max(guest.req, guest.act), caller]
        self.sums.add(self.why(event), caller, allocs=1, asked=block[0],
                      reserved=block[1])
        self.live[event.va] = block

    def free(self, event):
        block = self.live.pop(event.va, None)
        if block is None:
            self.stray += 1
            return
        asked, reserved, caller = block
        self.sums.add(self.why(event), caller, frees=1, freed=asked,
                      freed_reserved=reserved)

    def resize(self, event):
        block = self.live.get(event.va)
        if block is None:
            return
        asked, reserved, caller = block
        now = max(event.req, reserved)
        self.sums.add('krealloc in place', caller,
                      asked=max(0, event.req - asked),
                      freed=max(0, asked - event.req),
                      reserved=now - reserved)
        block[:2] = event.req, now


def read_top(text):
    """Return (sums of all, {caller: row}) of `ka top -j`."""
    rows = [json.loads(line) for line in text.splitlines()]
    callers = {int(r['caller'] or '0', 16): r for r in rows
               if r['type'] == 'top'}
    return rows[0], callers


def differing(want, got):
    return [f'{key}: {want[key]}, ka top has {got[key]}' for key in AMOUNTS
            if want[key] != got[key]]


def check_sites(tap, run, match, label):
    """Count the events that both sides have with the same call site."""
    hooks, sites = ksyms.HookTable(), Counter()
    for guest, our in match.pairs:
        sites[str(oracle.site_class(guest, our, run.symbols, hooks))] += 1
    for name, n in sites.most_common():
        tap.note(f'{label}: call site {n:8} {name}')
    tap.ok(not sites['None'], f'{label}: each call site is a frame of ours',
           str(sites))


def site_counts(run, match):
    """Return the allocations by call site of the guest's trace, if the site is
    our caller; and the callers that have other allocations too."""
    theirs, others = defaultdict(Counter), set()
    hooks = ksyms.HookTable()
    for guest, our in match.pairs:
        if our.kind != 'alloc':
            continue
        found = oracle.site_class(guest, our, run.symbols, hooks)
        if found == 'first frame':
            theirs[guest.site].update(allocs=1, asked=guest.req,
                                      reserved=guest.act)
        else:
            others.add(caller_of(our))
    return theirs, others


def check_call_sites(tap, run, match, model, callers, label):
    """If the guest traced all allocations of a caller at the same call site,
    its numbers alone must be those of ka top."""
    theirs, mixed = site_counts(run, match)
    for event in run.ours:
        if event.kind in ('alloc', 'resize') and model.why(event) != TRACED:
            mixed.add(caller_of(event))
    for va in model.resized:
        mixed.add(va)
    pure = {site: n for site, n in theirs.items() if site not in mixed}
    wrong = [f'{run.symbols.offset(site)}: {dict(n)}, ka top has '
             f'{callers.get(site)}' for site, n in pure.items()
             if site not in callers or
             any(callers[site][key] != n[key] for key in n)]
    tap.note(f'{label}: {len(pure)} call sites by the guest\'s trace alone, '
             f'{sum(n["allocs"] for n in pure.values())} allocations')
    tap.ok(pure and not wrong, f'{label}: ka top of a call site is the sum '
           "over the guest's trace", '\n'.join(wrong[:20]))


def check(tap, run, asked, label):
    match = oracle.Matching(run.guest, run.ours, run.symbols,
                            ksyms.HookTable(), run.switched)
    model = Model(match)
    model.resized = set()
    for event in run.ours:
        if event.kind == 'resize' and event.va in model.live:
            model.resized.add(model.live[event.va][2])
        model.apply(event)
    whole, callers = read_top(asked['live']['caller'])
    tap.ok(match.pairs and not match.missing and not match.unexplained,
           f"{label}: the guest's trace is ours, what more we have is "
           'explained', f'{len(match.missing)} missing, '
           f'{len(match.unexplained)} unexplained')
    for why, n in model.sums.why.items():
        tap.note(f'{label}: {why}: ' +
                 ', '.join(f'{key} {n[key]}' for key in AMOUNTS))
    tap.note(f'{label}: ka top: ' +
             ', '.join(f'{key} {whole[key]}' for key in AMOUNTS))
    wrong = differing(model.sums.all, whole)
    tap.ok(not wrong, f'{label}: totals are the sums', '\n'.join(wrong))
    tap.ok(whole['lost'] == 0 and whole['stray'] == model.stray,
           f'{label}: no block was lost sight of', str(whole))
    wrong = [f'{run.symbols.offset(pc)}: {line}'
             for pc in set(model.sums.caller) | set(callers)
             for line in (differing(model.sums.caller[pc], callers[pc])
                          if pc in callers else ['not in ka top'])]
    tap.ok(not wrong, f'{label}: so are those of {len(callers)} callers',
           '\n'.join(wrong[:20]))
    check_sites(tap, run, match, label)
    check_call_sites(tap, run, match, model, callers, label)
    tap.figures('accounts', banner=oracle.banner(run.stat),
                allocs=whole['allocs'], frees=whole['frees'],
                callers=len(callers), traced=len(match.pairs),
                wrong=len(wrong))


def check_tables(tap, asked, label):
    """Each table adds up to the sum of all; the journal has the same text."""
    for by in TABLES:
        rows = [json.loads(line)
                for line in asked['live'][by].splitlines()]
        bad = [key for key in AMOUNTS + ('live', 'blocks', 'slack', 'cross')
               if sum(r[key] for r in rows[1:]) != rows[0][key]]
        tap.ok(len(rows) > 1 and not bad, f'{label}: rows by {by} add up',
               str(bad))
        tap.ok(asked['live'][by] == asked['file'][by],
               f'{label}: by {by} the journal says the same')
    tap.ok(asked['check'].startswith('ok: '), f'{label}: ka check is content',
           asked['check'])


def check_points(tap, asked, label):
    """A mark is in the journal, which also accepts other times."""
    tap.ok(asked['diff'] == asked['diff file'],
           f'{label}: ka diff of a mark is the same from the journal',
           asked['diff'][:1000] + asked['diff file'][:1000])
    whole = json.loads(asked['live']['caller'].splitlines()[0])
    ever = json.loads(asked['diff ever'].splitlines()[0])
    tap.ok(not differing(whole, ever),
           f'{label}: from time 0 on the difference is everything',
           asked['diff ever'][:1000])


def from_file(log, *words):
    return subprocess.run([journal.program(), '-f', log, *words], check=True,
                          text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL).stdout


def ask(asked):
    def then(g, log):
        g.hmp_qmp('ka mark late')
        time.sleep(2)
        g.qmp('stop')
        asked['diff'] = g.hmp_qmp('ka diff late -s -n 0')
        asked['diff file'] = from_file(log, 'diff', 'late', '-s', '-n', '0')
        asked['diff ever'] = from_file(log, 'diff', '@0', '-j', '-n', '0')
        for by in TABLES:
            line = f'top -j -n 0 --by {by}'
            asked['live'][by] = g.hmp_qmp('ka ' + line)
            asked['file'][by] = from_file(log, *line.split())
        asked['check'] = g.hmp_qmp('ka check')
    return then


def main():
    ap = programs.arguments(
        __doc__, short='6.12 on 1 vCPU only, a small workload')
    ap.add_argument('--size', type=int, help='rounds of the workload')
    args, tap = programs.parse(ap), Tap()
    size = args.size or (1 if args.short else 8)

    def one(tap, kernel, smp, label):
        asked = {'live': {}, 'file': {}}
        run = oracle.traced_run(
            kernel, smp, size, stacks=False, then=ask(asked),
            buffer='192M' if smp == 1 else '96M')
        check(tap, run, asked, label)
        check_tables(tap, asked, label)
        check_points(tap, asked, label)

    programs.run_over(tap, args.kernel, args.smp, one)
    tap.done()


if __name__ == '__main__':
    main()
