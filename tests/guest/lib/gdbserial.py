# SPDX-License-Identifier: GPL-2.0-or-later
"""gdb's remote protocol, as much of it as attaching, single steps and
breakpoints take: a test that attaches each second has no time for a gdb.

    with Stub(guest.path('gdb.sock')) as stub:      # the VM stands
        stub.run_to(va)
        stub.step()
                                                    # and goes on
"""
import re
import socket

STOPPED = 'T', 'S'


class StubError(Exception):
    """The stub did not answer as the protocol says, or not in time."""


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
        """What the stub says to that, an error raised."""
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
        """Of the vCPU that stopped; as the architecture orders them."""
        self.ask(f'Hg{self.thread}')
        return self.ask('g')

    def step(self, n=1):
        """One instruction of the vCPU that stopped; the others run."""
        for _ in range(n):
            self.thread = self._thread(self.ask(f'vCont;s:{self.thread};c'))

    def run_to(self, va):
        """Until a vCPU is there, or something else stops the VM; which
        leaves no breakpoint behind."""
        self.ask(f'Z0,{va:x},1')
        try:
            self.thread = self._thread(self.ask('vCont;c'))
        finally:
            self.ask(f'z0,{va:x},1')
