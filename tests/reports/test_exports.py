#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""ka export folded: its sums are those of ka top, of journals and of a VM, and
it is written whole or not at all.

usage: test_exports.py KA KA-JOURNAL
"""
import os
import resource
import signal
import stat
import subprocess
import sys

import exports
from readers import folded_of, read_folded

P = exports.Program(*sys.argv[1:3])
TOP = P.case('032-top')
SUMS = ('live', 'blocks', 'slack', 'allocs', 'asked', 'frees', 'freed',
        'live_asked', 'reserved', 'freed_reserved')


def sums_are_those_of_ka_top():
    for name in exports.cases():
        journal = P.case(name)
        everything, rows = P.top(journal)
        for value in SUMS:
            for frames in 'function', 'offset':
                got, _ = read_folded(P.export(
                    journal, 'folded', '--value', value, '--frames', frames))
                assert got == folded_of(rows, value, frames), (name, got)
                assert sum(got.values()) == everything[value], (name, value)


def the_root_comes_first():
    got, _ = read_folded(P.export(TOP, 'folded'))
    assert ('root', 'mod_init [mod_one]') in got, got


def at_a_time():
    for us in 250, 550, 900:
        before = ('--at', str(us))
        _, rows = P.top(TOP, before=before)
        got, comments = read_folded(P.export(TOP, 'folded', before=before))
        assert got == folded_of(rows, 'live') and got, got
        assert any('as of guest microsecond' in c for c in comments), comments


def filters_are_those_of_ka_top():
    for words in (('--cache', 'kmalloc-64'), ('--task', 'a b'),
                  ('--since', '300', '--until', '600'),
                  ('--layer', 'vmalloc')):
        everything, rows = P.top(TOP, *words)
        got, _ = read_folded(P.export(TOP, 'folded', '--value', 'allocs',
                                      *words))
        assert got == folded_of(rows, 'allocs'), (words, got)
        assert sum(got.values()) == everything['allocs']


def a_filter_may_have_the_name_of_a_format():
    journal = P.journal('alloc va=ffff888000001000 size=10 us=1 cache=folded\n'
                        'alloc va=ffff888000002000 size=20 us=2 cache=top\n')
    got, _ = read_folded(P.export(journal, 'folded', '--cache', 'folded'))
    assert got == {('[no backtrace]',): 16}, got


def differences():
    _, rows = P.top(TOP, command='diff @450')
    got, comments = read_folded(P.export(TOP, 'folded', '--base', '@450'))
    less = sum(row['live'] for row in rows if row['live'] < 0)
    assert got == folded_of(rows, 'live') and got, got
    assert less < 0 and any(str(less) in c for c in comments), comments


def a_vm_answers_as_its_journal():
    for name in exports.cases():
        journal = P.case(name)
        qemu = exports.Qemu(P, journal)
        status, out, err = P.run('-q', qemu.path, 'export', 'folded')
        assert status == 0, err
        of_file = read_folded(P.export(journal, 'folded'))
        assert read_folded(out)[0] == of_file[0]
        assert qemu.commands[0].startswith('top --by stack'), qemu.commands
        assert not any('export' in c for c in qemu.commands), qemu.commands


def what_is_missing_is_said():
    journal = P.case('032-top')
    _, comments = read_folded(P.export(journal, 'folded'))
    assert any(c.startswith('complete: ') for c in comments), comments
    with open(journal, 'r+b') as f:
        f.truncate(os.path.getsize(journal) - 3)
    _, comments = read_folded(P.export(journal, 'folded'))
    assert any(c.startswith('missing: ') for c in comments), comments
    late = P.journal('alloc va=ffff888000001000 size=10 us=1\ngap\n')
    _, comments = read_folded(P.export(late, 'folded'))
    text = '\n'.join(comments)
    assert 'before tracing began' in text and 'complete' not in text, text


def bad_lines_are_refused():
    for words, text in ((('xml',), 'the formats are'),
                        (('folded', '--frames', 'line'), 'debug information'),
                        (('folded', '--frames', 'x'), 'names of frames'),
                        (('folded', '--value', 'peak'), 'cannot be added'),
                        (('folded', '--value', 'x'), 'the fields are'),
                        (('folded', 'x'), 'one word too many'),
                        (('folded', '-v'), 'not an option'),
                        (('folded', '--base', 'x'), 'no such mark'),
                        (('folded', '--base', '@1', '--task', '1'),
                         'not an option')):
        path = P.path()
        status, out, err = P.run('-f', TOP, 'export', *words, '-o', path)
        assert status == 1 and not out, (words, out)
        assert text in err and err.count('\n') == 1, (words, err)
        assert not os.path.exists(path), words


def formats_are_listed():
    for words in ('export',), ('help', 'export'), ('export', '-h'):
        status, out, err = P.run('-f', TOP, *words)
        assert status == 0 and b'folded' in out, (words, err)


def files_are_replaced_whole():
    path = P.path('.folded')
    want = P.export(TOP, 'folded')
    for _ in range(2):
        assert P.export(TOP, 'folded', '-o', path) == b''
        with open(path, 'rb') as f:
            assert f.read() == want
    assert stat.S_IMODE(os.stat(path).st_mode) & 0o111 == 0
    assert [n for n in os.listdir(P.work) if n.startswith(
        os.path.basename(path))] == [os.path.basename(path)]


def a_device_is_not_replaced():
    status, _, err = P.run('-f', TOP, 'export', 'folded', '-o', '/dev/null')
    assert status == 0, err
    assert stat.S_ISCHR(os.stat('/dev/null').st_mode)


def limit_file_size():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))


def failed_writes_say_so_and_keep_the_file():
    path = P.path('.folded')
    with open(path, 'w', encoding='ascii') as f:
        f.write('old')
    done = subprocess.run([P.ka, '-f', TOP, 'export', 'folded', '-o', path],
                          stderr=subprocess.PIPE, preexec_fn=limit_file_size,
                          check=False, text=True)
    assert done.returncode == 2 and done.stderr.count('\n') == 1, done
    assert path in done.stderr, done.stderr
    with open(path, encoding='ascii') as f:
        assert f.read() == 'old'
    assert not [n for n in os.listdir(P.work)
                if n.startswith(os.path.basename(path) + '.')]
    for bad in '/dev/full', os.path.join(P.work, 'none', 'x'):
        status, _, err = P.run('-f', TOP, 'export', 'folded', '-o', bad)
        assert status == 2 and err.count('\n') == 1 and bad in err, err


sys.exit(exports.run_tests([
    sums_are_those_of_ka_top, the_root_comes_first, at_a_time,
    filters_are_those_of_ka_top, a_filter_may_have_the_name_of_a_format,
    differences, a_vm_answers_as_its_journal,
    what_is_missing_is_said, bad_lines_are_refused, formats_are_listed,
    files_are_replaced_whole, a_device_is_not_replaced,
    failed_writes_say_so_and_keep_the_file]))
