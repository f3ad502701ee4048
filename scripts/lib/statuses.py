# SPDX-License-Identifier: GPL-2.0-or-later
"""The exit statuses of scripts/sweep and scripts/fault-sweep: one table for the
programs, their --help and their pages in docs/."""
import textwrap
from typing import NamedTuple, Optional

CLEAN, FOUND, COULD_NOT_RUN = 0, 1, 2


class Row(NamedTuple):
    """A status, when it is that, and what a job does."""
    status: int
    when: str
    job: str


# What may keep a run from being complete.
WHY_NOT = {
    'sweep': 'wrong arguments or files, no VM, QEMU ended, the time was over '
             'before the guest came to its end, the marker or the end of the '
             'script never came, nothing was traced, tracing is off, errors '
             'were not kept, the guest panicked, printed nothing or was '
             'stopped, a second boot, accesses or leaks could not be searched, '
             'a mark of --max-growth never came, SIGINT, SIGTERM, SIGHUP',
    'fault-sweep': 'wrong arguments or files, no VM, the scenario fails or '
                   'hangs without a fault, no call was recorded, a call was '
                   'not reached, --keep could not show the fault, SIGINT, '
                   'SIGTERM, SIGHUP',
}
HIDDEN = {'sweep': ' that neither a suppression nor the baseline has',
          'fault-sweep': ''}


class End(NamedTuple):
    """An end of a run of scripts/sweep, its status if nothing else is wrong,
    and what the reports have then. status: None if sweep has none."""
    end: str
    status: Optional[int]
    report: str


ENDS = (
    End('the guest powers off, or reboots (`reboot: Restarting system`)',
        CLEAN, 'no allocation errors'),
    End('the console shows the text of `--marker`', CLEAN,
        'no allocation errors'),
    End('the time is over, with `--until-timeout`', CLEAN,
        'no allocation errors'),
    End('one of these, after the kernel made an error that was looked for',
        FOUND, 'a finding for each error'),
    End('the script of `--run`, or of `ka.run=`, ends with another status than '
        '0; so it does if a module was not loaded and the script checks that',
        FOUND, 'a finding `scenario failed: status 1: insmod x.ko: ...`, with '
        'the last lines of its output'),
    End('the guest ends, and the text of `--expect` never came', FOUND,
        'a finding `expected text is missing: ...`'),
    End('the time is over: the guest hangs at boot', COULD_NOT_RUN,
        'the phase of the guest, the stacks of the vCPUs, the end of the '
        'console'),
    End('the time is over: the script of `--run` or something else in user '
        'space goes on', COULD_NOT_RUN, 'the same'),
    End('the time is over: the guest hangs as it shuts down', COULD_NOT_RUN,
        'the same'),
    End('the text of `--marker`, or of a mark of `--max-growth`, never came',
        COULD_NOT_RUN, 'its name; the same, if the time was over'),
    End('the guest ends before the script of `--run` does', COULD_NOT_RUN,
        'that it never began, or did not come to its end'),
    End('the kernel panics', FOUND, "a finding with the panic's title, and "
        'that the run is not complete. With `--no-health` only the latter, '
        'and 2'),
    End('the machine is reset, and the console shows no reboot', COULD_NOT_RUN,
        'that this is so'),
    End('another kernel was started (kexec, kdump)', COULD_NOT_RUN,
        'that the errors of the boot before are not known'),
    End('nothing was traced, or tracing was switched off', COULD_NOT_RUN,
        'why'),
    End('QEMU ends or is killed, the VM is stopped by somebody else',
        COULD_NOT_RUN, 'how; errors are those of the journal'),
    End('SIGINT, SIGTERM or SIGHUP ends sweep', COULD_NOT_RUN,
        'the signal; the VM has ended, too'),
    End('SIGKILL ends sweep', None, 'nothing: no file is written. The VM has '
        'ended, too'),
    End('arguments or files are wrong, or a report cannot be written',
        COULD_NOT_RUN, 'which, in one line'),
)


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


def ends_markdown():
    """The table of ends for docs/ci.md."""
    lines = ['| end of the run | status | the reports have |', '|---|---|---|']
    lines += [f"| {e.end} | {'none' if e.status is None else e.status} | "
              f'{e.report} |' for e in ENDS]
    return '\n'.join(lines) + '\n'


def markdown(program):
    """The table for a page of docs/."""
    lines = ['| status | the first that holds | the job |', '|---|---|---|']
    lines += [f'| {r.status} | {r.when} | {r.job} |' for r in rows(program)]
    return '\n'.join(lines) + '\n'
