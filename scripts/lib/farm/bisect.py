# SPDX-License-Identifier: GPL-2.0-or-later
"""Which kernel of a row has a bug first. A kernel has the bug if one of its
runs shows it. It has not if so many complete runs do not show it that, at the
rate with which the bug is seen, this happens by chance in less than one of
twenty cases."""
import math
import os
import re
import subprocess
import tempfile

from . import FarmError, bugs, plan, results, work
from .folder import Folder
from .questions import MISS

DOUBT = 'they have a finding of the same title, which may be another bug'
GOOD, BAD, UNKNOWN = 'good', 'bad', 'unknown'
MOST_RUNS = 100
MOST_NAMED = 5
MUST = 'the first kernel must be without the bug, the last one must have it'
PACKAGE = re.compile(r'linux-image-[\w.+~-]+_([\w.+~%-]+)_\w+\.deb')


def runs_needed(rate):
    """Return how many runs without the bug mean that it is absent."""
    if not 0 < rate <= 1:
        raise FarmError(f'--rate {rate} is not more than 0 and at most 1')
    if rate >= 1 - MISS:
        return 1
    return min(MOST_RUNS, math.ceil(math.log(MISS) / math.log(1 - rate)))


class Wanted:
    """The bug that is looked for: a title, a hash, or a bug of a database."""

    def __init__(self, word, store=None):
        self.words, self.doubtful = {word}, set()
        if not store:
            return
        found = [b for b in bugs.find(store)
                 if word in (b.name, *b.titles, *b.folds)]
        exact = [b for b in found if word == b.name]
        if len(exact or found) != 1:
            names = ' '.join(b.name for b in found[:MOST_NAMED])
            raise FarmError(f"{len(found)} bugs are '{word}' in {store.path}" +
                            (f'; name one: {names}' if found else ''))
        bug, = exact or found
        self.words = (bug.titles - bug.shared) | bug.folds
        self.doubtful = bug.shared

    def is_in(self, result):
        return has(result, self.words)

    def may_be_in(self, result):
        """Return whether a result has a finding with a title of the bug that
        other bugs have, too."""
        return has(result, self.doubtful)


def has(result, words):
    return any(words & {f['fold'], f['exact'], f['title'], *f['alt']}
               for f in result['findings'] if not f['hidden'])


class Prober:
    """Runs a job with one kernel until it is known whether it has the bug."""

    def __init__(self, lines, wanted, runs, program=None, say=print):
        self.lines, self.wanted, self.runs = lines, wanted, runs
        self.program, self.say = program, say

    def probe(self, kernel, folder):
        """Return good, bad or unknown. The lines differ by their seed."""
        folder.make()
        worker = work.Worker(folder, plan.Limits(), self.program,
                             lambda _: None)
        absent, broken, why, others = 0, 0, '', set()
        for line in self.lines(kernel, self.runs * 2):
            result = run_once(worker, folder, line)
            if self.wanted.is_in(result):
                self.say(f'{kernel}: has the bug, seed {line.seed}')
                return BAD
            others |= {f['title'] for f in result['findings']}
            doubt = DOUBT if self.wanted.may_be_in(result) else ''
            done = result['verdict'] != 'broken' and not result['reason'] \
                and not doubt
            why = result['reason'] or doubt or why
            absent, broken = absent + done, broken + (not done)
            if absent == self.runs:
                self.say(f'{kernel}: {absent} runs without the bug' +
                         with_others(others))
                return GOOD
        self.say(f'{kernel}: {broken} runs do not decide: {why}')
        return UNKNOWN


def run_once(worker, folder, line):
    """Return the result of a line, which runs if it has none."""
    attempt = folder.attempts().get(line.key, 0)
    if not attempt:
        attempt = 1
        worker.run(line, attempt)
    return results.read(folder.file('results', folder.result_name(
        line.key, attempt)), line.key, attempt)


