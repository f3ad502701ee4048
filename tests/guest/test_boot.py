#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Both kernels boot with the tracer, and `ka stat` answers on each connection.
With a file that is no kernel, or without a kernel, the VM still runs and `ka`
says why it has no data.

Oracle: the guest reaches its shell; counters of what is unknown are 0.

usage: test_boot.py [--short] [--kernel K]...
"""
import os
import re
import tempfile
import time

from lib.programs import kernel_options
from lib.tap import Tap
from scripts.lib.arches import KERNEL_VA
from scripts.lib.guest import Guest
from scripts.lib.prepared import kernel_file

tap = Tap()


def says_stat(text):
    """Return whether the text is the report of `ka stat`, not an error."""
    return 'events' in text and 'unknown command' not in text


def boot(kernel, smp):
    with Guest(kernel=kernel, smp=smp, name=f'boot-{kernel}-{smp}') as g:
        g.wait_marker('KA-END')
        for way, text in (('the monitor', g.hmp('ka stat')),
                          ('QMP', g.hmp_qmp('ka stat')),
                          ('gdb', g.gdb(['mon ka stat']))):
            assert says_stat(text), f'ka stat by {way}: {text!r}'
        assert g.qmp('query-status')['running'], 'gdb left the guest stopped'
        shown = g.hmp_qmp('ka 0-ffffffffffffffff --layer kmalloc -n 1')
        assert re.search(' A ' + KERNEL_VA.pattern, shown), \
            f'no kmalloc block after boot: {shown!r}'


def nothing_to_trace(kernel, symbols, word):
    with Guest(kernel=kernel, symbols=symbols, name='no-symbols') as g:
        g.wait_marker('KA-END')
        text = g.hmp_qmp('ka')
        assert word in text, f'ka does not say why ({word}): {text!r}'
        assert says_stat(g.hmp_qmp('ka stat'))


def next_boot(kernel):
    """Reset the VM: the kernel has another KASLR offset, and again all is seen
    from the first event."""
    with Guest(kernel=kernel, name='reset') as g:
        g.wait_marker('KA-END')
        g.qmp('set_action', reboot='reset')
        before = g.stat()
        g.hmp_qmp('system_reset')
        until = time.monotonic() + 120
        while g.console.count('KA-END') < 2:
            assert time.monotonic() < until, 'it does not boot again'
            time.sleep(0.1)
        after = g.stat()
        assert after['events.checked'] > 1.5 * before['events.checked'], after
        for key in ('free.unknown', 'errors.recorded', 'gaps'):
            assert not after.get(key), f'{key} after a reset: {after[key]}'


def no_kernel_runs(kernel):
    with Guest(kernel=kernel, options=['--disk-boot'], name='no-kernel') as g:
        text = g.hmp_qmp('ka')
        assert 'no kernel was recognised' in text and '32 bits' in text, text
        assert says_stat(g.hmp_qmp('ka stat'))


KERNELS = kernel_options()
for kernel in KERNELS:
    for smp in (1, 4):
        with tap.test(f'boot {kernel} on {smp} vCPU'):
            boot(kernel, smp)

with tap.test('the next boot after a reset'):
    next_boot(KERNELS[0])
with tap.test('no kernel: the VM runs and ka says so'):
    no_kernel_runs(KERNELS[0])
with tap.test('a kernel file that is none: the VM boots and ka says so'):
    with tempfile.NamedTemporaryFile() as f:
        f.write(b'not a kernel\n' * 1000)
        f.flush()
        nothing_to_trace(KERNELS[0], f.name, os.path.basename(f.name))
with tap.test('a System.map is not there: the VM boots and ka says so'):
    nothing_to_trace(KERNELS[0], kernel_file('6.12') + '.missing', 'missing')

tap.done()
