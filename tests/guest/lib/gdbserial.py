# SPDX-License-Identifier: GPL-2.0-or-later
"""A small client of gdb's remote protocol: attach, single steps, breakpoints.
A test that attaches each second cannot start a gdb each time.

    with Stub(guest.path('gdb.sock')) as stub:      # the VM is stopped
        stub.run_to(va)
        stub.step()
                                                    # and continues
"""
import re
import socket

STOPPED = 'T', 'S'


class StubError(Exception):
    """The stub's answer did not follow the protocol, or came too late."""


class Stub:
    def __init__(self, path, timeout=60):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(timeout)
        self.data = b''
        try:
            self.sock.connect(path)
            self.ask('qSupported:multiprocess+;vContSupported+')
            self.thread = self._thread(self.ask('?'))
        except OSError as e:
            self.sock.close()
            raise StubError(f'{path}: {e}') from e

    def __enter__(self):
        return self

    def __exit__(self, kind, value, tb):
        try:
            if not kind:
                self.ask('D;1')
        finally:
            self.sock.close()
        return False

    # --- packets -------------------------------------------------------------

    def _byte(self):
        while not self.data:
            try:
                self.data = self.sock.recv(4096)
            except OSError as e:
                raise StubError(f'no answer: {e}') from e
            if not self.data:
                raise StubError('the stub has hung up')
        first, self.data = self.data[:1], self.data[1:]
        return first

    def _packet(self):
        while self._byte() != b'$':
            continue
        text = b''
        while (byte := self._byte()) != b'#':
            text += byte
        self._byte()
        self._byte()
        self.sock.sendall(b'+')
        return text.decode('latin-1')

    def _send(self, text):
        data = text.encode()
        self.sock.sendall(b'$%s#%02x' % (data, sum(data) & 0xff))

    def ask(self, text):
        """Send a packet and return the answer; raise an error answer."""
        self._send(text)
        answer = self._packet()
        if re.fullmatch(r'E\d\d', answer):
            raise StubError(f'{text}: {answer}')
        return answer

    @staticmethod
    def _thread(stop):
        found = re.search(r'thread:([^;]+)', stop)
        if not stop.startswith(STOPPED) or not found:
            raise StubError(f'no stop: {stop}')
        return found.group(1)

    # --- the VM --------------------------------------------------------------

    def memory(self, va, size):
        return bytes.fromhex(self.ask(f'm{va:x},{size:x}'))

    def registers(self):
        """Return the registers of the vCPU that stopped, in gdb's order."""
        self.ask(f'Hg{self.thread}')
        return self.ask('g')

    def step(self, n=1):
        """Step the vCPU that stopped by N instructions; the others run."""
        for _ in range(n):
            self.thread = self._thread(self.ask(f'vCont;s:{self.thread};c'))

    def run_to(self, va):
        """Run until a vCPU reaches VA, or something else stops the VM. Remove
        the breakpoint afterwards."""
        self.ask(f'Z0,{va:x},1')
        try:
            self.thread = self._thread(self.ask('vCont;c'))
        finally:
            self.ask(f'z0,{va:x},1')
