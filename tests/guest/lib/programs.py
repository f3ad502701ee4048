# SPDX-License-Identifier: GPL-2.0-or-later
"""What the test programs share: their common arguments."""
import argparse


def kernel_options(default=('6.12', '6.1')):
    """The kernels to test: --kernel K..., or DEFAULT, of which --short takes
    the first."""
    ap = argparse.ArgumentParser()
    ap.add_argument('--short', action='store_true',
                    help=f'{default[0]} only')
    ap.add_argument('--kernel', action='append')
    args = ap.parse_args()
    return args.kernel or default[:1 if args.short else None]
