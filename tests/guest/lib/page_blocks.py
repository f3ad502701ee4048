# SPDX-License-Identifier: GPL-2.0-or-later
"""The code blocks of a page of docs/, and the marks of them.

A block is indented by four columns, or between lines of three backquotes. The
paragraph before it ends with a mark, or a comment stands there:

    <!-- test: tests/guest/test_farm_docs.py -->     a test runs these commands
    ... as the manual says *(read only)*:            nobody of us ran them
    <!-- output -->                                  no commands
"""
import collections
import os
import re

from scripts.lib.prepared import ROOT

READ_ONLY = '*(read only)*'
MARK = re.compile(r'<!-- (?:test: (\S+)|(output)) -->$')
FENCE = '```'

# heading: of the section; mark: the path of a test, 'output', 'read only', or
# None; line: its number in the page, from 1.
Block = collections.namedtuple('Block', 'heading mark line text')


def mark_of(lines):
    """Return the mark at the end of the lines before a block."""
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    last = lines[-1] if lines else ''
    if found := MARK.match(last.strip()):
        return found[1] or found[2]
    return 'read only' if READ_ONLY in last else None


def starts(lines, i):
    """Does a block begin at this line? An indented line behind a row of a list
    belongs to that row."""
    if lines[i].startswith(FENCE):
        return True
    return lines[i].startswith('    ') and not lines[i - 1].strip()


def end_of(lines, i):
    """Return the number of the first line behind the block that begins at I."""
    if lines[i].startswith(FENCE):
        return lines.index(FENCE, i + 1) + 1
    end = i
    for n in range(i, len(lines)):
        if lines[n].startswith('    '):
            end = n + 1
        elif lines[n].strip():
            break
    return end


def text_of(lines):
    if lines[0].startswith(FENCE):
        return '\n'.join(lines[1:-1]) + '\n'
    return '\n'.join(line[4:] for line in lines) + '\n'


def parse(text):
    """Return the blocks of the text of a page."""
    lines, found, heading, i = text.splitlines(), [], '', 0
    while i < len(lines):
        if lines[i].startswith('#'):
            heading = lines[i].lstrip('# ')
        if i and starts(lines, i):
            end = end_of(lines, i)
            found.append(Block(heading, mark_of(lines[:i]), i + 1,
                               text_of(lines[i:end])))
            i = end
        else:
            i += 1
    return found


def read(page):
    """Return the blocks of docs/PAGE.md."""
    with open(os.path.join(ROOT, 'docs', page + '.md'), encoding='utf-8') as f:
        return parse(f.read())


def under(page, heading):
    """Return the texts of the blocks of a section."""
    return [b.text for b in read(page) if b.heading == heading]
