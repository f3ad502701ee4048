#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Each block of commands in the pages about installing and other systems names
the test that runs it, or is marked "read only". Starts no guest.

Checked is that the test exists, and that it reads the section from the page, or
has the programs and the long options of the block.
"""
import os
import re
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), '..', '..'))
sys.path[:0] = [ROOT, os.path.join(ROOT, 'tests', 'guest')]
# pylint: disable=wrong-import-position
from lib import page_blocks                             # noqa: E402
from lib.tap import Tap                                 # noqa: E402

PAGES = 'install', 'farm', 'integrations'
ASSIGNMENT = re.compile(r'[A-Z_]+=')
PLACEHOLDER = re.compile(r'[A-Z]+$')


def words_of(text):
    """Return the programs and the long options of lines of commands."""
    found = []
    for line in text.replace('\\\n', ' ').splitlines():
        words = [w for w in line.partition(' #')[0].split()
                 if not ASSIGNMENT.match(w)]
        found += [os.path.basename(words[0])] if words else []
        found += [w.partition('=')[0] for w in words if w.startswith('--') and
                  len(w) > 2]
    return found


def says(test, word):
    return re.search(rf'(?<!\w){re.escape(word)}(?!\w)', test)


def wrong(page, block):
    """Return what is wrong with the mark of a block, or None."""
    if block.mark in ('output', 'read only'):
        return None
    if not block.mark:
        return 'no mark: see tests/guest/lib/page_blocks.py'
    path = os.path.join(ROOT, block.mark)
    if not os.path.exists(path):
        return f'no file {block.mark}'
    with open(path, encoding='utf-8') as f:
        test = f.read()
    if f"'{page}', '{block.heading.split(chr(39))[0]}" in test:
        return None
    missing = [w for w in words_of(block.text) if not says(test, w)]
    return f'{block.mark} does not have {", ".join(missing)}' \
        if missing else None


SAMPLE = """# Head

Text:

    ka-farm plan A --dir B

Text *(read only)*:

    vng --none

<!-- test: tests/style/test_page_commands.py -->

    ka-farm --nothing-of-this-{}

<!-- test: tests/none.py -->

```sh
x
```

- a row

    of a list
"""


def sample_is_judged():
    blocks = page_blocks.parse(SAMPLE.format('kind'))
    assert [b.line for b in blocks[:4]] == [5, 9, 13, 17], blocks
    found = [wrong('x', b) for b in blocks[:4]]
    assert found[0].startswith('no mark') and found[1] is None, found
    assert found[2].endswith('does not have --nothing-of-this-' + 'kind'), found
    assert found[3] == 'no file tests/none.py', found


def main():
    tap = Tap()
    with tap.test('blocks without a mark, or with a wrong one, are found'):
        sample_is_judged()
    for page in PAGES:
        for block in page_blocks.read(page):
            with tap.test(f'docs/{page}.md:{block.line}: {block.mark}'):
                said = wrong(page, block)
                assert said is None, said
    tap.done()


main()
