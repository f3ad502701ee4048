#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""lldb's `process plugin packet monitor` runs commands of ka, and the VM
continues. Oracle: the answers of the monitor for the same stopped VM.
"""
from lib.lldb_packets import lldb
from lib.tap import Tap
from scripts.lib.guest import Guest

tap = Tap()
COMMANDS = ('ka show init_task -s', 'ka error', 'ka 0-ffffffffffffffff -n 500',
            'ka alloc start_kernel -n 20 -j', 'ka nonsense', 'ka help show')


with Guest(name='lldb') as g:
    g.wait_marker('KA-END')
    g.qmp('stop')
    want = [g.hmp_qmp(c).strip('\n') for c in COMMANDS]
    found = lldb(g, COMMANDS)
    for command, ours, theirs in zip(COMMANDS, want, found):
        tap.ok(ours == theirs, f'{command}: as in the monitor',
               f'{ours!r}\nlldb: {theirs!r}')
    tap.ok(g.qmp('query-status')['running'], 'the VM goes on')

tap.done()
