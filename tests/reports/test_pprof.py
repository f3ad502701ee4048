#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""ka export pprof, read by a foreign program: pprof-format, a package of npm.
The sums are those of ka top, and boots with other addresses can be merged.

usage: test_pprof.py KA KA-JOURNAL

The variable KA_READERS is the folder in which scripts/setup --only readers
installs the package. Without it the test is skipped.
"""
import os
import shutil
import subprocess
import sys

import exports
import readers
from readers import places, pprof_of, pprof_sums

NO_GO = ' # SKIP no go: scripts/setup --only viewers'
P = exports.Program(*sys.argv[1:3])


def read(data):
    """A profile as the foreign program reads it."""
    path = P.path('.pb.gz')
    with open(path, 'wb') as f:
        f.write(data)
    return readers.read_pprof(path)


def sums_and_names_are_those_of_ka_top():
    for name in exports.cases():
        journal = P.case(name)
        everything, rows = P.top(journal)
        for frames in 'function', 'offset':
            got = pprof_sums(read(P.export(journal, 'pprof', '--frames',
                                           frames)))
            assert got == pprof_of(rows, frames), (name, got)
        total = [sum(column) for column in zip(*got.values())]
        assert total == [everything[field]
                         for field in readers.PPROF_FIELDS], (name, total)


def the_leaf_comes_first():
    got = pprof_sums(read(P.export(P.case('032-top'), 'pprof')))
    assert ('mod_init [mod_one]', 'root') in got, got


def differences_may_be_negative():
    journal = P.case('032-top')
    _, rows = P.top(journal, command='diff @450')
    got = pprof_sums(read(P.export(journal, 'pprof', '--base', '@450')))
    assert got == pprof_of(rows), got
    assert any(values[-1] < 0 for values in got.values()), got


def a_vm_gives_the_same_profile():
    journal = P.case('032-top')
    qemu = exports.Qemu(P, journal)
    path = P.path('.pb.gz')
    status, _, err = P.run('-q', qemu.path, 'export', 'pprof', '-o', path)
    assert status == 0, err
    with open(path, 'rb') as f:
        of_vm = read(f.read())
    of_file = read(P.export(journal, 'pprof'))
    for kind in 'mappings', 'functions', 'locations', 'samples':
        assert of_vm[kind] == of_file[kind], kind


def boot(slide, module):
    """The events of a boot with these addresses, and hostile neighbours."""
    text, module_text = 0xffffffff81000000 + slide, 0xffffffffc0000000 + module
    script = []
    for name, at in (('_text', 0), ('_stext', 0), ('alpha', 0x1000),
                     ('beta', 0x2000), ('root', 0x3000), ('_etext', 0x100000),
                     ('_end', 0x200000)):
        script.append(f'symbol va={text + at:x} name={name}')
    script += [f'module va=ffffffffc8000000 name=drv base={module_text:x} '
               'size=4000', f'modsym va={module_text:x} name=drv_alloc',
               f'modsym va={module_text + 0x800:x} name=drv_probe', 'complete']
    stacks = ((text + 0x1010, text + 0x3010), (text + 0x2010, text + 0x3010),
              (module_text + 0x10, module_text + 0x810, text + 0x3020), ())
    for i, stack in enumerate(stacks):
        pcs = ','.join(f'{pc:x}' for pc in stack)
        script.append(f'alloc va=ffff88800000{i}000 size={16 << i:x} '
                      f'actual=400 us={i + 1}'
                      + (f' stack={pcs}' if pcs else ''))
    return '\n'.join(script) + '\n'


def boots_are_merged():
    """KASLR puts the kernel and its modules at other addresses."""
    one, other = (read(P.export(P.journal(boot(*slides)), 'pprof'))
                  for slides in ((0, 0), (0x3c00000, 0x123000)))
    assert len(places(one)) == len(one['locations']) == 7, one['locations']
    assert places(one) == places(other), (places(one), places(other))
    assert pprof_sums(one) == pprof_sums(other)
    assert {row['address'] for row in one['locations'].values()} != \
        {row['address'] for row in other['locations'].values()}
    files = {m['file'] for m in one['mappings'].values()}
    assert files == {'vmlinux', 'drv', '[no backtrace]'}, files


def go_merges_boots():
    if not shutil.which('go'):
        return NO_GO
    paths = [P.path('.pb.gz') for _ in range(2)]
    for path, slides in zip(paths, ((0, 0), (0x3c00000, 0x123000))):
        P.export(P.journal(boot(*slides)), 'pprof', '-o', path)
    one = readers.read_pprof(paths[0])
    both = readers.go_merges(paths, P.path('.pb.gz'))
    assert len(both['locations']) == len(one['locations']), both
    assert len(both['samples']) == len(one['samples']), both
    assert pprof_sums(both) == {
        stack: [2 * n for n in values]
        for stack, values in pprof_sums(one).items()}, both
    return ''


def go_has_the_totals_of_ka_top():
    if not shutil.which('go'):
        return NO_GO
    for name in exports.cases():
        journal, path = P.case(name), P.path('.pb.gz')
        P.export(journal, 'pprof', '-o', path)
        everything, _ = P.top(journal)
        for kind, _, field in readers.TYPES:
            got = readers.go_total(path, kind)
            assert got == everything[field], (name, kind, got)
    return ''


def what_is_missing_is_said():
    late = P.journal('alloc va=ffff888000001000 size=10 us=1\ngap\n')
    text = '\n'.join(read(P.export(late, 'pprof'))['comments'])
    assert 'before tracing began' in text and 'complete: ' not in text, text
    text = '\n'.join(read(P.export(P.journal(boot(0, 0)), 'pprof'))
                     ['comments'])
    assert 'complete: ' in text and 'reserved' in text, text


def a_terminal_gets_no_binary():
    status, _, err = P.run('-f', P.case('032-top'), 'export', 'pprof')
    assert status == 0, err
    main, other = os.openpty()
    done = subprocess.run([P.ka, '-f', P.case('032-top'), 'export', 'pprof'],
                          stdout=other, stderr=subprocess.PIPE, check=False,
                          text=True)
    os.close(main)
    os.close(other)
    assert done.returncode == 1 and '-o' in done.stderr, done.stderr


if not readers.has_npm('pprof-format'):
    print('1..0 # SKIP no reader: scripts/setup --only readers')
    sys.exit(0)
sys.exit(exports.run_tests([
    sums_and_names_are_those_of_ka_top, the_leaf_comes_first,
    differences_may_be_negative, a_vm_gives_the_same_profile,
    boots_are_merged, go_merges_boots, go_has_the_totals_of_ka_top,
    what_is_missing_is_said, a_terminal_gets_no_binary]))
