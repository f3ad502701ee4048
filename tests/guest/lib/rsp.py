# SPDX-License-Identifier: GPL-2.0-or-later
"""A client of QEMU's gdbstub, for tests that stop a guest thousands of times.

    with Stub(guest.path('gdb.sock'), timeout=30) as s:   # the guest is stopped
        s.breakpoint(va)
        s.go()                  # True if it stopped at a breakpoint
        s.write(s.registers()['rdi'], bytes(64))
        s.step()

The protocol is gdb's "Remote Serial Protocol"; registers are those of
x86-64, in the order of QEMU's gdb-xml/i386-64bit.xml.
"""
import re
import select
import socket
import struct
import time

NAMES = ('rax rbx rcx rdx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 '
         'rip').split()
GS_BASE = 8 * 17 + 4 * 7 + 8    # behind flags, six segments and fs_base


class StubError(Exception):
    """The stub did not answer, or its answer did not follow the protocol."""


class Stub:
    def __init__(self, path, timeout):
        self.timeout = timeout
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(path)
        self.data = b''
        self.running = False
        self.breakpoints = set()
        size = re.search(r'PacketSize=([0-9a-f]+)',
                         self.command('qSupported'))
        self.chunk = (int(size.group(1), 16) - 64) // 2 if size else 512
        self.command('?')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.detach()

    def detach(self):
        """Detach; the guest continues."""
        try:
            if self.running:
                self.halt()
            self._send('D')
            self._receive(self.timeout)
        except (OSError, StubError):
            pass                # whoever ended QEMU reports it
        self.sock.close()

    # --- packets -------------------------------------------------------------

    def _send(self, text):
        data = text.encode()
        self.sock.sendall(b'$%s#%02x' % (data, sum(data) & 0xff))

    def _more(self, seconds):
        ready, _, _ = select.select([self.sock], [], [], max(seconds, 0))
        chunk = self.sock.recv(1 << 16) if ready else None
        if chunk == b'':
            raise StubError('the stub has closed the connection')
        self.data += chunk or b''
        return chunk is not None

    def _receive(self, seconds):
        """Return the next packet, None if there is none in time."""
        end = time.monotonic() + seconds
        while True:
            start = self.data.find(b'$')
            stop = self.data.find(b'#', start + 1)
            if 0 <= start < stop and len(self.data) >= stop + 3:
                packet = self.data[start + 1:stop].decode('latin-1')
                self.data = self.data[stop + 3:]
                self.sock.sendall(b'+')
                return packet
            if not self._more(end - time.monotonic()) and \
                    time.monotonic() > end:
                return None

    def command(self, text):
        self._send(text)
        answer = self._receive(self.timeout)
        if answer is None:
            raise StubError(f'no answer to {text[:40]} in {self.timeout} s')
        return answer

    # --- operations of a debugger --------------------------------------------

    def registers(self):
        data = bytes.fromhex(self.command('g').replace('x', '0'))
        values = dict(zip(NAMES, struct.unpack_from('<17Q', data)))
        values['gs_base'], = struct.unpack_from('<Q', data, GS_BASE)
        return values

    def set_register(self, name, value):
        answer = self.command(f'P{NAMES.index(name):x}='
                              f'{struct.pack("<Q", value).hex()}')
        if answer != 'OK':
            raise StubError(f'register {name}: {answer}')

    def read(self, va, size):
        """Return the bytes at VA, None if nothing is mapped there."""
        data = b''
        for at in range(va, va + size, self.chunk):
            n = min(self.chunk, va + size - at)
            answer = self.command(f'm{at:x},{n:x}')
            if len(answer) != 2 * n:
                return None
            data += bytes.fromhex(answer)
        return data

    def write(self, va, data):
        """Write bytes to VA; return whether all were written."""
        for at in range(0, len(data), self.chunk):
            part = data[at:at + self.chunk]
            if self.command(f'M{va + at:x},{len(part):x}:'
                            f'{part.hex()}') != 'OK':
                return False
        return True

    def u64(self, va):
        data = self.read(va, 8)
        return struct.unpack('<Q', data)[0] if data else 0

    def breakpoint(self, va, on=True):
        if on == (va in self.breakpoints):
            return
        (self.breakpoints.add if on else self.breakpoints.remove)(va)
        answer = self.command(f'{"Z" if on else "z"}0,{va:x},1')
        if answer != 'OK':
            raise StubError(f'breakpoint at {va:#x}: {answer}')

    def step(self):
        self._send('s')
        if self._receive(self.timeout) is None:
            raise StubError(f'a step takes longer than {self.timeout} s')

    def select(self, vcpu):
        """Select a vCPU for the register commands; the first one is 1."""
        answer = self.command(f'Hg{vcpu:x}')
        if answer != 'OK':
            raise StubError(f'vCPU {vcpu}: {answer}')

    def watch(self, va, on=True):
        """Stop at any access to the eight bytes at VA; or no longer."""
        answer = self.command(f'{"Z" if on else "z"}4,{va:x},8')
        if answer != 'OK':
            raise StubError(f'watchpoint at {va:#x}: {answer}')

    def go(self, seconds, vcpu=None):
        """Continue all vCPUs or one. Return True if the VM stopped in the
        given time; else it still runs."""
        if not self.running:
            self._send('c' if vcpu is None else f'vCont;c:{vcpu:x}')
        self.running = self._receive(seconds) is None
        return not self.running

    def halt(self):
        """Stop the VM at once."""
        if self.running:
            self.sock.sendall(b'\x03')
            if self._receive(self.timeout) is None:
                raise StubError(f'no stop in {self.timeout} s')
            self.running = False
