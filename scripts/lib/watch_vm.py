#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Run QEMU, and keep a VM whose guest has panicked: ka-run --panic pause.

This process becomes QEMU, which pauses the VM instead of ending. A second
process, which has its own QMP connection, says why the VM is paused, or ends
QEMU after a poweroff or a reboot.

usage: watch_vm.py [--replay FILE [--paused] [--states N] [--goto PLACE]] KA
                   QMP-SOCKET QEMU [ARGUMENT]...

--replay: the VM stays, whatever ended the recorded run. It is paused at its
start; its state there is saved. FILE is the disk for states, which QEMU has
opened; it is removed.
--paused: it remains so; else it begins.
--states: while it runs, up to N further states are saved.
--goto: it goes to this place of its recording.
"""
import contextlib
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time

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


class States:
    """Saves VM states of a replay while it goes where it has not been.

    They are as far from each other, in time of the host, as saving four of them
    takes, and a second at least. If there are MOST, every second one is
    deleted, and the next ones are twice as far from each other.
    """

    TICK, SHORTEST, COSTS = 0.2, 1.0, 4

    def __init__(self, watcher, most):
        self.watcher, self.most = watcher, most
        self.names, self.count = [], 0
        self.interval, self.ran = self.SHORTEST, 0.0
        self.furthest = 0               # instruction of the last state
        self.seen = time.monotonic()

    def tick(self):
        """Call each TICK seconds."""
        now, before = time.monotonic(), self.seen
        self.seen = now
        qmp = self.watcher.qmp
        if qmp.cmd('query-status', timeout=None)['status'] != 'running' or \
                qmp.cmd('query-replay')['icount'] <= self.furthest:
            return
        self.ran += now - before
        if self.ran >= self.interval:
            self.save()
            self.seen = time.monotonic()

    def thin_out(self):
        for name in self.names[::2]:
            self.watcher.monitor('delvm ' + name)
        self.names = self.names[1::2]
        self.interval *= 2

    def save(self):
        if len(self.names) >= self.most:
            self.thin_out()
        begin, name = time.monotonic(), f'ka-{self.count + 1}'
        problem = self.watcher.monitor('savevm ' + name).strip()
        if 'Try once more' in problem:
            return
        if problem:
            say(f'no further states: {problem}')
            self.most = 0
            return
        self.count += 1
        self.names.append(name)
        self.ran = 0.0
        self.interval = max(self.interval,
                            self.COSTS * (time.monotonic() - begin))
        self.furthest = self.watcher.qmp.cmd('query-replay')['icount']
        if os.isatty(2):
            say(f'{len(self.names)} states saved, the last one after '
                f'{self.furthest} instructions')


class Watcher:
    """Waits for the end of the guest, and for the end of QEMU."""

    def __init__(self, sock, ka, path, pid, replay):
        self.qmp = Qmp(None, None, sock=sock)
        self.ka, self.path = ka, path
        self.replay = replay
        self.states = self.going = None
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
        """Begin to go to a place; see docs/time-travel.md."""
        # pylint: disable-next=consider-using-with
        self.going = subprocess.Popen(
            [self.ka, '-q', self.path, 'goto', *place.split()],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)

    def arrive(self):
        for line in self.going.communicate()[0].splitlines():
            say(line)
        say('the VM is paused; ' + self.how)
        self.going = None

    def tick(self):
        """Do what has to be done while QEMU sends nothing. An event that was
        read together with another message is in .events afterwards."""
        if self.going and self.going.poll() is not None:
            self.arrive()
        if self.states and self.states.most:
            self.states.tick()
        else:
            self.qmp.cmd('query-status', timeout=None)

    def next_event(self):
        while not self.qmp.events:
            busy = self.going or (self.states and self.states.most)
            if not busy or select.select([self.qmp.sock], [], [],
                                         States.TICK)[0]:
                self.qmp.read_event()
            else:
                self.tick()
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
    replay = args[0] == '--replay' and args.pop(0) and args.pop(0)
    paused = args[0] == '--paused' and bool(args.pop(0))
    states = int(args.pop(0) and args.pop(0)) if args[0] == '--states' else 0
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
                os.unlink(replay)
                watcher.save_begin()
                watcher.states = States(watcher, states)
            if place:
                watcher.go(place)
            elif paused:
                say('the VM is paused at its beginning; ' + watcher.how)
            elif replay:
                watcher.qmp.cmd('cont')
            watcher.watch()
        with contextlib.suppress(OSError):
            if replay:      # QEMU has not begun
                os.unlink(replay)
        os._exit(0)
    os.wait()
    ours.close()
    theirs.set_inheritable(True)
    os.execv(qemu, [qemu, *args, *ACTIONS,
                    '-chardev', f'socket,id=watch,fd={theirs.fileno()}',
                    '-mon', 'chardev=watch,mode=control'])


if __name__ == '__main__':
    main()
