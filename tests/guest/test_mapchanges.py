#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest that changes the machine's memory map, as Linux does while it sizes
BARs, with four vCPUs that use their local APICs meanwhile: each access goes to
its own device. A timer whose interrupt is not acknowledged, or that is not set
again, never expires again, and the guest hangs.

usage: test_mapchanges.py [--short] [--kernel K]... [--rounds N]
"""
import argparse
import re
import tempfile

import oracle
from kaguest import Guest, Tap


def options():
    ap = argparse.ArgumentParser()
    ap.add_argument('--short', action='store_true', help='200 rounds')
    ap.add_argument('--kernel', action='append', help='6.12 if not given')
    ap.add_argument('--rounds', type=int,
                    help='how often a device decodes its memory, and not')
    args = ap.parse_args()
    args.kernel = args.kernel or ['6.12']
    args.rounds = args.rounds or (200 if args.short else 5000)
    return args


def check_timers(console):
    """On each CPU the local timer expired between the two listings."""
    before, after = ([int(n) for n in re.findall(r'\d+', line)] for line in
                     re.findall(r'^ *LOC:(.*)Local timer', console, re.M))
    assert len(before) == 4 and all(b < a for b, a in zip(before, after)), \
        f'local timer interrupts: {before}, 3 s later {after}'


def main():
    args, tap = options(), Tap()
    for kernel in args.kernel:
        with tempfile.TemporaryDirectory(prefix='ka-map.') as share, \
                tap.test(f'{kernel}: {args.rounds} changes of the map'):
            oracle.make_share(share, ['mapchanges.sh'], kernel)
            with Guest(kernel=kernel, smp=4, run='mapchanges', n=args.rounds,
                       share=share, timeout=120 + args.rounds,
                       name=f'mapchanges-{kernel}') as g:
                assert g.wait_done() == 0
                check_timers(g.console)
                assert not g.stat()['errors.recorded'], g.hmp_qmp('ka error')
    tap.done()


main()
