# SPDX-License-Identifier: GPL-2.0-or-later
"""The real gdb, by its command line, for tests that stop a guest many times.

    gdb = Gdb(guest)
    gdb.stop()                          # attaches if it is not attached
    print(gdb.command('monitor ka stat'))
    gdb.go()
    gdb.detach()                        # the guest continues
    gdb.close()
"""
import os
import re
import select
import signal
import subprocess
import time

STOPPED = 'received signal SIG'
BEFORE = ('set pagination off', 'set confirm off', 'set width 0',
          'set remotetimeout 100')


class GdbError(Exception):
    """A debugger did not print what a test expects; the text is its output."""


class Cli:
    """A program that is used by its command line. @env: its environment, None:
    that of the test."""

    def __init__(self, argv, timeout, env=None):
        self.timeout = timeout
        self.text, self.last, self.commands = '', '', 0
        # pylint: disable-next=consider-using-with
        self.proc = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True, env=env)

    def send(self, line):
        self.proc.stdin.write(line.encode() + b'\n')
        self.proc.stdin.flush()

    def _more(self, end):
        ready, _, _ = select.select([self.proc.stdout], [], [],
                                    max(0, end - time.monotonic()))
        data = os.read(self.proc.stdout.fileno(), 1 << 16) if ready else b''
        if not data:
            why = 'has ended' if ready else 'does not answer'
            raise GdbError(f'{self.proc.args[0]} {why} after: '
                           f'{self.text[-500:]}')
        self.text += data.decode('utf-8', 'replace').replace('\r', '')

    def until(self, pattern):
        """Wait for a match in the output; return the text before it, and
        remove both from the buffer. The match is self.last."""
        end = time.monotonic() + self.timeout
        while not (found := re.search(pattern, self.text)):
            self._more(end)
        said, self.text = self.text[:found.start()], self.text[found.end():]
        self.last = found.group()
        return said

    def end(self):
        """Wait for the end of the program, or end it."""
        self.proc.stdin.close()
        try:
            self.proc.wait(self.timeout)
        except subprocess.TimeoutExpired:
            self.proc.kill()
            self.proc.wait()
        self.proc.stdout.close()


class Gdb(Cli):
    """One gdb. The VM runs in gdb's background mode, so that the command line
    can interrupt it. PROGRAM is another gdb than that of the machine."""

    def __init__(self, guest, program=None):
        super().__init__([program or guest.arch.gdb, '-nx', '-q'],
                         guest.timeout)
        self.guest = guest
        self.attached = self.running = False
        for line in (*BEFORE, 'set architecture ' + guest.arch.gdb_name):
            self.command(line)

    def command(self, line):
        """Run a command; return its output."""
        self.commands += 1
        mark = f'KA-GDB-{self.commands}.'
        self.send(line)
        self.send(f'echo \\n{mark}\\n')
        return self.until(f'\n{re.escape(mark)}\n')

    # --- the VM --------------------------------------------------------------

    def _attach(self):
        said = self.command('target remote ' + self.guest.path('gdb.sock'))
        if 'Remote debugging using' not in said:
            raise GdbError(said)
        self.attached = True

    def stop(self):
        """Stop the VM, in whatever state it is."""
        if not self.attached:
            self._attach()
        elif self.running:
            self.send('interrupt')
            self.until(STOPPED)
            self.running = False

    def go(self):
        said = self.command('continue &')
        if 'Continuing.' not in said:
            raise GdbError(said)
        self.running = True

    def hit(self):
        """Wait until the VM stops at a breakpoint."""
        self.until(r'hit .*[Bb]reakpoint \d+, .*\n')
        self.running = False

    def detach(self):
        """Detach; the guest continues."""
        if not self.attached:
            return
        self.stop()
        said = self.command('detach')
        if 'detached' not in said:
            raise GdbError(said)
        self.attached = False

    def abandon(self, line):
        """Behave as a user who does not wait for the end of a command: type
        Ctrl-C and quit."""
        self.send(line)
        for _ in range(3):
            time.sleep(0.03)
            self.proc.send_signal(signal.SIGINT)
        self.proc.kill()
        self.attached = False
        self.close()

    def close(self):
        """End gdb after it has detached."""
        try:
            self.detach()
        finally:
            self.end()
