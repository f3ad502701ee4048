#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A leak scan reports the blocks that a debugger made the kernel lose, and no
others, on kernels whose headers the archive no longer has: no module can be
built for them.

Oracle: the results of the calls. At the entry of a system call the debugger
calls the kernel's kmalloc(), keeps the address that it returned, and lets the
system call go on. Nothing in the guest has the address.

usage: test_leaks_called.py [--short] [--kernel K]... [--append WORDS]
"""
import re
import struct
import time

from lib import programs
from lib.rsp import NAMES, Stub
from lib.tap import Tap
from scripts.lib.guest import Guest

KERNELS = '6.18', '7.3', '6.12', '6.1', '5.10'
SIZES = (24, 40, 64, 100, 128, 200, 256, 320, 512, 700, 1000, 1024, 1500, 2048,
         3000, 4096, 4096, 5000, 8192, 8192)
GFP_KERNEL = 0xcc0
SETTLE_S = 3        # objects of tasks that ended wait for RCU


class Caller:
    """Calls of kernel functions at the entry of uname(2)."""

    def __init__(self, guest):
        self.stub = self.saved = None
        self.entry = guest.symbol('__x64_sys_newuname')
        # A call returns to an instruction that is not the breakpoint, so that
        # the plugin sees its return.
        self.ret = guest.symbol('ftrace_stub')
        self.kmalloc = first_symbol(guest, '__kmalloc_noprof', '__kmalloc')

    def begin(self, stub):
        """Stop at the next uname()."""
        self.stub = stub
        stub.breakpoint(self.entry)
        assert stub.go(60), 'nobody calls uname()'
        self.saved = stub.registers()

    def end(self):
        """Let uname() go on as if nothing had been called."""
        for name in NAMES:
            self.stub.set_register(name, self.saved[name])
        self.stub.breakpoint(self.entry, False)

    def call(self, function, *args):
        sp = self.saved['rsp'] - 16
        words = struct.pack('<QQ', self.ret, self.entry)
        assert self.stub.write(sp, words)
        for name, value in zip(('rdi', 'rsi'), args):
            self.stub.set_register(name, value)
        self.stub.set_register('rsp', sp)
        self.stub.set_register('rip', function)
        assert self.stub.go(60), 'the call did not return'
        now = self.stub.registers()
        assert now['rip'] == self.entry and now['rsp'] == self.saved['rsp'], now
        return now['rax']


def first_symbol(guest, *names):
    text = guest.shell('cat /proc/kallsyms | grep -E " (%s)$"' %
                       '|'.join(names))
    lines = [line.split() for line in text.split('\n') if len(line) > 20]
    found = {words[2]: int(words[0], 16) for words in lines if len(words) == 3}
    return next(found[name] for name in names if name in found)


def is_on_a_stack(guest, va):
    """Stacks keep pointers to freed memory. If a new block is there, a scan
    takes such a word for a reference."""
    return re.search(r'^ *stack ', guest.hmp_qmp(f'ka refs {va:x}'), re.M)


def lose(guest):
    """Return (addresses of new blocks, those that a stack has)."""
    caller = Caller(guest)
    lost, kept = set(), set()
    guest.shell('touch /tmp/busy; (while [ -e /tmp/busy ]; do uname; sleep 1; '
                'done) >/dev/null & echo')
    with Stub(guest.path('gdb.sock'), timeout=60) as stub:
        caller.begin(stub)
        for size in SIZES * 2:
            va = caller.call(caller.kmalloc, size, GFP_KERNEL)
            (kept if is_on_a_stack(guest, va) else lost).add(va)
        caller.end()
    return lost, kept


def run(tap, args, kernel, label):
    with Guest(kernel=kernel, timeout=300, end='shell',
               cmdline=f'no_hash_pointers {args.append}',
               name=f'called-{kernel}') as g:
        lost, kept = lose(g)
        g.shell('rm /tmp/busy')
        time.sleep(SETTLE_S)
        text = g.hmp_qmp('ka leak scan --format kmemleak')
        found = {int(va, 16) for va in
                 re.findall(r'unreferenced object 0x([0-9a-f]+)', text)}
        print(f'# {len(lost)} lost, {len(kept)} that a stack has')
        tap.ok(len(lost) >= len(SIZES) and lost <= found,
               f'{label}: all that no stack has are reported',
               [g.hmp_qmp(f'ka refs {va:x} -s') for va in lost - found])
        tap.ok(found <= lost | kept, f'{label}: nothing else is reported',
               text)


def main():
    ap = programs.arguments(__doc__, short='6.12 only', smp=False)
    ap.add_argument('--append', default='', metavar='WORDS',
                    help='more words for the kernel command line')
    args, tap = programs.parse(ap, KERNELS, ('6.12',)), Tap()
    for kernel in args.kernel:
        with tap.test(f'{kernel}: runs and is read'):
            run(tap, args, kernel, kernel)
    tap.done()


if __name__ == '__main__':
    main()
