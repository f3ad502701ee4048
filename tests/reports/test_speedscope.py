#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Folded stacks and pprof in speedscope, in headless Chromium: the sums that it
reads and shows are those of ka top, and the root is at the top.

usage: test_speedscope.py KA KA-JOURNAL
"""
import decimal
import sys

import exports
import readers
import speedscope

P = exports.Program(*sys.argv[1:3])
CENT = decimal.Decimal('0.01')
# What it says of each format.
IMPORTS = {'folded': 'collapsed stack format',
           'pprof': 'protobuf encoded pprof file'}


def live_of(rows):
    return readers.heaptrack_of(rows, 'live')


def shown(n, unit):
    """A number as speedscope shows it."""
    if unit == 'none':
        return f'{n:,}'
    if n < 1024:
        return f'{n} B'
    for name in 'KB', 'MB':
        n /= 1024
        if n < 1024:
            break
    rounded = decimal.Decimal(n).quantize(CENT, decimal.ROUND_HALF_UP)
    return f'{rounded} {name}'


def check(form, where, rows):
    """Open an export; compare with the rows of ka top."""
    S.open('x.' + form, P.export(where, form))
    unit, got = S.exported()
    want = readers.folded_of(rows, 'live') if form == 'folded' else \
        live_of(rows)
    assert got == want, (got, want)
    check_table(unit, want)
    lines = '\n'.join(S.browser.console())
    assert f'Importing as {IMPORTS[form]}' in lines, lines
    assert 'rror' not in lines, lines


def check_table(unit, want):
    """The table of functions: what is below each, and in it alone."""
    total, own = {}, {}
    for stack, n in want.items():
        for name in set(stack):
            total[name] = total.get(name, 0) + n
        own[stack[-1]] = own.get(stack[-1], 0) + n
    table = S.table()
    assert len(table) == len(total), table
    for cells in table:
        name = cells[2]
        for cell, numbers in zip(cells, (total, own)):
            number = shown(numbers.get(name, 0), unit)
            assert cell.startswith(number + ' ('), (cell, number, name)


def sums_are_those_of_ka_top():
    for name in exports.cases():
        where = P.case(name)
        _, rows = P.top(where)
        if any(row['live'] for row in rows):
            for form in 'folded', 'pprof':
                check(form, where, rows)


def the_root_is_at_the_top():
    for form in 'folded', 'pprof':
        S.open('x.' + form, P.export(P.case('032-top'), form))
        _, got = S.exported()
        assert ('root', 'mod_init [mod_one]') in got, got


def hostile_names_are_text():
    where = P.journal(exports.hostile_script())
    _, rows = P.top(where)
    for form in 'folded', 'pprof':
        check(form, where, rows)
        assert S.browser.js('return [...document.scripts].length') == 2
        assert len(S.table()) == len(exports.HOSTILE) + 1, S.table()


reason = speedscope.why_not()
if reason:
    print('1..0 # SKIP ' + reason)
    sys.exit(0)
with speedscope.Speedscope(P.work) as S:
    status = exports.run_tests([
        sums_are_those_of_ka_top, the_root_is_at_the_top,
        hostile_names_are_text])
sys.exit(status)
