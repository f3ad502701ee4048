# SPDX-License-Identifier: GPL-2.0-or-later
"""Questions to the database: what is new, gone and flaky in a batch, and what
grew.

Only complete runs can show that a bug is absent: clean ones, and those with
findings and without a reason why others may be missing. Broken runs count for
nothing.
"""
import dataclasses
import statistics

from . import FarmError, bugs

BACK = 14               # batches that are compared with
MISS = 0.05             # chance to be wrong if a bug is said to be gone
GREW = 64 << 10         # bytes; less than this is no growth
GREW_PART = 0.05


@dataclasses.dataclass
class Cell:
    """Runs of a batch with one kernel and job."""
    seen: int = 0
    complete: int = 0


@dataclasses.dataclass
class Row:
    """A bug in a batch: where it is, and what became of it.

    states  {kernel: one of those of state(), or ''}
    rates   {kernel: (runs with the bug, complete runs)} of the batch, and of
            the jobs that showed it
    """
    bug: bugs.Bug
    states: dict
    rates: dict
    first: str = ''         # batch in which it was seen first, and last
    last: str = ''

    def is_in(self, *states):
        return any(s in states for s in self.states.values())


@dataclasses.dataclass
class Run:
    """A run as the table has it; its last attempt."""
    key: str
    attempt: int
    batch: str
    job: str
    kernel: str
    seed: int
    release: str
    arch: str
    verdict: str
    reason: str

    @property
    def complete(self):
        return self.verdict != 'broken' and not self.reason


RUN = 'SELECT key, attempt, batch, job, kernel, seed, release, arch, ' \
    'verdict, reason FROM {}'


