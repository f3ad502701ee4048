# SPDX-License-Identifier: GPL-2.0-or-later
"""Test programs: what they print, where they run, and what they need.

    results.py    what one program printed, as TAP; sums
    process.py    run one program
    durations.py  how long each program took, kept in the cache
    needs.py      set-up steps that make what programs need
    screen.py     what the user sees meanwhile
    schedule.py   many programs at once; failed ones once more
    used.py       which files a program uses, against what its row asks for
    bare.py       suites in fresh systems

scripts/lib/runtests.py has the table of programs, and uses these.
"""
import os
from dataclasses import dataclass

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), '..', '..',
                                     '..'))
PYTHON = '/usr/bin/python3'


@dataclass(eq=False)
class Job:
    """A test program to run."""

    suite: str
    name: str
    command: list
    env: dict
    seconds: int            # its limit
    form: str = ''          # its options; with the name it says what it runs
    level: str = 'full'     # the lowest level that runs it in this form
    needs: tuple = ()       # words of needs.py
    alone: bool = False     # no other program runs beside it

    @property
    def label(self):
        return f'{self.suite}:{self.name}'


def cache_folder():
    return os.environ.get('KA_CACHE') or os.path.join(
        os.environ.get('HOME') or '/root', '.cache', 'ka')
