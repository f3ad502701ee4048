# SPDX-License-Identifier: GPL-2.0-or-later
"""Signals: a program that is ended by one ends the guests that it started."""
import signal
import sys


def _end(*_):
    """Ignore further signals: they would interrupt the end of the guests."""
    for number in ENDS:
        signal.signal(number, signal.SIG_IGN)
    sys.exit('ended from outside')


# The signals that end this program. Under nohup SIGHUP is not one of them.
ENDS = [n for n in (signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(n) != signal.SIG_IGN]


def end_on_signals():
    """End this program by an exception: guests that it started end too."""
    for number in ENDS:
        signal.signal(number, _end)


def hear_hangups():
    """For preexec_fn: let the child receive SIGHUP. Under nohup it would
    inherit that the signal is ignored."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
