#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""With quarantine=, accesses to memory that would be in use again are found,
and the kernel's own slab allocator stays in order. Oracles: what the module
ka_access prints; the checks of slub_debug=, which the kernel makes at each free
and of each slab; and /proc/slabinfo, beside a guest without quarantine. A block
that the module ka_errors frees twice is freed once. What waits comes back with
a VM snapshot.

usage: test_quarantine.py [--short] [--kernel K]... [--smp N]...
"""
import json
import os
import re
import tempfile

from lib import accesses, oracle, programs
from lib.tap import Tap
from scripts.lib.guest import Guest
from scripts.lib.snapshot_disk import drive, make_disk

SIZE = 8 << 20
# What two runs of the same workload differ in.
NOISE = 4 << 20
# On a busy host the kernel's watchdogs complain of time that they did not have.
WORDS = 'no_hash_pointers nosoftlockup ' \
        'rcupdate.rcu_cpu_stall_suppress=1'
BAD = re.compile(r'BUG|Call Trace|Object already free|Objects remaining|'
                 r'general protection|Oops')


def make_share(tmp, scripts, kernel, modules=False):
    return oracle.make_share(os.path.join(tmp, 'share'), scripts, kernel,
                             modules)


def options(size, more=''):
    return f'quarantine={size}' + more if size else more.lstrip(',')


def check_order(guest, console, size=SIZE):
    """The kernel has nothing to complain of, and frees were delayed."""
    assert not BAD.search(console), BAD.findall(console)
    first, stat = guest.hmp_qmp('ka stat').splitlines()[0], guest.stat()
    assert first.startswith('guest changed: frees are delayed'), first
    assert stat['guest.quarantine'] == size, stat
    assert stat['guest.waiting_bytes'] <= size, stat
    assert stat['quarantine.delayed'] > 1000, stat
    assert stat['quarantine.freed'] > 1000, stat
    assert not stat.get('quarantine.dropped'), stat
    assert stat['quarantine.delayed'] - stat['quarantine.freed'] == \
        stat['guest.waiting'], stat
    return stat


# --- accesses ----------------------------------------------------------------

def is_of(error, name):
    return any('ka_case_' + name in accesses.functions(error.get(key))
               for key in ('error_stack_symbols', 'alloc_symbols'))


def errors_of(guest):
    rows = [json.loads(line) for line in
            guest.hmp_qmp('ka error -n 0 -j -v -s').splitlines()]
    return [r for r in rows if r.get('type') == 'error']


def check_cases(log, errors):
    """Each case is found that ka finds without quarantine and pages=on, and
    those that need it; nothing else is."""
    missed = set(accesses.KA_MISSES) - set(accesses.QUARANTINE_FINDS)
    missed.add(accesses.PAGES)
    want = {name for name in log.truth if log.was_run(name)} - missed
    found = {name for name in log.truth
             if any(is_of(e, name) for e in errors)} - {accesses.PAGES}
    assert found == want, f'not found: {want - found}; found: {found - want}'
    rest = [e for e in errors if not any(is_of(e, n) for n in log.truth)]
    assert not rest, rest


def check_pages(log, errors):
    """Without pages=on, freed pages are found only if a block of kmalloc() had
    them before. Then the access is one to that freed block, of whomever, also
    if a part of it has a new owner."""
    truth = log.truth[accesses.PAGES]
    for e in (e for e in errors if is_of(e, accesses.PAGES)):
        said = accesses.facts_of_ka(e, truth)
        assert said[:4] == truth[:4], said
        assert 0 <= said.offset < e['actual'], (said, e['actual'])
        assert e['alloc_symbols'] and e['free_symbols'], e


def check_reuse(log, errors):
    for name in accesses.QUARANTINE_FINDS:
        truth = log.truth[name]
        said = accesses.facts_of_ka(
            next(e for e in errors if is_of(e, name)), truth)
        assert said.kind == truth.kind and said.bytes == truth.bytes, said
        assert said.alloc == 'ka_access_alloc', said
        assert said.free == 'ka_access_free', said


def run_cases(tap, kernel, smp):
    """Run all cases of the module; return (what it printed, the errors)."""
    with tempfile.TemporaryDirectory(prefix='ka-quarantine.') as tmp:
        share = make_share(tmp, ['access.sh'], kernel, modules=True)
        with open(os.path.join(share, 'cases'), 'w', encoding='ascii'):
            pass
        with Guest(kernel=kernel, smp=smp, share=share, run='access',
                   timeout=900, cmdline=WORDS, name=f'reuse-{kernel}-{smp}',
                   plugin_opts=options(SIZE, ',access=on')) as g:
            assert g.wait_done() == 0, 'the module was not loaded'
            log = accesses.Log(g.settled_console())
            errors = errors_of(g)
            tap.note(g.hmp_qmp('ka stat'))
            assert not g.stat()['access.disagreed']
            return log, errors


def use_after_reuse(tap, kernel, smp, label, _):
    with tap.test(f'{label}: use after reuse is found'):
        log, errors = run_cases(tap, kernel, smp)
        check_cases(log, errors)
        check_pages(log, errors)
        check_reuse(log, errors)


# --- the allocator -----------------------------------------------------------

def slabinfo(console):
    """Return {cache: (active objects, all objects, bytes of one)}."""
    text = re.search(r'KA-SLABINFO\s(.*)KA-SLABINFO-END', console, re.S)[1]
    rows = re.findall(r'^(\S+) +(\d+) +(\d+) +(\d+) ', text, re.M)
    assert len(rows) > 50, text
    return {name: (int(a), int(n), int(b)) for name, a, n, b in rows}


def active_bytes(rows):
    return sum(active * size for active, _, size in rows.values())


def check_silence(guest):
    errors = guest.hmp_qmp('ka error -n 5 -s -v')
    assert errors.startswith('no errors'), errors


def slabinfo_without(kernel, smp, share, rounds):
    """Run the workload without quarantine; return what the kernel says of its
    slabs."""
    with Guest(kernel=kernel, smp=smp, share=share, run='quarantine',
               n=rounds, timeout=900, cmdline=WORDS, plugin=False,
               name=f'plain-{kernel}-{smp}') as g:
        assert g.wait_done() == 0
        return slabinfo(g.settled_console())


def check_slabinfo(tap, guest, without):
    assert guest.wait_done() == 0
    console = guest.settled_console()
    stat = check_order(guest, console)
    tap.note({k: v for k, v in stat.items()
              if 'quarantine' in k or k.startswith('guest.')})
    check_silence(guest)
    rows = slabinfo(console)
    for name, (active, n, _) in rows.items():
        assert active <= n, (name, active, n)
    more = active_bytes(rows) - active_bytes(without)
    tap.note(f'{more} bytes more in use')
    assert -NOISE < more < SIZE + NOISE, more


def check_double_free(guest):
    """The module mends the list by hand, in freed blocks: no access checks."""
    guest.hmp_qmp('ka access off')
    guest.shell('sh /share/errors.sh double-free')
    stat = check_order(guest, guest.settled_console())
    errors = errors_of(guest)
    assert [e['error'] for e in errors] == ['double-free'], errors
    # The module has caches of its own if the kernel can make them.
    waits = errors[0]['cache'].startswith('kmalloc-')
    assert stat['quarantine.twice'] == int(waits), (errors, stat)


def slabs_and_double_free(tap, kernel, smp, label, rounds):
    with tempfile.TemporaryDirectory(prefix='ka-quarantine.') as tmp:
        share = make_share(tmp, ['quarantine.sh', 'errors.sh'], kernel,
                           modules=True)
        without = slabinfo_without(kernel, smp, share, rounds)
        with Guest(kernel=kernel, smp=smp, share=share, run='quarantine',
                   n=rounds, end='shell', timeout=900, cmdline=WORDS,
                   plugin_opts=options(SIZE, ',access=on'),
                   name=f'slabs-{kernel}-{smp}') as g:
            with tap.test(f'{label}: /proc/slabinfo has SIZE bytes more', g):
                check_slabinfo(tap, g, without)
            with tap.test(f'{label}: a block freed twice is freed once', g):
                check_double_free(g)


# --- the kernel's own checks, and snapshots ----------------------------------

def work(g):
    assert 'done' in g.shell('sh /ka/work.sh 1 >/dev/null 2>&1; echo done')


def check_debug(guest):
    assert guest.wait_done() == 0
    check_order(guest, guest.settled_console())
    check_silence(guest)


def check_snapshot(g):
    g.qmp('stop')
    saved = g.stat()
    assert not g.hmp_qmp('savevm one').strip()
    g.qmp('cont')
    work(g)
    g.qmp('stop')
    text = g.hmp_qmp('loadvm one').strip()
    assert not text, text
    loaded = g.stat()
    g.qmp('cont')
    for _ in range(3):
        work(g)
    console, stat = g.console, g.stat()
    assert not BAD.search(console), BAD.findall(console)
    assert stat['guest.waiting_bytes'] <= SIZE, stat
    assert not stat.get('quarantine.dropped'), stat
    keys = 'guest.waiting', 'guest.waiting_bytes'
    assert saved['guest.waiting'] > 100, saved
    assert [saved[k] for k in keys] == [loaded[k] for k in keys], \
        (saved, loaded)
    assert stat['quarantine.delayed'] > loaded['quarantine.delayed'], stat


def debug_and_snapshots(tap, kernel, smp, label, rounds):
    with tempfile.TemporaryDirectory(prefix='ka-quarantine.') as tmp:
        disk = make_disk(os.path.join(tmp, 'snapshots.qcow2'))
        share = make_share(tmp, ['quarantine.sh'], kernel)
        with Guest(kernel=kernel, smp=smp, share=share, run='quarantine',
                   n=rounds, end='shell', mem='512M', timeout=900,
                   cmdline=f'{WORDS} slub_debug=FZ', qemu=drive(disk),
                   plugin_opts=options(SIZE),
                   name=f'saved-{kernel}-{smp}') as g:
            with tap.test(f'{label}: slub_debug= finds nothing', g):
                check_debug(g)
            with tap.test(f'{label}: a snapshot has what waits', g):
                check_snapshot(g)


TESTS = {'reuse': use_after_reuse, 'slabs': slabs_and_double_free,
         'debug': debug_and_snapshots}


def main():
    ap = programs.arguments(__doc__, short='6.12 on 1 vCPU only')
    ap.add_argument('--rounds', type=int, help='rounds of the workload')
    ap.add_argument('--only', choices=TESTS, help='only the tests of one guest')
    args, tap = programs.parse(ap), Tap()
    rounds = args.rounds or (2 if args.short else 6)
    for name in [args.only] if args.only else TESTS:
        programs.run_over(tap, args.kernel, args.smp,
                          lambda *a, fn=TESTS[name]: fn(*a, rounds), None)
    tap.done()


if __name__ == '__main__':
    main()
