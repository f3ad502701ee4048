#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Each bad access of the module ka_access is what it says. Oracle: KASAN, in a
kernel that is built with it: its report has the function, the kind, the access,
the place in the block, and who allocated and freed the block.

usage: test_access.py [--short] [--kernel K]... [--case C]...
"""
import os
import tempfile

from lib import accesses, kasan, oracle, programs
from lib.tap import Tap
from scripts.lib.guest import Guest
from scripts.lib.prepared import kernel_arch, paths

# Architecture -> the kernel with KASAN.
KASAN_KERNELS = {'x86_64': 'kasan-6.12'}
WORDS = 'no_hash_pointers no_timer_check kasan_multi_shot'


def run_module(kernel, cases, look=None, **guest_args):
    """Run cases of the module, all if there are none; return (what it printed,
    what LOOK(guest) returns)."""
    with tempfile.TemporaryDirectory(prefix='ka-access.') as tmp:
        share = oracle.make_share(os.path.join(tmp, 'share'), ['access.sh'],
                                  kernel, modules=True)
        with open(os.path.join(share, 'cases'), 'w', encoding='ascii') as f:
            f.write(' '.join(cases))
        with Guest(kernel=kernel, share=share, run='access', timeout=600,
                   cmdline=WORDS, **guest_args) as g:
            assert g.wait_done() == 0, 'the module was not loaded'
            return accesses.Log(g.settled_console()), look and look(g)


# --- KASAN -------------------------------------------------------------------

def check_kasan(name, truth, reports):
    """Compare the report of a case with what the module said."""
    assert reports, 'KASAN reports nothing'
    said, want = (accesses.facts_of_kasan(reports[0], truth),
                  accesses.facts_of_truth(truth))
    text = f'{said}\n{want}'
    assert (said.function, said.rw) == (want.function, want.rw), text
    assert want.size in (None, said.size), text
    assert said.kind == want.kind, text
    if said.offset is None or name == accesses.KASAN_OTHER_BLOCK:
        return      # KASAN does not know blocks of pages
    assert said[4:6] == want[4:6], text
    if name != accesses.KASAN_NO_NAMES:
        assert said.alloc, f'no site allocated it: {text}'
        assert bool(said.free) == (said.kind == 'use-after-free'), text


def test_kasan(tap, kernel, args):
    """Run all cases where KASAN is; return {case: its first report}."""
    log, _ = run_module(kernel, args.case, plugin=False,
                        name=f'access-{kernel}')
    found = {name: kasan.reports(text) for name, text in log.text.items()}
    for name, truth in log.truth.items():
        if not log.was_run(name):
            continue
        missed = accesses.KASAN_MISSES.get(name)
        with tap.test(f'{kernel}: {name}: KASAN ' +
                      (f'misses it ({missed})' if missed else 'reports it')):
            if missed:
                assert not found[name], found[name]
            else:
                check_kasan(name, truth, found[name])
    for name in log.quiet():
        tap.ok(not found[name], f'{kernel}: {name}: KASAN reports nothing',
               found[name])
    return {name: rows[0] for name, rows in found.items() if rows}


def run_kasan(tap, args):
    for arch in sorted({kernel_arch(k) for k in args.kernel}):
        kernel = KASAN_KERNELS.get(arch)
        if not kernel or 'kernel-' + kernel not in paths():
            tap.skip(f'{arch}: KASAN', 'there is no kernel with it')
            continue
        test_kasan(tap, kernel, args)


def main():
    ap = programs.arguments(__doc__, short='6.12 only', smp=False)
    ap.add_argument('--case', action='append', default=[],
                    help='a case of the module; may be repeated')
    args = programs.parse(ap)
    tap = Tap()
    run_kasan(tap, args)
    tap.done()


if __name__ == '__main__':
    main()
