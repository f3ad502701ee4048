# SPDX-License-Identifier: GPL-2.0-or-later
"""The exit statuses of scripts/sweep and scripts/fault-sweep: one table for the
programs, their --help and their pages in docs/."""
import textwrap
from typing import NamedTuple

CLEAN, FOUND, COULD_NOT_RUN = 0, 1, 2


class Row(NamedTuple):
    """A status, when it is that, and what a job does."""
    status: int
    when: str
    job: str


# What may keep a run from being complete.
WHY_NOT = {
    'sweep': 'wrong arguments or files, no VM, QEMU ended, the marker never '
             'came, nothing was traced, tracing is off, errors were not kept, '
             'the guest panicked, printed nothing or was stopped, a second '
             'boot, accesses or leaks could not be searched, a mark of '
             '--max-growth never came, SIGINT, SIGTERM, SIGHUP',
    'fault-sweep': 'wrong arguments or files, no VM, the scenario fails or '
                   'hangs without a fault, no call was recorded, a call was '
                   'not reached, --keep could not show the fault, SIGINT, '
                   'SIGTERM, SIGHUP',
}
HIDDEN = {'sweep': ' that neither a suppression nor the baseline has',
          'fault-sweep': ''}


def rows(program):
    """The table of a program. The first row that holds is the status."""
    return (
        Row(COULD_NOT_RUN, 'the report or a file could not be written. '
            'Findings are printed nevertheless, if that was possible',
            'is broken'),
        Row(FOUND, f'there are findings{HIDDEN[program]}, whether the run is '
            'complete or not', 'fails'),
        Row(COULD_NOT_RUN, 'the run could not start or is not complete, so no '
            f'findings would not mean a clean guest: {WHY_NOT[program]}',
            'is broken, or is repeated'),
        Row(CLEAN, 'none of these', 'passes'),
    )


def status(unwritten, found, incomplete):
    """Return the status of a run for which these hold."""
    for holds, number in ((unwritten, COULD_NOT_RUN), (found, FOUND),
                          (incomplete, COULD_NOT_RUN)):
        if holds:
            return number
    return CLEAN


def help_text(program):
    """The table for --help."""
    lines = ['Exit status, of the first line that holds:']
    for row in rows(program):
        lines += textwrap.wrap(row.when, 77, initial_indent=f'  {row.status}  ',
                               subsequent_indent='     ',
                               break_on_hyphens=False)
    return '\n'.join(lines)


def markdown(program):
    """The table for a page of docs/."""
    lines = ['| status | the first that holds | the job |', '|---|---|---|']
    lines += [f'| {r.status} | {r.when} | {r.job} |' for r in rows(program)]
    return '\n'.join(lines) + '\n'
