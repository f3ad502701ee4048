#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""With access=on, guests that are in order have no error: from their boot on,
with files, processes, network, and modules that are loaded and unloaded. The
map agrees with each access that is suspected, and the functions whose accesses
are explained are known ones. Oracle: a kernel of the distribution is in order;
the list of functions below, each of which somebody has looked at.

usage: test_access_silence.py [--short] [--kernel K]... [--smp N]... [--runs N]
"""
import os
import re
import tempfile

from lib import oracle, programs
from lib.tap import Tap
from scripts.lib.guest import Guest

KERNELS = '6.12', '6.1', '6.18', '7.3', 'arm64-6.12', 'riscv64-6.12'
MODULES = 'loop', 'dummy', 'ext4', 'vfat'
# Reason -> patterns of the functions that it explains in these guests. A new
# name fails the test: look at the function, and add it if it is right.
EXPLAINED = {
    'overread': r'__d_lookup(_rcu)?|d_same_name|d_alloc_parallel|'
                r'link_path_walk|hash_name|full_name_hash|hashlen_string|'
                r'(sized_)?strscpy|__h?siphash_(un)?aligned|csum_partial|'
                r'do_csum\w*|str\w+|mem(cmp|chr)',
    'loads_ok': r'(strn)?copy_from_kernel_nofault|'
                r'strncpy_from_kernel_nofault|bpf_\w+',
}


def unknown(text):
    """Return the lines of `ka access -v` with a function that is not known.
    What the allocator explains is its own affair."""
    # gcc's names of clones have more behind a dot.
    rows = re.findall(r'^(\w+) +(\d+)  ([^\s.]+)\S*$', text, re.M)
    return [f'{why} {n} {name}' for why, n, name in rows
            if why in EXPLAINED and not re.fullmatch(EXPLAINED[why], name)]


def check(tap, guest):
    errors = guest.hmp_qmp('ka error -n 20 -s -v')
    stat, text = guest.stat(), guest.hmp_qmp('ka access -v')
    tap.note(text)
    assert 'checked since' in text, text
    assert errors.startswith('no errors'), errors
    assert not stat['access.disagreed'], stat['access.disagreed']
    assert not unknown(text), unknown(text)


def run(tap, args, share, kernel, smp):
    with Guest(kernel=kernel, smp=smp, run='access-silence', n=args.size,
               share=share, plugin_opts='access=on', timeout=900,
               cmdline='no_timer_check', name=f'silence-{kernel}-{smp}') as g:
        assert g.wait_done() == 0
        check(tap, g)


def main():
    ap = programs.arguments(__doc__, short='6.12 on 1 vCPU, one boot')
    ap.add_argument('--runs', type=int, help='boots of each')
    ap.add_argument('--size', type=int, help='rounds of the workload')
    args = programs.parse(ap, kernels=KERNELS)
    args.runs = args.runs or (1 if args.short else 10)
    args.size = args.size or (1 if args.short else 4)
    tap = Tap()
    with tempfile.TemporaryDirectory(prefix='ka-silence.') as tmp:
        for kernel in args.kernel:
            share = oracle.make_share(os.path.join(tmp, kernel),
                                      ['access-silence.sh'], kernel)
            oracle.add_drivers(share, kernel, *MODULES)
            for smp in args.smp:
                for i in range(args.runs):
                    with tap.test(f'{kernel}, {smp} vCPU: boot {i + 1} of '
                                  f'{args.runs} has no error'):
                        run(tap, args, share, kernel, smp)
    tap.done()


if __name__ == '__main__':
    main()
