#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The event oracle: every event of the guest's allocators is recorded.

Oracle: the guest's own trace (kmem tracepoints). Each of its events is ours,
with the same address, sizes and call site, in the same order at each address;
each of our other events has an explanation. In a kernel without types
the sizes were learned before; in one without an unwinder, callers of callers
are unknown.
On both kernels, on 1 and 4 vCPUs.

usage: test_oracle_events.py [--short] [--kernel K]... [--smp N]... [--size N]
"""
from collections import Counter

from lib import ksyms, oracle, programs
from lib.tap import Tap


def show(tap, what, counts):
    for name, count in sorted(counts.items(), key=lambda x: -x[1]):
        tap.note(f'{what} {count:8} {name}')


def drop_inlined(match, kernel):
    """Drop missing allocations for which the kernel calls no function. With
    SLUB_TINY the compiler inlines kmem_cache_alloc_node() where a new cache
    gets its kmem_cache_node: the call site is that of do_kmem_cache_create()
    then."""
    if not oracle.has_option(kernel, 'SLUB_TINY'):
        return 0
    kept = [e for e in match.missing if e.name != 'kmem_cache_alloc' or
            match.symbols.name(e.site) != '__kmem_cache_create_args']
    dropped = len(match.missing) - len(kept)
    match.missing = kept
    return dropped


def check(tap, run, label, kernel):
    hooks = ksyms.HookTable()
    match = oracle.Matching(run.guest, run.ours, run.symbols, hooks,
                            run.switched, types=oracle.has_types(kernel))
    match.skipped['inlined by the compiler'] += drop_inlined(match, kernel)
    tap.note(f'{label}: guest {len(run.guest)}, ours {len(run.ours)}, '
             f'matched {len(match.pairs)}, with unknown sizes {match.unsized}')
    show(tap, 'not compared:', match.skipped)
    show(tap, 'only ours:', match.extra)

    sites, wrong = Counter(), []
    walks = oracle.has_unwinder(run.stat)
    for event, our in match.pairs:
        found = oracle.site_class(event, our, run.symbols, hooks)
        if not found and not walks and len(our.frames) == 1:
            found = 'not known: no unwinder'
        sites[found] += 1
        if found is None:
            wrong.append((event, our))
    show(tap, 'call site:', {str(k): v for k, v in sites.items()})

    tap.figures('events', banner=oracle.banner(run.stat),
                types=oracle.types(run.stat),
                matched=len(match.pairs), missing=len(match.missing),
                unexplained=len(match.unexplained), wrong=len(wrong),
                unsized=match.unsized)

    def some(events):
        return '\n'.join(oracle.describe(e, run.symbols)
                         for e in events[:20])
    tap.ok(match.pairs, f'{label}: there are events to compare')
    if 'types.learned' in run.stat:
        tap.ok(not match.unsized, f'{label}: sizes were learned before the '
               'trace begins', f'{match.unsized} are unknown')
    tap.ok(not match.missing,
           f'{label}: every event of the guest is ours, in order',
           f'{len(match.missing)} missing:\n{some(match.missing)}')
    tap.ok(not match.unexplained, f'{label}: what only we have is explained',
           f'{len(match.unexplained)}:\n{some(match.unexplained)}')
    tap.ok(not wrong, f'{label}: every call site is a frame of ours',
           f'{len(wrong)}:\n' + some([x for pair in wrong for x in pair]))


def main():
    ap = programs.arguments(
        __doc__, short='6.12 on 1 vCPU only, a small workload')
    ap.add_argument('--size', type=int, help='rounds of the workload')
    args, tap = programs.parse(ap), Tap()
    size = args.size or (2 if args.short else 12)

    def one(tap, kernel, smp, label):
        run = oracle.traced_run(kernel, smp, size, stacks=False,
                                buffer='192M' if smp == 1 else '96M')
        check(tap, run, label, kernel)

    programs.run_over(tap, args.kernel, args.smp, one)
    tap.done()


if __name__ == '__main__':
    main()