class View:
    """What a report is about: one batch, and the batches before."""

    def __init__(self, store, batch=None, since=None):
        self.store = store
        self.runs = {r[0]: Run(*r) for r in store.rows(
            RUN.format('last ORDER BY batch, job, kernel, seed, key'))}
        self.planned = store.rows('SELECT key, batch FROM planned')
        self.batches = sorted({r.batch for r in self.runs.values()} |
                              {b for _, b in self.planned})
        if not self.batches:
            raise FarmError(f'{store.path}: no run was collected yet')
        self.batch = self.batches[-1] if batch is None else batch
        self._want_batch(self.batch)
        before = [b for b in self.batches if b < self.batch]
        self.before = before[-BACK:] if since is None else \
            self._from(since, before)
        self.kernels = sorted({r.kernel for r in self.runs.values()})
        self.bugs = bugs.find(store)
        self.rows = [self._row(bug) for bug in self.bugs]

    def _want_batch(self, name):
        if name not in self.batches:
            raise FarmError(f"no batch '{name}'; the last ones: "
                            + ' '.join(self.batches[-5:]))

    def _from(self, since, before):
        """Return the batches before, from one on."""
        self._want_batch(since)
        if since not in before:
            raise FarmError(f"batch '{since}' is not before '{self.batch}'")
        return before[before.index(since):]

    # --- bugs ----------------------------------------------------------------

    def _cells(self, bug, batches):
        """Return {(kernel, job): Cell} of some batches, of the jobs that
        showed the bug."""
        cells, jobs = {}, {self.runs[k].job for k in bug.runs}
        for run in self.runs.values():
            if run.batch in batches and run.job in jobs:
                cell = cells.setdefault((run.kernel, run.job), Cell())
                seen = run.key in bug.runs
                cell.seen += seen
                cell.complete += run.complete or seen
        return cells

    def _row(self, bug):
        when = sorted(self.runs[k].batch for k in bug.runs)
        now = self._cells(bug, {self.batch})
        # How often it is seen is counted from its first batch on.
        past = self._cells(bug, {b for b in self.before if b >= when[0]})
        ran = {r.kernel for r in self.runs.values()
               if r.batch in self.before and r.complete}
        states, rates = {}, {}
        for kernel in self.kernels:
            states[kernel] = state(of(now, kernel), of(past, kernel),
                                   kernel in ran)
            seen = sum(c.seen for c in of(now, kernel).values())
            rates[kernel] = seen, sum(c.complete
                                      for c in of(now, kernel).values())
        return Row(bug, states, rates, when[0], when[-1])

    def shown(self, *states):
        return [row for row in self.rows if row.is_in(*states)]

    # --- runs ----------------------------------------------------------------

    def count(self, batch=None):
        """Return {kernel: {verdict or missing: runs}} of a batch."""
        batch = batch or self.batch
        found = {}
        for run in self.runs.values():
            if run.batch == batch:
                row = found.setdefault(run.kernel, {})
                row[run.verdict] = row.get(run.verdict, 0) + 1
        return found

    def missing(self):
        """Return how many lines of the batch have no result."""
        return sum(b == self.batch and k not in self.runs
                   for k, b in self.planned)

    def about(self, run):
        """Return (detail, warnings, line) of a run."""
        row, = self.store.rows('SELECT detail, warnings, line FROM run WHERE '
                               'key = ? AND attempt = ?', run.key,
                               run.attempt)
        return row

    def sample(self, bug):
        """Return the text of one finding of a bug, and its run or None."""
        for text, *who in self.store.rows(
                'SELECT text, key, attempt FROM sample WHERE fold = ? AND '
                'exact = ?', *bug.sample):
            rows = self.store.rows(RUN.format(
                'run WHERE key = ? AND attempt = ?'), *who)
            return text, (Run(*rows[0]) if rows else None)
        return '', None

    def broken(self):
        return [r for r in self.runs.values()
                if r.batch == self.batch and r.verdict == 'broken']

    # --- memory --------------------------------------------------------------

    def _live(self, batch):
        """Return {(kernel, job, fold): [live bytes of each complete run]}."""
        found = {}
        for kernel, job, fold, live in self.store.rows(
                "SELECT r.kernel, r.job, a.fold, a.live FROM account AS a "
                "JOIN last AS r ON a.key = r.key AND a.attempt = r.attempt "
                "WHERE r.batch = ? AND r.reason = ''", batch):
            found.setdefault((kernel, job, fold), []).append(live)
        return found

    def growth(self):
        """Return (grew, before, after, kernel, job, fold) of stacks whose
        live bytes are more than in the batch before, the largest first."""
        if not self.before:
            return []
        old, new = self._live(self.before[-1]), self._live(self.batch)
        found = []
        for key in old.keys() & new.keys():
            was, limit = middle(old[key])
            now, _ = middle(new[key])
            if now - was > max(GREW, GREW_PART * was, 4 * limit):
                found.append((now - was, was, now, *key))
        return sorted(found, reverse=True)

    def trend(self):
        """Return {kernel: [(batch, runs, broken, runs with findings, bugs,
        median of live bytes)]}."""
        batches = [*self.before, self.batch]
        live = dict(((k, b), []) for k in self.kernels for b in batches)
        for kernel, batch, total in self.store.rows(
                "SELECT r.kernel, r.batch, sum(a.live) FROM account AS a "
                "JOIN last AS r ON a.key = r.key AND a.attempt = r.attempt "
                "WHERE r.reason = '' GROUP BY r.key"):
            live.get((kernel, batch), []).append(total)
        return {k: [self._point(k, b, live[k, b]) for b in batches]
                for k in self.kernels}

    def _point(self, kernel, batch, live):
        mine = [r for r in self.runs.values()
                if (r.kernel, r.batch) == (kernel, batch)]
        keys = {r.key for r in mine}
        return (batch, len(mine), sum(r.verdict == 'broken' for r in mine),
                sum(r.verdict == 'found' for r in mine),
                sum(bool(keys & bug.runs.keys()) for bug in self.bugs),
                int(statistics.median(live)) if live else None)


def of(cells, kernel):
    return {job: c for (k, job), c in cells.items() if k == kernel}


def state(now, past, ran):
    """Return what became of a bug on one kernel. Cells are {job: Cell}; ran:
    the kernel has complete runs in the batches before.

    new     it is there, and the batches before did not have it
    first   it is there, and the kernel did not run before
    flaky   it is there or was, in some of the complete runs of a job only
    known   it is there, and was
    gone    it was there, and by chance it would not be absent so often
    maybe   it was there and is absent, but there are too few runs
    """
    seen = sum(c.seen for c in now.values())
    was = sum(c.seen for c in past.values())
    if seen and not was:
        return 'new' if ran else 'first'
    if seen:
        both = [(now.get(j, Cell()), past.get(j, Cell()))
                for j in {*now, *past}]
        return 'flaky' if any(0 < a.seen + b.seen < a.complete + b.complete
                              for a, b in both) else 'known'
    if not was:
        return ''
    return 'gone' if chance_of_absence(now, past) < MISS else 'maybe'


def chance_of_absence(now, past):
    """The chance that all runs of now miss a bug that is still there: of each
    job, its runs without the bug are as likely as before."""
    chance = 1.0
    for job, cell in past.items():
        if cell.seen:
            rate = min(cell.seen / cell.complete, 0.99)
            chance *= (1 - rate) ** now.get(job, Cell()).complete
    return chance


def middle(values):
    """Return the median, and the median of the distances to it."""
    m = statistics.median(values)
    return int(m), int(statistics.median(abs(v - m) for v in values))
