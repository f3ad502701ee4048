#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""One command, without --n and --point, finds all thirteen errors of the module
ka_planted, each of another kind, and reports each of them once. Oracle: the
source of the module, in which each operation has one error. In the long form
each of them is recorded, too.

usage: test_fault_sweep_planted.py [--short] [--kernel K]...
"""
import json
import os
import re
import shlex
import shutil
import tempfile
import time

from lib import commands, oracle, programs
from lib.recorded import Run, ka
from lib.tap import Tap

# Operation -> its verdict, and what the report of it says.
PLANTED = {
    'leak': ('leak', 'leak in planted_leak'),
    'name': ('leak', 'leak in '),
    'double_free': ('ka-error', 'double-free in planted_double_free'),
    'use_after_free': ('ka-error', 'use-after-free in planted_use_after_free'),
    'null': ('oops', 'NULL pointer dereference in planted_null'),
    'later': ('oops', 'NULL pointer dereference in planted_later'),
    'err_ptr': ('oops', 'paging request in planted_err_ptr'),
    'lock': ('hang', 'hang in planted_lock'),
    'module_ref': ('stuck-module', 'held by planted_module_ref'),
    'notifier': ('oops', 'notifier_call_chain'),
    'order': ('warn', 'WARNING in remove_proc_entry'),
    'retry': ('hang', 'hang in planted_retry'),
    'cache': ('ka-error', 'objects-left in planted_cache'),
}
SHORT = 'leak', 'use_after_free', 'later', 'module_ref', 'retry'
# Nobody misses the mutex before it is locked again.
TWICE = 'lock',
SECONDS = 1800
KERNELS = '6.12',


def make_share(folder, kernel, operations):
    built = oracle.build_modules(kernel)
    shutil.copy(os.path.join(built, 'ka_planted.ko'), folder)
    shutil.copy(oracle.build_tool('ka_load', kernel),
                os.path.join(folder, 'ka-load'))
    with open(os.path.join(folder, 'operations'), 'w', encoding='ascii') as f:
        for name in operations:
            f.write(f'{name}\n' * (1 + (name in TWICE)))


def sweep(folder, kernel, *options):
    """Return the report of a sweep."""
    path = os.path.join(folder, 'report.json')
    commands.run(
        'fault-sweep', '--kernel', kernel,
        '--share', os.path.join(folder, 'share'),
        '--run', os.path.join(oracle.INSIDE, 'fault-sweep', 'planted.sh'),
        '--module', 'ka_planted', '--access', '--jobs', '1',
        '--report', path, *options, status=1, timeout=SECONDS)
    with open(path, encoding='utf-8') as f:
        return json.load(f)


def operation_of(row):
    """Return the operation whose call was made to fail, or None."""
    found = re.search(r'planted_(\w+)\+0x\w+\[ka_planted\] planted_write\+',
                      ' '.join(row['fault_stack']))
    return found[1] if found else None


def rows_of(whole, group):
    keys = {(f['stackid'], f['n']) for f in group['faults']}
    return [r for r in whole['results'] if (r['stackid'], r['n']) in keys]


def check_groups(whole, operations):
    """Each operation has one group, and each group one operation."""
    found = {}
    for group in whole['groups']:
        names = {operation_of(r) for r in rows_of(whole, group)}
        assert len(names) == 1, f'{names}: {group["text"]}'
        found.setdefault(names.pop(), []).append(group)
    assert set(found) == set(operations), \
        f'found {sorted(map(str, found))}'
    for name, groups in found.items():
        texts = '\n'.join(g['text'] for g in groups)
        assert len(groups) == 1, f'{name} is split:\n{texts}'
        verdict, title = PLANTED[name]
        assert groups[0]['verdict'] == verdict and \
            title in groups[0]['name'], f'{name}:\n{texts}'


def check_others(whole):
    """What is no finding was handled, and nothing is left out."""
    for row in whole['results']:
        assert not row['flaky'], row['text']
        assert row['finding'] or row['verdict'] in ('clean', 'masked'), row
    assert whole['problem'] is None, whole['problem']


# The line about a recording.
WAY = re.compile(r'^ *go there: +\S+ (--replay .*); the failed call: '
                 r'--goto (\d+us)$', re.M)


def ask(run, *words):
    return ka('-q', f'{run.sockets}/qmp.sock', *words).decode()


def check_recorded(whole, folder):
    """Each report says how to go to its moment. One of them is tried: the VM is
    there, and the call of that replay failed, too."""
    ways = [(g['name'], WAY.search(g['text'])) for g in whole['groups']]
    assert all(way for _, way in ways), \
        '\n'.join(g['text'] for g in whole['groups'])
    way = next(w for name, w in ways if 'double-free' in name)
    with Run(folder, 'again', *shlex.split(way[1])) as run:
        run.until(lambda: 'the VM is here' in run.text())
        assert 'double-free' in ask(run, 'error'), run.text()
        assert 'planted_double_free' in ask(run, 'fault', 'log', '-s')


def run_kernel(tap, kernel, operations, short):
    with tempfile.TemporaryDirectory(prefix='ka-planted.') as folder:
        os.makedirs(os.path.join(folder, 'share'))
        make_share(os.path.join(folder, 'share'), kernel, operations)
        begin = time.monotonic()
        whole = {'results': [], 'groups': [], 'problem': 'no sweep'}
        with tap.test(f'{kernel}: {len(operations)} errors, {len(operations)} '
                      'reports'):
            whole = sweep(folder, kernel, *([] if short else [
                '--record', os.path.join(folder, 'recorded')]))
            tap.note(f"{time.monotonic() - begin:.0f} s, "
                     f"{len(whole['results'])} faults")
            check_groups(whole, operations)
        with tap.test(f'{kernel}: nothing else is found'):
            check_others(whole)
        if not short:
            with tap.test(f'{kernel}: and each of them is recorded'):
                check_recorded(whole, folder)


def main():
    ap = programs.arguments(__doc__, smp=False,
                            short=f'only {", ".join(SHORT)}')
    args, tap = programs.parse(ap, KERNELS), Tap()
    for kernel in args.kernel:
        run_kernel(tap, kernel, SHORT if args.short else tuple(PLANTED),
                   args.short)
    tap.done()


if __name__ == '__main__':
    main()
