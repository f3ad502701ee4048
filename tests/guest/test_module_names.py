#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A frame has the name of the module that lay there when the stack was taken:
the same in all commands that print frames while the module is loaded, after it
is unloaded, and after another module lies at its addresses; also in the report
and JUnit XML of a sweep, after loadvm, and in the journal. Oracle: the answers
while the module is loaded; the module prints its blocks.

usage: test_module_names.py [--short] [--kernel K]...
"""
import importlib.machinery
import importlib.util
import json
import os
import re
import subprocess
import tempfile
from collections import Counter

from lib import oracle, programs
from lib.tap import Tap
from scripts.lib.findings import junit
from scripts.lib.guest import Guest
from scripts.lib.prepared import ROOT, paths
from scripts.lib.snapshot_disk import drive, make_disk

NAME = re.compile(r'[\w.]+\+0x[0-9a-f]+(?:/0x[0-9a-f]+)?(?: ?\[\w+\])?|'
                  r'\bka_(?:first|second)\b')

# Commands with the addresses of the lost block and of the freed one.
COMMANDS = (
    '{lost} -w', '{lost} -w -v', '{lost} -j -s', 'show {lost} -w -n 0',
    '{freed} --history -w -n 0', '{freed} --history -j -s -n 0',
    'error -w', 'error -w -v', 'error -j -s', 'error --kind wrong-cache -w',
    'alloc ka_first:ka_first_lose -w', 'alloc ka_first_lose -j -s',
    'alloc ka_first:start --state A -w', '--task sh --state A -w -n 0',
    'leak scan -w -n 0', 'leak list -w -n 0', 'leak list -j -s -n 0',
    'leak list --format kmemleak -n 0', 'leak dump {lost}',
    'top --by module -n 0', 'top --by module -n 0 -j',
    'top --by module --task sh -n 0', 'top --by caller -w -n 0',
    'top --by caller -s -n 0 -j', 'top --by stack -w -n 0',
    'top --by stack -j -s -n 0',
    'diff before --by module', 'diff before --by stack -w -n 0',
)
# What a journal cannot answer, and what it has but the monitor has not.
ONLINE = 'leak', 'sweep', 'JUnit', 'gdb'
EVENTS = 'events {lost} -w', 'events {lost} -j -s'
# What the module does while it is unloaded has such a frame.
EXIT = re.compile(r'ka_first_exit\+.*\[ka_first\]')


def load_sweep():
    path = os.path.join(ROOT, 'scripts', 'sweep')
    loader = importlib.machinery.SourceFileLoader('sweep', path)
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_loader('sweep', loader))
    loader.exec_module(module)
    return module


def named(text):
    """Return the names in the lines of TEXT that name one of the modules."""
    return Counter(tuple(NAME.findall(line)) for line in text.splitlines()
                   if 'ka_first' in line or 'ka_second' in line)


def swept(guest, sweep):
    """Return the lines of a sweep of GUEST, and its JUnit XML."""
    report = sweep.Report()
    report.findings, _ = sweep.sweep(guest, sweep.parse_args([])[0])
    return '\n'.join(f.text for f in report.findings), junit.render(report)


def answers(guest, blocks, sweep):
    """Return {command: answer}; the VM is stopped afterwards."""
    guest.qmp('stop')
    found = {c: guest.hmp_qmp('ka ' + c.format(**blocks)) for c in COMMANDS}
    found['sweep'], found['JUnit'] = swept(guest, sweep)
    found['gdb'] = guest.gdb([f'mon ka {blocks["lost"]} -s'])
    return found


def compare(before, after, what):
    """Every line of BEFORE is in AFTER, with the same names. The exit code of
    the module adds lines."""
    for command, text in before.items():
        want, have = named(text), named(after[command])
        assert want, f'{what}: ka {command} names no module:\n{text[:2000]}'
        gone, new = want - have, have - want
        assert not gone, f'{what}: ka {command}: no longer {gone}, but {new}'
        for names in new:
            assert any(EXIT.match(name) for name in names), \
                f'{what}: ka {command}: new names: {names}'
        assert 'ka_second' not in after[command], \
            f'{what}: ka {command}:\n{after[command][:2000]}'


def load_first(guest):
    guest.hmp_qmp('ka mark before')
    begin = len(guest.console)
    guest.shell('insmod /share/ka_first.ko; '
                'echo 1 >/sys/module/ka_first/parameters/start')
    said = re.search(r'ka_first: lost=(?P<lost>[0-9a-f]{16}) '
                     r'freed=(?P<freed>[0-9a-f]{16}) at=(?P<at>[0-9a-f]{16})',
                     guest.console[begin:])
    assert said, guest.console[begin:]
    return said.groupdict()


def check_freed(guest, blocks):
    """Code of a module that is gone is found, also by what it freed."""
    text = guest.hmp_qmp('ka free ka_first:ka_first_wrong -s')
    assert 'not a function' not in text and 'neither' not in text, text
    for code in 'ka_first:ka_first_lose+1', 'ka_first_lose-ka_first_lose':
        text = guest.hmp_qmp(f'ka alloc {code} -s')
        assert 'fail' not in text and 'neither' not in text, text
    assert blocks['lost'] in guest.hmp_qmp('ka alloc ka_first:ka_first_lose')


def check_place(guest, blocks):
    """ka_second lies where ka_first was."""
    text = guest.hmp_qmp(f'ka whatis {blocks["at"]} -w')
    assert 'module ka_second' in text and 'unloaded' not in text, text
    text = guest.hmp_qmp('ka alloc ka_second:ka_second_a -s')
    assert 'no blocks' in text, text


def ask_file(journal, command, blocks):
    ka = os.path.join(paths()['build'], 'monitor-cmds', 'ka')
    words = command.format(**blocks).split()
    return subprocess.run([ka, '-f', journal, *words], capture_output=True,
                          text=True, timeout=120, check=False).stdout


def check_journal(journal, blocks, before):
    want = {c: text for c, text in before.items()
            if not c.startswith(ONLINE)}
    compare(want, {c: ask_file(journal, c, blocks) for c in want}, 'journal')
    for command in EVENTS:
        text = ask_file(journal, command, blocks)
        assert 'ka_first_lose' in text and 'ka_second' not in text, text


def savevm(guest, line):
    said = guest.hmp_qmp(line).strip()
    assert not said, f'{line}: {said}'


def run(tap, kernel, share, folder):
    sweep, journal = load_sweep(), os.path.join(folder, 'journal')
    oracle.make_share(share, ['nothing.sh'], kernel, modules=True)
    disk = make_disk(os.path.join(folder, 'snapshots.qcow2'))
    with Guest(kernel=kernel, smp=1, share=share, run='nothing', n=1,
               timeout=300, cmdline='no_hash_pointers', end='shell',
               mem='512M', journal=journal, qemu=drive(disk),
               name=f'module-names-{kernel}') as g:
        g.wait_done()
        blocks = load_first(g)
        before = answers(g, blocks, sweep)
        with tap.test(f'{kernel}: unloaded'):
            g.qmp('cont')
            g.shell('rmmod ka_first')
            compare(before, answers(g, blocks, sweep), 'unloaded')
            check_freed(g, blocks)
        with tap.test(f'{kernel}: another module lies there'):
            g.qmp('cont')
            g.shell('insmod /share/ka_second.ko')
            after = answers(g, blocks, sweep)
            check_place(g, blocks)
            compare(before, after, 'another module')
            check_freed(g, blocks)
        with tap.test(f'{kernel}: the journal'):
            check_journal(journal, blocks, before)
        with tap.test(f'{kernel}: loadvm'):
            savevm(g, 'savevm one')
            g.qmp('cont')
            g.shell('rmmod ka_second; insmod /share/ka_life.ko')
            g.qmp('stop')
            savevm(g, 'loadvm one')
            check_place(g, blocks)
            again = answers(g, blocks, sweep)
            # A load drops the marks.
            before = {c: text for c, text in before.items()
                      if not c.startswith('diff')}
            compare(before, again, 'loadvm')
            check_freed(g, blocks)
        with tap.test(f'{kernel}: the journal after loadvm'):
            check_journal(journal, blocks, before)
        with tap.test(f'{kernel}: nothing was evicted'):
            assert not g.stat().get('module.evicted'), g.hmp_qmp('ka stat')


def main():
    ap = programs.arguments(__doc__, short='6.12 only', smp=False)
    args, tap = programs.parse(ap), Tap()
    for kernel in args.kernel:
        with tempfile.TemporaryDirectory(prefix='ka-names.') as tmp:
            run(tap, kernel, os.path.join(tmp, 'share'), tmp)
    tap.done()


if __name__ == '__main__':
    main()
