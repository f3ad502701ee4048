# SPDX-License-Identifier: GPL-2.0-or-later
"""The links of Markdown pages: each leads to a file of the tree, and if it
names a heading, to a heading of that page.

Addresses of the web are not looked at. The name of a heading is made as
GitHub makes it: lower case, without punctuation, blanks as hyphens.
"""
import os
import re

LINK = re.compile(r'\]\(([^)#\s]*)(?:#([^)\s]*))?\)')
HEADING = re.compile(r'^#+ +(.*?) *$')
FENCE = re.compile(r'^\s*```')


def prose(lines):
    """(number, line) of the lines that are no code."""
    fenced = False
    for number, line in enumerate(lines, 1):
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            yield number, line


def anchors(lines):
    """The names of a page's headings."""
    for _, line in prose(lines):
        m = HEADING.match(line)
        if m:
            text = re.sub(r'[^\w\- ]', '', m.group(1).lower())
            yield text.replace(' ', '-')


def fault(page, target, anchor, files, lines_of):
    """What is wrong with a link of @page; None if it is right."""
    path = page
    if target:
        path = os.path.normpath(os.path.join(os.path.dirname(page), target))
    if path not in files and \
            not any(name.startswith(path + '/') for name in files):
        return f'no file {path}'
    if anchor and anchor not in anchors(lines_of(path)):
        return f'no heading #{anchor} in {path}'
    return None


def broken(files, lines_of):
    """A line for each broken link of the pages among @files."""
    names = set(files)
    for page in (name for name in files if name.endswith('.md')):
        for number, line in prose(lines_of(page)):
            for target, anchor in LINK.findall(line):
                if '://' in target:
                    continue
                text = fault(page, target, anchor, names, lines_of)
                if text:
                    yield f'{page}:{number}: {text}'
