# SPDX-License-Identifier: GPL-2.0-or-later
"""How a run ends: what ended the wait, and what is wrong with that."""
import dataclasses
import re
import sys
import time

from . import growth
from .finding import Finding, hash_words

# What the kernel prints when it panics, and when it then stays halted.
PANIC = re.compile('Kernel panic - not syncing.*')
PANIC_END = 'end Kernel panic - not syncing'
PANIC_SECONDS = 2       # until the kernel has printed the rest
LINE_SECONDS = 0.3      # until the guest has printed the line of a marker


@dataclasses.dataclass
class End:
    """How a run ended.

    why      what ended the wait: end, marker, panic or timeout
    problem  what is wrong with the guest, or None
    console  all that the guest has printed
    hung     the time was over, and nobody asked for that: problem is None, see
             hang.py
    """
    why: str
    problem: str = None
    console: str = ''
    hung: bool = False


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


def of_time(args, console):
    """The time is over."""
    panic = why_panicked(console)
    if panic:
        return End('panic', panic, console)
    return End('timeout', why_silent(console), console) \
        if args.until_timeout else End('timeout', None, console, hung=True)


def wait(guest, args):
    """Wait for the moment of the sweep. Return its End."""
    end = time.monotonic() + args.timeout
    console, panicked = Console(args), False
    while True:
        state = guest.qmp('query-status')
        console.update(guest.console if state['running'] else
                       guest.settled_console())
        text = console.text
        growth.set_marks(guest.ka, args.max_growth, text, state['running'])
        if not panicked and PANIC.search(text):
            panicked, end = True, min(end, time.monotonic() + PANIC_SECONDS)
        if args.marker and args.marker in text:
            time.sleep(LINE_SECONDS)
            console.update(guest.console)
            return End('marker', why_panicked(text), console.text)
        if not state['running']:
            return End('end', why_panicked(text) or why_not_the_end(
                guest, state['status'], text), text)
        if time.monotonic() > end or PANIC_END in text:
            return of_time(args, text)
        time.sleep(0.2)


# --- --expect ----------------------------------------------------------------

def missing(args, end):
    """The texts of --expect that the guest has not printed."""
    return [text for text in args.expect if text not in end.console]


def expect_findings(args, end):
    """A finding for each text that is missing. If the guest came to no proper
    end, that is the problem: see why_not_expected()."""
    if end.problem or end.hung:
        return []
    return [Finding(kind='expect', title=f'expected text is missing: {text}',
                    fold=hash_words('expect', text), row={'error': 'expect'},
                    text=f"the console has not shown '{text}' until the end")
            for text in missing(args, end)]


def why_not_expected(args, end):
    """Yield the same as reasons for a guest that came to no proper end."""
    if end.problem or end.hung:
        for text in missing(args, end):
            yield f"'{text}' was expected and never came"
