#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A module uses a block that it has freed, after another module had the same
memory and freed it. The error says that the last owner may be innocent, and has
the stacks of the module's own block. Oracle: the modules ka_former and
ka_latter, which say where that block was.

usage: test_former.py [--short] [--kernel K]... [--smp N]...
"""
import os
import re
import tempfile

from lib import oracle, programs
from lib.tap import Tap
from scripts.lib.guest import Guest

SAID = re.compile(r'ka_latter: same=(\d) block=(\w+)')
STACKS = {'alloc': 'ka_latter_take', 'free': 'ka_latter_give',
          'former_alloc': 'ka_former_take', 'former_free': 'ka_former_give'}


def check_error(row, block):
    assert row['error'] == 'use-after-free', row
    assert int(row['va'], 16) == int(block, 16), (row, block)
    assert row.get('last_owner') == 'may-be-innocent', row
    for key, function in STACKS.items():
        assert row[f'{key}_symbols'][0].startswith(f'{function}+'), (key, row)


def run(tap, kernel, smp, label):
    with tempfile.TemporaryDirectory(prefix='ka-former.') as tmp:
        share = oracle.make_share(os.path.join(tmp, 'share'), [], kernel,
                                  modules=True)
        with Guest(kernel=kernel, smp=smp, end='shell', share=share,
                   cmdline='no_hash_pointers', plugin_opts='access=on',
                   timeout=120, name=f'former-{kernel}-{smp}') as g:
            for _ in range(5):      # an interrupt can take the block
                g.shell('insmod /share/ka_former.ko; '
                        'insmod /share/ka_latter.ko; '
                        'rmmod ka_latter ka_former')
                same, block = SAID.findall(g.console)[-1]
                if same == '1':
                    break
            assert same == '1'
            rows = [r for r in g.rows('ka error -n 0 -s')
                    if r['type'] == 'error' and 'former_alloc' in r]
            made = {r['error_stack_symbols'][0].split('+')[0]: r for r in rows}
            assert set(made) == {'ka_former_read', 'ka_former_write'}, made
            for row in made.values():
                check_error(row, block)


def main():
    args, tap = programs.parse(programs.arguments(
        __doc__, short='6.12 on 1 vCPU only')), Tap()
    programs.run_over(tap, args.kernel, args.smp, run,
                      'the life of the code that accesses is named')
    tap.done()


if __name__ == '__main__':
    main()
