# SPDX-License-Identifier: GPL-2.0-or-later
"""Disturb a storm: run queries without pause, and stop the VM each second, in
several ways, mostly by gdb.

    with Disturbance(guest, symbols) as disturbance:
        ...
        with disturbance.standing():    # the VM is stopped, only queries run
            ...
    print(disturbance.done())
"""
import contextlib
import random
import re
import struct
import threading
import time
from collections import Counter

from .gdbcli import Gdb
from .gdbserial import Stub

# The debugger steps through these: most tasks and interrupts call them.
STEPPED = 'kfree', 'kmem_cache_alloc_noprof', 'kmem_cache_alloc', \
    '__kmalloc_noprof', '__kmalloc', 'kmem_cache_free'
QUERIES = ('ka stat', 'ka error', 'ka alloc ka_stress:ka_stress_kmalloc -n 50',
           'ka free ka_stress:ka_stress_free -n 50 -s', 'ka -n 200',
           'ka --layer cache -n 100 -v', 'ka check', 'ka {va} --history',
           'ka show {va} -s', 'ka {va}-{end} -j -n 100')
# gdb stops the VM this many times before another way is used.
GDB_STOPS = 6


class Disturber(threading.Thread):
    """A thread that repeats a function until stop(). Between two calls it
    sleeps as long as the last call took, so that the guest makes progress. It
    keeps an exception of the function."""

    def __init__(self, pause, lock, *things):
        super().__init__(daemon=True)
        self.pause, self.lock, self.things = pause, lock, things
        self.done = Counter()
        self.error = None
        self._end = threading.Event()

    def run(self):
        i, took = 0, 0
        try:
            while not self._end.wait(max(self.pause, took)):
                thing = self.things[i % len(self.things)]
                with self.lock:
                    begin = time.monotonic()
                    thing()
                    took = time.monotonic() - begin
                self.done[thing.__name__] += 1
                i += 1
        except Exception as e:      # the test reports it
            self.error = e

    def stop(self, timeout):
        self._end.set()
        self.join(timeout)
        if self.error:
            raise self.error
        assert not self.is_alive(), 'a disturbance does not end'


class Disturbance:
    """All disturbances of a storm."""

    def __init__(self, guest, symbols):
        self.guest, self.symbols = guest, symbols
        self.lock = threading.Lock()        # of the QMP connection
        self.stops = threading.Lock()       # who has it may stop the VM
        self.vas = [0]
        self.rand = random.Random(1)
        self.gdb = Gdb(guest)
        others = [self.hmp_stop, self.attach]
        if guest.arch.gdb_name == 'i386:x86-64':
            others.append(self.single_step)
        self.threads = [Disturber(0.02, contextlib.nullcontext(), self.query),
                        Disturber(0.5, self.stops,
                                  *[self.gdb_stop] * GDB_STOPS, *others)]
        self.stepped = [va for va in map(symbols.address, STEPPED) if va]

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, kind, value, tb):
        with contextlib.suppress(Exception) if kind else \
                contextlib.nullcontext():
            self.rest()
        return False

    def rest(self):
        """End all disturbances; raise the first error of one."""
        try:
            for t in reversed(self.threads):
                t.stop(self.guest.timeout)
        finally:
            self.gdb.close()

    def done(self):
        return sum((t.done for t in self.threads), Counter())

    # --- QMP -----------------------------------------------------------------

    def ask(self, line):
        with self.lock:
            return self.guest.hmp_qmp(line)

    def qmp(self, name, **arguments):
        with self.lock:
            return self.guest.qmp(name, **arguments)

    def stat(self):
        with self.lock:
            return self.guest.stat()

    @contextlib.contextmanager
    def standing(self):
        """Keep the VM stopped; only the caller may continue it."""
        with self.stops:
            self.gdb.detach()
            self.qmp('stop')
            yield
            self.qmp('cont')

    # --- the disturbances ----------------------------------------------------

    def query(self):
        va = self.rand.choice(self.vas)
        line = self.rand.choice(QUERIES).format(va=f'{va:x}',
                                                end=f'{va + 4096:x}')
        text = self.ask(line)
        found = re.findall(r'\bA ([0-9a-f]{16})\b', text)
        if found:
            self.vas = [int(va, 16) for va in found[:50]]
        if line == 'ka check':
            assert text.startswith('ok: '), text
        assert not text.startswith('ka: '), f'{line}: {text}'

    def gdb_stop(self):
        """Stop the VM by gdb, compare answers of gdb and QMP, continue."""
        self.gdb.stop()
        line = f'ka show {self.rand.choice(self.vas):x}'
        said = self.gdb.command(f'monitor {line}')
        want = self.ask(line).strip()
        assert want and want in said, f'{line}: gdb {said}\nQMP {want}'
        self.gdb.go()

    def hmp_stop(self):
        self.gdb.detach()
        self.guest.hmp('stop')
        time.sleep(0.02)
        self.guest.hmp('cont')

    def _stub(self):
        self.gdb.detach()
        return Stub(self.guest.path('gdb.sock'), self.guest.timeout)

    def attach(self):
        with self._stub() as stub:
            stub.registers()

    def single_step(self):
        """Step one vCPU into a hooked function and out of it again."""
        with self._stub() as stub:
            stub.run_to(self.rand.choice(self.stepped))
            # The eighth register: rax rbx rcx rdx rsi rdi rbp rsp.
            sp, = struct.unpack_from('<Q', bytes.fromhex(
                stub.registers()[:128]), 56)
            ra, = struct.unpack('<Q', stub.memory(sp, 8))
            stub.step(3)
            stub.run_to(ra)
            stub.step(3)
