#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest overwrites everything that the tracer reads, while it traces. QEMU
must neither crash nor hang. Each command must answer in time, with printable
ASCII only, and with JSON if that was requested. Until the last phase the guest
must continue its work. Oracle: the guest and the commands themselves.

The VM is stopped when a hooked function is entered or has returned. The data
that the tracer is about to read is overwritten: the stack, the current task,
the object's struct page and its cache, struct module and struct bpf_ksym and
what they point to. One instruction is stepped, in which the tracer reads the
data. Then commands are run, the memory is restored, and the guest continues.
So thousands of such changes fit into one boot. In the last phase the memory is
not restored.

usage: test_scribble.py [--short] [--kernel K]... [--seconds N] [--seed N]
"""
import json
import os
import random
import tempfile
import time

from lib import oracle, programs
from lib.rsp import Stub
from lib.tap import Tap
from scripts.lib.guest import Guest

ANSWER = 20             # seconds for a command, on a busy host
KERNEL_HALF = 1 << 63
WORDS = 1 << 64
STACK_BYTES, TASK_BYTES, CACHE_BYTES, STRUCT_BYTES = 1024, 8192, 256, 1024
PAGE_STRUCT = 64
# Functions that are called often, and rarely.
OFTEN = ('kfree', '__kmalloc_noprof', '__kmalloc', 'kmem_cache_alloc_noprof',
         'kmem_cache_alloc', 'kmem_cache_free')
RARE = ('module_finalize', 'free_module', 'bpf_ksym_add', 'bpf_ksym_del',
        'vfree', 'kvfree_call_rcu', 'kmem_cache_free_bulk',
        'kmem_cache_alloc_bulk_noprof', 'kmem_cache_alloc_bulk')
COMMANDS = ('ka', 'ka error -s -v -n 50', 'ka stat -v', 'ka alloc kfree -s',
            'ka 0-ffffffffffffffff -s -v -n 50',
            'ka free module_finalize -s -n 20', 'ka show {va} -s -v',
            'ka {va} --history -s -v', 'ka --task *a* -n 20',
            'ka --cache *e* -n 20 -s', 'ka task --threads -v -n 20',
            'ka task 1 -s', 'ka files 1 -s -n 20', 'ka mod -v')
ESCAPES = (b'\x1b]0;owned\x07', b'\x1b[2J\x1b[31m', b'"},{"', b'\xff\xc3\x28',
           b'\r\n(qemu) ', b'%n%s', b'\x9b\x08')


class Liar:
    """Overwrites guest memory, and restores it."""

    def __init__(self, stub, symbols, seed):
        self.stub, self.symbols = stub, symbols
        self.rng = random.Random(seed)
        self.before = []        # (address, bytes)
        self.lies = 0

    def _word(self):
        rng = self.rng
        return rng.choice((
            rng.randrange(WORDS), 0, WORDS - rng.randrange(1, 4096),
            rng.randrange(1 << 31), KERNEL_HALF + rng.randrange(1 << 40),
            0xffff888000000000 + rng.randrange(1 << 34),
            0xffffffff80000000 + rng.randrange(1 << 30),
            0xffffffffc0000000 + rng.randrange(1 << 24)))

    def noise(self, size):
        kind = self.rng.randrange(4)
        if kind == 0:
            return self.rng.randbytes(size)
        if kind == 1:
            text = b''.join(self.rng.choice(ESCAPES) for _ in range(size // 3))
            return text[:size].ljust(size, b'\x1b')
        if kind == 2:
            return self.rng.choice((b'\0', b'\xff', b'A')) * size
        return b''.join(self._word().to_bytes(8, 'little')
                        for _ in range(size // 8 + 1))[:size]

    def lie(self, va, size):
        """Overwrite all of a range, or some of its words."""
        if va < KERNEL_HALF or va + size >= WORDS:
            return
        data = self.stub.read(va, size)
        if not data:
            return
        new = bytearray(self.noise(size))
        if self.rng.random() < 0.5:
            keep, new = new, bytearray(data)
            for _ in range(self.rng.randrange(1, 9)):
                at = self.rng.randrange(0, size, 8)
                new[at:at + 8] = keep[at:at + 8]
        self.before.append((va, data))
        self.stub.write(va, bytes(new))
        self.lies += 1

    def restore(self):
        for va, data in reversed(self.before):
            self.stub.write(va, data)
        self.before.clear()

    # --- what is read of the guest -------------------------------------------

    def current(self, registers):
        at = self.symbols.get('pcpu_hot') or self.symbols.get('current_task')
        if not at:
            return 0
        return self.stub.u64(registers['gs_base'] + at if at < KERNEL_HALF
                             else at)

    def slab(self, va):
        """Return the struct page of VA."""
        base = self.stub.u64(self.symbols.get('page_offset_base', 0))
        pages = self.stub.u64(self.symbols.get('vmemmap_base', 0))
        if not base <= va < base + (1 << 40):
            return 0
        return pages + (va - base >> 12) * PAGE_STRUCT

    def everything(self, registers, pointers):
        """Overwrite a part of what the tracer may read at this place."""
        targets = [(registers['rsp'], STACK_BYTES),
                   (self.current(registers), TASK_BYTES)]
        for va in pointers:
            page = self.slab(va)
            cache = self.stub.u64(page + 8) if page else 0
            targets += [(page, PAGE_STRUCT), (cache, CACHE_BYTES),
                        (va, STRUCT_BYTES)]
            for i in range(3):  # what a struct points to
                targets.append((self.stub.u64(va + 8 * self.rng.randrange(
                    STRUCT_BYTES // 8)), CACHE_BYTES))
        for va, size in targets:
            if self.rng.random() < 0.5:
                self.lie(va, size)


def writes_nothing(code):
    """Return whether an instruction uses registers only. If it wrote to memory,
    restoring the memory would undo the write."""
    if code.startswith((b'\xf3\x0f\x1e\xfa', b'\x0f\x1f', b'\x66\x90')):
        return True             # endbr64, nops
    if 0x40 <= code[0] < 0x50:
        code = code[1:]
    return code[0] in (0x31, 0x33, 0x39, 0x3b, 0x85, 0x89, 0x8b) and \
        code[1] >= 0xc0


class Session:
    def __init__(self, guest, stub, seed):
        self.guest, self.stub = guest, stub
        hooks = {}
        for line in guest.hmp_qmp('ka stat -j -v').splitlines():
            row = json.loads(line)
            if row.get('type') == 'hook' and row.get('va'):
                hooks[row['name']] = int(row['va'], 16)
        self.hooks = {hooks[name]: name for name in OFTEN + RARE
                      if name in hooks}
        assert len(self.hooks) > 6, hooks
        self.liar = Liar(stub, self._variables(), seed)
        self.rng = self.liar.rng
        self.stops = self.answers = 0
        self.slowest = 0.0
        self.seen = set()

    def _variables(self):
        found = {}
        for name in ('page_offset_base', 'vmemmap_base', 'pcpu_hot',
                     'current_task'):
            for line in self.guest.hmp_qmp(f'ka show {name} -j').splitlines():
                row = json.loads(line)
                if row.get('type') == 'miss':
                    found[name] = int(row['va'], 16)
        return found

    def ask(self, n=1):
        for _ in range(n):
            command = self.rng.choice(COMMANDS).format(
                va=f'{self.liar._word():x}')
            is_json = self.rng.random() < 0.5
            begin = time.monotonic()
            text = self.guest.hmp_qmp(command + ' -j' * is_json)
            self.slowest = max(self.slowest, time.monotonic() - begin)
            bad = [c for c in text if c != '\n' and not ' ' <= c < '\x7f']
            assert not bad, f'{command} prints {bad[:20]}'
            for line in text.splitlines() if is_json and command != 'ka' \
                    else ():
                json.loads(line)
            self.answers += 1
        assert self.slowest < ANSWER, f'an answer took {self.slowest:.1f} s'

    def one_stop(self, pointers):
        """Overwrite, let the tracer read, run commands, restore."""
        registers = self.stub.registers()
        if not writes_nothing(self.stub.read(registers['rip'], 16)):
            self.stub.step()
            return
        self.liar.everything(registers, pointers)
        self.stub.step()
        if self.rng.random() < 0.1:
            self.ask()
        self.liar.restore()
        self.stops += 1

    def one_call(self):
        """Stop at the entry of a hooked function, and at its return."""
        registers = self.stub.registers()
        name = self.hooks.get(registers['rip'])
        if not name:
            self.stub.step()
            return
        self.seen.add(name)
        back = self.stub.u64(registers['rsp'])
        arguments = [registers[r] for r in ('rdi', 'rsi', 'rdx')]
        self.one_stop(arguments)
        if back < KERNEL_HALF or self.rng.random() < 0.3:
            return
        self.stub.breakpoint(back)
        self.stub.breakpoint(registers['rip'], False)
        if self.stub.go(1) and self.stub.registers()['rip'] == back:
            self.one_stop([self.stub.registers()['rax'], *arguments])
        self.stub.halt()
        self.stub.breakpoint(back, False)

    def lies(self, seconds):
        """Set breakpoints on rare functions, and often on one more."""
        end = time.monotonic() + seconds
        rare = [va for va, name in self.hooks.items() if name in RARE]
        often = [va for va, name in self.hooks.items() if name in OFTEN]
        while time.monotonic() < end:
            some = [*rare, self.rng.choice(often)]
            for va in some[:len(some) - self.rng.randrange(2)]:
                self.stub.breakpoint(va)
            if self.stub.go(self.rng.choice((0.1, 0.5, 2))):
                self.one_call()
            self.stub.halt()
            self.stub.breakpoint(some[-1], False)

    def keep_lying(self, seconds):
        """Overwrite without restoring: the guest breaks."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.stub.halt()
            registers = self.stub.registers()
            for _ in range(20):
                self.liar.everything(registers, [self.liar._word()])
            self.liar.before.clear()
            self.stub.go(0.1)
            self.ask(3)


