#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Each bad access of the module ka_access is an error of ka, except those that
lib/accesses.py says to be missed; nothing else is. Oracles: what the module
prints; and KASAN, in a kernel that is built with it. Its report has the same
function, kind, access, place in the block, and the same functions that
allocated and freed the block.

usage: test_access.py [--short] [--kernel K]... [--case C]...
"""
import json
import os
import tempfile
import time

from lib import accesses, kasan, oracle, programs
from lib.tap import Tap
from scripts.lib.guest import Guest
from scripts.lib.prepared import kernel_arch, paths

# Kernel -> one with KASAN, of the same source. Others of x86-64: kasan-6.12.
KASAN_KERNELS = {'6.1': 'kasan-6.1',
                 'arm64-6.12': 'arm64-kasan-generic-6.12',
                 'riscv64-6.12': 'riscv64-kasan-6.12'}
OFTEN = 8           # accesses of the case uaf_often
# Cases whose blocks are in caches of kmalloc(), and others.
OF_CACHES = 'oob_store', 'oob_16', 'uaf_load'
OF_OTHERS = 'oob_large', 'uaf_large', 'oob_vmalloc'
WORDS = 'no_hash_pointers kasan_multi_shot'


def run_module(kernel, cases, look=None, words='', **guest_args):
    """Run cases of the module, all if there are none; return (what it printed,
    what LOOK(guest) returns). WORDS are more words for the kernel."""
    with tempfile.TemporaryDirectory(prefix='ka-access.') as tmp:
        share = oracle.make_share(os.path.join(tmp, 'share'), ['access.sh'],
                                  kernel, modules=True)
        with open(os.path.join(share, 'cases'), 'w', encoding='ascii') as f:
            f.write(' '.join(cases))
        with Guest(kernel=kernel, share=share, run='access', timeout=600,
                   cmdline=f'{words} {WORDS}', **guest_args) as g:
            assert g.wait_done() == 0, 'the module was not loaded'
            bytewise = accesses.BYTEWISE.get(kernel_arch(kernel), ())
            return accesses.Log(g.settled_console(), bytewise), look and look(g)


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
    if said.offset is None or name in accesses.KASAN_OTHER_BLOCK:
        return      # KASAN does not know blocks of pages
    assert said[4:6] == want[4:6], text
    if name != accesses.KASAN_NO_NAMES:
        assert said.alloc, f'no site allocated it: {text}'
        assert bool(said.free) == (said.kind == 'use-after-free'), text


def kasan_kernel(kernel):
    """Return the kernel that KASAN is in, for comparison; None without one."""
    return KASAN_KERNELS.get(kernel) or \
        {'x86_64': 'kasan-6.12'}.get(kernel_arch(kernel))


def test_kasan(tap, kernel, args):
    """Run all cases where KASAN is; return {case: its first report}."""
    misses = accesses.kasan_misses(kernel)
    log, _ = run_module(kernel, args.case, plugin=False,
                        name=f'access-{kernel}')
    found = {name: kasan.reports(text) for name, text in log.text.items()}
    for name, truth in log.truth.items():
        if not log.was_run(name):
            continue
        missed = misses.get(name)
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
    """Return {kernel with KASAN: {case: its report}}."""
    found = {}
    for kernel in sorted({str(kasan_kernel(k)) for k in args.kernel}):
        if not paths().get('kernel-' + kernel):
            tap.skip(f'{kernel}: KASAN', 'there is no such kernel')
            continue
        if not oracle.can_build_modules(kernel):
            tap.skip(f'{kernel}: KASAN', 'it has no headers for modules')
            continue
        found[kernel] = test_kasan(tap, kernel, args)
    return found


# --- ka ----------------------------------------------------------------------

def answers(guest):
    """Return what ka found: (errors, ka stat, ka access -v in words, what it
    printed on QEMU's stderr)."""
    rows = [json.loads(line) for line in
            guest.hmp_qmp('ka error -n 0 -j -v -s').splitlines()]
    errors = [r for r in rows if r.get('type') == 'error']
    # 20 a second are printed.
    end = time.monotonic() + 30
    while len(kasan.reports(guest.qemu_log)) < len(errors) and \
            time.monotonic() < end:
        time.sleep(0.5)
    return (errors, guest.stat(), guest.hmp_qmp('ka access -v'),
            kasan.reports(guest.qemu_log))


def is_of(error, name):
    """Return whether an error is of a case: its function accessed the block,
    or allocated it."""
    return any('ka_case_' + name in accesses.functions(error.get(key))
               for key in ('error_stack_symbols', 'alloc_symbols'))


def differences(kernel, name, said, want):
    """Return what differs between the facts of ka and those of an oracle,
    which may not know who allocated and freed the block."""
    got = said._asdict()
    if name in accesses.NO_CALLER.get(kernel, ()):
        got['function'] = want.function
    if name in accesses.ALIKE:
        got['kind'], got['free'] = want.kind, want.free
    if name in accesses.EITHER:
        got['rw'] = want.rw
    if name in accesses.REALLOC:
        got['alloc'] = want.alloc
    if name in accesses.OTHER_SIZE or want.size is None or \
            name in accesses.OTHER_SIZE_ELSEWHERE and \
            kernel_arch(kernel) != 'x86_64':
        # The first instruction that met a bad byte.
        got['size'], got['offset'] = want.size, want.offset
    return {key: (got[key], value) for key, value in want._asdict().items()
            if got[key] != value and
            not (key in ('alloc', 'free') and value is None)}


def check_found(kernel, name, truth, errors, report):
    text = '\n'.join(json.dumps(e) for e in errors)
    assert errors, 'ka reports nothing'
    said = accesses.facts_of_ka(errors[0], truth)
    wrong = differences(kernel, name, said, accesses.facts_of_truth(truth))
    assert not wrong, f'not as the module says: {wrong}\n{text}'
    kasan_says = report and accesses.facts_of_kasan(report, truth)
    if kasan_says and kasan_says.offset is not None and \
            name not in accesses.KASAN_OTHER_BLOCK:
        # The order of several stores is the compiler's.
        of_case = errors if truth.size is None else errors[:1]
        wrong = [differences(kernel, name, accesses.facts_of_ka(e, truth),
                             kasan_says) for e in of_case]
        assert {} in wrong, f'not as KASAN says: {wrong}\n{text}'
    assert said.alloc, f'no site allocated it\n{text}'


def check_slot(truth, errors):
    """Check an error of a slot that nobody owns."""
    text = '\n'.join(json.dumps(e) for e in errors)
    assert errors, 'ka reports nothing'
    e = errors[0]
    want = 'free-slot', truth.rw, truth.size, truth.at
    assert (e['error'], e['error_access'], e['error_access_size'],
            int(e['error_va'], 16)) == want, f'not {want}: {text}'
    if truth.at < truth.block:
        assert (int(e['neighbour_va'], 16), int(e['neighbour_before'], 16)) \
            == (truth.block, truth.block - truth.at), text


def check_case(tap, kernel, name, truth, errors, report):
    missed = accesses.KA_MISSES.get(name) or \
        kernel.startswith('slab-') and accesses.SLAB_MISSES.get(name)
    with tap.test(f'{kernel}: {name}: ka ' +
                  (f'misses it ({missed})' if missed else 'reports it')):
        if missed:
            assert not errors, errors
        elif name in accesses.FREE_SLOT:
            check_slot(truth, errors)
        else:
            check_found(kernel, name, truth, errors, report)


def check_counts(tap, kernel, log, errors, stat):
    tap.ok(not stat['access.disagreed'],
           f'{kernel}: the map agrees with each suspect', stat)
    if 'uaf_often' in log.truth:
        count = [e['error_count'] for e in errors if is_of(e, 'uaf_often')]
        tap.ok(count == [OFTEN], f'{kernel}: repeats are counted', count)


def test_ka(tap, kernel, args, reports):
    log, (errors, stat, access, printed) = run_module(
        kernel, args.case, look=answers,
        plugin_opts='access=on,report=kasan,pages=on', name=f'access-{kernel}')
    tap.note(access)
    rest = list(errors)
    for name, truth in log.truth.items():
        of_case = [e for e in errors if is_of(e, name)]
        rest = [e for e in rest if e not in of_case]
        if log.was_run(name):
            check_case(tap, kernel, name, truth, of_case, reports.get(name))
    tap.ok(not rest, f'{kernel}: nothing else is reported',
           '\n'.join(json.dumps(e) for e in rest))
    check_counts(tap, kernel, log, errors, stat)
    with tap.test(f'{kernel}: each error is printed when it is found'):
        assert [(r.rw, r.size, r.at) for r in printed] == \
            [(e['error_access'], e['error_access_size'],
              int(e['error_va'], 16)) for e in errors]


def test_caches(tap, kernel):
    _, (errors, *_) = run_module(
        kernel, OF_CACHES + OF_OTHERS, look=answers, name=f'caches-{kernel}',
        plugin_opts='access=cache:kmalloc-*,report=kasan')
    found = {case for case in OF_CACHES + OF_OTHERS
             for e in errors if is_of(e, case)}
    tap.ok(found == set(OF_CACHES), f'{kernel}: only blocks of some caches',
           '\n'.join(json.dumps(e) for e in errors))


def main():
    ap = programs.arguments(__doc__, short='6.12 only', smp=False)
    ap.add_argument('--case', action='append', default=[],
                    help='a case of the module; may be repeated')
    args = programs.parse(ap)
    tap = Tap()
    reports = run_kasan(tap, args)
    for kernel in args.kernel:
        test_ka(tap, kernel, args, reports.get(kasan_kernel(kernel), {}))
        if not args.case:
            test_caches(tap, kernel)
    tap.done()


if __name__ == '__main__':
    main()
