#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel that the tracer gets as a file is found when it starts. Oracle: ka
says the same as if it reads the kernel from memory.

usage: test_from_file.py [--short] [--kernel K]...
"""
from lib.programs import kernel_options
from lib.tap import Tap
from scripts.lib.arches import KERNEL_VA
from scripts.lib.guest import Guest
from scripts.lib.prepared import kernel_file


def said_of(kernel, symbols):
    with Guest(kernel=kernel, symbols=symbols, name='from-file') as g:
        g.wait_marker('KA-END')
        numbers = g.stat()
        assert numbers['kernel.from'] == ('file' if symbols else 'memory')
        assert numbers['events.checked'], 'nothing was traced'
        assert not numbers.get('free.unknown'), 'began too late'
        hooks = [line.split()[0] for line in
                 g.hmp_qmp('ka stat -v').splitlines()
                 if KERNEL_VA.search(line)]
        return [numbers[key] for key in ('kernel.banner', 'kernel.symbols',
                                         'kernel.btf')] + hooks


def main():
    tap = Tap()
    for kernel in kernel_options():
        with tap.test(f'boot {kernel}, from memory and from its file'):
            in_memory = said_of(kernel, None)
            of_file = said_of(kernel, kernel_file(kernel))
            assert in_memory == of_file, (in_memory, of_file)
    tap.done()


main()
