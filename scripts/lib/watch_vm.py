#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Run QEMU, and keep a VM whose guest has panicked: ka-run --panic pause.

This process becomes QEMU, which pauses the VM instead of ending. A second
process, which has its own QMP connection, says why the VM is paused, or ends
QEMU after a poweroff or a reboot.

usage: watch_vm.py [--replay [--paused] [--goto PLACE]] KA QMP-SOCKET QEMU
                   [ARGUMENT]...

--replay: the VM stays, whatever ended the recorded run. It is paused at its
start; its state there is saved.
--paused: it remains so; else it begins.
--goto: it goes to this place of its recording.
"""
import contextlib
import os
import re
import signal
import socket
import subprocess
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), '..', '..'))
sys.path.insert(0, ROOT)
# pylint: disable=wrong-import-position
from scripts.lib.qmp import GuestError, Qmp     # noqa: E402

ACTIONS = ['-action', 'reboot=shutdown,shutdown=pause,panic=pause']
# The value of panic_cpu before a panic, see kernel/panic.c.
NO_PANIC = 0xffffffff
# Values of system_state in a reboot: SYSTEM_RESTART, which was 5 before
# SYSTEM_FREEING_INITMEM was added (5.16).
RESTARTS = 5, 6


def say(text):
    """Print one line. The reader may have gone."""
    with contextlib.suppress(OSError):
        os.write(2, f'ka-run: {text}\n'.encode())


class Watcher:
    """Waits for the end of the guest, and for the end of QEMU."""

    def __init__(self, sock, ka, path, pid, replay):
        self.qmp = Qmp(None, None, sock=sock)
        self.ka, self.path = ka, path
        self.replay = replay
        self.how = f'ask with {ka} -q {path} COMMAND, or with gdb; ' \
                   f'Ctrl-C or "kill {pid}" ends it'

    def monitor(self, line):
        return self.qmp.cmd('human-monitor-command', {'command-line': line},
                            None)

    def variable(self, name):
        """Return the value of an int of the kernel, None if it is unknown."""
        va = re.match('[0-9a-f]{16}', self.monitor(f'ka whatis {name}'))
        value = va and re.search(r': *0x([0-9a-f]{8})\s*$',
                                 self.monitor(f'x/1xw 0x{va.group()}'))
        return int(value.group(1), 16) if value else None

    def why_reset(self):
        """Return why the guest reset the VM, None if it was a reboot."""
        panic_cpu = self.variable('panic_cpu')
        if panic_cpu not in (None, NO_PANIC):
            return 'the guest has panicked'
        state = self.variable('system_state')
        if state in RESTARTS:
            return None
        if None in (panic_cpu, state):
            return 'the guest has reset itself (a panic, a triple fault or ' \
                   'a reboot)'
        return 'the guest has reset itself without a panic or a reboot (a ' \
               'triple fault?)'

    def save_begin(self):
        """Save the state to which "ka goto" goes back. If it cannot be saved,
        a replay goes forward only."""
        problem = self.monitor('savevm ka-begin').strip()
        if problem:
            say(f'no way back: {problem}')

    def go(self, place):
        """Go to a place; see docs/time-travel.md."""
        done = subprocess.run(
            [self.ka, '-q', self.path, 'goto', *place.split()], text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, check=False)
        for line in done.stdout.splitlines():
            say(line)
        say('the VM is paused; ' + self.how)

    def next_event(self):
        while not self.qmp.events:
            self.qmp.read_event()
        return self.qmp.events.pop(0)

    def watch(self):
        while True:
            event = self.next_event()
            if event['event'] == 'GUEST_PANICKED':
                say(f'the guest has panicked: the VM is paused; {self.how}')
            elif event['event'] != 'SHUTDOWN':
                continue
            elif self.replay:
                # There is no answer if a signal ended QEMU.
                self.qmp.cmd('query-status')
                say('the recording ends here: the VM is paused; ' + self.how)
            elif event['data']['guest']:
                self.end(event['data']['reason'])

    def end(self, reason):
        why = self.why_reset() if reason == 'guest-reset' else None
        if why:
            say(f'{why}: the VM is paused; {self.how}')
        else:
            self.qmp.cmd('quit')


def main():
    args = sys.argv[1:]
    replay = args[0] == '--replay' and bool(args.pop(0))
    paused = args[0] == '--paused' and bool(args.pop(0))
    place = args[0] == '--goto' and args.pop(0) and args.pop(0)
    ka, path, qemu, *args = args
    ours, theirs = socket.socketpair()
    pid = os.getpid()
    if not os.fork():
        # QEMU must not get a child that it does not know.
        if os.fork():
            os._exit(0)
        theirs.close()
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
            signal.signal(number, signal.SIG_IGN)
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)
        os.dup2(0, 1)
        with contextlib.suppress(GuestError, OSError):
            watcher = Watcher(ours, ka, path, pid, replay)
            if replay:
                # QEMU has opened the file, which is its own.
                os.unlink(os.path.join(os.path.dirname(path), 'states'))
                watcher.save_begin()
            if place:
                watcher.go(place)
            elif paused:
                say('the VM is paused at its beginning; ' + watcher.how)
            elif replay:
                watcher.qmp.cmd('cont')
            watcher.watch()
        os._exit(0)
    os.wait()
    ours.close()
    theirs.set_inheritable(True)
    os.execv(qemu, [qemu, *args, *ACTIONS,
                    '-chardev', f'socket,id=watch,fd={theirs.fileno()}',
                    '-mon', 'chardev=watch,mode=control'])


if __name__ == '__main__':
    main()
