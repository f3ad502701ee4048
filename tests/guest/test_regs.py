#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A module uses a block that it has freed, and the kernel crashes. `ka regs`
and `ka stack` name that block and both of its stacks. Oracle: register values
that gdb reads, and those of the kernel's oops.

usage: test_regs.py [--short] [--kernel K]...
"""
import json
import os
import re
import tempfile

from lib import oracle
from lib.programs import kernel_options
from lib.tap import Tap
from scripts.lib.guest import Guest
from scripts.lib.prepared import kernel_arch

# Function at which the VM is stopped. On x86 the registers are those of the
# fault there, except for the stack pointer; elsewhere they are on the stack.
STOP = {'x86_64': 'asm_exc_general_protection'}
LATER = 'oops_enter'
# Registers that ka names and `info registers` of gdb leaves out.
MORE = {'riscv64': ['info registers sepc']}
TRUTH = re.compile(r'ka_stale: block=([0-9a-f]{16}) alloc=(\w+) free=(\w+)')
# "RDI: ffff888003401000", "x0 : ffff...", "a0 : ffff...".
PRINTED = re.compile(r'\b([A-Za-z]\w{1,2})\s*: ?([0-9a-f]{16})\b')


def rows(guest, command):
    text = guest.hmp_qmp(command)
    return [json.loads(line) for line in text.splitlines()]


def address_of(guest, symbol):
    return int(rows(guest, f'ka whatis {symbol} -j')[0]['va'], 16)


def crash(guest, stop, more):
    """Let the module crash, and stop the VM at STOP; return what gdb
    printed, also of its commands MORE."""
    guest.shell('(sleep 5; insmod /share/ka_stale.ko; echo KA-CRASHED) '
                '>/dev/console 2>&1 & true')
    return guest.gdb([f'hbreak *{address_of(guest, stop):#x}', 'continue',
                      'info registers', *more, 'monitor ka regs -s -j -n 0',
                      'monitor ka stack -s -j -n 0'])


def values(text, what):
    found = []
    for line in text.splitlines():
        if line.startswith('{') and f'"type":"{what}"' in line:
            found.append(json.loads(line))
    return found


def names_block(row, truth):
    block, alloc, free = truth
    return int(row['va'], 16) == block and row['state'] == 'F' and \
        row['alloc_symbols'][0].startswith(alloc + '+') and \
        row['free_symbols'][0].startswith(free + '+')


def check_gdb(text, regs):
    """Each register that ka names has the value that gdb prints."""
    printed = dict(re.findall(r'^(\w+)\s+(0x[0-9a-f]+)\b', text, re.M))
    for r in regs:
        assert int(printed[r['reg']], 16) == int(r['value'], 16), r


def check_oops(console, found, truth):
    """Registers of the oops that point to the block were found by ka, as
    registers or on the stack."""
    oops = console[console.index(truth[1] + ' free='):]
    holding = {re.sub('^r0', 'r', name.lower())
               for name, value in PRINTED.findall(oops)
               if int(value, 16) == truth[0]}
    assert holding, 'no register of the oops holds the block'
    regs = {r['reg'] for r in found if 'reg' in r}
    words = [r for r in found if 'at' in r and
             int(r['value'], 16) == truth[0]]
    assert holding <= regs or len(words) >= len(holding), \
        f'{holding} are not all in {regs}, and {len(words)} words'


def run(tap, kernel, share):
    stop = STOP.get(kernel_arch(kernel), LATER)
    with Guest(kernel=kernel, share=share, end='shell', run='nothing',
               cmdline='no_hash_pointers', timeout=300,
               name=f'regs-{kernel}') as g:
        g.wait_done()
        with tap.test(f'{kernel}: neither is to be had while the VM runs'):
            for command in 'ka regs', 'ka stack':
                assert 'the VM is running' in g.hmp_qmp(command)
        text = crash(g, stop, MORE.get(kernel_arch(kernel), []))
        g.wait_marker('KA-CRASHED')
        m = TRUTH.search(g.console)
        assert m, 'the module did not say what it did'
        truth = int(m.group(1), 16), m.group(2), m.group(3)
        regs, words = values(text, 'register'), values(text, 'word')
        with tap.test(f'{kernel}: registers are as gdb reads them'):
            check_gdb(text, regs)
        named = [r for r in regs + words if names_block(r, truth)]
        with tap.test(f'{kernel}: the freed block is named, with its stacks'):
            assert named, text
            assert stop == LATER or any('reg' in r for r in named), text
        with tap.test(f'{kernel}: registers are as the oops prints them'):
            check_oops(g.console, named, truth)


def main():
    tap = Tap()
    with tempfile.TemporaryDirectory(prefix='ka-regs.') as tmp:
        for kernel in kernel_options():
            share = oracle.make_share(os.path.join(tmp, kernel), ['nothing.sh'],
                                      kernel, modules=True)
            run(tap, kernel, share)
    tap.done()


if __name__ == '__main__':
    main()
