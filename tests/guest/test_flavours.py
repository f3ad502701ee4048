#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels with another configuration boot and run a workload of files and
processes. Oracle: no error is reported, and no counter of what is unknown
grows.
"""
from lib.tap import Tap
from scripts.lib.guest import Guest

tap = Tap()
# On PREEMPT_RT softirqs run in threads, so they belong to a task.
FLAVOURS = ('6.12-rt',)
UNKNOWN = ('errors.recorded', 'free.unknown', 'events.unknown_block', 'gaps',
           'call.unreadable', 'call.dropped', 'cache.unknown', 'task.unknown')


def clean(kernel, smp):
    with Guest(kernel=kernel, smp=smp, run='work', n=2, timeout=400,
               name=f'flavour-{kernel}-{smp}') as g:
        assert g.wait_done() == 0
        numbers = g.stat()
        tap.note(f'{kernel}, {smp} vCPU: {numbers["events.checked"]} events')
        for key in UNKNOWN:
            assert not numbers.get(key), \
                f'{key}: {numbers[key]}\n' + g.hmp_qmp('ka error -s -n 3')


for flavour in FLAVOURS:
    for cpus in (1, 4):
        with tap.test(f'{flavour}, {cpus} vCPU'):
            clean(flavour, cpus)

tap.done()
