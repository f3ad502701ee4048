#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Page tables point to a device instead of memory. The tracer must not read
what only the device could answer, and the VM continues. Oracle: the counter
bulk.unreadable. The kernel itself reads there too, and one of its tasks ends
by an oops.

usage: test_page_tables.py [--short] [--kernel K]...
"""
import re
import tempfile

from lib import oracle
from lib.programs import kernel_options
from lib.tap import Tap
from scripts.lib.guest import Guest


def tables_in_a_device(kernel):
    with tempfile.TemporaryDirectory(prefix='ka-device.') as share:
        oracle.make_share(share, [], kernel, modules=True)
        with Guest(kernel=kernel, end='shell', share=share,
                   name=f'page-tables-{kernel}') as g:
            g.wait_marker('KA-READY')
            before = g.stat().get('bulk.unreadable', 0)
            g.shell('insmod /share/ka_device.ko')
            said = g.shell('dmesg')
            assert re.search(r'ka_device: [0-9a-f]{16}', said), said
            assert 'Oops' in said, said
            assert g.stat()['bulk.unreadable'] == before + 1
            assert g.alive(), g.qemu_log


def main():
    tap = Tap()
    for kernel in kernel_options(('6.12', '6.1')):
        with tap.test(f'{kernel}: page tables in a device'):
            tables_in_a_device(kernel)
    tap.done()


main()
