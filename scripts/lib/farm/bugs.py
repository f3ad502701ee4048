# SPDX-License-Identifier: GPL-2.0-or-later
"""Which findings are one bug (docs/farm.md has the rule for users).

An error: those of the same fold, the same exact hash, or with a title in
common, be it the title or one of alt (docs/errors.md). A bug is what hangs
together by this rule. An error whose stacks are not known to their ends (weak)
has hashes of what is known: only its title joins it to others.

A leak: those of the same title, unless one build has several: see leaks.py.

People know more: a decision says which bug a title belongs to, or a hash fold,
or a leak by the name of its bug. What was decided differently never joins.
"""
import collections
import dataclasses

from . import leaks


@dataclasses.dataclass
class Bug:
    """name    8 digits of a hash of its first finding, and a number if others
              have the same
    title   that of its first finding; titles: all of them
    shared  those of its titles that other bugs have, too
    runs    {key of the run: [number of its finding]}
    sample  (fold, exact) of a finding of the last batch that has one
    """
    name: str
    title: str
    kind: str
    titles: set = dataclasses.field(default_factory=set)
    folds: set = dataclasses.field(default_factory=set)
    shared: set = dataclasses.field(default_factory=set)
    runs: dict = dataclasses.field(default_factory=dict)
    sample: tuple = None
    batch: str = ''             # that of the sample
    weak: bool = True           # all of its findings are


class Found:
    """A finding of a run, as ROWS has it.

    bug   (title, number of a leak among those of its title), or None
    name  that of a bug of which this is the first finding
    """

    def __init__(self, row):
        self.batch, self.key, self.index, self.kind, self.title, alt, \
            self.fold, self.exact, self.weak, kernel, job, *call = row
        self.titles = [self.title, *(alt.split('\n') if alt else [])]
        self.unit = self.batch, kernel, job
        self.call = leaks.Call(*call)
        self.bug, self.name = None, self.fold[:8]

    @property
    def names(self):
        """What a decision can be about, the closest first."""
        return [*([self.name] if self.bug else []), self.fold, *self.titles]

    def choice(self, decided):
        """Return the name of the bug that was decided for it, or None."""
        return next((decided[w] for w in self.names if w in decided), None)


class Groups:
    """Union of sets: which words hang together."""

    def __init__(self):
        self.parent = {}

    def find(self, word):
        parent = self.parent.setdefault(word, word)
        while parent != self.parent[parent]:
            parent = self.parent[parent] = self.parent[self.parent[parent]]
        self.parent[word] = parent
        return parent

    def join(self, first, second):
        """Join two groups; the smaller word names both, so the order in
        which words come does not matter."""
        a, b = sorted((self.find(first), self.find(second)))
        self.parent[b] = a


ROWS = """
SELECT r.batch, f.key, f.number, f.kind, f.title, f.alt, f.fold, f.exact,
    f.weak, r.kernel, r.job, f.call_order, f.call, f.place, f.near, f.partial
    FROM finding AS f JOIN last AS r
    ON f.key = r.key AND f.attempt = r.attempt
    WHERE f.hidden = '' ORDER BY r.batch, f.key, f.number
"""


def read(store):
    """Return all findings; leaks know which bugs they are."""
    found = [Found(row) for row in store.rows(ROWS)]
    mine = [f for f in found if f.kind == leaks.KIND]
    numbers = leaks.number_all((f.title, f.unit, f.call) for f in mine)
    firsts, seen = {}, {}
    for f in mine:
        f.bug = f.title, numbers[f.title, f.unit, f.call]
        firsts.setdefault(f.bug, f.call.place[:8])
    names = {bug: numbered(firsts[bug], seen) for bug in sorted(firsts)}
    for f in mine:
        f.name = names[f.bug]
    return found


def numbered(name, seen):
    """Return a name, with a number if it is not the first one. seen: {name: how
    often it was there}."""
    number = seen[name] = seen.get(name, 0) + 1
    return name if number == 1 else f'{name}-{number}'


def words_of(f, decided):
    """Return the words that a finding has in common with others of its bug."""
    choice = f.choice(decided)
    if choice:
        return [('decided', choice)]
    if f.bug:
        return [('leak', *f.bug)]
    words = [('title', t) for t in f.titles if t not in decided]
    if not f.weak:
        words += [('fold', f.fold)] + ([('exact', f.exact)] if f.exact else [])
    return words


def names(store):
    """Return all that a decision can be about: titles, hashes and leaks."""
    found = read(store)
    return {w for f in found for w in f.names}


def find(store):
    """Return all bugs of a database: those first that were seen first."""
    decided = dict(store.rows('SELECT title, bug FROM decision'))
    rows = read(store)
    groups, words = Groups(), [words_of(f, decided) for f in rows]
    for mine in words:
        for word in mine[1:]:
            groups.join(mine[0], word)
    found = {}
    for f, mine in zip(rows, words):
        bug = found.setdefault(groups.find(mine[0]),
                               Bug(f.name, f.title, f.kind))
        add(bug, f)
    made, seen = list(found.values()), {}
    times = collections.Counter(t for bug in made for t in bug.titles)
    for bug in made:
        bug.name = numbered(bug.name, seen)
        bug.shared = {t for t in bug.titles if times[t] > 1}
    return made


def add(bug, f):
    """Add a finding to a bug."""
    bug.titles.update(f.titles)
    bug.folds.add(f.fold)
    bug.runs.setdefault(f.key, []).append(f.index)
    bug.weak = bug.weak and bool(f.weak)
    if not bug.sample or f.batch > bug.batch:
        bug.sample, bug.batch = (f.fold, f.exact), f.batch
