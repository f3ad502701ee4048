#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest that changes its own code while four vCPUs execute it: no vCPU goes
on with the code of before. Linux on x86-64 puts a breakpoint there in between,
so that a vCPU that does so ends it by an oops: "int3".

usage: test_codewrites.py [--short] [--kernel K]... [--rounds N]
"""
import argparse
import tempfile

import oracle
from kaguest import Guest, Tap


def options():
    ap = argparse.ArgumentParser()
    ap.add_argument('--short', action='store_true', help='100 rounds')
    # Its idle loop and its scheduler have been seen to meet such code.
    ap.add_argument('--kernel', action='append', help='6.12-rt if not given')
    ap.add_argument('--rounds', type=int,
                    help='how often the code is changed and changed back')
    args = ap.parse_args()
    args.kernel = args.kernel or ['6.12-rt']
    args.rounds = args.rounds or (100 if args.short else 5000)
    return args


def main():
    args, tap = options(), Tap()
    for kernel in args.kernel:
        with tempfile.TemporaryDirectory(prefix='ka-code.') as share, \
                tap.test(f'{kernel}: {args.rounds} changes of code'):
            oracle.make_share(share, ['codewrites.sh'], kernel)
            with Guest(kernel=kernel, smp=4, run='codewrites', n=args.rounds,
                       share=share, timeout=120 + args.rounds,
                       cmdline='oops=panic panic=-1',
                       name=f'codewrites-{kernel}') as g:
                assert g.wait_done() == 0
                assert not g.stat()['errors.recorded'], g.hmp_qmp('ka error')
    tap.done()


main()
