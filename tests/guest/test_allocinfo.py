#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Live bytes and calls of each line that allocates are those of the kernel,
with and without pages=on.

Oracle: /proc/allocinfo of a kernel that counts by itself (MEM_ALLOC_PROFILING),
after files, processes, and a module that keeps blocks of each allocator. Each
row must be equal. Rows that changed while the file was read must be between
their lowest and their highest value. docs/accounts.md has the rules by which
the kernel counts elsewhere; the module's rows are one sum.

usage: test_allocinfo.py [--kernel K]... [--smp N]...
"""
import argparse
import os
import shutil
import tempfile

from lib import allocinfo, ftrace, ksyms, oracle
from lib.tap import Tap
from scripts.lib.guest import Guest

KERNEL = 'allocinfo-6.12'
READER = 'ka-reader'
MODULE = 'ka_flood', ''


def boot(kernel, smp, pages, tmp):
    """Run the workload; return the journal's path and the guest's files."""
    share = oracle.make_share(os.path.join(tmp, 'share'), ['allocinfo.sh'],
                              kernel, modules=True)
    shutil.copy(oracle.build_tool('ka_allocinfo', kernel),
                os.path.join(share, 'ka-allocinfo'))
    log = os.path.join(tmp, 'journal')
    with Guest(kernel=kernel, smp=smp, run='allocinfo', n=1, share=share,
               out=os.path.join(tmp, 'out'), journal=log, kaslr=False,
               cmdline='no_hash_pointers', mem='1G', timeout=900,
               plugin_opts='pages=on' if pages else None,
               name=f'allocinfo-{smp}-{pages}') as g:
        assert g.wait_done() == 0, g.console[-2000:]
        files = ftrace.read_out(g.collect())
        text = g.hmp_qmp('ka error -n 0')
        assert text.startswith('no errors;'), text
    return log, files


class Compared:
    """Rows of both sides, by what they have in common."""

    def __init__(self, rows, windows, skip):
        self.equal = self.within = 0
        self.bytes = self.calls = 0
        self.differ, self.skipped = [], 0
        for place in sorted(set(rows) | set(windows), key=str):
            if place in skip:
                self.skipped += 1
                continue
            self._add(place, rows.get(place, allocinfo.Amount(0, 0)),
                      windows.get(place, (allocinfo.Window(0, 0),) * 2))

    def _add(self, place, row, windows):
        fits = [w.low <= n <= w.high for n, w in zip(row, windows)]
        exact = all(w.low == w.high for w in windows)
        if not all(fits):
            self.differ.append((place, row, windows))
            return
        self.equal += exact
        self.within += not exact
        self.bytes += row.bytes
        self.calls += row.calls


def describe(names, place, row, windows):
    size, calls = windows
    return f'{place[0]}:{place[1]} {names.get(place, "?")}: {row.bytes} ' \
        f'bytes, {row.calls} calls; ours {size.low}..{size.high}, ' \
        f'{calls.low}..{calls.high}'


def check(tap, kernel, log, files, pages, page_places, label):
    """Compare. Return the places that allocate pages."""
    rows, names = allocinfo.read_rows(files['allocinfo'].decode())
    symbols = ksyms.Symbols(files['proc.kallsyms'])
    events, sizes = allocinfo.read_journal(log)
    lines = allocinfo.Lines(kernel, {f for e in events for f in e.frames})
    sums = allocinfo.Sums(allocinfo.Sites(rows, lines, symbols), sizes, pages)
    windows, changed = allocinfo.replay(events, sums, READER)
    areas = set() if pages else sums.by_layer['vmalloc']
    if areas:                           # the number of their pages is not known
        windows = {p: w if p not in areas else
                   (w[0], allocinfo.Window(0, 1 << 62))
                   for p, w in windows.items()}
    found = Compared(rows, windows, set() if pages else page_places)
    for why, places in sums.left_out.items():
        live = +places
        tap.note(f'{label}: not in the kernel\'s sums: {why}: '
                 f'{sum(live.values())} blocks of {len(live)} places')
    tap.note(f'{label}: {found.equal} rows equal, {found.within} changed '
             f'while they were read and fit, {found.skipped} allocate pages; '
             f'{found.bytes} bytes, {found.calls} calls')
    tap.note(f'{label}: changed: ' + ', '.join(
        sorted(names.get(p, str(p)) for p in changed)))
    tap.figures('allocinfo', rows=found.equal + found.within,
                differ=len(found.differ))
    text = [describe(names, *d) for d in found.differ]
    no_row = sum(n for n in sums.left_out['no row'].values() if n > 0)
    tap.ok(found.equal > 200 and not text, f'{label}: each row is equal',
           '\n'.join(text[:60]))
    tap.ok(not no_row, f'{label}: each live block has a row',
           '\n'.join(f'{p}: {n}' for p, n in
                     sums.left_out['no row'].most_common(30) if n > 0))
    tap.ok(MODULE in rows and MODULE in windows and
           rows[MODULE].bytes > 2 << 20, f'{label}: the module has its row',
           str(rows.get(MODULE)))
    return sums.by_layer['pages']


def run(tap, kernel, smp):
    page_places = set()
    for pages in True, False:
        label = f'{kernel}, {smp} vCPU{"" if not pages else ", pages=on"}'
        with tap.test(f'{label}: runs and is read'), \
                tempfile.TemporaryDirectory(prefix='ka-allocinfo.') as tmp:
            log, files = boot(kernel, smp, pages, tmp)
            page_places |= check(tap, kernel, log, files, pages, page_places,
                                 label)


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument('--kernel', action='append', metavar='K')
    ap.add_argument('--smp', action='append', type=int, metavar='N')
    args, tap = ap.parse_args(), Tap()
    for kernel in args.kernel or [KERNEL]:
        for smp in args.smp or [1]:
            run(tap, kernel, smp)
    tap.done()


if __name__ == '__main__':
    main()
