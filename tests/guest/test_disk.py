#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest that boots from a disk by GRUB is traced from its first allocation,
although the tracer does not know what is on the disk. Oracle: the counters of
`ka stat`: nothing is unknown.

usage: test_disk.py [--short]
"""
import os
import sys
import tempfile

from lib import disk
from lib.tap import Tap
from scripts.lib.guest import Guest
from scripts.lib.prepared import kernel_file, paths

tap = Tap()
WORDS = 'console=ttyS0 panic=-1 ka.end=wait'


def from_disk(kernel, tmp):
    image = os.path.join(tmp, 'disk.img')
    disk.make(image, paths()['grub'], kernel_file(kernel),
              paths()['initrd-' + kernel], WORDS)
    with Guest(options=['--disk-boot'], name='disk', timeout=240,
               qemu=['-drive', f'file={image},format=raw']) as g:
        g.wait_marker('KA-END')
        numbers = g.stat()
        assert numbers['kernel.from'] == 'memory', numbers
        assert numbers['events.checked'] > 50000, numbers
        for key in ('free.unknown', 'errors.recorded', 'gaps'):
            assert not numbers.get(key), f'{key}: {numbers[key]}'
        shown = g.hmp_qmp('ka alloc start_kernel -w -n 1')
        assert 'start_kernel+0x' in shown, shown


with tempfile.TemporaryDirectory() as folder:
    for name in ('6.12',) if '--short' in sys.argv else ('6.12', '6.1'):
        with tap.test(f'{name} from a disk with GRUB'):
            from_disk(name, folder)

tap.done()
