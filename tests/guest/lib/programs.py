# SPDX-License-Identifier: GPL-2.0-or-later
"""The frame of a test program: the common arguments, and the loop over kernels
and numbers of vCPUs.

    ap = programs.arguments(__doc__, short='6.12 on 1 vCPU only')
    args, tap = programs.parse(ap), Tap()
    programs.run_over(tap, args.kernel, args.smp, function)
    tap.done()

scripts/lib/testrun/choice.py finds the words arguments( and kernel_options( in
a program, and then passes it --kernel and --short.
"""
import argparse

KERNELS = '6.12', '6.1'
SMPS = 1, 4


def arguments(doc, short, smp=True):
    """Return a parser of --short, --kernel and, unless SMP is false, --smp.

    SHORT is the help text of --short. The first paragraph of DOC describes
    the program.
    """
    ap = argparse.ArgumentParser(description=doc.split('\n\n', maxsplit=1)[0])
    ap.add_argument('--short', action='store_true', help=short)
    ap.add_argument('--kernel', action='append', metavar='K',
                    help='a prepared kernel; may be repeated')
    if smp:
        ap.add_argument('--smp', action='append', type=int, metavar='N',
                        help='number of vCPUs; may be repeated')
    return ap


def parse(ap, kernels=KERNELS, short_kernels=KERNELS[:1], short_smps=SMPS[:1],
          smps=SMPS):
    """Parse the arguments; put defaults into args.kernel and args.smp. Those
    of --short are SHORT_KERNELS and SHORT_SMPS."""
    args = ap.parse_args()
    args.kernel = args.kernel or (short_kernels if args.short else kernels)
    if 'smp' in args:
        args.smp = args.smp or (short_smps if args.short else smps)
    return args


def run_over(tap, kernels, smps, fn, test='runs and is read'):
    """Call fn(tap, kernel, smp, label) for each kernel and number of vCPUs.

    Each call is a test named "LABEL: TEST". If TEST is None, the function makes
    its own tests.
    """
    for kernel in kernels:
        for smp in smps:
            label = f'{kernel}, {smp} vCPU'
            if test is None:
                fn(tap, kernel, smp, label)
                continue
            with tap.test(f'{label}: {test}'):
                fn(tap, kernel, smp, label)


def kernel_options(default=KERNELS, short=1):
    """Parse the arguments of a program that has only --short and --kernel;
    return the kernels. --short means the first SHORT ones of DEFAULT."""
    ap = argparse.ArgumentParser()
    ap.add_argument('--short', action='store_true',
                    help=' and '.join(default[:short]) + ' only')
    ap.add_argument('--kernel', action='append')
    args = ap.parse_args()
    return args.kernel or default[:short if args.short else None]
