#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Blocks that a module has not freed when it is unloaded are reported, and no
others. A module is loaded and unloaded many times, with leaks and without.
Oracle: the module prints what it did not free.

usage: test_module_leaks.py [--short] [--kernel K]... [--smp N]...
"""
import json
import os
import re
import subprocess
import tempfile
from collections import Counter

from lib import oracle, programs
from lib.tap import Tap
from scripts.lib.guest import Guest
from scripts.lib.prepared import paths

LOAD = re.compile(r'ka_leaky: (?:(loaded)|(\w+)=([0-9a-f]{16}))')
UNKNOWN = ('errors.recorded', 'module.failed', 'module.leaks_dropped', 'gaps')


def said(text):
    """Parse what each load of ka_leaky leaked: [{(site, va): n}]."""
    loads = []
    for m in LOAD.finditer(text):
        if m.group(1):
            loads.append(Counter())
        else:
            loads[-1][m.group(2), int(m.group(3), 16)] += 1
    return loads


def reports(guest, words=''):
    """Return [(module, [rows])] of `ka leak module`, oldest first."""
    text = guest.hmp_qmp(f'ka leak module {words} -a -s -j -n 0')
    found = []
    for line in text.splitlines():
        row = json.loads(line)
        if row['type'] == 'module':
            found.append((row, []))
        else:
            found[-1][1].append(row)
    return found


def site(row):
    """Return the function of the module that allocated."""
    names = [re.sub(r'\+0x[0-9a-f]+', '', f) for f in row['alloc_symbols']]
    return next((f.removesuffix('[ka_leaky]') for f in names
                 if f.endswith('[ka_leaky]')), ' '.join(names))


def check_loads(found, truth, released):
    """Compare the reports with the truth. The block RELEASED was freed
    later."""
    assert len(found) == len(truth), f'{len(found)} reports, {len(truth)} loads'
    for i, ((head, rows), left) in enumerate(zip(found, truth)):
        sites = Counter()
        for (name, va), n in left.items():
            sites[name] += n * (va != released)
        sites += Counter()
        text = f'load {i}: {head}\n' + '\n'.join(map(json.dumps, rows))
        got = Counter(site(r) for r in rows)
        assert got == sites, f'{got} instead of {sites}\n{text}'
        assert head['blocks'] == sum(sites.values()), text
        assert head['withdrawn'] == sum(left.values()) - head['blocks'], text
        for r in rows:
            assert (site(r), int(r['va'], 16)) in left, text


def check(guest, n):
    # Lines of several CPUs may be mixed on the console.
    truth = said(guest.shell("dmesg | grep 'ka_leaky: '"))
    assert len(truth) == n + 1, f'{len(truth)} loads were printed'
    released = next(va for name, va in truth[0] if name.endswith('init_site'))
    check_loads(reports(guest, 'ka_leaky'), truth, released)
    others = [r for r in reports(guest) if r[0]['name'] != 'ka_leaky']
    assert [r[0]['name'] for r in others] == ['ka_life'], others
    assert not others[0][1], others


def check_stat(guest):
    numbers = guest.stat()
    for key in UNKNOWN:
        assert not numbers.get(key), f'{key}: {numbers[key]}'


# Only the memory of a VM shows which blocks are in use. Those that are not are
# leaks, which have an identity.
OF_LEAKS = ('leak', 'leaked', 'leaked_bytes', 'title', 'alt', 'fold', 'exact',
            'weak')


def without_memory(text):
    """Return the lines of an answer, sorted, without what is said of leaks."""
    found = []
    for line in text.splitlines():
        row = json.loads(line)
        if row['type'] == 'module':
            module = row['id']
        found.append((module, row.get('va', ''), sorted(
            (k, str(v)) for k, v in row.items()
            if k not in OF_LEAKS and not k.startswith('kept'))))
    return sorted(found)


def check_journal(guest, log):
    """The journal answers as the monitor does, while the guest is stopped."""
    guest.qmp('stop')
    command = 'leak module -a -s -j -n 0'
    want = guest.hmp_qmp('ka ' + command)
    program = os.path.join(paths()['build'], 'monitor-cmds', 'ka')
    got = subprocess.run([program, '-f', log, *command.split()], check=True,
                         capture_output=True, text=True, timeout=300).stdout
    assert without_memory(got) == without_memory(want), \
        f'{got}\ninstead of\n{want}'


def run(tap, kernel, smp, label, n, share):
    oracle.make_share(share, ['leaky.sh'], kernel, modules=True)
    log = f'{share}-{smp}.journal'
    with Guest(kernel=kernel, smp=smp, share=share, run='leaky', n=n,
               timeout=600, cmdline='no_hash_pointers', end='shell',
               journal=log, name=f'leaky-{kernel}-{smp}') as g:
        with tap.test(f'{label}: runs'):
            assert g.wait_done() == 0
        with tap.test(f'{label}: {n} times, each leak once and nothing else'):
            check(g, n)
        with tap.test(f'{label}: nothing is unknown'):
            check_stat(g)
        with tap.test(f'{label}: a journal has the same'):
            check_journal(g, log)


def main():
    ap = programs.arguments(
        __doc__, short='6.12 only, 6 times instead of 50')
    args, tap = programs.parse(ap), Tap()
    n = 6 if args.short else 50
    with tempfile.TemporaryDirectory(prefix='ka-leaky.') as tmp:
        programs.run_over(
            tap, args.kernel, args.smp, lambda tap, kernel, smp, label:
            run(tap, kernel, smp, label, n, os.path.join(tmp, kernel)),
            test=None)
    tap.done()


if __name__ == '__main__':
    main()
