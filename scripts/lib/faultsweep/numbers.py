# SPDX-License-Identifier: GPL-2.0-or-later
"""Which calls of a stack are made to fail, one a run. The choice depends on
nothing but the results of this stack, so it is the same in each sweep, and in
one that continues."""
import argparse
import collections
import re

from .scenario import ALL, AUTO

MOST = 8            # calls of a stack that AUTO tries, ALL not counted

# What a run came to. result: whatever is equal for runs that show the same;
# retried: the fault was masked, and the stack was called more often than
# without it.
Outcome = collections.namedtuple('Outcome', 'result retried')


def parse(text):
    """Parse numbers of calls, such as 1..3,all."""
    if text == AUTO:
        return AUTO
    found = []
    for part in text.split(','):
        m = re.fullmatch(r'(\d{1,4})(?:\.\.(\d{1,4}))?', part)
        if part == ALL:
            found.append(ALL)
        elif m and 1 <= int(m[1]) <= int(m[2] or m[1]):
            found += range(int(m[1]), int(m[2] or m[1]) + 1)
        else:
            raise argparse.ArgumentTypeError(
                f"'{part}' is not N, N..M or all")
    return tuple(dict.fromkeys(found))


def between(outcomes):
    """Return the middle of the first two calls with other calls between them
    and different results, or None."""
    tried = sorted(n for n in outcomes if n != ALL)
    for a, b in zip(tried, tried[1:]):
        if b - a > 1 and outcomes[a].result != outcomes[b].result:
            return (a + b) // 2
    return None


def next_of_auto(calls, outcomes):
    for some in ({1}, {min(2, calls), calls}):
        if not some <= outcomes.keys():
            return sorted(some - outcomes.keys())
    if ALL not in outcomes and any(o.retried for o in outcomes.values()):
        return [ALL]
    middle = between(outcomes) if len(outcomes.keys() - {ALL}) < MOST else None
    return [middle] if middle else []


def next_numbers(numbers, calls, outcomes):
    """Return the numbers to try next, [] at the end. NUMBERS is a list, or
    AUTO; CALLS: how often the stack is called without a fault; OUTCOMES:
    {number: Outcome} of what was tried."""
    if numbers == AUTO:
        return next_of_auto(calls, outcomes)
    return [n for n in numbers
            if n not in outcomes and (n == ALL or n <= calls)]
