#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Print the generated part of qemu-patches/README.md: how large the series is,
and a table of its patches, made from their trailers.

usage: patchtable.py FOLDER

FOLDER contains the patches and their list, series. A patch without one of the
trailers is an error: status 1.
"""
import os
import re
import sys

TRAILERS = ('Why-Here', 'Upstream-Has', 'Upstream-Status')


def read_series(folder):
    with open(os.path.join(folder, 'series'), encoding='utf-8') as f:
        lines = [line.split('#')[0].strip() for line in f]
    return [line for line in lines if line]


def message_of(text):
    """Return the commit message: from the subject to the line of dashes."""
    head = text.split('\n---\n')[0]
    return re.sub(r'\n[ \t]+', ' ', head)


def subject_of(message):
    return re.search(r'^Subject: (?:\[[^]]*\] )?(.*)$', message, re.M).group(1)


def trailers_of(message):
    last = message.rstrip().split('\n\n')[-1]
    return dict(re.findall(r'^([A-Z][A-Za-z-]+): (.*)$', last, re.M))


def touched(text):
    """Return (changed files, number of their hunks, added files)."""
    changed, hunks, added = [], 0, []
    for part in re.split(r'^diff --git ', text, flags=re.M)[1:]:
        path = re.match(r'a/(\S+)', part).group(1)
        if re.search(r'^new file mode', part, re.M):
            added.append(path)
        else:
            changed.append(path)
            hunks += len(re.findall(r'^@@ ', part, re.M))
    return changed, hunks, added


def plural(n, word, words=None):
    return f'{n} {word if n == 1 else words or word + "s"}'


def names(paths):
    return ', '.join(f'`{p}`' for p in paths)


def summary(texts):
    """Say how many patches there are, and how many files they touch."""
    changed, added = set(), set()
    for text in texts:
        changes, _, new = touched(text)
        changed.update(changes)
        added.update(new)
    return f'The series has {plural(len(texts), "patch", "patches")}. ' \
           f'They change {plural(len(changed - added), "file")} of QEMU ' \
           f'and add {len(added)}.'


def row(number, path, text):
    message = message_of(text)
    trailers = trailers_of(message)
    missing = [t for t in TRAILERS if t not in trailers]
    if missing:
        sys.exit(f'{os.path.basename(path)}: no {", ".join(missing)}')
    changed, hunks, added = touched(text)
    files = f'{plural(hunks, "hunk")} in {plural(len(changed), "file")}: ' \
            f'{names(changed)}'
    if added:
        files += f'; new: {names(added)}'
    cells = [str(number), subject_of(message), trailers['Why-Here'],
             trailers['Upstream-Has'], trailers['Upstream-Status'], files]
    return '| ' + ' | '.join(c.replace('|', '\\|') for c in cells) + ' |'


def read(path):
    with open(path, encoding='utf-8') as f:
        return f.read()


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    paths = [os.path.join(sys.argv[1], name)
             for name in read_series(sys.argv[1])]
    texts = [read(path) for path in paths]
    print(summary(texts), end='\n\n')
    print('| | patch | why it is here | what upstream has | status '
          '| touches |')
    print('|-|-|-|-|-|-|')
    for number, (path, text) in enumerate(zip(paths, texts), 1):
        print(row(number, path, text))


if __name__ == '__main__':
    main()
