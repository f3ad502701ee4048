#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel whose only symbols are its exports is traced, and nothing false is
said of it.

Oracle: the same kernel with all its symbols (without= hides them). Nearly all
its allocations are recorded; no error is reported, and ka error says why; no
return address has a name. Without ORC each stack has one frame.

Without exports, types or variables too, ka base, top, task and access print no
number that is not known: a range, and the bytes of an object of a cache, are
those of the whole kernel, or are said to be not known.

usage: test_few_symbols.py [--short] [--kernel K]... [--smp N]...
"""
import functools
import json

from lib import programs
from lib.tap import Tap
from scripts.lib.guest import Guest
from scripts.lib.prepared import kernel_arch

EVENTS_AT_LEAST = 0.98
# What is hidden from a kernel whose numbers are compared.
HIDDEN = 'types+data+percpu+unwind', 'types', 'data', 'percpu'


def boot(kernel, smp, without):
    """Run the workload; return what the tests compare."""
    with Guest(kernel=kernel, smp=smp, run='procs', n=1, timeout=600,
               cmdline='nokaslr', plugin_opts='access=on' +
               (f',without={without}' if without else ''),
               name=f'few-{kernel}-{smp}') as g:
        g.wait_marker('KA-DONE')
        g.hmp('stop')
        rows = [json.loads(line) for line in
                g.hmp_qmp('ka top --by caller -n 400 -j').splitlines()]
        return {
            'stat': g.stat(), 'errors': g.hmp('ka error'),
            'log': g.qemu_log, 'base': g.rows('ka base'),
            'caches': g.rows('ka top --by cache -n 0'),
            'tasks': g.rows('ka task'), 'access': g.hmp('ka access'),
            'callers': [r['caller'] for r in rows if 'caller' in r],
        }


def ranges(rows):
    """Return {name: (start, last)} of the ranges that ka base knows. The last
    byte may be not known."""
    return {row['name'] + (row['note'] if row['name'] == 'percpu' else ''):
            (row['start'], row.get('last')) for row in rows if row.get('start')}


def is_range(have, right):
    return have == right or \
        right is not None and have == (right[0], None)


def check_ranges(full, few):
    know, have = ranges(full['base']), ranges(few['base'])
    wrong = {name: (at, know.get(name)) for name, at in have.items()
             if not is_range(at, know.get(name))}
    assert not wrong, wrong
    for row in few['base']:
        if row['name'] in know and row['name'] not in have:
            assert row['note'].startswith('not known: '), row


def check_sizes(full, few):
    """Each object of a cache has the bytes that it has in the other boot. If
    the cache of some was found later, ka says that their bytes are missing."""
    size = {row['cache']: row['reserved'] / row['allocs']
            for row in full['caches'] if row.get('cache') and row['allocs']}
    wrong = [(row, size[row['cache']]) for row in few['caches']
             if row.get('cache') in size and
             row['reserved'] > row['allocs'] * size[row['cache']]]
    assert not wrong, wrong[:3]
    # Also those whose cache is not known.
    total = few['caches'][0]
    empty = [row for row in few['caches'][1:]
             if row['blocks'] and not row['live']]
    assert not empty or total['unsized'], empty


def check_tasks(few):
    """If no task of an allocation is known, no task has a number of them."""
    stat, rows = few['stat'], [r for r in few['tasks'] if r['type'] == 'task']
    if stat['task.unknown'] >= stat['events.alloc'] + stat['events.free']:
        counted = [row for row in rows if row['blocks'] is not None]
        assert not counted, counted[:3]


def check_numbers(tap, label, full, few):
    with tap.test(f'{label}: ranges are right, or not known'):
        check_ranges(full, few)
    with tap.test(f'{label}: bytes of objects are right, or not known'):
        check_sizes(full, few)
    with tap.test(f'{label}: sums of tasks are known, or not printed'):
        check_tasks(few)
    if few['stat']['kernel.types'] in ('none', 'learned') or \
            few['stat']['kernel.symbols_from'] == 'exports':
        with tap.test(f'{label}: ka says that no access is checked'):
            assert 'checked since' not in few['access'], few['access']


def check(tap, kernel, smp, label, hidden=HIDDEN):
    full = boot(kernel, smp, None)
    few = boot(kernel, smp, 'kallsyms')
    with tap.test(f'{label}: the symbols are the exports'):
        assert few['stat']['kernel.symbols_from'] == 'exports'
        assert full['stat']['kernel.symbols_from'] == 'kallsyms'
        assert 'only exported symbols' in few['log'], few['log']
    with tap.test(f'{label}: nearly all events are recorded'):
        got, all_ = (x['stat']['events.alloc'] for x in (few, full))
        tap.note(f'{label}: {got} allocations, {all_} with all symbols')
        assert got >= EVENTS_AT_LEAST * all_
    with tap.test(f'{label}: no error is reported, and ka says why'):
        assert few['errors'].startswith('no errors;'), few['errors']
        assert 'no error is certain' in few['errors'], few['errors']
    check_numbers(tap, f'{label}, exports only', full, few)
    for words in hidden:
        check_numbers(tap, f'{label}, without {words}', full,
                      boot(kernel, smp, words))
    with tap.test(f'{label}: frames have no names'):
        named = [c for c in few['callers'] if not c.startswith('0x')]
        assert few['callers'] and not named, named[:5]
    if kernel_arch(kernel) == 'x86_64':
        check_no_unwinder(tap, kernel, smp, label)


def check_no_unwinder(tap, kernel, smp, label):
    with tap.test(f'{label}: without ORC a stack has one frame'):
        stat = boot(kernel, smp, 'unwind')['stat']
        assert stat['kernel.unwind'] == 'none'
        assert stat['stack.no_unwinder'] > 10000
        assert not stat['stack.end_marker'] + stat['stack.end_user']


def main():
    ap = programs.arguments(__doc__, short='6.12 on 1 vCPU')
    args, tap = programs.parse(ap, kernels=programs.KERNELS[:1]), Tap()
    programs.run_over(tap, args.kernel, args.smp,
                      functools.partial(check, hidden=HIDDEN[:1])
                      if args.short else check, test=None)
    tap.done()


if __name__ == '__main__':
    main()
