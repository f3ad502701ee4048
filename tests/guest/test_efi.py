#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest boots by EFI firmware and the kernel's own EFI stub. The tracer
finds the kernel in memory and sees all from the first event. Oracle: the
counters of `ka stat`: nothing is unknown.

usage: test_efi.py [--short] [--kernel K]...
"""
import os

from lib.programs import kernel_options
from lib.tap import Tap
from scripts.lib.guest import Guest
from scripts.lib.prepared import kernel_arch, paths

# stack.end_unknown_pc may grow: the kernel has no unwind data for some code
# (ciphers in assembly, tested at boot), which interrupts may interrupt.
UNKNOWN = ('errors.recorded', 'free.unknown', 'events.unknown_block', 'gaps',
           'stack.end_bad_frame', 'cache.unknown', 'task.unknown',
           'call.unreadable', 'call.dropped')


def boots(kernel):
    firmware = os.path.join(paths()['efi'], kernel_arch(kernel) + '.fd')
    with Guest(kernel=kernel, qemu=['-bios', firmware], run='files',
               timeout=240, cmdline='efi=debug',
               name=f'efi-{kernel}') as g:
        assert g.wait_done() == 0
        assert 'efi: EFI v' in g.console, 'not booted by EFI'
        numbers = g.stat()
        assert numbers['events.checked'] > 50000, numbers
        for key in UNKNOWN:
            assert not numbers.get(key), f'{key}: {numbers[key]}'


tap = Tap()
for name in kernel_options(('6.12', 'arm64-6.12'), short=2):
    with tap.test(f'{name} boots by EFI'):
        boots(name)
tap.done()
