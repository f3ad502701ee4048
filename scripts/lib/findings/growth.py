# SPDX-License-Identifier: GPL-2.0-or-later
"""Live bytes that grew more than a limit after a moment of the run: ka mark
when the console shows a text, ka diff at the end."""
import dataclasses
import re

from scripts.ka import KaError

from .finding import Finding, hash_words

UNITS = {'': 1, 'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30}
SIZE = re.compile(r'([0-9]{1,15})([KMG]?)')
# Stacks that are printed with a finding.
STACKS = 5
# Copies of a cache, of which the kernel chooses one by chance.
COPY = re.compile(r'^kmalloc-rnd-\d+-')


@dataclasses.dataclass
class Limit:
    """At most size bytes more than when the console showed the text.

    mark   the name of the mark, or None: the text has not come
    why    why it is not known what grew, or None
    """
    text: str
    size: int
    mark: str = None
    why: str = None


def read_limit(text, size):
    """Return a limit. Raise ValueError if the size is none."""
    found = SIZE.fullmatch(size)
    if not found or not text:
        raise ValueError(f"'{size}' is not a number of bytes, or one with K, "
                         'M or G' if text else 'the text of a mark is empty')
    return Limit(text, int(found[1]) * UNITS[found[2]])


def set_marks(vm, limits, console, running):
    """Set a mark for each text that the console shows now. The guest runs on
    meanwhile; if it has ended, nothing can be compared."""
    for number, limit in enumerate(limits, 1):
        if limit.mark or limit.why or limit.text not in console:
            continue
        if not running:
            limit.why = 'it came when the guest had ended'
            continue
        try:
            vm.mark(f'sweep-{number}')
            limit.mark = f'sweep-{number}'
        except KaError as e:
            limit.why = str(e)


def name_of(row):
    """The cache of a row, as all boots have it; else the allocator."""
    if row.get('cache'):
        return COPY.sub('kmalloc-', row['cache'])
    return f"[{row.get('layer') or '-'}]"


def counted(rows):
    """Rows without pages that other allocators' blocks lie in."""
    return [row for row in rows if not row.get('backing')]


def by_name(rows):
    """{cache: bytes that it grew}, the largest first."""
    grew = {}
    for row in rows:
        grew[name_of(row)] = grew.get(name_of(row), 0) + row['live']
    return dict(sorted(grew.items(), key=lambda pair: -pair[1]))


def stack_text(row):
    frames = ' '.join(row.get('stack_symbols') or row.get('stack') or [])
    return f"    {row['live']} bytes alloc[{frames}]"


def make(name, grew, limit, stacks):
    """The finding. Which stacks allocated from a cache is not known: those
    that grew most are only in the text."""
    lines = [f'growth of {name}: {grew} bytes since \'{limit.text}\', the '
             f'limit is {limit.size}']
    if stacks:
        lines += ['  the stacks that grew most, of all caches:']
        lines += [stack_text(row) for row in stacks]
    return Finding(kind='growth', title=f'growth of {name}',
                   fold=hash_words('growth', name), text='\n'.join(lines),
                   row={'error': 'growth', 'cache': name, 'grew': grew})


def over(limit, answer, stacks):
    """Return a finding for each cache that grew more than the limit; if it
    takes all of them to grow so much, one of everything."""
    total = answer.total.live
    grew = by_name(counted(row.raw for row in answer))
    names = {n: more for n, more in grew.items() if more > limit.size}
    if not names and total > limit.size:
        names = {'all memory': total}
    stacks = counted(row.raw for row in stacks if row.live > 0)[:STACKS]
    return [make(name, more, limit, stacks) for name, more in names.items()]


def findings(vm, limits):
    """Return what grew too much. A limit that cannot be compared says why."""
    found = []
    for limit in limits:
        if not limit.mark:
            limit.why = limit.why or 'it never came'
            continue
        try:
            found += over(limit, vm.diff(limit.mark, by='cache'),
                          vm.diff(limit.mark, by='stack', n=2 * STACKS))
        except KaError as e:
            limit.why = str(e)
    return found


def why_not_known(limits):
    """Yield reasons why growth may be missing."""
    for limit in limits:
        if limit.why:
            yield f"growth since '{limit.text}': {limit.why}"
