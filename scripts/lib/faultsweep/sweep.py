# SPDX-License-Identifier: GPL-2.0-or-later
"""The runs of a sweep, in several VMs at once."""
import collections
import math
import threading
import time

from . import runner
from .numbers import Outcome, next_numbers
from .scenario import ALL
from .verdict import is_finding, judge, outcome, place, worst

ATTEMPTS = 2        # for a run in which QEMU ended or did not answer


def key_of(row, number):
    return f"{row['stackid']}-{number}"


def verdict_of(result, control):
    """Return (verdict, whether its repeat differs) of a result. The repeat
    knows more, so it is preferred if both show the same."""
    found = [judge(run, control) for run in reversed(result['runs'])]
    return worst(found), len({place(v) for v in found}) > 1


def outcome_of(result, control):
    verdict, _ = verdict_of(result, control)
    calls = result['runs'][0]['calls']
    return Outcome(outcome(verdict), verdict.name == 'masked' and
                   calls > result['stack']['selected'])


class Course:
    """The results of each stack, and what is to be tried next."""

    def __init__(self, results, control, numbers):
        self.results, self.control = results, control
        self.numbers = numbers

    def of_stack(self, row):
        """Return ({number: result}, [numbers that are to be tried next])."""
        done, outcomes = {}, {}
        while True:
            wanted = next_numbers(self.numbers, row['selected'], outcomes)
            found = {n: self.results.get(key_of(row, n)) for n in wanted}
            missing = [n for n in wanted if not found[n]]
            done.update((n, r) for n, r in found.items() if r)
            if missing or not wanted:
                return done, missing
            for n, result in found.items():
                outcomes[n] = outcome_of(result, self.control)

    def first(self, rows):
        """Return [(row, number)] of what is to be tried now: the first calls
        of all stacks, then the second ones, at last all calls of each."""
        todo = [(row, n) for row in rows for n in self.of_stack(row)[1]]
        return sorted(todo, key=lambda item: math.inf if item[1] == ALL
                      else item[1])

    def done(self, rows):
        """Return the results of all stacks, in the order of the runs."""
        return [r for row in rows for r in self.of_stack(row)[0].values()]


def one_run(restorer, rule_of, limits, control, watch=False):
    """Restore and run; try again if the VM, not the guest, has gone. Return
    (rule, run). WATCH: record who takes references to modules."""
    for attempt in range(ATTEMPTS):
        vm = restorer.restore()
        try:
            rule = rule_of(vm)
            run = runner.perform(vm, [rule], limits, control=control,
                                 watch=watch)
        except BaseException:
            restorer.collect(vm)
            if attempt + 1 == ATTEMPTS:
                raise
            continue
        restorer.collect(vm)
        if run['end'] != 'died':
            break
    return rule, run


def one_result(restorer, scenario, row, number, limits, control):
    """Return the result of one fault. A finding is repeated once."""
    def rule_of(vm):
        return scenario.fault_rule(row['point'], row['stackid'], number,
                                   vm.pid)

    rule, run = one_run(restorer, rule_of, limits, control)
    run['usual'] = row['selected']
    found, runs = judge(run, control), [run]
    if is_finding(found):
        _, run = one_run(restorer, rule_of, limits, control,
                         found.name == 'stuck-module')
        runs.append({**run, 'usual': row['selected']})
    return {'stack': row, 'n': number, 'rule': rule, 'runs': runs}


class Progress:
    """Counts results, and prints a line for each."""

    def __init__(self, total, say):
        self.total, self.say = total, say
        self.done = self.runs = 0
        self.begin = time.monotonic()
        self.lock = threading.Lock()

    def more(self, number):
        with self.lock:
            self.total += number

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


class Todo:
    """A queue that workers fill while they empty it. take() returns None when
    it is empty and stays so, or after fail()."""

    def __init__(self, items):
        self.items = collections.deque(items)
        self.busy = 0           # items that were taken and are not done
        self.pending = collections.Counter(i[0]['stackid'] for i in items)
        self.failure = None
        self.changed = threading.Condition()

    def take(self):
        with self.changed:
            while not self.items and self.busy and not self.failure:
                self.changed.wait()
            if self.failure or not self.items:
                return None
            self.busy += 1
            return self.items.popleft()

    def done(self, row, more):
        """An item is done. If it was the last one of its stack, more() returns
        the next ones."""
        with self.changed:
            self.busy -= 1
            self.pending[row['stackid']] -= 1
            if not self.pending[row['stackid']]:
                new = more()
                self.pending[row['stackid']] += len(new)
                self.items += new
            self.changed.notify_all()

    def fail(self, failure):
        with self.changed:
            self.failure = self.failure or failure
            self.changed.notify_all()


class Sweep:
    """Workers make runs, and try more calls of a stack by what they show. The
    first failure ends all."""

    def __init__(self, scenario, course, limits, progress):
        self.scenario, self.course = scenario, course
        self.limits, self.progress = limits, progress
        self.todo = None

    def _work(self, make_restorer):
        try:
            restorer = make_restorer()
            try:
                while True:
                    item = self.todo.take()
                    if not item:
                        return
                    self._one(restorer, *item)
            finally:
                restorer.close()
        except BaseException as e:  # pylint: disable=broad-exception-caught
            self.todo.fail(e)

    def _one(self, restorer, row, number):
        course = self.course
        result = one_result(restorer, self.scenario, row, number, self.limits,
                            course.control)
        course.results.put(key_of(row, number), result)
        self.progress.add(result, *verdict_of(result, course.control))
        self.todo.done(row, lambda: self._more(row))

    def _more(self, row):
        numbers = self.course.of_stack(row)[1]
        self.progress.more(len(numbers))
        return [(row, n) for n in numbers]

    def run(self, items, makers):
        """Make the runs ITEMS; MAKERS make the restorer of each worker."""
        self.todo = Todo(items)
        threads = [threading.Thread(target=self._work, args=(m,), daemon=True)
                   for m in makers]
        for t in threads:
            t.start()
        try:
            for t in threads:
                while t.is_alive():
                    t.join(0.5)
        except BaseException as e:
            self.todo.fail(e)
            raise
        if self.todo.failure:
            raise self.todo.failure
