#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The tracer does not change a byte of the guest's kernel text. Oracle: the
text that gdb reads with and without the tracer, with KASLR off.

usage: test_text_unchanged.py [--short] [--kernel K]...
"""
import os
import re
import tempfile

from lib import oracle
from lib.programs import kernel_options
from lib.tap import Tap
from scripts.lib.guest import Guest

# Symbols at the ends of the text, which the workload prints.
TEXT = re.compile(r'^([0-9a-f]{16}) [A-Za-z] (_stext|_etext)$', re.M)


def dump(kernel, share, plugin):
    """Return the text, read by gdb after a workload."""
    with Guest(kernel=kernel, plugin=plugin, kaslr=False, run='text',
               share=share, timeout=300,
               name=f'text-{kernel}-{plugin}') as g:
        g.wait_done()
        where = {name: int(va, 16) for va, name in TEXT.findall(g.console)}
        path = g.path('text')
        g.gdb([f"dump binary memory {path} {where['_stext']:#x} "
               f"{where['_etext']:#x}"])
        with open(path, 'rb') as f:
            return where['_stext'], f.read()


def words_that_differ(one, other):
    """Return the offsets of words of four bytes that differ."""
    return {i for i in range(0, len(one), 4)
            if one[i:i + 4] != other[i:i + 4]}


def main():
    tap = Tap()
    with tempfile.TemporaryDirectory(prefix='ka-text.') as tmp:
        for kernel in kernel_options():
            share = oracle.make_share(os.path.join(tmp, kernel), ['text.sh'],
                                      kernel)
            with tap.test(f'{kernel}: the text is the same with the tracer'):
                start, without = dump(kernel, share, False)
                _, with_ka = dump(kernel, share, True)
                assert len(without) > 8 << 20, f'only {len(without)} bytes'
                tap.note(f'{kernel}: {len(without)} bytes from {start:#x}')
                assert len(without) == len(with_ka), f'{len(with_ka)} bytes'
                differ = words_that_differ(without, with_ka)
                if differ:
                    # arm64 writes a random number into KVM's code.
                    _, again = dump(kernel, share, False)
                    own = words_that_differ(without, again)
                    tap.note(f'{len(own)} words differ from boot to boot')
                    assert len(own) < 1000, 'too many'
                    differ -= own
                assert not differ, f'{len(differ)} words differ: ' + \
                    ' '.join(f'{start + i:#x}' for i in sorted(differ)[:20])
    tap.done()


if __name__ == '__main__':
    main()
