# SPDX-License-Identifier: GPL-2.0-or-later
"""The runs of a sweep, in several VMs at once."""
import queue
import threading
import time

from . import runner
from .scenario import fault_rule
from .verdict import is_finding, judge, place, worst

ATTEMPTS = 2        # for a run in which QEMU ended or did not answer


def key_of(row, number):
    return f"{row['stackid']}-{number}"


def verdict_of(result, control):
    """Return (verdict, whether its repeat differs) of a result."""
    found = [judge(run, control) for run in result['runs']]
    return worst(found), len({place(v) for v in found}) > 1


def one_run(restorer, rule, limits):
    """Restore and run; try again if the VM, not the guest, has gone."""
    for attempt in range(ATTEMPTS):
        vm = restorer.restore()
        try:
            run = runner.perform(vm, [rule], limits)
        except BaseException:
            restorer.collect(vm)
            if attempt + 1 == ATTEMPTS:
                raise
            continue
        restorer.collect(vm)
        if run['end'] != 'died':
            break
    return run


def one_result(restorer, row, number, limits, control):
    """Return the result of one fault. A finding is repeated once."""
    rule = fault_rule(row['point'], row['stackid'], number)
    runs = [one_run(restorer, rule, limits)]
    if is_finding(judge(runs[0], control)):
        runs.append(one_run(restorer, rule, limits))
    return {'stack': row, 'n': number, 'rule': rule, 'runs': runs}


class Progress:
    """Counts results, and prints a line for each."""

    def __init__(self, total, say):
        self.total, self.say = total, say
        self.done = self.runs = 0
        self.begin = time.monotonic()
        self.lock = threading.Lock()

    def add(self, result, verdict, flaky):
        with self.lock:
            self.done += 1
            self.runs += len(result['runs'])
            minutes = (time.monotonic() - self.begin) / 60
            rate = self.runs / minutes if minutes else 0
            left = minutes / self.done * (self.total - self.done)
            self.say(f"[{self.done}/{self.total}] {result['stack']['stackid']}"
                     f" n={result['n']}: {verdict.name}"
                     f"{' (flaky)' if flaky else ''}; {rate:.0f} runs a "
                     f'minute, {left:.0f} minutes left')


class Sweep:
    """Workers take runs from a queue. The first failure ends all."""

    def __init__(self, results, control, limits, progress):
        self.results, self.control = results, control
        self.limits, self.progress = limits, progress
        self.todo = queue.SimpleQueue()
        self.failures = []

    def _take(self):
        try:
            return None if self.failures else self.todo.get_nowait()
        except queue.Empty:
            return None

    def _work(self, make_restorer):
        try:
            restorer = make_restorer()
            try:
                while True:
                    item = self._take()
                    if not item:
                        return
                    self._one(restorer, *item)
            finally:
                restorer.close()
        except BaseException as e:  # pylint: disable=broad-exception-caught
            self.failures.append(e)

    def _one(self, restorer, row, number):
        result = one_result(restorer, row, number, self.limits, self.control)
        self.results.put(key_of(row, number), result)
        self.progress.add(result, *verdict_of(result, self.control))

    def run(self, items, makers):
        """Make the runs ITEMS; MAKERS make the restorer of each worker."""
        for item in items:
            self.todo.put(item)
        threads = [threading.Thread(target=self._work, args=(m,), daemon=True)
                   for m in makers]
        for t in threads:
            t.start()
        try:
            for t in threads:
                while t.is_alive():
                    t.join(0.5)
        except BaseException as e:
            self.failures.append(e)
            raise
        if self.failures:
            raise self.failures[0]