def scribble(tap, kernel, args, folder):
    share = oracle.make_share(os.path.join(folder, kernel), ['scribble.sh'],
                              kernel, modules=True)
    with Guest(kernel=kernel, share=share, run='scribble', end='shell',
               timeout=120, name=f'scribble-{kernel}') as g:
        g.wait_marker('KA-READY')
        with Stub(g.path('gdb.sock'), timeout=60) as stub:
            session = Session(g, stub, args.seed)
            with tap.test(f'{kernel}: lies while it traces'):
                session.lies(args.seconds)
                assert session.liar.lies > 50, session.liar.lies
        with tap.test(f'{kernel}: the guest goes on with its work'):
            rounds = g.console.count('KA-ROUND')
            end = time.monotonic() + 120
            while g.console.count('KA-ROUND') <= rounds:
                assert g.alive() and time.monotonic() < end, g.qemu_log
                time.sleep(0.2)
            assert '---[ end trace' not in g.console, g.console[-3000:]
        # A guest that dies boots again.
        g.qmp('set_action', reboot='reset')
        with Stub(g.path('gdb.sock'), timeout=60) as stub:
            session.stub = session.liar.stub = stub
            with tap.test(f'{kernel}: lies that stay'):
                session.keep_lying(max(10, args.seconds // 4))
        with tap.test(f'{kernel}: QEMU is well'):
            session.ask(len(COMMANDS))
            assert g.alive(), g.qemu_log
        tap.note(f'{session.liar.lies} lies at {session.stops} stops of '
                 f'{len(session.seen)} functions, {session.answers} answers, '
                 f'the slowest {session.slowest:.1f} s, seed {args.seed}')


def main():
    ap = programs.arguments(__doc__, short='6.12 only, half a minute',
                            smp=False)
    ap.add_argument('--seconds', type=int,
                    help='of lies, for each kernel (120; 30 with --short)')
    ap.add_argument('--seed', type=int, default=random.randrange(1 << 30))
    args = programs.parse(ap)
    args.seconds = args.seconds or (30 if args.short else 120)
    tap = Tap()
    with tempfile.TemporaryDirectory(prefix='ka-scribble.') as folder:
        for kernel in args.kernel:
            scribble(tap, kernel, args, folder)
    tap.done()


if __name__ == '__main__':
    main()
