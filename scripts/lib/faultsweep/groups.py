# SPDX-License-Identifier: GPL-2.0-or-later
"""Faults that lead to one bug. Each finding has causes: what went wrong first,
such as the stacks of the blocks that leaked. Faults with a cause in common are
a group, and so are as few groups as possible: of a function that frees nothing
a later fault leaks more blocks than an earlier one, and all leak the first."""
import collections
import dataclasses

from ..findings import finding, health, health_kinds
from ..findings.finding import hash_words

# name: the title of the bug; no other group has it. cause: what went wrong
# first; its fold is that of the bug. rows: of the report, that to be shown
# first.
Group = collections.namedtuple('Group', 'name cause rows')

CHANCES = 'likely', 'cgroup', '-', 'rare'


def bug_of(cause):
    """Return a hash of the bug that a cause shows. What the kernel reports is
    known by its title, which the same bug can have on different ways, and by
    the first function of a module on its stack, whose bug it is."""
    if cause.kind not in health_kinds.MEANINGS or \
            health.NO_FUNCTION in cause.title:
        return cause.fold
    modules = [f.name for _, stack in cause.stacks for f in stack if f.module]
    return hash_words(cause.title, *modules[:1])


def most_common(bugs):
    """Return the bug that most rows have, of {row number: {bugs}}; of several
    ones that which was seen first in a run."""
    counts, position = collections.Counter(), {}
    for some in bugs.values():
        for i, bug in enumerate(some):
            counts[bug] += 1
            position[bug] = min(i, position.get(bug, i))
    return min(counts, key=lambda b: (-counts[b], position[b], b))


def order_in_group(row):
    """The fault to be shown: one that is not flaky, that can happen, that
    leads to as little else as possible."""
    return (row.flaky, CHANCES.index(row.stack['chance']),
            len(row.verdict.causes), str(row.n), row.stack['stackid'])


def make_groups(rows, severity):
    """Return the groups of ROWS, which are findings, in the order of their
    first rows. SEVERITY: a function of a row, small for what is bad."""
    bugs = {i: {bug_of(c): c for c in row.verdict.causes}
            for i, row in enumerate(rows)}
    found = []
    while bugs:
        bug = most_common(bugs)
        members = [i for i in bugs if bug in bugs[i]]
        found.append((members, dataclasses.replace(bugs[members[0]][bug],
                                                   fold=bug)))
        for i in members:
            del bugs[i]
    names = {g.first.fold: g.name
             for g in finding.group([cause for _, cause in found])}
    groups = [Group(names[cause.fold], cause,
                    sorted((rows[i] for i in members), key=order_in_group))
              for members, cause in found]
    return sorted(groups, key=lambda g: (min(map(severity, g.rows)), g.name))
