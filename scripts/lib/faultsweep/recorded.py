# SPDX-License-Identifier: GPL-2.0-or-later
"""Findings that are repeated once more, each in a run that is recorded from the
boot of the guest: ka goto then goes to the failed call, and to what came of it.

What a monitor says is not recorded, so the rule is in a file that the tracer
reads when it starts. It begins at the time of the state from which the sweep
made its runs, and so counts the same calls."""
import os
import shlex
import shutil
import time

from .. import recording
from ..findings.recorded import place
from ..prepared import command
from ..qmp import GuestError
from . import runner
from .restore import Vm, last_seq, start_guest
from .scenario import ALL, READY
from .verdict import MEANING, is_finding, judge

POLL_SECONDS = 0.05
SCRIPT = 'fault.ka'


class NotRecorded(Exception):
    """A finding was not recorded; the text says why, in one line."""


class Recorder:
    """Records findings in folders below a folder, which is made for the first
    one. TEMPLATE: of the sweep."""

    def __init__(self, folder, template, limits, control):
        self.folder = os.path.realpath(folder)
        self.template, self.scenario = template, template.scenario
        self.limits, self.control = limits, control

    def record(self, name, row):
        """Record a row of the report. Return the line about it."""
        folder = os.path.join(self.folder, name)
        try:
            self.template.make()
            os.makedirs(self.folder, exist_ok=True)
            found, run = self._run(folder, row)
            if not is_finding(found):
                raise NotRecorded('in a run from the boot of the guest, ' +
                                  MEANING[found.name])
            if not recording.has_end(folder):
                raise NotRecorded('the recording was cut off')
        except (NotRecorded, GuestError, recording.BadRecording, OSError) as e:
            shutil.rmtree(folder, ignore_errors=True)
            return 'not recorded: ' + str(e).strip().partition('\n')[0]
        return self._how_to_go(folder, found, run)

    def _how_to_go(self, folder, found, run):
        ways = [place(cause) for cause in found.causes]
        way = next((w for w in ways if w != 'end'), 'end')
        return f"{command('ka-run')} --replay {shlex.quote(folder)} --goto " \
               f"{shlex.quote(way)}; the failed call: --goto " \
               f"{run['faults'][0]['us']}us"

    def _options(self, row):
        """Write the rule into a file. Return the options of the tracer."""
        rule = self.scenario.fault_rule(
            row.stack['point'], row.stack['stackid'], row.n, self.template.pid,
            since_us=self.template.us)
        path = os.path.join(self.template.dir, SCRIPT)
        with open(path, 'w', encoding='utf-8') as f:
            f.write(rule.removeprefix('ka ') + '\n')
        return f'script={path}' + ',access=on' * self.scenario.access

    def _run(self, folder, row):
        """Return the verdict of a recorded run, and the run."""
        guest = start_guest(
            self.scenario, os.path.join(self.template.dir, 'share'),
            'fault-sweep-recorded',
            options=['--record', folder, '--plugin-opts', self._options(row)])
        try:
            vm = self._begin(guest)
            # The rule is there; this command says its number.
            run = runner.perform(vm, ['ka fault list'], self.limits,
                                 control=None if row.n == ALL else self.control)
        finally:
            guest.stop()
        run['usual'] = row.stack['selected']
        return judge(run, self.control), run

    def _begin(self, guest):
        """Wait until the scenario waits, and the rule has begun."""
        pid = int(guest.wait_marker(READY).split()[1])
        if pid != self.template.pid:
            raise NotRecorded(f'the process of the scenario is {pid}, not '
                              f'{self.template.pid}')
        while runner.guest_us(guest) <= self.template.us:
            time.sleep(POLL_SECONDS)
        return Vm(guest, pid, last_seq(guest))
