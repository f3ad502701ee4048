# SPDX-License-Identifier: GPL-2.0-or-later
"""Check that man pages, docs/commands.md and the tables of exit statuses are
what scripts/gen-docs writes.

usage: scripts/check docs [--tap] [--build FOLDER]
"""
import argparse
import difflib

from . import docs


def difference(name, wanted):
    """The lines of a diff between a page and what it should be."""
    with open(docs.path(name), encoding='utf-8') as f:
        found = f.read()
    return difflib.unified_diff(
        found.splitlines(), wanted.splitlines(), 'docs/' + name,
        'its tables', lineterm='')


def main(argv):
    ap = argparse.ArgumentParser(
        prog='scripts/check docs', description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('--tap', action='store_true', help='results as TAP')
    ap.add_argument('--build', default=docs.BUILD, metavar='FOLDER',
                    help='meson build folder (default: build)')
    args = ap.parse_args(argv)
    bad = 0
    pages = docs.render(args.build)
    for n, (name, text) in enumerate(pages.items(), 1):
        lines = list(difference(name, text))
        bad += bool(lines)
        if args.tap:
            print(f"{'not ok' if lines else 'ok'} {n} - docs/{name} agrees "
                  'with its tables')
        for line in lines:
            print('# ' + line if args.tap else line)
    if args.tap:
        print(f'1..{len(pages)}')
    elif bad:
        print('run scripts/gen-docs')
    return 1 if bad else 0
