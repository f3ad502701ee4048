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
POINTS = 'kmalloc', 'pages', 'vmalloc', 'percpu'
ALL = 'all'                     # as a number of a call: every one


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
    numbers: tuple = (1,)
    qemu: tuple = ()
    plug: tuple = ()        # devices that a saved state cannot have

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

    def fingerprint(self):
        """Return a hash of all that a result depends on."""
        whole = hashlib.sha256()
        values = dataclasses.asdict(self)
        values.pop('numbers')
        files = [values.pop(k) for k in ('run', 'share', 'initrd')]
        whole.update(json.dumps(values, sort_keys=True).encode())
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


def fault_rule(point, stackid, number):
    """Return the rule of one run: the call NUMBER of a stack fails. It is the
    same in each VM, so a report can show it."""
    if number == ALL:
        return rule(point, f'stackid == {stackid}')
    return rule(point, f'stackid == {stackid} && n == {number}', None,
                '--times 1')
