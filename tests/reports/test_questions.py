#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The map of docs/README.md, from a question to a command: each command of
ka and each option there is known to ka help, each script and page exists.

usage: test_questions.py KA
"""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
DOCS = os.path.join(ROOT, 'docs')
HEADING = '## From a question to a command'
# Words that stand for something: an address, a module, a function, a type, ...
STANDS_FOR = re.compile(r'[A-Z]+$|…$|.*\.html$')
# What ka help calls the line that begins with an address.
OF_ADDRESS = 'va'


def rows(text):
    """The rows of the map: (question, commands, page)."""
    part = text.split(HEADING, 1)[1].split('\n## ', 1)[0]
    for line in part.splitlines():
        cells = [c.strip() for c in line.strip('|').split('|')]
        if line.startswith('|') and len(cells) == 3 and '---' not in line:
            if cells[0] != 'question':
                yield cells


def help_page(words):
    """What ka help says of a command; None if there is no such command."""
    run = subprocess.run([sys.argv[1], 'help', *words], text=True,
                         capture_output=True, timeout=60, check=False)
    return run.stdout if run.returncode == 0 else None


def wrong_in_ka(words):
    """What is wrong in the words after "ka"; None if nothing is."""
    if words[:1] == ['-f']:
        words = words[2:]
    words = [w for w in words if w != '…']
    if STANDS_FOR.match(words[0]):
        words = [OF_ADDRESS] + words[1:]
    command = []
    for word in words:
        if word.startswith('-') or STANDS_FOR.match(word):
            break
        command.append(word)
    page = help_page(command)
    if page is None:
        return f'no command "{" ".join(command)}"'
    for word in words[len(command):]:
        if word.startswith('-') and not re.search(
                rf'(?<![\w-]){re.escape(word)}(?![\w-])', page):
            return f'"{" ".join(command)}" has no option {word}'
    return None


def wrong(command):
    """What is wrong in one command of the map; None if nothing is."""
    words = command.split()
    if words[0] == 'ka':
        return wrong_in_ka(words[1:])
    if words[0] == 'source':
        words = words[1:]
    path = os.path.join(ROOT, words[0])
    return None if os.path.exists(path) else f'no file {words[0]}'


def faults_of(cells):
    question, commands, page = cells
    names = re.findall(r'`([^`]+)`', commands)
    found = [] if names else ['names no command']
    found += [w for w in map(wrong, names) if w]
    links = re.findall(r'\]\(([^)#]+)', page)
    found += [] if links else ['names no page']
    found += [f'no page {p}' for p in links
              if not os.path.exists(os.path.join(DOCS, p))]
    return found


def main():
    with open(os.path.join(DOCS, 'README.md'), encoding='utf-8') as f:
        table = list(rows(f.read()))
    checks = [(cells[0], faults_of(cells)) for cells in table]
    checks.append(('the map has ten questions or more',
                   [] if len(table) >= 10 else [f'only {len(table)}']))
    # The test itself: what is not there is found.
    for no in ('ka nosuch V', 'ka leak scan --nosuch', 'scripts/nosuch …'):
        checks.append((f'"{no}" is found wrong',
                       [] if wrong(no) else ['was accepted']))
    print(f'1..{len(checks)}')
    for i, (name, found) in enumerate(checks, 1):
        print(f'{"not ok" if found else "ok"} {i} {name}')
        for line in found:
            print(f'# {line}')
    return any(found for _, found in checks)


if __name__ == '__main__':
    sys.exit(main())
