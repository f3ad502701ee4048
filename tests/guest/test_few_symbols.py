#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel whose only symbols are its exports is traced, and nothing false is
said of it.

Oracle: the same kernel with all its symbols (without= hides them). Nearly all
its allocations are recorded; no error is reported, and ka error says why; no
return address has a name. Without ORC each stack has one frame.

usage: test_few_symbols.py [--short] [--kernel K]... [--smp N]...
"""
import json

from lib import programs
from lib.tap import Tap
from scripts.lib.guest import Guest
from scripts.lib.prepared import kernel_arch

EVENTS_AT_LEAST = 0.98


def boot(kernel, smp, without):
    """Run the workload; return what the tests compare."""
    with Guest(kernel=kernel, smp=smp, run='procs', n=1, timeout=600,
               plugin_opts=without and f'without={without}',
               name=f'few-{kernel}-{smp}') as g:
        g.wait_marker('KA-DONE')
        g.hmp('stop')
        rows = [json.loads(line) for line in
                g.hmp_qmp('ka top --by caller -n 400 -j').splitlines()]
        return {
            'stat': g.stat(), 'errors': g.hmp('ka error'),
            'log': g.qemu_log,
            'callers': [r['caller'] for r in rows if 'caller' in r],
        }


def check(tap, kernel, smp, label):
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
    programs.run_over(tap, args.kernel, args.smp, check, test=None)
    tap.done()


if __name__ == '__main__':
    main()
