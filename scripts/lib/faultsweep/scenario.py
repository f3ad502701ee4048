# SPDX-License-Identifier: GPL-2.0-or-later
"""What is swept: the guest, its scenario, and the calls that are to fail."""
import dataclasses
import hashlib
import json
import os
import shutil

HERE = os.path.dirname(os.path.realpath(__file__))
NAME = 'fault-sweep'            # of the workload in the guest
READY, DONE = 'KA-SWEEP-READY', 'KA-SWEEP-DONE'
UNLOADED = 'KA-SWEEP-UNLOADED'
POINTS = 'kmalloc', 'pages', 'vmalloc', 'percpu'
# With a module, too: a driver copies from and to user space itself. Without
# one these are the calls of each read() and write() of the scenario.
MODULE_POINTS = *POINTS, 'uaccess'
FORMAT = 2                      # of the results that are kept
ALL = 'all'                     # as a number of a call: every one
AUTO = 'auto'                   # as numbers of calls: see numbers.py


@dataclasses.dataclass
class Scenario:
    """The values of the command line that decide what a run does."""

    kernel: str
    run: str
    initrd: str = None
    share: str = None
    append: str = ''
    smp: int = 1
    mem: str = '512M'
    points: tuple = POINTS
    modules: tuple = ()
    task: str = None
    condition: str = None
    numbers: tuple = AUTO
    access: bool = False
    qemu: tuple = ()
    plug: tuple = ()        # devices that a saved state cannot have
    accel: str = 'tcg'

    def make_share(self, folder):
        """Copy what the guest gets as /share to a new folder; return it."""
        if self.share:
            shutil.copytree(self.share, folder)
        else:
            os.makedirs(folder)
        for name, source in ((NAME + '.sh', os.path.join(HERE, 'scenario.sh')),
                             ('scenario.sh', self.run)):
            shutil.copyfile(source, os.path.join(folder, name))
        return folder

    def selection(self, pid):
        """Return (condition, task) of the calls that are to fail: those of
        the modules; else those of the scenario's processes."""
        parts = [f'({self.condition})'] if self.condition else []
        if self.modules:
            parts.append('(' + ' || '.join(
                f'stack("mod:{m}")' for m in self.modules) + ')')
        task = self.task
        if not task and not self.modules:
            task = str(pid)
        return ' && '.join(parts), task if task != ALL else None

    def log_rules(self, pid):
        """Return the rules that only record, one for each point."""
        condition, task = self.selection(pid)
        return [rule(point, condition, task, '--do log')
                for point in self.points]

    def fault_rule(self, point, stackid, number, pid, since_us=None):
        """Return the rule of one run: the call NUMBER of a stack fails. Calls
        are counted as log_rules() counts them, so the number is the same.
        SINCE_US: calls before do not count."""
        task = self.selection(pid)[1]
        condition = f'stackid == {stackid}'
        if since_us is not None:
            condition = f'us >= {since_us} && {condition}'
        if number == ALL:
            return rule(point, condition, task)
        return rule(point, f'{condition} && n == {number}', task, '--times 1')

    def fingerprint(self):
        """Return a hash of all that a result depends on."""
        whole = hashlib.sha256()
        values = dataclasses.asdict(self)
        values.pop('numbers')
        if values['accel'] == 'tcg':    # as results of older versions
            values.pop('accel')
        files = [values.pop(k) for k in ('run', 'share', 'initrd')]
        whole.update(json.dumps([FORMAT, values], sort_keys=True).encode())
        for path in (*files, os.path.join(HERE, 'scenario.sh'), self.kernel):
            for name in sorted(_files(path)):
                with open(name, 'rb') as f:
                    whole.update(hashlib.sha256(f.read()).digest())
        return whole.hexdigest()


def _files(path):
    if not path or not os.path.exists(path):
        return
    if os.path.isfile(path):
        yield path
    for folder, _, names in os.walk(path):
        yield from (os.path.join(folder, n) for n in names)


def rule(point, condition='', task=None, *more):
    """Return the command that adds a rule."""
    words = ['ka fault add', point]
    if condition:
        words.append(f"--if '{condition}'")
    if task:
        words.append(f'--task {task}')
    return ' '.join([*words, *more])

