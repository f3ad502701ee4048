#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The order of the rooms holds for includes and for calls.

A copy of the tree gets one include, then one call, from a room to a later one.
`scripts/check layers` has to refuse the include, and the room must not link
with the call. The unchanged copy passes both: the failures are of the change.
"""
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), '..', '..'))
COPIED = ('meson.build', 'meson_options.txt', 'guest-symbols',
          'kalloc-tracer', 'monitor-cmds', 'qemu-patches', 'scripts', 'docs',
          'tests')
# A file of the first room, and what it may neither include nor call.
FILE = 'guest-symbols/base/error.c'
CALL = '''
int ka_upward(const void *tab);
int ka_upward(const void *tab)
{
    return gs_symtab_n(tab);
}
'''
DECLARED = 'int gs_symtab_n(const void *tab);\n'
TARGET = 'guest-symbols/liblink-gs-base.so'


def run(*command, cwd):
    done = subprocess.run(command, cwd=cwd, check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


def copy_tree(to):
    for name in COPIED:
        path = os.path.join(ROOT, name)
        copy = shutil.copytree if os.path.isdir(path) else shutil.copy
        copy(path, os.path.join(to, name))


def append(tree, text):
    """Add text to the file; return what was there before."""
    path = os.path.join(tree, FILE)
    with open(path, encoding='utf-8') as f:
        before = f.read()
    write(tree, before + text)
    return before


def write(tree, text):
    with open(os.path.join(tree, FILE), 'w', encoding='utf-8') as f:
        f.write(text)


def check(tree):
    return run('scripts/check', 'layers', cwd=tree)


def link(tree):
    return run('ninja', '-C', 'build', TARGET, cwd=tree)


def later_header(tree):
    """A header of the room unwind."""
    folder = os.path.join(tree, 'guest-symbols', 'unwind')
    return 'guest-symbols/unwind/' + sorted(
        n for n in os.listdir(folder) if n.endswith('.h'))[0]


def cases(tree):
    """Yield (what, whether it holds, output)."""
    status, out = check(tree)
    yield 'the tree as it is passes the check', status == 0, out
    header = later_header(tree)
    before = append(tree, f'#include "{header}"\n')
    status, out = check(tree)
    yield ('an include of a later room is refused with file and header',
           status != 0 and f'{FILE}:' in out and header in out, out)
    write(tree, before)
    status, out = run('meson', 'setup', 'build', cwd=tree)
    yield 'the tree is configured', status == 0, out
    status, out = link(tree)
    yield 'the first room links by itself', status == 0, out
    append(tree, DECLARED + CALL)
    status, out = link(tree)
    yield ('a call of a later room does not link',
           status != 0 and 'gs_symtab_n' in out, out)


def main():
    bad = n = 0
    with tempfile.TemporaryDirectory(prefix='ka-layers.') as tree:
        copy_tree(tree)
        for what, holds, out in cases(tree):
            n += 1
            bad += not holds
            print(f"{'ok' if holds else 'not ok'} {n} - {what}")
            if not holds:
                print('\n'.join('# ' + line for line in out.splitlines()[-20:]))
    print(f'1..{n}')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
