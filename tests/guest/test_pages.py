#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""With pages=on every event of the page allocator is recorded, and none is
reported as an error: not under reclaim, not while compaction moves pages, not
for huge pages.

Oracle: the guest's own trace (kmem:mm_page_alloc, kmem:mm_page_free), with the
same size, in the same order at each address. On both kernels, on 1 and 4
vCPUs. Without that trace: a guest with a page of 1 GiB, which is a contiguous
range; and one whose memory cgroup refuses to pay for pages, so that the
allocating call itself frees them again.

usage: test_pages.py [--short] [--kernel K]... [--smp N]... [--size N]
"""
import os
import shutil
import tempfile
from collections import Counter

from lib import ksyms, oracle, programs
from lib.tap import Tap
from scripts.lib.arches import ARCHES
from scripts.lib.guest import Guest
from scripts.lib.prepared import kernel_arch

WORDS = ('trace_event=kmem:mm_page_alloc,kmem:mm_page_free'
         f'{oracle.CALL_WORDS} trace_clock=counter no_hash_pointers')
# Since 7.3 single pages in a row may be freed as one block.
TOGETHER = ('free_pages_bulk', 'free_contig_range')
PAGE = 4096
# compaction_free() gets back a page that compaction had passed on. In newer
# kernels this fires the tracepoint, although the page stays with compaction.
KEPT = 'compaction_free'


def set_aside(run, skipped, linear):
    """Yield the guest's events that the tracer must have, with addresses."""
    for event in run.guest:
        if not event.va:
            skipped['no page was to be had'] += 1
        elif KEPT in {run.symbols.name(pc) for pc in event.stack or ()}:
            skipped['kept by compaction'] += 1
        else:
            yield event._replace(va=event.va + linear)


def each_page(event):
    """Yield our event as the guest traces it: one event for each page."""
    if event.hook not in TOGETHER or event.kind != 'free':
        yield event
        return
    for va in range(event.va, event.va + event.req, PAGE):
        yield event._replace(va=va, req=PAGE)


def wrong_callers(match, symbols, hooks):
    """Return the pairs whose caller is not in the guest's backtrace."""
    for event, our in match.pairs:
        stack = event.stack or ()
        caller = our.frames[0] if our.frames else 0
        if (stack and caller not in stack) or \
                hooks.is_page_wrapper(symbols.name(caller)):
            yield event, our


def same_stacks(match):
    """Count the pairs whose backtraces after the caller are the same."""
    same = 0
    for event, our in match.pairs:
        stack, frames = event.stack or (), our.frames
        at = len(stack) - len(frames)
        same += bool(frames) and tuple(stack[max(at, 0):]) == frames
    return same


def show(tap, what, counts):
    for name, count in sorted(counts.items(), key=lambda x: -x[1]):
        tap.note(f'{what} {count:8} {name}')


def check(tap, run, label, linear):
    hooks, skipped = ksyms.HookTable(), Counter()
    guest = list(set_aside(run, skipped, linear))
    ours = [page for e in run.ours if 'pages' in (e.layer, e.family)
            for page in each_page(e)]
    match = oracle.Matching(guest, ours, run.symbols, hooks, run.switched)
    tap.note(f'{label}: guest {len(run.guest)}, matched {len(match.pairs)}')
    same = same_stacks(match)
    show(tap, 'not compared:', skipped + match.skipped)
    show(tap, 'only ours:', match.extra)

    def some(events):
        return '\n'.join(oracle.describe(e, run.symbols)
                         for e in events[:20])
    wrong = list(wrong_callers(match, run.symbols, hooks))
    tap.ok(match.pairs, f'{label}: there are events to compare')
    tap.ok(not match.missing,
           f'{label}: every event of the guest is ours, in order',
           f'{len(match.missing)} missing:\n{some(match.missing)}')
    tap.ok(not match.unexplained, f'{label}: what only we have is explained',
           f'{len(match.unexplained)}:\n{some(match.unexplained)}')
    tap.ok(same >= 0.999 * len(match.pairs),
           f'{label}: whole backtraces are equal',
           f'{same} of {len(match.pairs)}')
    tap.ok(not wrong, f'{label}: callers are frames of the guest, no wrappers',
           f'{len(wrong)}:\n' + some([x for pair in wrong for x in pair]))


def number(stat, name):
    for line in stat.splitlines():
        words = line.split()
        if words[:1] == [name]:
            return int(words[1])
    return 0


def check_stat(tap, stat, errors, label):
    tap.ok(not number(stat, 'errors.recorded'), f'{label}: no errors', errors)
    tap.ok(not any(number(stat, name) for name in
                   ('page.unreadable', 'bulk.unreadable', 'gaps')),
           f'{label}: nothing was lost', stat)


def gigantic(tap, kernel):
    """Allocate a contiguous range of 1 GiB, without the guest's own trace."""
    with tempfile.TemporaryDirectory(prefix='ka-pages.') as tmp:
        shutil.copy(os.path.join(oracle.INSIDE, 'pages.sh'), tmp)
        with Guest(kernel=kernel, run='pages', n=1, share=tmp, mem='6G',
                   plugin_opts='pages=on', timeout=300,
                   name=f'pages-{kernel}') as g:
            assert g.wait_done() == 0, 'the workload failed'
            check_stat(tap, g.hmp_qmp('ka stat'), g.hmp_qmp('ka error -n 5'),
                       f'{kernel}, 1 GiB')


def unpaid(tap, kernel):
    with tempfile.TemporaryDirectory(prefix='ka-pages.') as tmp:
        share = oracle.make_share(os.path.join(tmp, 'share'), ['unpaid.sh'],
                                  kernel, modules=True)
        with Guest(kernel=kernel, run='unpaid', share=share,
                   plugin_opts='pages=on', name=f'unpaid-{kernel}') as g:
            assert g.wait_done() == 0, 'the workload failed'
            assert 'ka_unpaid: 32 of 32 refused' in g.console
            stat = g.hmp_qmp('ka stat')
            tap.ok(number(stat, 'alloc.failed') >= 32,
                   f'{kernel}, unpaid: calls hand out nothing', stat)
            check_stat(tap, stat, g.hmp_qmp('ka error -n 5 -s'),
                       f'{kernel}, unpaid')


def main():
    ap = programs.arguments(__doc__, short='6.12 on 1 vCPU only')
    ap.add_argument('--size', type=int, default=1,
                    help='rounds of the workload')
    args, tap = programs.parse(ap), Tap()

    def one(tap, kernel, smp, label):
        run = oracle.traced_run(
            kernel, smp, args.size, stacks=True, words=WORDS,
            buffer='48M' if smp == 1 else '40M', workload='pages',
            mem='384M' if smp == 1 else '512M', kaslr=False,
            plugin_opts='pages=on')
        check(tap, run, label, ARCHES[kernel_arch(kernel)].linear)
        check_stat(tap, run.stat, run.stat, label)

    for kernel in args.kernel:
        programs.run_over(tap, [kernel], args.smp, one)
        with tap.test(f'{kernel}, 1 GiB: runs and is read'):
            gigantic(tap, kernel)
        with tap.test(f'{kernel}, unpaid: runs and is read'):
            unpaid(tap, kernel)
    tap.done()


if __name__ == '__main__':
    main()
