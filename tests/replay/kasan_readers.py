#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The output of ka error --format kasan is read by the programs that read
reports of KASAN. Oracle: the rules of syzkaller's parser of reports, and of
LKFT's, in the words of this test. The output is that of golden cases.

usage: kasan_readers.py EXPECTED...
"""
import re
import sys

FUNC = r'[a-zA-Z0-9_]+(?:[.+])'
TIME = re.compile(r'^\[ *\d+\.\d{6}\] ')
FRAME = re.compile(r'^ ([a-zA-Z0-9_.]+)\+0x[0-9a-f]+/0x[0-9a-f]+'
                   r'(?: \[\w+\])?$')
UNKNOWN = re.compile(r'^ 0x[0-9a-f]+$')
# What syzkaller takes for a title, and what else the report must have.
TITLES = (
    (re.compile(r'BUG: KASAN: (?:double-free or invalid-free|double-free|'
                rf'invalid-free) in {FUNC}'), None),
    (re.compile(rf'BUG: KASAN: [a-z-]+ in {FUNC}'),
     re.compile(r'^(?:Read|Write) of size \d+ at addr [0-9a-f]+ by task '
                r'.+/\d+$', re.M)),
    (re.compile(r'BUG: ka: [a-z-]+ in [a-zA-Z0-9_]+$', re.M), None),
)
HEADINGS = re.compile(r'^(?:Call Trace:|(?:Allocated|Freed) by task \d+:)$')
NO_STACK = '(stack is not available)'
RULE = '=' * 66

count = failed = 0


def ok(good, name, found=''):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}")
    if not good:
        print(f'# {found}')


def reports(lines):
    """Split lines into reports, as LKFT does: only lines with a time count,
    and a line of = begins and ends each."""
    found, now = [], None
    for line in lines:
        if not TIME.match(line):
            continue
        text = TIME.sub('', line)
        if text != RULE:
            if now is not None:
                now.append(text)
        elif now is None:
            now = []
        else:
            found.append(now)
            now = None
    return found, now is None


def is_titled(text):
    return any(title.search(text) and (not more or more.search(text))
               for title, more in TITLES)


def has_stack(lines, at):
    """Return whether a heading is followed by a frame, or a line that says
    that there is none."""
    nxt = lines[at + 1] if at + 1 < len(lines) else ''
    return bool(FRAME.match(nxt) or UNKNOWN.match(nxt)) or nxt == NO_STACK


def check(path):
    with open(path, encoding='ascii') as f:
        found, ended = reports(f.read().splitlines())
    ok(ended, 'each report ends')
    ok(found, 'there are reports')
    for n, lines in enumerate(found):
        text = '\n'.join(lines)
        ok(is_titled(text), f'report {n}: has a title', text)
        heads = [i for i, line in enumerate(lines) if HEADINGS.match(line)]
        ok(heads and lines[heads[0]] == 'Call Trace:',
           f'report {n}: has a stack', text)
        ok(all(has_stack(lines, i) for i in heads),
           f'report {n}: each heading has a stack', text)
        ok('[ T' not in text and ' on cpu ' not in text,
           f'report {n}: no word that breaks a match', text)


def main():
    for path in sys.argv[1:]:
        check(path)
    print(f'1..{count}')
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
