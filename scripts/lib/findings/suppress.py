# SPDX-License-Identifier: GPL-2.0-or-later
"""Findings that a file says are known: a pattern a line."""
import fnmatch
import re

from . import CouldNotRun


class Suppression:
    """One line of the file."""

    def __init__(self, line, number):
        words = line.split()
        if len(words) > 2:
            raise CouldNotRun(f'suppressions, line {number}: '
                              f"'{line.strip()}' is not KIND [FUNCTION]")
        self.text, self.number, self.used = line.strip(), number, 0
        self.kind = words[0]
        self.function = words[1] if len(words) == 2 else '*'

    def matches(self, error):
        if not fnmatch.fnmatchcase(error.get('error') or '', self.kind):
            return False
        if self.function == '*':
            return True
        return any(fnmatch.fnmatchcase(name, self.function)
                   for name in functions(error))


def functions(error):
    """Names of the functions in the stacks: f and, of a module, m:f."""
    for key in ('error_stack', 'alloc', 'free', 'rcu'):
        for frame in error.get(key + '_symbols') or []:
            m = re.match(r'([^\s+]+)(?:\+0x[0-9a-f]+)?(?:\s*\[(\w+)\])?',
                         frame)
            if m:
                yield m.group(1)
                if m.group(2):
                    yield f'{m.group(2)}:{m.group(1)}'


def read_suppressions(path):
    if not path:
        return []
    try:
        with open(path, encoding='utf-8') as f:
            lines = f.read().splitlines()
    except (OSError, UnicodeDecodeError) as e:
        raise CouldNotRun(f'suppressions: {e}') from e
    return [Suppression(line.split('#')[0], i)
            for i, line in enumerate(lines, 1) if line.split('#')[0].strip()]


def find_suppression(suppressions, error):
    for s in suppressions:
        if s.matches(error):
            s.used += 1
            return s
    return None
