#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""lldb's `process plugin packet monitor` prints what the monitor prints of the
same stopped VM, and lets it go on."""
import re
import subprocess

from kaguest import Guest, Tap

tap = Tap()
PACKET = 'process plugin packet monitor '
COMMANDS = ('ka show init_task -s', 'ka error', 'ka 0-ffffffffffffffff -n 500',
            'ka alloc start_kernel -n 20 -j', 'ka nonsense', 'ka help show')


def lldb(guest, commands):
    """What it printed of each command, without the packet that it names at
    the end. The guest goes on afterwards."""
    argv = ['lldb', '--no-lldbinit', '--batch', '-o',
            'process connect --plugin gdb-remote unix-connect://' +
            guest.path('gdb.sock')]
    for c in commands:
        argv += ['-o', PACKET + c]
    argv += ['-o', 'process detach']
    text = subprocess.run(argv, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          timeout=guest.timeout, text=True, errors='replace',
                          check=False).stdout.replace('\r', '')
    parts = re.sub(r'  packet: qRcmd,\w+\nresponse: \w+\n', '',
                   text).split('(lldb) ')
    return [next((p.split('\n', 1)[1].strip('\n') for p in parts
                  if p.startswith(PACKET + c + '\n')), None)
            for c in commands]


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
