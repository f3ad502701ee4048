#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The same errors have the same identity: in two boots of one kernel, which
KASLR places elsewhere, all hashes; in other kernels the titles. Oracle: modules
that make the same errors in each boot.

usage: test_identity.py [--short] [--kernel K]...
"""
import os
import tempfile

from lib import oracle, programs
from lib.tap import Tap
from scripts.lib.guest import Guest

BOOTS = 2
# Kind -> the function of the module that makes the error. Leaks: the one that
# allocates.
WANT = {'use-after-free': 'ka_case_', 'double-free': 'ka_err_',
        'leak': 'ka_leaky_'}


def findings(guest):
    """Return the rows of errors and of leaks that the modules made, in the
    order of their titles."""
    rows = [r for r in guest.rows('ka error -s -n 0')
            if r.get('type') == 'error']
    rows += [r for r in guest.rows('ka leak module -s -n 0') if 'leak' in r]
    return sorted(rows, key=lambda r: (r['title'], r['exact']))


def boot(kernel, share):
    """Return the rows of a boot."""
    with Guest(kernel=kernel, share=share, run='identity', end='wait',
               plugin_opts='access=on', timeout=300) as g:
        g.wait_marker('KA-DONE')
        g.qmp('stop')
        return findings(g)


def identities(rows, *keys):
    return [tuple(r[k] if k != 'alt' else tuple(r[k]) for k in keys)
            for r in rows]


def check_titles(rows):
    """The module of the double free uses freed memory, too, to do it."""
    titles = [r['title'] for r in rows]
    for kind, prefix in WANT.items():
        assert any(t.startswith(f'{kind} in {prefix}') for t in titles), \
            (kind, titles)


def last_call(row):
    """Return the address of the outermost call, which is in the kernel."""
    return row['alloc'][-1]


def run(tap, kernel, tmp, seen):
    share = oracle.make_share(os.path.join(tmp, kernel), ['identity.sh'],
                              kernel, modules=True)
    rows, others = (boot(kernel, share) for _ in range(BOOTS))
    with tap.test(f'{kernel}: the titles are those of the modules'):
        check_titles(rows)
    with tap.test(f'{kernel}: two boots have the same titles and hashes'):
        keys = 'title', 'alt', 'fold', 'exact', 'weak'
        assert rows and last_call(rows[0]) != last_call(others[0]), \
            'both boots have the same addresses'
        assert identities(rows, *keys) == identities(others, *keys), \
            (identities(rows, *keys), identities(others, *keys))
    # The module has caches of its own where the kernel can make them, and alt
    # names the cache.
    titles = {r['title'] for r in rows}
    tap.figures('identity', kernel=kernel, rows=len(rows),
                folds=len({r['fold'] for r in rows}),
                weak=sum(r['weak'] for r in rows))
    if seen:
        with tap.test(f'{kernel}: the titles are those of the first kernel'):
            assert titles == seen[0], (titles, seen[0])
    seen.append(titles)


def main():
    ap = programs.arguments(__doc__, short='the same', smp=False)
    args, tap = programs.parse(ap, short_kernels=programs.KERNELS), Tap()
    seen = []
    with tempfile.TemporaryDirectory(prefix='ka-identity.') as tmp:
        for kernel in args.kernel:
            run(tap, kernel, tmp, seen)
    tap.done()


if __name__ == '__main__':
    main()
