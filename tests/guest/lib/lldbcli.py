# SPDX-License-Identifier: GPL-2.0-or-later
"""The real lldb, by its command line, for tests that stop a guest many times.

    lldb = Lldb(guest, 'kernel.elf')
    lldb.stop()                         # attaches if it is not attached
    print(lldb.command('bt all'))
    lldb.go()
    lldb.close()                        # the guest continues
"""
import glob
import os
import re

from .gdbcli import Cli, GdbError

STOPPED = r'Process \d+ stopped\n'
NOT_YET = 'Process is not running'
HELPER = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..',
                      '..', 'scripts', 'ka_lldb.py')


def modules_of_lldb():
    """Return an environment in which Debian's lldb 14 finds its own Python
    modules; it looks for them in another folder."""
    found = glob.glob('/usr/lib/llvm-14/lib/python3.*/dist-packages')
    return dict(os.environ, PYTHONPATH=':'.join(found))


class Lldb(Cli):
    """One lldb with scripts/ka_lldb.py and the symbols of PATH. If its input is
    no file, `continue` does not wait for the next stop."""

    def __init__(self, guest, path, program=None):
        super().__init__([program or 'lldb', '--no-lldbinit'], guest.timeout,
                         None if program else modules_of_lldb())
        self.guest = guest
        self.attached = self.running = False
        said = self.command('command script import ' + HELPER)
        if 'error: ' in said:
            raise GdbError(said)
        self.command('target create ' + path)

    def command(self, line):
        """Run a command; return its output. Where it ends shows a line that is
        no command."""
        self.commands += 1
        mark = f'KA-LLDB-{self.commands}'
        self.send(line)
        self.send(mark)
        said = self.until(f"error: '{mark}' is not a valid "
                          'command.*\n')
        return said.partition(line + '\n')[2]

    def _attach(self):
        self.send('process connect --plugin gdb-remote unix-connect://' +
                  self.guest.path('gdb.sock'))
        self.until(STOPPED)
        self.attached = True

    def _interrupt(self):
        """Ask for a stop. Return false if lldb has not seen yet that the VM
        runs."""
        self.send('process interrupt')
        self.until(f'{STOPPED}|{NOT_YET}')
        return self.last != NOT_YET

    def stop(self):
        """Stop the VM, in whatever state it is."""
        if not self.attached:
            self._attach()
        while self.running:
            self.running = not self._interrupt()

    def go(self):
        self.send('continue')
        self.until(r'Process \d+ resuming\n')
        self.running = True

    def close(self):
        """End lldb after it has detached."""
        try:
            if self.attached:
                self.stop()
                self.command('process detach')
            self.send('quit')
        finally:
            self.end()
