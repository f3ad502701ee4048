# SPDX-License-Identifier: GPL-2.0-or-later
"""Run many test programs: several at once, each when its needs are made. A
program that fails runs once more by itself, after the others."""
import threading

from .process import kill_all, run_job
from .results import Result, Total

# If more programs fail, none runs again: these are no rare failures.
MOST_REPEATED = 10


class Pool:
    """Threads that take jobs from a list, in its order, as soon as the needs of
    one are made. RUN(job) is called on them; SKIP(job, text) for a job whose
    needs cannot be made."""

    def __init__(self, jobs, threads, setup, run, skip):
        self.todo, self.setup = list(jobs), setup
        self.run_one, self.skip = run, skip
        self.stopped = False
        self.threads = [threading.Thread(target=self._work, daemon=True)
                        for _ in range(min(threads, len(self.todo)))]

    def _take(self):
        """Return a job that can run now, or None at the end."""
        with self.setup.change:
            while self.todo and not self.stopped:
                for job in self.todo:
                    failure = self.setup.failure(job.needs)
                    if failure is None:
                        continue
                    self.todo.remove(job)
                    if not failure:
                        return job
                    self.skip(job, failure)
                    break
                else:
                    self.setup.change.wait()
            # Others may wait for a list that is empty now.
            self.setup.change.notify_all()
            return None

    def _work(self):
        while job := self._take():
            self.run_one(job)

    def run(self, tick):
        """Run all jobs; call TICK() each half second."""
        for thread in self.threads:
            thread.start()
        try:
            for thread in self.threads:
                while thread.is_alive():
                    thread.join(0.5)
                    tick()
        finally:
            with self.setup.change:
                self.stopped = True
                self.setup.change.notify_all()


class Run:
    """One run of jobs. results has the last Result of each; flaky the jobs that
    failed and then passed, with both Results."""

    def __init__(self, jobs, setup, screen, folder, durations, verbose=False):
        self.jobs, self.setup, self.screen = jobs, setup, screen
        self.folder, self.durations = folder, durations
        self.verbose = verbose
        self.lock = threading.Lock()
        self.results, self.flaky = {}, []
        self.running = []
        self.failed = []        # jobs that ran and failed
        self.stopped = False    # programs that end now were ended by us

    def _status(self):
        with self.lock:
            running = ' '.join(job.label for job in self.running)
            done = len(self.results)
        now = f'; set-up: {self.setup.now}' if self.setup.now else ''
        self.screen.status(f'{done}/{len(self.jobs)} done{now}; {running}')

    def _attempt(self, job, attempt, live):
        try:
            return run_job(job, self.folder, attempt, self.verbose,
                           self.screen.say if live else None,
                           keep=attempt > 1)
        except OSError as e:    # the program cannot be started
            result = Result(job.label, self.verbose)
            result.fail(str(e))
            return result

    def _run_one(self, job, live):
        with self.lock:
            self.running.append(job)
        result = self._attempt(job, 1, live)
        if self.stopped:
            return
        with self.lock:
            self.running.remove(job)
            self.results[job] = result
            if result.failed:
                self.failed.append(job)
            elif self.durations:
                self.durations.add(job, result)
        self.screen.say(*result.lines)

    def _skip(self, job, failure):
        result = Result(job.label)
        result.fail(failure)
        self.results[job] = result
        self.screen.say(*result.lines)

    def together(self, jobs, threads):
        live = threads == 1
        try:
            Pool(jobs, threads, self.setup,
                 lambda job: self._run_one(job, live),
                 self._skip).run(self._status)
        except BaseException:
            self.stopped = True
            kill_all()
            raise
        finally:
            self.screen.status('')

    def again(self):
        """Run each failed program once more, by itself."""
        if len(self.failed) > MOST_REPEATED:
            self.screen.say(f'# {len(self.failed)} programs failed: none of '
                            'them runs again')
            return
        for job in self.failed:
            self.screen.say(f'# {job.label} failed: once more, by itself')
            self.screen.status(job.label)
            first, second = self.results[job], self._attempt(job, 2, False)
            self.screen.say(*second.lines)
            self.results[job] = second
            if not second.failed:
                self.flaky.append((job, first, second))
        self.screen.status('')

    def total(self):
        total = Total()
        for result in self.results.values():
            total.add(result)
        return total


def flaky_lines(flaky):
    for job, first, second in flaky:
        yield (f'flaky {job.label}: failed, and passed when it ran once more '
               'by itself')
        yield f'  output of the failure:      {first.log}'
        yield f'  output of the second run:   {second.log}'
