#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""ka export heaptrack, read by heaptrack_print of the distribution: what is
leaked, allocated, and live at the peak, by stack, is what ka top has.

usage: test_heaptrack.py KA KA-JOURNAL
"""
import re
import shutil
import sys

import exports
from readers import heaptrack_costs as costs
from readers import heaptrack_of as expected

P = exports.Program(*sys.argv[1:3])
# In this one ka's map knows more than events say: pages in parts.
MENDED = {'032-top'}
RECORD = re.compile(r'([vXsitac+#-]) (.*)')


def write(journal, *words, before=()):
    path = P.path('.heaptrack')
    with open(path, 'wb') as f:
        f.write(P.export(journal, 'heaptrack', *words, before=before))
    return path


def leaks_are_the_live_bytes_of_ka_top():
    for name in exports.cases():
        journal = P.case(name)
        everything, rows = P.top(journal)
        got = costs(write(journal), 'leaked')
        assert got == expected(rows, 'live'), (name, got)
        assert sum(got.values()) == everything['live'], name


def allocations_and_peak_are_those_of_ka_top():
    seen = 0
    for name in exports.cases():
        journal = P.case(name)
        path = write(journal)
        with open(path, encoding='ascii') as f:
            mended = ' were corrected' in f.read()
        assert mended == (name in MENDED), name
        everything, rows = P.top(journal)
        if not mended:
            assert costs(path, 'allocations') == expected(rows, 'allocs'), name
            assert sum(costs(path, 'peak').values()) == everything['peak']
            seen += 1
    assert seen > 3, seen


def at_a_time():
    journal = P.case('032-top')
    for us in 250, 450:
        before = ('--at', str(us))
        _, rows = P.top(journal, before=before)
        got = costs(write(journal, before=before), 'leaked')
        assert got == expected(rows, 'live') and got, got


def the_sums_begin_at_a_reset():
    journal = P.journal('alloc va=ffff888000001000 size=10 us=1\nreset\n'
                        'alloc va=ffff888000001000 size=20 us=1002\n'
                        'alloc va=ffff888000002000 size=40 us=2002\n'
                        'free va=ffff888000002000 us=3000\n')
    path = write(journal)
    assert costs(path, 'leaked') == {('[no backtrace]',): 32}
    assert costs(path, 'allocations') == {('[no backtrace]',): 2}
    assert costs(path, 'peak') == {('[no backtrace]',): 96}


def hostile_names_are_one_record():
    path = write(P.journal(exports.hostile_script()))
    count = {}
    with open(path, encoding='ascii') as f:
        for line in f:
            found = RECORD.fullmatch(line.rstrip('\n'))
            assert found, line
            count[found[1]] = count.get(found[1], 0) + 1
            if found[1] == 's':
                length, text = found[2].split(' ', 1)
                assert int(length, 16) == len(text), line
    n = len(exports.HOSTILE)
    assert count['a'] == count['+'] == n and '-' not in count, count
    # one frame is the root of all; a module and a function each
    assert count['t'] == count['i'] == n + 1 and count['X'] == 1, count
    assert sum(costs(path, 'leaked').values()) == 16 * n


def what_is_missing_is_said():
    path = write(P.journal('alloc va=ffff888000001000 size=10 us=1\ngap\n'))
    with open(path, encoding='ascii') as f:
        text = f.read()
    assert '# missing: allocations before tracing began' in text, text


def bad_lines_are_refused():
    journal = P.case('032-top')
    for words, text in ((('--cache', 'kmalloc-64'), 'omit --cache'),
                        (('--base', '@3'), 'omit --base')):
        status, _, err = P.run('-f', journal, 'export', 'heaptrack', *words)
        assert status == 1 and text in err and err.count('\n') == 1, err
    status, _, err = P.run('-q', P.path(), 'export', 'heaptrack')
    assert status == 1 and 'needs a journal' in err, err


if not shutil.which('heaptrack_print'):
    print('1..0 # SKIP no reader: scripts/setup --only heaptrack')
    sys.exit(0)
sys.exit(exports.run_tests([
    leaks_are_the_live_bytes_of_ka_top,
    allocations_and_peak_are_those_of_ka_top, at_a_time,
    the_sums_begin_at_a_reset, hostile_names_are_one_record,
    what_is_missing_is_said, bad_lines_are_refused]))
