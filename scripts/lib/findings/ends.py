# SPDX-License-Identifier: GPL-2.0-or-later
"""How a run ends: what ended the wait, and what is wrong with that."""
import re
import sys
import time

from . import growth

# What the kernel prints when it panics, and when it then stays halted.
PANIC = re.compile('Kernel panic - not syncing.*')
PANIC_END = 'end Kernel panic - not syncing'
PANIC_SECONDS = 2       # until the kernel has printed the rest


class Console:
    """The guest's console, printed as it grows if --console is given."""

    def __init__(self, args):
        self.on, self.shown, self.text = args.console, 0, ''

    def update(self, text):
        self.text = text
        if self.on:
            sys.stdout.write(text[self.shown:])
            sys.stdout.flush()
            self.shown = len(text)


def why_not_the_end(guest, status, console):
    """Return why the VM stopped, unless the guest ended it."""
    if status != 'shutdown':
        return f'the VM was stopped: {status}'
    reasons = [e['data'].get('reason') for e in guest.qmp_connection.events
               if e['event'] == 'SHUTDOWN']
    reason = reasons[-1] if reasons else 'unknown reason'
    if reason == 'guest-shutdown':
        return None
    if reason != 'guest-reset':
        return f'the VM was shut down: {reason}'
    if 'reboot: Restarting system' in console:
        return None
    return 'the guest was reset, and its console shows no reboot'


def why_panicked(console):
    """Return a reason with the kernel's own line, or None."""
    panic = PANIC.search(console)
    return f'the guest panicked: {panic.group()}' if panic else None


def why_silent(console):
    """Return a reason if a guest that still runs has printed nothing."""
    return None if console.strip() else \
        'the guest printed nothing on its first serial port: whether it ' \
        'panicked is not known'


def wait(guest, args):
    """Wait for the moment of the sweep. Return (what ended the wait, what is
    wrong with the guest or None), both for the report."""
    end = time.monotonic() + args.timeout
    console = Console(args)
    why, panic = 'timeout', None
    while True:
        state = guest.qmp('query-status')
        console.update(guest.console if state['running'] else
                       guest.settled_console())
        growth.set_marks(guest.ka, args.max_growth, console.text,
                         state['running'])
        if not panic and PANIC.search(console.text):
            why, end = 'panic', min(end, time.monotonic() + PANIC_SECONDS)
        panic = why_panicked(console.text)
        if args.marker and args.marker in console.text:
            return 'marker', panic
        if not state['running']:
            return 'end', panic or why_not_the_end(guest, state['status'],
                                                   console.text)
        if time.monotonic() > end or PANIC_END in console.text:
            return why, panic or why_silent(console.text)
        time.sleep(0.2)
