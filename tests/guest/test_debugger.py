#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A debugger and the tracer work at the same time, and neither disturbs the
other. Oracle: the registers that the debugger reads, and the counters of
`ka stat`.

usage: test_debugger.py [--short] [--kernel K]...
"""
import time

from lib.programs import kernel_options
from lib.rsp import Stub
from lib.tap import Tap
from scripts.lib.guest import Guest

SPIN = '(while :; do :; done) & '
FIND = '(while :; do find /sys /proc; done) >/dev/null 2>&1 & '
# The first word of a page is watched: stack frames must not reach it.
ROOM = 0x600


def wait_for_scans(guest, n):
    end = time.monotonic() + 60
    while guest.stat()['leak.scans'] < n:
        assert time.monotonic() < end, 'the tracer does not scan'
        time.sleep(0.2)


def held_vcpu_stays(kernel):
    """Continue one vCPU, as with gdb's scheduler-locking. The other one stays
    where it is, even when scans stop and continue the VM."""
    with Guest(kernel=kernel, smp=2, end='shell',
               name=f'held-{kernel}') as g:
        g.wait_marker('KA-READY')
        g.shell(SPIN + SPIN + 'echo')
        g.hmp_qmp('ka leak scan --every 1')
        with Stub(g.path('gdb.sock'), timeout=60) as s:
            s.select(2)
            before = s.registers()
            s.go(0, vcpu=1)
            wait_for_scans(g, g.stat()['leak.scans'] + 2)
            s.halt()
            s.select(2)
            assert s.registers() == before
            s.select(1)


def stop_in_a_page(stub, va):
    """Run until a task is at VA with room in the page of its stack; return the
    page."""
    stub.breakpoint(va)
    for _ in range(1000):
        assert stub.go(60), 'the guest does not come there'
        sp = stub.registers()['rsp']
        if sp & 0xfff > ROOM:
            stub.breakpoint(va, False)
            return sp & ~0xfff
    raise AssertionError('no stack has room')


def watched_page_is_read(kernel):
    """Calls on a stack that a debugger watches are recorded."""
    with Guest(kernel=kernel, end='shell', name=f'watched-{kernel}') as g:
        g.wait_marker('KA-READY')
        kfree = g.symbol('kfree')
        g.shell(FIND + 'echo')
        with Stub(g.path('gdb.sock'), timeout=60) as s:
            page = stop_in_a_page(s, kfree)
            before = g.stat()
            s.watch(page)
            for _ in range(100):
                if not s.go(2):
                    break
            s.halt()
            after = g.stat()
            s.watch(page, False)
        assert after['events.checked'] > before['events.checked'] + 100
        for key in 'call.unreadable', 'gaps':
            assert after[key] == before[key], (key, before[key], after[key])


def main():
    tap = Tap()
    for kernel in kernel_options(('6.12', '6.1')):
        with tap.test(f'{kernel}: a vCPU that gdb holds stays where it is'):
            held_vcpu_stays(kernel)
        with tap.test(f'{kernel}: a stack that gdb watches is read'):
            watched_page_is_read(kernel)
    tap.done()


main()
