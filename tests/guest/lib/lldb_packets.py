# SPDX-License-Identifier: GPL-2.0-or-later
"""Run commands of ka in lldb."""
import re
import subprocess

PACKET = 'process plugin packet monitor '


def lldb(guest, commands):
    """Return what lldb printed for each command, without the packet that it
    names at the end. The guest continues afterwards."""
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
