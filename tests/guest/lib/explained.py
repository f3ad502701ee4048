# SPDX-License-Identifier: GPL-2.0-or-later
"""The functions whose accesses to freed and slack memory are explained, in
guests that are in order: the list in explained.txt."""
import os
import re

PATH = os.path.join(os.path.dirname(os.path.realpath(__file__)),
                    'explained.txt')
REASONS = 'overread', 'loads_ok', 'by_allocator'
# memset(), __memset() and __pi_memset() are one function.
ALIAS = re.compile(r'^(__pi_)?(__(?=mem|str))?')
ROW = re.compile(r'^(\w+) +(\d+)  ([^\s.]+)\S*$', re.M)


def read(path=PATH):
    """Return {(reason, architecture): {function: whether each long run must
    see it}}; 'any' is each architecture."""
    known = {}
    with open(path, encoding='ascii') as f:
        for number, line in enumerate(f, 1):
            words = line.partition('#')[0].split()
            if not words:
                continue
            assert words[0] in REASONS and \
                (len(words) == 3 or words[3:] == ['sometimes']), \
                f'{path}:{number}: a line is REASON ARCHITECTURE FUNCTION ' \
                f'[sometimes], REASON is one of {", ".join(REASONS)}'
            known.setdefault((words[0], words[1]), {})[words[2]] = \
                len(words) == 3
    return known


def seen(text):
    """Return {(reason, function): accesses} of the lines of `ka access -v`.
    What gcc puts behind a dot for its clones is removed."""
    rows = {}
    for reason, n, symbol in ROW.findall(text):
        name = ALIAS.sub('', symbol)
        if reason in REASONS:
            rows[reason, name] = rows.get((reason, name), 0) + int(n)
    return rows


def new(text, arch, known):
    """Return a line for each function that is not on the list: what to do."""
    return [f'{n} accesses are {reason} by {name}(), which is not on the list. '
            'Read the function: if each of them is right, add the line '
            f'"{reason} {arch} {name}" to {os.path.relpath(PATH)}; else the '
            'rule in access-code.def is too wide, or the guest has a bug'
            for (reason, name), n in sorted(seen(text).items())
            if not any(name in known.get((reason, a), ())
                       for a in ('any', arch))]


def unseen(rows, arch, known):
    """Return the functions for ARCH on the list that are not in ROWS, a set of
    (reason, function)."""
    return sorted(f'{reason}:{name}' for (reason, a), names in known.items()
                  for name in names
                  if a in ('any', arch) and (reason, name) not in rows)


def never(rows, known):
    """Return the functions on the list that are in no ROWS, {architecture: set
    of (reason, function)}."""
    anywhere = set().union(*rows.values())
    return sorted(f'{reason} {arch} {name}'
                  for (reason, arch), names in known.items()
                  for name, always in names.items()
                  if always and
                  (reason, name) not in (anywhere if arch == 'any' else
                                         rows.get(arch, ())))
