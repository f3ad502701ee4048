#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Exports of a stock kernel, of its journal and of the running VM. Oracle: ka
top at the same moment. Programs that are not ours read the files, and find its
sums, by stack or by cache. Two boots, which KASLR places elsewhere, can be
merged: readers find no frame twice.

usage: test_export_sums.py [--short] [--kernel K]...
"""
import contextlib
import os
import shutil
import sys
import tempfile

from lib import oracle, programs
from lib.tap import Tap
from scripts.lib.guest import Guest
from scripts.lib.prepared import ROOT, paths

sys.path.insert(0, os.path.join(ROOT, 'tests', 'reports'))
os.environ.setdefault('KA_READERS', paths()['readers'])

import exports      # noqa: E402  (needs the path above)
import readers      # noqa: E402

KERNELS = '6.12', '6.1', 'arm64-6.12'
SUMS = 'live', 'allocs', 'freed_reserved'
COMPLETE = 'complete: recorded from the first allocation on, without gaps'
P = exports.Program(os.path.join(paths()['build'], 'monitor-cmds', 'ka'), None)


def write(where, form, *words):
    """Export to a file. Return its path."""
    path = P.path('.' + form)
    assert P.export(where, form, *words, '-o', path) == b''
    return path


# --- each format: compare a file with ka top, return its notes ---------------

def folded(where, everything, rows):
    for value in SUMS:
        got, notes = readers.read_folded(P.export(where, 'folded', '--value',
                                                  value))
        assert got == readers.folded_of(rows, value), value
        assert sum(got.values()) == everything[value], value
    return notes


def pprof(where, everything, rows):
    profile = readers.read_pprof(write(where, 'pprof'))
    got = readers.pprof_sums(profile)
    assert got == readers.pprof_of(rows)
    assert [sum(column) for column in zip(*got.values())] == \
        [everything[field] for field in readers.PPROF_FIELDS]
    return profile['comments']


def sqlite(where, everything, rows):
    columns = ', '.join(readers.SQLITE_FIELDS)
    with readers.open_sqlite(write(where, 'sqlite')) as db:
        got = db.execute(f'SELECT {columns} FROM stack ORDER BY id').fetchall()
        assert got == [tuple(row[f] for f in readers.SQLITE_FIELDS)
                       for row in rows]
        for field in 'live', 'blocks', 'allocs', 'frees':
            got = db.execute(f'SELECT sum({field}) FROM stack').fetchone()
            assert got == (everything[field],), (field, got)
        return [note for note, in db.execute('SELECT text FROM note')]


def openmetrics(where, everything, _):
    got = readers.read_openmetrics(P.export(where, 'openmetrics'))
    for metric, field in readers.METRICS.items():
        assert sum(got[metric].values()) == everything[field], metric
    assert got['ka_missing'] == {'': 0}
    return [labels.split('\n')[1] for labels in got['ka_note_info']]


def heaptrack(where, everything, rows):
    path = write(where, 'heaptrack')
    costs = {kind: readers.heaptrack_costs(path, kind)
             for kind in ('leaked', 'allocations', 'peak')}
    with open(path, encoding='ascii') as f:
        notes = [line[2:-1] for line in f if line.startswith('# ')]
    assert costs['leaked'] == readers.heaptrack_of(rows, 'live')
    assert costs['allocations'] == readers.heaptrack_of(rows, 'allocs')
    assert sum(costs['peak'].values()) == everything['peak'], notes
    return notes


def chrome(where, everything, _):
    other, events = readers.read_chrome(P.export(where, 'chrome'))
    got = readers.counters(events)
    total = [v for _, v in got.pop((readers.ALL, 'live bytes'))]
    assert (total[-1], max(total)) == (everything['live'], everything['peak'])
    assert sum(points[-1][1] for points in got.values()) == everything['live']
    assert other['complete'], other
    return other['notes']


FORMATS = (folded, pprof, sqlite, openmetrics, heaptrack, chrome)
OF_JOURNALS = heaptrack, chrome


def why_not(form):
    """Why a format cannot be read, or nothing."""
    missing = {pprof: not readers.has_npm('pprof-format') and 'readers',
               openmetrics: not readers.openmetrics_parser() and 'openmetrics',
               heaptrack: not shutil.which('heaptrack_print') and 'heaptrack'}
    return missing.get(form) and f'scripts/setup --only {missing[form]}'


# --- the guest ---------------------------------------------------------------

@contextlib.contextmanager
def boot(kernel, share):
    """A stopped VM, whose modules have leaked; it ends in order. Yield its
    journal and socket, as P.source() has it."""
    path = P.path('.journal')
    with Guest(kernel=kernel, share=share, run='identity', end='wait',
               journal=path, timeout=300, name='exports') as g:
        g.wait_marker('KA-DONE')
        g.qmp('stop')
        g.disconnect()
        yield path, ('-q', g.path('qmp.sock'))
        g.qmp('quit')
        g.wait_exit()


def compare(tap, label, where, forms):
    """Compare each format with ka top."""
    everything, rows = P.top(where)
    for form in forms:
        name = f'{label}: the sums of {form.__name__} are those of ka top'
        if why_not(form):
            tap.skip(name, why_not(form))
            continue
        with tap.test(name):
            notes = form(where, everything, rows)
            assert COMPLETE in notes, notes
    return everything


# --- two boots ---------------------------------------------------------------

def frame_places(profile):
    """{name of a frame with its offset: its places, as readers merge them}"""
    result = {}
    for place in readers.places(profile):
        result.setdefault(place[-1], set()).add(place[:-1])
    return result


def starts(profile):
    return {m['file']: m['start'] for m in profile['mappings'].values()}


def check_merged(tap, kernel, one, other):
    """Each frame that both boots have is at one place. A name that several
    functions have says nothing."""
    a, b = frame_places(one), frame_places(other)
    both = [n for n in a if n in b and len(a[n]) == len(b[n]) == 1]
    twice = [n for n in both if a[n] != b[n]]
    tap.figures('merge', kernel=kernel, one=len(one['locations']),
                other=len(other['locations']), both=len(both),
                merged=len(readers.places(one) | readers.places(other)))
    assert starts(one)['vmlinux'] != starts(other)['vmlinux'], starts(one)
    # of static functions with one name, each boot may have another one
    assert len(both) > 1000 and len(twice) <= 2, (len(both), twice[:20])
    modules = {n for n in both if n.endswith(']') and n in a}
    assert any('[ka_' in n for n in modules), sorted(modules)[:20]


def merge(tap, kernel, journals):
    with tap.test(f'{kernel}: two boots have each frame at one place'):
        profiles = [readers.read_pprof(write(j, 'pprof', '--frames', 'offset'))
                    for j in journals]
        check_merged(tap, kernel, *profiles)
    return profiles


def run(tap, kernel, tmp):
    share = oracle.make_share(os.path.join(tmp, kernel), ['identity.sh'],
                              kernel, modules=True)
    with boot(kernel, share) as (journal, vm):
        live = compare(tap, f'{kernel}, VM', vm,
                       [f for f in FORMATS if f not in OF_JOURNALS])
    stored = compare(tap, f'{kernel}, journal', journal, FORMATS)
    tap.ok(live == stored, f'{kernel}: the journal has the sums of the VM',
           f'{live}\n{stored}')
    tap.figures('sums', kernel=kernel, **{
        key: stored[key] for key in ('live', 'blocks', 'allocs', 'peak')})
    if why_not(pprof):
        tap.skip(f'{kernel}: two boots', why_not(pprof))
        return
    with boot(kernel, share) as (second, _):
        pass
    merge(tap, kernel, (journal, second))


def main():
    ap = programs.arguments(__doc__, short='6.12 only', smp=False)
    args, tap = programs.parse(ap, kernels=KERNELS), Tap()
    with tempfile.TemporaryDirectory(prefix='ka-exports.') as tmp:
        for kernel in args.kernel:
            run(tap, kernel, tmp)
    shutil.rmtree(P.work)
    tap.done()


if __name__ == '__main__':
    main()
