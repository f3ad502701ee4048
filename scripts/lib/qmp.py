# SPDX-License-Identifier: GPL-2.0-or-later
"""A connection to a guest's QMP socket."""
import json
import socket
import time


class GuestError(Exception):
    """A guest failed or did not reach a state in time; the text says which."""


def connect(path, timeout, alive=lambda: True):
    """Connect to a unix socket that QEMU creates while it starts. Try again
    until TIMEOUT seconds have passed or alive() is false."""
    end = time.monotonic() + timeout
    while True:
        s = socket.socket(socket.AF_UNIX)
        try:
            s.connect(path)
            s.settimeout(timeout)
            return s
        except OSError as e:
            s.close()
            if time.monotonic() > end or not alive():
                raise GuestError(f'{path}: {e}') from e
            time.sleep(0.01)


class Qmp:
    """A QMP connection; events are collected in .events. SOCK: a socket that
    is connected already, instead of PATH."""

    def __init__(self, path, timeout, alive=lambda: True, sock=None):
        self.sock = sock or connect(path, timeout, alive)
        self.file = self.sock.makefile('r', encoding='utf-8')
        self.events = []
        self._sent = 0
        self._read('QMP')
        self.cmd('qmp_capabilities')

    def _read(self, *keys):
        while True:
            try:
                line = self.file.readline()
            except OSError as e:
                raise GuestError(f'QMP: {e}') from e
            if not line:
                raise GuestError('QMP: connection closed by QEMU')
            try:
                msg = json.loads(line)
            except ValueError as e:
                raise GuestError(f'QMP: no JSON: {line[:80]!r}') from e
            if any(k in msg for k in keys):
                return msg
            if 'event' in msg:
                self.events.append(msg)

    def cmd(self, name, arguments=None, timeout=120):
        self._sent += 1
        msg = {'execute': name, 'id': self._sent}
        if arguments:
            msg['arguments'] = arguments
        self.sock.settimeout(timeout)
        try:
            self.sock.sendall(json.dumps(msg).encode() + b'\n')
        except OSError as e:
            raise GuestError(f'QMP: {e}') from e
        answer = self._read('return', 'error')
        while answer.get('id') != self._sent:   # of one that timed out
            answer = self._read('return', 'error')
        if 'error' in answer:
            raise GuestError(f"QMP {name}: {answer['error']['desc']}")
        return answer['return']

    def read_event(self, timeout=None):
        """Wait for an event; add it to .events."""
        self.sock.settimeout(timeout)
        self.events.append(self._read('event'))

    def wait_event(self, name, timeout=120):
        self.sock.settimeout(timeout)
        while not any(e['event'] == name for e in self.events):
            self.events.append(self._read('event'))

    def close(self):
        self.file.close()
        self.sock.close()
