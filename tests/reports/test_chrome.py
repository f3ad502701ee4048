#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""ka export chrome: each event has the members that readers expect, times do
not go back, and counters end with, and reach, what ka top --by cache has.

usage: test_chrome.py KA KA-JOURNAL
"""
import json
import os
import random
import sys

import exports
from readers import (
    ALL, CACHES, COUNTERS, POINTS, counters, instants)
from readers import read_chrome as read

P = exports.Program(*sys.argv[1:3])
MODULES_SCRIPT = """\
symbol va=ffffffff81000000 name=_stext
symbol va=ffffffff81001000 name=beta
symbol va=ffffffff81f00000 name=_etext
symbol va=ffffffff82001000 name=_end type=B
complete
kernel
module va=ffffffffc0100000 name=ext4 base=ffffffffc0000000 size=4000
modsym va=ffffffffc0000000 name=ext4_alloc
module va=ffffffffc0110000 name=vfat base=ffffffffc0010000 size=4000
modsym va=ffffffffc0010000 name=vfat_alloc
alloc va=ffff888000000100 size=10 us=1
load va=ffffffffc0100000
alloc va=ffff888000001000 size=100 us=20 cache=dentry
load va=ffffffffc0110000
mark name=before
free va=ffff888000001000 us=35 stack=ffffffff81001010
free va=ffff888000001000 us=40 stack=ffffffff81001010
unload va=ffffffffc0100000
gap
off
on
alloc va=ffff888000003000 size=400 us=50 cache=inode
"""


def by_cache(journal, *before):
    status, out, err = P.run('-f', journal, *before, 'top', '--by', 'cache',
                             '-j', '-n', '0')
    assert status == 0, err
    rows = [json.loads(line) for line in out.splitlines()]
    return [row for row in rows if 'live' in row]


def name_of(row):
    name = row['cache'] if row['cache'] else f"[{row['layer']}]"
    return name.replace(' ', '\\x20')


def compare(journal, *before):
    """Compare with ka top; return what read() does."""
    everything, *rows = by_cache(journal, *before)
    other, events = read(P.export(journal, 'chrome', before=before))
    got = counters(events)
    total = got.pop((ALL, 'live bytes'))
    assert total[-1][1] == everything['live'], (journal, total[-5:])
    assert max(v for _, v in total) == everything['peak'], journal
    last = {name: points[-1][1] for (_, name), points in got.items()}
    assert sum(last.values()) == everything['live'], last
    for row in rows:
        if len(rows) < COUNTERS - 1:
            points = got[CACHES, name_of(row)]
            assert points[-1][1] == row['live'], (row, points[-5:])
            assert max(v for _, v in points) == row['peak'], row
    return other, events


def counters_end_with_and_reach_what_ka_top_has():
    for name in exports.cases():
        compare(P.case(name))


def at_a_time():
    journal = P.case('032-top')
    for us in '250', '450', '900', '1250':
        _, events = compare(journal, '--at', us)
        assert all(e['ts'] <= int(us) for e in events), us


def modules_marks_errors_and_gaps():
    other, events = compare(P.journal(MODULES_SCRIPT))
    lives = {e['name']: (e['ts'], e['dur'], e['args']['unloaded'])
             for e in events if e['ph'] == 'X'}
    assert lives == {'ext4': (1, 39, True), 'vfat': (20, 30, False)}, lives
    assert instants(events, 'module') == [
        (1, 'ext4 loaded'), (20, 'vfat loaded'), (40, 'ext4 unloaded')]
    assert instants(events, 'mark') == [(20, 'before')]
    assert instants(events, 'error') == [(40, 'double-free in beta')]
    assert (40, 'recording off') in instants(events, 'recording')
    assert (40, 'events were not recorded') in instants(events, 'gap')
    assert not other['complete'] and other['missing'] >= 1, other
    missing = [n for n in other['notes'] if n.startswith('missing: ')]
    assert len(missing) == other['missing'], other
    assert [n for _, n in instants(events, 'missing')] == missing


def what_is_complete_says_so():
    other, events = read(P.export(P.case('032-top'), 'chrome'))
    assert other['complete'] and other['missing'] == 0, other
    assert any(n.startswith('complete: ') for n in other['notes']), other
    assert not instants(events, 'missing'), events


def the_timeline_begins_at_a_reset():
    script = ('complete\nalloc va=ffff888000001000 size=1000 us=1\n{}\n'
              'alloc va=ffff888000002000 size=20 us=1002\n'
              'free va=ffff888000002000 us=3000\n')
    for word in 'reset', 'clear':
        _, events = compare(P.journal(script.format(word)))
        points = counters(events)[ALL, 'live bytes']
        assert [v for _, v in points] == [32, 0], (word, points)


def wave(n, caches=3):
    """A script of n events whose live bytes go up and down, with one peak."""
    rand, live, lines = random.Random(7), [], ['complete']
    for i in range(n):
        if live and (rand.random() < 0.5 or len(live) > 200):
            va = live.pop(rand.randrange(len(live)))
            lines.append(f'free va={va:x} us={i}')
            continue
        size = 1 << 20 if i == n // 3 else 64 * rand.randrange(1, 9)
        va = 0xffff888000000000 + i * 0x1000000
        live.append(va)
        lines.append(f'alloc va={va:x} size={size:x} us={i} '
                     f'cache=c{rand.randrange(caches)}')
    return '\n'.join(lines) + '\n'


def many_events_keep_the_peak_and_the_end():
    _, events = compare(P.journal(wave(40000)))
    points = counters(events)[ALL, 'live bytes']
    assert POINTS // 3 < len(points) <= POINTS, len(points)
    early = sum(us < 20000 for us, _ in points)
    assert len(points) // 3 < early < len(points) * 2 // 3, early


def what_events_do_not_say_is_corrected():
    # the free at 2 is recorded by nobody; its memory is allocated again, as a
    # part of something larger, after the first frame of the journal
    script = wave(20000) + ('alloc va=ffff888000001000 size=10 us=20001\n'
                            'off\non\n'
                            'alloc va=ffff888000000f00 size=1000 us=20002\n')
    more = '\n'.join(f'alloc va={0xffff900000000000 + i * 4096:x} size=8 '
                     f'us={20003 + i} cache=d' for i in range(20000))
    other, _ = compare(P.journal(script + more + '\n'))
    assert other['corrected'] > 0, other


def many_caches_are_forty_counters():
    lines = ['complete']
    lines += [f'alloc va={0xffff888000000000 + i * 65536:x} us={i + 1} '
              f'size={64 * (i % 50 + 1):x} cache=cache-{i}'
              for i in range(100)]
    journal = P.journal('\n'.join(lines) + '\n')
    _, events = compare(journal)
    got = counters(events)
    assert len(got) == COUNTERS and (CACHES, '(other)') in got, list(got)
    rows = by_cache(journal)[1:]
    greatest = sorted(row['peak'] for row in rows)[-(COUNTERS - 2):]
    named = sorted(points[-1][1] for (pid, name), points in got.items()
                   if pid == CACHES and name != '(other)')
    assert named == greatest, named


def hostile_names_are_one_event():
    # a journal has no control bytes in names of modules: they become \\xNN
    # before, and a reader refuses the file otherwise
    modules = [name for name in exports.HOSTILE
               if '\\x0a' not in name and '\\xff' not in name]
    lines = ['symbol va=ffffffff81000000 name=_stext',
             'symbol va=ffffffff81f00000 name=_etext',
             'symbol va=ffffffff82001000 name=_end type=B', 'kernel']
    for i, name in enumerate(modules):
        va = 0xffffffffc0000000 + i * 0x10000
        lines += [f'module va={va + 0x8000:x} name={name[:50]} base={va:x} '
                  'size=4000', f'modsym va={va:x} name={name[:99]}',
                  f'load va={va + 0x8000:x}']
    for i, name in enumerate(exports.HOSTILE):
        lines += [f'alloc va=ffff88800000{i:x}000 size=10 us={i + 1} '
                  f'cache={name[:30]}',
                  f'free va=ffff88800001{i:x}004 us={i + 1} '
                  f'stack={0xffffffffc0000010 + i % len(modules) * 0x10000:x}']
    journal = P.journal('\n'.join(lines) + '\n')
    _, events = compare(journal)
    assert len(counters(events)) == len(exports.HOSTILE) + 1, events
    lives = [e['name'] for e in events if e['ph'] == 'X']
    assert len(lives) == len(modules) and '<script>' in lives, lives
    assert len(instants(events, 'module')) == len(modules), events
    for e in events:
        assert all(0x20 <= ord(c) < 0x7f for c in e['name']), e
        assert len(e['name']) <= 1100, e


def a_torn_journal_is_read_as_far_as_it_goes():
    journal = P.case('032-top')
    with open(journal, 'r+b') as f:
        f.truncate(os.path.getsize(journal) - 3)
    other, _ = compare(journal)
    assert not other['complete'], other


def an_empty_journal_is_a_file():
    _, events = read(P.export(P.journal('complete\n'), 'chrome'))
    assert counters(events) == {(ALL, 'live bytes'): [(0, 0)]}, events


def bad_lines_are_refused():
    journal = P.case('032-top')
    for words in (('--cache', 'kmalloc-64'), ('--base', '@3'),
                  ('--frames', 'offset'), ('--value', 'live')):
        status, out, err = P.run('-f', journal, 'export', 'chrome', *words)
        assert status == 1 and not out and f'omit {words[0]}' in err, err
        assert err.count('\n') == 1, err
    status, _, err = P.run('-q', P.path(), 'export', 'chrome')
    assert status == 1 and 'needs a journal' in err, err


sys.exit(exports.run_tests([
    counters_end_with_and_reach_what_ka_top_has, at_a_time,
    modules_marks_errors_and_gaps, what_is_complete_says_so,
    the_timeline_begins_at_a_reset, many_events_keep_the_peak_and_the_end,
    what_events_do_not_say_is_corrected, many_caches_are_forty_counters,
    hostile_names_are_one_event, a_torn_journal_is_read_as_far_as_it_goes,
    an_empty_journal_is_a_file, bad_lines_are_refused]))
