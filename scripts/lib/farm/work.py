# SPDX-License-Identifier: GPL-2.0-or-later
"""A worker: it is number I of N, and runs the lines I, I + N, I + 2N ... of the
plan, one after another. It needs nothing but the folder, and no other worker.
"""
import contextlib
import os
import platform
import resource
import signal
import subprocess
import time

from ..findings import clean
from . import FarmError, results, scratch, sweeps

KEPT_LOG = 256 << 10        # bytes of the console's end
GRACE = 180                 # seconds that a sweep may take longer than a VM
JOURNAL_ONE_IN = 20         # seeds whose journal is kept if the run is clean

# Variables in which an engine says who a worker is: the index, and how many
# there are (None: --of says it).
ENGINES = (('SLURM_ARRAY_TASK_ID', 'SLURM_ARRAY_TASK_COUNT'),
           ('JOB_COMPLETION_INDEX', None),
           ('BUILDKITE_PARALLEL_JOB', 'BUILDKITE_PARALLEL_JOB_COUNT'),
           ('CI_NODE_INDEX', 'CI_NODE_TOTAL'),
           ('KA_FARM_INDEX', 'KA_FARM_OF'))
FROM_ONE = 'CI_NODE_INDEX',


def variable(name):
    text = os.environ.get(name, '')
    if text and not (text.isdigit() and len(text) < 10):
        raise FarmError(f"${name} is '{clean.line(text, 40)}', no number")
    return int(text) if text else None


def who(index, of):
    """Return (index, of) from options or, if they are missing, from the
    variables of an engine."""
    for name, count in ENGINES if index is None else ():
        index = variable(name)
        if index is not None:
            index -= name in FROM_ONE
            of = of or (variable(count) if count else None)
            break
    if of is not None and of < 1:
        raise FarmError(f'--of {of} is not 1 or more')
    if index is None or not of:
        raise FarmError('which worker is this? give --index I --of N')
    if not 0 <= index < of:
        raise FarmError(f'--index {index} is not 0 to {of - 1}')
    return index, of


# --- one line ----------------------------------------------------------------

def end(proc):
    """End a sweep, which ends its VM."""
    for number, seconds in (signal.SIGTERM, 60), (signal.SIGKILL, None):
        with contextlib.suppress(ProcessLookupError,
                                 subprocess.TimeoutExpired):
            os.killpg(proc.pid, number)
            proc.wait(seconds)


def run_sweep(words, work, lock, timeout):
    """Run a sweep to its end. Return its status, None if it had none. The
    sweep ends with its worker, however the worker ends, and the VM with its
    sweep. All files of the sweep are in the folder of the run, which is locked
    until the sweep ends, too."""
    words = ['setpriv', '--pdeathsig', 'TERM', *words]
    with open(os.path.join(work, 'log'), 'wb') as out, subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=out,
            stderr=subprocess.STDOUT, start_new_session=True,
            env={**os.environ, 'TMPDIR': work}, pass_fds=[lock]) as proc:
        try:
            return proc.wait(timeout)
        except subprocess.TimeoutExpired:
            return None
        finally:
            end(proc)


def log_end(path, most=KEPT_LOG):
    """Return the last bytes of a file."""
    with open(path, 'rb') as f:
        f.seek(max(0, os.path.getsize(path) - most))
        return f.read(most)


def last_line(path):
    lines = log_end(path, 4096).decode('utf-8', 'replace').split('\n')
    return next((clean.line(t) for t in reversed(lines) if t.strip()), '')


class Worker:
    """Runs lines of a plan in a folder."""

    def __init__(self, folder, limits, program=None, say=print):
        self.folder, self.limits, self.say = folder, limits, say
        self.program = program

    def _keep(self, name, write):
        """Write a file beside the results; return its description."""
        name = os.path.join('kept', name)
        with self.folder.new(name) as f:
            write(f)
        return sweeps.artefact(self.folder.file(name))

    def _artefacts(self, line, attempt, made, log, journal):
        name = f'{line.key}.{attempt}'
        kept = [self._keep(name + '.log.zst',
                           lambda f: f.write(results.pack(log_end(log))))]
        if journal and os.path.exists(journal) and (
                made['verdict'] != 'clean' or
                line.seed % JOURNAL_ONE_IN == 0):
            with open(journal, 'rb') as source:
                kept.append(self._keep(
                    name + '.journal.zst',
                    lambda f: results.pack_file(source, f)))
        return kept

    def run(self, line, attempt):
        """Run a line, write its result, and return the verdict."""
        with scratch.folder() as (work, lock):
            return self._run(line, attempt, work, lock)

    def _run(self, line, attempt, work, lock):
        begin, clock = time.time(), time.monotonic()
        cpu = cpu_seconds()
        log, report = os.path.join(work, 'log'), os.path.join(work, 'json')
        journal = os.path.join(work, 'journal') if line.journal else None
        words = sweeps.run_command(line, self.program, report, journal)
        status = run_sweep(words, work, lock, line.timeout + GRACE)
        made = sweeps.broken('the sweep did not end') if status is None else \
            sweeps.read(report, last_line(log), status)
        result = {
            'schema': results.SCHEMA, 'key': line.key, 'attempt': attempt,
            'line': {**line.__dict__}, 'host': clean.line(platform.node()),
            'begin': int(begin), 'left_out': {}, **made,
            'wall_s': round(time.monotonic() - clock, 2),
            'cpu_s': round(cpu_seconds() - cpu, 2),
            'artefacts': self._artefacts(line, attempt, made, log, journal)}
        self.folder.write(
            os.path.join('results', self.folder.result_name(line.key,
                                                            attempt)),
            results.render(result))
        return made['verdict']

    def verdict(self, key, attempt):
        """Return the verdict of a result that is there; a bad file has
        none."""
        path = self.folder.file('results',
                                self.folder.result_name(key, attempt))
        try:
            return results.read(path, key, attempt)['verdict']
        except results.BadResult:
            return None

    def todo(self, line, attempts):
        """Return the number of the next attempt, or None if the line is
        done. A line whose VM did not come to an end is run again, and so is
        an attempt whose file is torn."""
        verdict, last = None, attempts.get(line.key, 0)
        for number in range(1, last + 1):
            verdict = self.verdict(line.key, number)
            if verdict is None:
                return number
        if last == 0:
            return 1
        again = verdict == 'broken' and last < self.limits.attempts
        return last + 1 if again else None

    def work(self, lines):
        """Run each line that has no result. Broken ones are run again when
        all others have run. Return how many are left: 0 unless the minutes
        are over."""
        self.folder.remove_old()
        last = time.monotonic() + self.limits.minutes * 60
        for _ in range(max(1, self.limits.attempts)):
            attempts = self.folder.attempts()
            todo = [(line, number) for line in lines
                    if (number := self.todo(line, attempts))]
            for done, (line, number) in enumerate(todo):
                if time.monotonic() > last:
                    return len(todo) - done
                verdict = self.run(line, number)
                self.say(f'{line.key} {line.job} {line.kernel} seed '
                         f'{line.seed}: {verdict}')
        return 0


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
