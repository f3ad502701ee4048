# SPDX-License-Identifier: GPL-2.0-or-later
"""Findings as objects, made of the JSON objects of ka, and groups of those that
are the same."""
import collections
import dataclasses
import datetime
import hashlib
import itertools
import platform
import re

from .. import statuses
from . import clean

MOST_NAME = clean.MOST_LINE - 50        # the rest is for the hash
# The stacks of a row in the order in which they happened: key of the row, and
# what it is called in reports. The frames of all start at the leaf.
STACKS = (('alloc_symbols', 'allocated'), ('rcu_symbols', 'queued for RCU'),
          ('free_symbols', 'freed'), ('error_stack_symbols', 'found'))
FRAME = re.compile(r'(?P<function>[^\s+[]+)(?:\+0x(?P<offset>[0-9a-f]+))?'
                   r'(?:\s*\[(?P<module>[^\]]+)\])?')


@dataclasses.dataclass(frozen=True)
class Frame:
    """A frame of a stack: text as ka prints it, function, and module, which is
    empty for the kernel proper. An address without a name is its function.
    source: file:line, or None."""
    text: str
    function: str
    module: str
    source: str = None

    @property
    def name(self):
        return f'{self.module}:{self.function}' if self.module else \
            self.function


def read_frame(text, source=None):
    m = FRAME.match(text)
    return Frame(text, m['function'] if m else text,
                 (m['module'] or '') if m else '', source)


def read_stack(row, key):
    """The frames whose names are row[key]; their lines of source, if known,
    are at another key."""
    names = row[key]
    lines = row.get(key.replace('_symbols', '_lines')) or []
    return [read_frame(*pair) for pair in
            itertools.zip_longest(names, lines[:len(names)])]


@dataclasses.dataclass
class Finding:
    """What is wrong, once.

    kind, title, alt, fold, exact, weak   see docs/errors.md
    text     lines for people, with its addresses and stacks
    row      the object of ka
    blocks   how many blocks the row stands for
    hidden   why it does not fail the build, or None
    kasan    the words of KASAN or kmemleak, if they were asked for; of a report
             of the kernel its own words
    """
    kind: str
    title: str
    alt: tuple = ()
    fold: str = ''
    exact: str = ''
    weak: bool = False
    text: str = ''
    row: dict = dataclasses.field(default_factory=dict)
    blocks: int = 1
    hidden: str = None
    kasan: str = ''

    @property
    def titles(self):
        return {self.title, *self.alt}

    @property
    def stacks(self):
        """[(what happened, [Frame])], the first thing first; those that are
        known."""
        return [(what, read_stack(self.row, key))
                for key, what in STACKS if self.row.get(key)]

    @property
    def place(self):
        """The frame that the title names, or None. The title has the name
        without what compilers add to it."""
        want = self.title.rpartition(' in ')[2]
        known = [f for _, frames in reversed(self.stacks) for f in frames]
        return next((f for f in known
                     if re.split(r'(?<=.)\.', f.function)[0] == want),
                    known[0] if known else None)


def hash_words(*words):
    """Return a hash for what ka gives none."""
    text = ''.join(f'{w}\0' for w in words)
    return hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:32]


def identity(row, kind):
    """Return the identity that ka gave to a row."""
    return {'kind': kind, 'title': row.get('title') or f'{kind} in ?',
            'alt': tuple(row.get('alt') or ()),
            'fold': row.get('fold') or hash_words(kind),
            'exact': row.get('exact') or '', 'weak': bool(row.get('weak')),
            'row': row}


def from_error(row, text):
    """A row of ka error."""
    return Finding(text=text.strip(), **identity(row, row['error']))


def from_leak(row, text):
    """A row of ka leak scan or ka leak module, which stands for all blocks of
    its stack."""
    return Finding(text=text.strip(), blocks=row.get('same_stack', 0) + 1,
                   **identity(row, 'leak'))


def from_slab(row, blocks, text):
    """A finding of ka slab check, and the rows of the blocks below. Where the
    list was damaged is not known, so kind and cache are its identity."""
    kind, cache = row['kind'], row.get('cache') or 'an unknown cache'
    stacks = {key: [f for b in blocks for f in b.get(key) or []]
              for key in ('alloc_symbols', 'free_symbols')}
    return Finding(kind=kind, title=f'{kind} in {cache}', text=text.strip(),
                   fold=hash_words('slab', kind, cache),
                   row={'error': kind, 'va': row['object'], **stacks})


@dataclasses.dataclass
class Group:
    """Findings with the same fold. name: the title, as one visible line; no
    other group has it."""
    findings: list
    name: str = ''

    @property
    def first(self):
        """One that fails the build, if there is one."""
        return next((f for f in self.findings if not f.hidden),
                    self.findings[0])

    @property
    def hidden(self):
        return self.first.hidden

    @property
    def text(self):
        return '\n'.join(f.text for f in self.findings)


def group(findings):
    """Return the groups in the order of their first findings. Titles that
    several groups have get the first digits of the hash. A name is short enough
    for every format: formats that cut it would make two names one."""
    folds = {}
    for f in findings:
        folds.setdefault(f.fold, []).append(f)
    groups = [Group(members) for members in folds.values()]
    titles = [clean.line(g.first.title, MOST_NAME) for g in groups]
    times = collections.Counter(titles)
    for g, title in zip(groups, titles):
        g.name = title
        if times[title] > 1:
            g.name += f' ({g.first.fold[:8]})'
    return groups


def now():
    return datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)


def verdict(failing, problem):
    """The one word for a run. found: there are findings that are not hidden,
    whatever else is wrong. broken: none, but the run is not complete."""
    if failing:
        return 'found'
    return 'broken' if problem else 'clean'


@dataclasses.dataclass
class Report:
    """All that is known after a run. Each format prints groups, failing,
    problem and detail, and decides nothing itself.

    problem    why no findings would not mean a clean guest, or None
    detail     lines about that: what the vCPUs did, the end of the console
    warnings   lines about what else is not known
    facts      {name: value} of the run: kernel, arch, versions
    stat       the object of ka stat
    top        rows of ka top --by stack, if they were asked for
    console    of a VM that was lost
    swept      when findings were looked for and in how much, for people
    unwritten  what could not be written, a line each
    paged      the page was made, or could not be made
    """
    findings: list = dataclasses.field(default_factory=list)
    problem: str = None
    detail: str = ''
    warnings: list = dataclasses.field(default_factory=list)
    facts: dict = dataclasses.field(default_factory=dict)
    stat: dict = dataclasses.field(default_factory=dict)
    top: list = dataclasses.field(default_factory=list)
    started: datetime.datetime = dataclasses.field(default_factory=now)
    console: str = ''
    swept: str = ''
    unwritten: list = dataclasses.field(default_factory=list)
    seconds: float = 0
    paged: bool = False
    host: str = dataclasses.field(default_factory=platform.node)

    @property
    def groups(self):
        return group(self.findings)

    @property
    def failing(self):
        """The groups that fail the build."""
        return [g for g in self.groups if not g.hidden]

    @property
    def verdict(self):
        return verdict(self.failing, self.problem)

    @property
    def status(self):
        """The exit status of the program."""
        return statuses.status(self.unwritten, self.failing, self.problem)

    @property
    def why(self):
        """The problem and its lines, as one text; '' without a problem."""
        return '\n'.join(filter(None, (self.problem, self.detail))) \
            if self.problem else ''

    def add_problem(self, *reasons):
        """Add reasons why the run is not complete."""
        self.problem = '; '.join(filter(None, (self.problem, *reasons))) or \
            None
