#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest of four vCPUs continues while one of them repeatedly changes code or
memory that the others use. Oracle: the guest itself, which would crash or
hang.

codewrites  changes the code of the scheduler. No vCPU may execute old code:
            while Linux on x86-64 changes code it puts a breakpoint there, and
            a vCPU that executes it late ends the guest by an oops, "int3".
mapchanges  changes the machine's memory map, as Linux does when it sizes BARs,
            while the others use their local APICs. Each access must reach its
            own device: a timer whose interrupt is not acknowledged, or that is
            not set again, never expires again, and the guest hangs.
tracerchanges
            changes the first instructions of the allocators, by the function
            tracer, whose hook is there (6.1). No call may be missed while a
            breakpoint is there: an address that is allocated twice would be
            reported as an error.

usage: test_changes.py [--short] [--case NAME] [--kernel K]... [--rounds N]
"""
import argparse
import re
import tempfile
from collections import namedtuple

from lib import oracle
from lib.tap import Tap
from scripts.lib.guest import Guest


def check_timers(console):
    """On each CPU the local timer expired between the two listings."""
    before, after = ([int(n) for n in re.findall(r'\d+', line)] for line in
                     re.findall(r'^ *LOC:(.*)Local timer', console, re.M))
    assert len(before) == 4 and all(b < a for b, a in zip(before, after)), \
        f'local timer interrupts: {before}, 3 s later {after}'


# Name of the workload, kernel, rounds of the short and of the long form,
# seconds that a round may take, what changes, and what the console must show.
# 6.12-rt is used because its idle loop and scheduler have executed such code. A
# round of the function tracer takes a second or more.
Case = namedtuple('Case', 'name kernel short long pace what cmdline check')
CASES = (
    Case('codewrites', '6.12-rt', 60, 5000, 1, 'code', 'oops=panic panic=-1',
         None),
    Case('mapchanges', '6.12', 100, 5000, 1, 'the map', '', check_timers),
    Case('tracerchanges', '6.1', 5, 400, 3, "the allocators' entries", '',
         None),
)


def options():
    ap = argparse.ArgumentParser()
    ap.add_argument('--short', action='store_true',
                    help=', '.join(f'{c.short} rounds of {c.name}'
                                   for c in CASES))
    ap.add_argument('--case', choices=[c.name for c in CASES],
                    help='all if not given')
    ap.add_argument('--kernel', action='append',
                    help=', '.join(f'{c.kernel} for {c.name}' for c in CASES))
    ap.add_argument('--rounds', type=int,
                    help='how often it is changed and changed back; '
                         + ', '.join(f'{c.long} of {c.name}' for c in CASES)
                         + ' if not given')
    return ap.parse_args()


def run(case, kernel, rounds):
    with tempfile.TemporaryDirectory(prefix='ka-changes.') as share:
        oracle.make_share(share, [case.name + '.sh'], kernel)
        with Guest(kernel=kernel, smp=4, run=case.name, n=rounds, share=share,
                   cmdline=case.cmdline, timeout=120 + case.pace * rounds,
                   name=f'{case.name}-{kernel}') as g:
            assert g.wait_done() == 0
            if case.check:
                case.check(g.console)
            assert not g.stat()['errors.recorded'], g.hmp_qmp('ka error')


def main():
    args, tap = options(), Tap()
    for case in CASES:
        if args.case in (None, case.name):
            rounds = args.rounds or (case.short if args.short else case.long)
            for kernel in args.kernel or [case.kernel]:
                with tap.test(f'{kernel}: {rounds} changes of {case.what}'):
                    run(case, kernel, rounds)
    tap.done()


main()
