#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest runs with KVM, in an outer machine that QEMU emulates, and is traced
by breakpoints.

Oracle: the counters of what was not seen are 0; the guest's own console shows
no complaint about its text, which the breakpoints change; the blocks of the map
are those that commands list.

usage: test_kvm.py [--short] [--kernel K]...
"""
import re

from lib import programs
from lib.tap import Tap
from scripts.lib import outer
from scripts.lib.arches import KERNEL_VA

UNSEEN = ('call.stale', 'call.unreadable', 'call.dropped', 'task.unknown',
          'cache.unknown', 'free.unknown')
COMPLAINTS = re.compile(r'WARNING:|BUG:|Oops|ftrace bug|int3|general protect')


def check_counters(g):
    stat = g.stat()
    for name in UNSEEN:
        assert not stat.get(name), f'{name} is {stat[name]}'
    assert stat['events.alloc'] > 10000, stat['events.alloc']
    assert stat['events.free'] > 1000, stat['events.free']


def check_lists(g):
    text = g.hmp_qmp('ka error')
    assert text.startswith('no errors'), text
    text = g.hmp_qmp('ka 0-ffffffffffffffff --layer kmalloc -n 1')
    assert re.search(' A ' + KERNEL_VA.pattern, text), text


def check_console(g):
    bad = [line for line in g.console.splitlines() if COMPLAINTS.search(line)]
    assert not bad, bad
    assert 'not all calls' not in g.qemu_log, g.qemu_log


def traced(_, kernel, smp, __):
    with outer.start(kernel, smp, run='work', name=f'kvm-{kernel}-{smp}') as g:
        assert g.wait_done() == 0
        check_counters(g)
        check_lists(g)
        check_console(g)


def main():
    tap = Tap()
    ap = programs.arguments(__doc__, short='6.1 on 1 vCPU only', smp=False)
    args = programs.parse(ap, kernels=('6.1', '6.12'), short_kernels=('6.1',))
    tap.note('KVM of the host: ' +
             ('usable' if outer.has_kvm() else 'not usable'))
    programs.run_over(tap, args.kernel, (1,) if args.short else (1, 2),
                      traced, 'all calls are seen')
    tap.done()


if __name__ == '__main__':
    main()
