# SPDX-License-Identifier: GPL-2.0-or-later
"""Which findings are one bug: those of the same fold, the same exact hash, or
with a title in common, be it the title or one of alt (docs/errors.md). A bug is
what hangs together by this rule.

A finding whose stacks are not known to their ends (weak) has hashes of what is
known: only its title joins it to others.

People know more: a decision says which bug a title belongs to. Titles that
were decided differently never join.
"""
import dataclasses


@dataclasses.dataclass
class Bug:
    """name   8 digits of a fold: of its first finding
    title  that of its first finding; titles: all of them
    runs   {key of the run: [number of its finding]}
    """
    name: str
    title: str
    kind: str
    titles: set = dataclasses.field(default_factory=set)
    folds: set = dataclasses.field(default_factory=set)
    runs: dict = dataclasses.field(default_factory=dict)
    sample: tuple = None        # (fold, exact) of its first finding
    weak: bool = True           # all of its findings are


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
    f.weak FROM finding AS f JOIN last AS r
    ON f.key = r.key AND f.attempt = r.attempt
    WHERE f.hidden = '' ORDER BY r.batch, f.key, f.number
"""


def words_of(row, decided):
    """Return the words that a finding has in common with others of its bug."""
    _, _, _, _, title, alt, fold, exact, weak = row
    titles = [title, *(alt.split('\n') if alt else [])]
    choice = next((decided[t] for t in titles if t in decided), None)
    if choice:
        return [('decided', choice)]
    words = [('title', t) for t in titles if t not in decided]
    if not weak:
        words += [('fold', fold)] + ([('exact', exact)] if exact else [])
    return words


def titles(store):
    """Return the titles of all findings."""
    return {t for title, alt in store.rows('SELECT title, alt FROM finding')
            for t in (title, *alt.split('\n'))}


def find(store):
    """Return all bugs of a database: those first that were seen first."""
    decided = dict(store.rows('SELECT title, bug FROM decision'))
    rows = store.rows(ROWS)
    groups = Groups()
    words = [words_of(row, decided) for row in rows]
    for mine in words:
        for word in mine[1:]:
            groups.join(mine[0], word)
    found = {}
    for row, mine in zip(rows, words):
        _, key, number, kind, title, alt, fold, exact, weak = row
        bug = found.setdefault(groups.find(mine[0]),
                               Bug(fold[:8], title, kind,
                                   sample=(fold, exact)))
        bug.titles |= {title, *(alt.split('\n') if alt else [])}
        bug.folds.add(fold)
        bug.runs.setdefault(key, []).append(number)
        bug.weak = bug.weak and bool(weak)
    return name_all(list(found.values()))


def name_all(bugs):
    """Two bugs whose names would be the same get a number."""
    seen = {}
    for bug in bugs:
        number = seen[bug.name] = seen.get(bug.name, 0) + 1
        if number > 1:
            bug.name += f'-{number}'
    return bugs
