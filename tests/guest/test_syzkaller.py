#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What the option report=kasan prints is read by syzkaller as it reads KASAN:
each report is found in the guest's console, is not corrupted, and has the
title that KASAN's own report has.

Oracles: syzkaller's package report (tests/guest/lib/syzkaller.go, which
scripts/setup --only syzkaller builds); the modules ka_errors and ka_access,
which commit the errors; and, if there is one, a kernel with KASAN.

As for syzkaller, the console is QEMU's standard output and error in one: the
guest's log and the tracer's reports.

usage: test_syzkaller.py [--short] [--kernel K]... [--only PART] [--no-kasan]
"""
import json
import os
import re
import subprocess
import tempfile
import time

import test_access
import test_errors
from lib import accesses, kasan, oracle, programs
from lib.tap import Tap
from scripts.lib.prepared import kernel_arch, paths

# The guest's log goes to a second serial port, which is QEMU's output.
WORDS = 'console=ttyS1 console=ttyS0'
SERIAL = '-serial', 'stdio'
# Kinds that KASAN has. syzkaller has one title for all wrong frees.
FREES = ('double-free', 'invalid-free', 'interior-free', 'wrong-family',
         'wrong-cache')
# Parts of names that it passes over. Functions of our modules have some.
ALLOCATORS = re.compile('kfree|vfree|vunmap|slab_|realloc|kmem_cache')
# Titles that syzkaller makes of the kernel's own messages about an error.
KERNELS_OWN = re.compile(r'(BUG: |WARNING|kernel BUG|general protection|'
                         r'Oops|unregister_|kernel panic|INFO: )(?!.*KASAN)')


def read(folder, console):
    """Return the reports that syzkaller finds in a console."""
    done = subprocess.run([os.path.join(folder, 'report')], check=True,
                          input=console, text=True, capture_output=True,
                          encoding='utf-8')
    return json.loads(done.stdout)


def titles(found):
    return [r['title'] for r in found]


def blamed(error):
    """Return the functions that syzkaller may name a wrong free after: the
    first of the stack whose name is not like those of allocators, and those in
    front of it."""
    found = accesses.functions(error['error_stack_symbols'])
    first = next((i for i, f in enumerate(found) if not ALLOCATORS.search(f)),
                 len(found))
    return found[:first + 1]


# --- wrong frees, and kinds that KASAN does not have -------------------------

def wanted(error):
    """Return the titles that an error that is no access may have."""
    if error['error'] in FREES:
        return [f'KASAN: invalid-free in {f}' for f in blamed(error)]
    return ['BUG: ka: ' + error['title']]


def commit(loaded, case):
    """Run a case; return (its error, the console of its time)."""
    before = len(loaded.guest.qemu_log)
    loaded.commit(case)
    rows = loaded.guest.hmp_qmp('ka error -n 0 -j -v -s').splitlines()
    errors = [r for r in map(json.loads, rows) if r.get('type') == 'error']
    end = time.monotonic() + 10
    while loaded.guest.qemu_log.count('=' * 60, before) < 2 * len(errors) and \
            time.monotonic() < end:
        time.sleep(0.2)
    assert len(errors) == 1, errors
    return errors[0], loaded.guest.qemu_log[before:]


def check_free(folder, loaded, case):
    error, console = commit(loaded, case)
    found = read(folder, console)
    mine = [r for r in found if r['title'] in wanted(error)]
    text = f'{wanted(error)}\n{found}\n{console}'
    assert len(mine) == 1 and not mine[0]['corrupted'], text
    others = [r for r in found if r is not mine[0]]
    assert all(KERNELS_OWN.match(t) for t in titles(others)), text


def test_frees(tap, folder, kernel, tmp):
    share = oracle.make_share(os.path.join(tmp, 'share'), ['errors.sh'],
                              kernel, modules=True)
    cases = list(test_errors.CASES)
    if oracle.has_types(kernel):
        cases += test_errors.PAGE_CASES
    loaded = test_errors.LoadedGuest(
        kernel, share, tmp, 'report=kasan,pages=on', WORDS, SERIAL)
    with loaded.guest:
        for case in cases:
            with tap.test(f'{kernel}: {case}: syzkaller reads the report'):
                check_free(folder, loaded, case)


# --- accesses ----------------------------------------------------------------

def look(guest):
    """Return (the errors, the console)."""
    errors, *_ = test_access.answers(guest)
    return errors, guest.qemu_log


def kasan_titles(folder, kernel):
    """Return {case: the title of KASAN's report}, in a kernel with KASAN."""
    if not kernel or not paths().get('kernel-' + kernel):
        return {}
    log, _ = test_access.run_module(kernel, (), plugin=False,
                                    name=f'syzkaller-{kernel}')
    found = {name: read(folder, text) for name, text in log.text.items()
             if kasan.reports(text)}
    return {name: rows[0]['title'] for name, rows in found.items() if rows}


def title_of_access(report):
    """Return what a title has at least: kind and access."""
    return f"KASAN: {report.kind} {'Write' if report.rw == 'w' else 'Read'} in"


def test_accesses(tap, folder, kernel, with_kasan):
    theirs = kasan_titles(folder, with_kasan)
    log, (errors, console) = test_access.run_module(
        kernel, (), look=look, plugin_opts='access=on,report=kasan,pages=on',
        words=WORDS, qemu=SERIAL, name=f'syzkaller-{kernel}')
    found, printed = read(folder, console), kasan.reports(console)
    tap.ok(len(found) == len(printed) == len(errors) > 50,
           f'{kernel}: syzkaller finds each report of an access',
           f'{len(found)} of {len(errors)}: {titles(found)}')
    wrong = [r for r in found if r['corrupted']]
    tap.ok(not wrong, f'{kernel}: no report is corrupted', wrong)
    wrong = [(r['title'], title_of_access(p)) for r, p in zip(found, printed)
             if not r['title'].startswith(title_of_access(p))]
    tap.ok(not wrong, f'{kernel}: titles have kind and access', wrong)
    check_same(tap, kernel, log, list(zip(errors, titles(found))), theirs)


def check_same(tap, kernel, log, mine, theirs):
    """Compare the titles of cases that KASAN and ka judge alike."""
    other = {*accesses.ALIKE, *accesses.KASAN_OTHER_BLOCK, accesses.PAGES,
             *accesses.EITHER}
    for name in log.truth:
        titled = [t for e, t in mine if test_access.is_of(e, name)]
        if titled and name in theirs and name not in other:
            tap.ok(titled[0] == theirs[name],
                   f'{kernel}: {name}: has the title of KASAN',
                   f'{titled[0]}, not {theirs[name]}')


def main():
    ap = programs.arguments(__doc__, short='the same', smp=False)
    ap.add_argument('--only', choices=('frees', 'accesses'))
    ap.add_argument('--no-kasan', action='store_true',
                    help='do not boot a kernel with KASAN to compare titles')
    args, tap = programs.parse(ap, kernels=('6.12',)), Tap()
    folder = paths()['syzkaller']
    if not os.path.exists(os.path.join(folder, 'report')):
        reason = os.path.join(folder, 'reason')
        why = 'scripts/setup --only syzkaller was not run'
        if os.path.exists(reason):
            with open(reason, encoding='utf-8') as f:
                why = f.read().strip()
        tap.skip('syzkaller reads reports', why)
        tap.done()
        return
    for kernel in args.kernel:
        if kernel_arch(kernel) != 'x86_64':
            tap.skip(f'{kernel}: syzkaller reads reports',
                     'our reader is for x86-64')
            continue
        if args.only != 'accesses':
            with tempfile.TemporaryDirectory(prefix='ka-syzkaller.') as tmp:
                test_frees(tap, folder, kernel, tmp)
        if args.only != 'frees':
            test_accesses(tap, folder, kernel, None if args.no_kasan else
                          test_access.kasan_kernel(kernel))
    tap.done()


if __name__ == '__main__':
    main()
