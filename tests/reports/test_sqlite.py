#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""ka export sqlite, read by the SQLite of Python: it is intact, and its sums
are those of ka top.

usage: test_sqlite.py KA KA-JOURNAL
"""
import itertools
import sys

import exports
from readers import SQLITE_FIELDS as FIELDS, open_sqlite

P = exports.Program(*sys.argv[1:3])
STACKS = '''SELECT stack, name FROM stack_frame, frame
    WHERE frame = frame.id ORDER BY stack, depth'''


def open_export(journal, *words):
    path = P.path('.sqlite')
    P.export(journal, 'sqlite', '-o', path, *words)
    return open_sqlite(path)


def sums_and_stacks_are_those_of_ka_top():
    columns = ', '.join(FIELDS)
    for name in exports.cases():
        journal = P.case(name)
        everything, rows = P.top(journal)
        with open_export(journal) as db:
            got = db.execute(f'SELECT {columns} FROM stack ORDER BY id')
            assert got.fetchall() == [tuple(row[f] for f in FIELDS)
                                      for row in rows], name
            got = db.execute(f'SELECT {columns} FROM total').fetchall()
            assert got == [tuple(everything[f] for f in FIELDS)], (name, got)
            got = db.execute('SELECT sum(live), sum(allocs) FROM stack')
            assert got.fetchone() == (everything['live'],
                                      everything['allocs']), name
            names = [[frame for _, frame in frames] for _, frames in
                     itertools.groupby(db.execute(STACKS), lambda r: r[0])]
            assert names == [list(exports.stack_names(row))
                             for row in rows], (name, names)


def differences_may_be_negative():
    journal = P.case('032-top')
    _, rows = P.top(journal, command='diff @450')
    with open_export(journal, '--base', '@450') as db:
        got = [n for n, in db.execute('SELECT live FROM stack ORDER BY id')]
    assert got == [row['live'] for row in rows] and min(got) < 0, got


def what_is_missing_is_said():
    journal = P.journal('alloc va=ffff888000001000 size=10 us=1\ngap\n')
    with open_export(journal) as db:
        notes = [note for note, in db.execute('SELECT text FROM note')]
    assert 'missing: allocations before tracing began' in notes, notes


sys.exit(exports.run_tests([
    sums_and_stacks_are_those_of_ka_top, differences_may_be_negative,
    what_is_missing_is_said]))
