# SPDX-License-Identifier: GPL-2.0-or-later
"""The findings of an earlier run, which do not fail the build. A line is the
hash and the title of a finding:

    5c6f01ab...  double-free in close_it
    *            leak in fw_setup

A finding is known if the file has its hash, or its title with * for the hash.
Another line with its title does not count: another way to the same function
can be another error. Only a finding whose hash is weak is known by any line
with its title.
"""
import re

from . import clean

HEAD = '# Known findings: scripts/sweep --baseline. A hash, and the title.\n'
LINE = re.compile(r'(\*|[0-9a-f]{8,64})\s+(\S.*)')


class Baseline:
    """The findings of a file."""

    def __init__(self, text):
        self.folds, self.titles, self.all_titles = set(), set(), set()
        for number, line in enumerate(text.splitlines(), 1):
            line = line.strip()
            if line and not line.startswith('#'):
                self._add(line, number)

    def _add(self, line, number):
        m = LINE.fullmatch(line)
        if not m:
            raise ValueError(f"line {number}: '{clean.line(line, 60)}' is not "
                             'HASH TITLE')
        self.all_titles.add(m[2])
        if m[1] == '*':
            self.titles.add(m[2])
        else:
            self.folds.add(m[1])

    def why_known(self, finding):
        """Return the reason, or None."""
        if finding.fold in self.folds:
            return f'known: {finding.fold}'
        titles = self.all_titles if finding.weak else self.titles
        if clean.line(finding.title) in titles:
            return f'known: {finding.title}'
        return None


def read(path):
    with open(path, encoding='utf-8') as f:
        return Baseline(f.read())


def render(report):
    """Return the text of a file with all findings of a run."""
    lines = sorted(f'{g.first.fold} {clean.line(g.first.title)}\n'
                   for g in report.groups)
    return HEAD + ''.join(lines)