def with_others(titles):
    """Name other findings: a title may have been mistyped."""
    if not titles:
        return ''
    most = sorted(titles)[:MOST_NAMED]
    more = len(titles) - len(most)
    return ', but with ' + ', '.join(f"'{t}'" for t in most) + \
        (f' and {more} more' if more else '')


def lines_of(path, job):
    """Return a function: kernel, number -> the lines of a job of a plan with
    that kernel and so many seeds. Other axes have their first values."""

    def make(kernel, most):
        if '/' in kernel:
            kernel = os.path.abspath(kernel)
        lines = plan.read_file(path, 'bisect', {
            'kernel': [kernel], 'seed': f'1-{most}'}).lines
        names = list(dict.fromkeys(line.job for line in lines))
        if job is not None and job not in names:
            raise FarmError(f"no job '{job}' in the plan; there are: "
                            + plan.listed(names))
        first = next(x for x in lines if job is None or x.job == job)
        return [line for line in lines if (line.job, line.smp, line.mem) ==
                (first.job, first.smp, first.mem)]

    return make


def bisect(kernels, probe):
    """Return (last good, first bad, unknown between them). The first kernel
    must be good and the last one bad."""
    for kernel, want in (kernels[0], GOOD), (kernels[-1], BAD):
        got = probe(kernel)
        if got != want:
            raise FarmError(f'{kernel} is {got}, it should be {want}: {MUST}')
    good, bad, unknown = 0, len(kernels) - 1, set()
    while True:
        between = [i for i in range(good + 1, bad) if i not in unknown]
        if not between:
            return kernels[good], kernels[bad], [kernels[i]
                                                 for i in sorted(unknown)
                                                 if good < i < bad]
        middle = min(between, key=lambda i: abs(2 * i - good - bad))
        got = probe(kernels[middle])
        if got == GOOD:
            good = middle
        elif got == BAD:
            bad = middle
        else:
            unknown.add(middle)


# --- packages ----------------------------------------------------------------

def older(first, second):
    return subprocess.run(['dpkg', '--compare-versions', first, 'lt', second],
                          check=False).returncode == 0


def by_version(names):
    """Sort names of packages by their versions, the oldest first."""
    rest, found = list(names), []
    while rest:
        version = {n: PACKAGE.fullmatch(n)[1].replace('%3a', ':')
                   for n in rest}
        least = rest[0]
        for name in rest[1:]:
            if older(version[name], version[least]):
                least = name
        found.append(least)
        rest.remove(least)
    return found


def unpack(package, folder):
    """Unpack the kernel of a package; return its file."""
    subprocess.run(['dpkg-deb', '-x', package, folder], check=True)
    names = [os.path.join(at, name) for at, _, files in os.walk(folder)
             for name in files if name.startswith(('vmlinuz', 'vmlinux'))]
    if len(names) != 1:
        raise FarmError(f'{package}: {len(names)} kernels in it')
    return names[0]


def kernels_of_packages(folder, into):
    """Return the kernels of all packages in a folder, the oldest first."""
    names = [n for n in os.listdir(folder) if PACKAGE.fullmatch(n)]
    if len(names) < 2:
        raise FarmError(f'{folder}: less than two linux-image-*.deb')
    found = []
    for name in by_version(sorted(names)):
        place = os.path.join(into, name[:-4])
        if not os.path.isdir(place):
            new = tempfile.mkdtemp(dir=into, prefix='.new-')
            unpack(os.path.join(folder, name), new)
            os.rename(new, place)
        found.append(unpacked(place))
    return found


def unpacked(place):
    return next(os.path.join(at, name) for at, _, files in os.walk(place)
                for name in files if name.startswith(('vmlinuz', 'vmlinux')))


def folder_of(path, kernel):
    """Each kernel has a folder of results: a bisection can be resumed."""
    return Folder(os.path.join(path, re.sub(r'[^\w.+-]', '_', kernel)[-100:]))
