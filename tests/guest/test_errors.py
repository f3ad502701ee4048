#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Each kind of error that the module ka_errors commits is reported exactly
once, with the right block and stacks. A clean boot and workload reports none.

Oracle: the addresses that the module prints, and the kernel's own messages,
which must be the same without the tracer.

With --short, all errors are committed in one guest, which is loaded again
before each of them, and the usual work is not run afterwards.

Then the same with kernels that appear to lack sources (--without WORDS, of the
plugin's option without=): a clean boot reports no error either, and a case is
reported rightly, or "ka error" says that its kind is not judged. With --short
that is done with kernels of x86-64 only.

usage: test_errors.py [--short] [--kernel K]... [--smp N]... [--runs N]
                 [--case C]... [--no-cases] [--without WORDS]...
"""
import contextlib
import json
import os
import re
import tempfile

from lib import kmodsyms, oracle, programs
from lib.tap import Tap
from scripts.lib.guest import Guest
from scripts.lib.prepared import ROOT, kernel_arch, kernel_file
from scripts.lib.snapshot_disk import drive, make_disk

CASES = ['double-free', 'double-free-cache', 'double-free-rcu',
         'invalid-free', 'invalid-free-slab', 'invalid-free-error',
         'invalid-free-error-vfree', 'invalid-free-error-sensitive',
         'invalid-free-error-krealloc', 'interior-free', 'interior-free-large',
         'wrong-family', 'wrong-family-kept', 'wrong-family-oops',
         'wrong-cache', 'objects-left', 'overlap']
# Cases that need pages=on, and a kernel with types.
PAGE_CASES = ['double-free-page', 'interior-free-page', 'wrong-family-pages',
              'wrong-order', 'wrong-order-larger']
# Cases that need a kernel with tags in its pointers.
TAG_CASES = ['double-free-tag']
# The error that an error pointer stands for.
CODES = {'invalid-free-error': '-ENOENT',
         'invalid-free-error-vfree': '-EPROBE_DEFER',
         'invalid-free-error-sensitive': '-EPERM',
         'invalid-free-error-krealloc': '-ENXIO'}
# Sources that a kernel can lack, one by one and all together: words of the
# plugin's option without=. The symbols are of functions that an allocator
# calls inside, which a compiler can inline or clone.
ALL = 'types+data+percpu+unwind'
WITHOUT = ('types', 'data', 'percpu', 'unwind', ALL,
           'symbol:delayed_vfree_work', ALL + '+symbol:delayed_vfree_work',
           'symbol:vfree_atomic', 'symbol:__vmalloc_node_range_noprof',
           'symbol:pcpu_alloc_noprof', 'symbol:kmem_cache_free',
           'symbol:__kmalloc_cache_noprof')
SHORT_WITHOUT = ALL + '+symbol:delayed_vfree_work', 'types'
# Kinds of kernels other than Linux; test_baremetal.py has a case. Kinds of
# accesses: test_access.py.
OTHERS = {'wrong-size', 'use-after-free', 'out-of-bounds', 'free-slot'}
TRUTH = re.compile(r'ka_errors: (\S+) va=(\w+) block=(\w+) bad=(\S+) '
                   r'alloc=(\S+)')
# How ka says that it does not know all blocks, or all allocators.
# A quarantine keeps freed objects from the freelist that an overlap is made
# with. With tags a freed object cannot be read or freed by its old pointer.
KASAN_KEEPS = {'KASAN_GENERIC': ['overlap'],
               'KASAN_SW_TAGS': ['overlap', 'invalid-free-slab'],
               'KASAN_HW_TAGS': ['overlap', 'invalid-free-slab']}
LATE = 'frees of unknown addresses are not checked'
EXPORTS = 'no error is certain'
WORDS = 'no_hash_pointers nosoftlockup'
COMPLAINT = re.compile(r'(WARNING: CPU|BUG: |Oops:? |Kernel panic|'
                       r'general protection fault).*')


def kinds():
    """Return the names of the kinds in errors.def."""
    path = os.path.join(ROOT, 'kalloc-tracer', 'api', 'errors.def')
    with open(path, encoding='utf-8') as f:
        return re.findall(r'KT_ERROR_KIND\(\w+, "([^"]+)"', f.read())


def kind_of(case):
    return max((k for k in kinds() if case.startswith(k)), key=len)


def errors_of(guest):
    rows = [json.loads(line)
            for line in guest.hmp_qmp('ka error -n 0 -j -v').splitlines()]
    return [r for r in rows if r.get('type') == 'error']


def complaints(console):
    """Return the messages of the kernel, without words that differ from run to
    run."""
    found = [m.group(0) for m in COMPLAINT.finditer(console)]
    return [re.sub(r'CPU: \d+ PID: \d+|\b(0x)?[0-9a-f]{8,16}\b', '#', text)
            for text in found]


def options_of(kernel, without, access):
    """Return the plugin's options of a clean run. A kernel that was built here
    may have no types, but a file of them."""
    vmlinux = kernel_file(kernel, 'vmlinux')
    words = [f'without={without}'] if without else []
    words += ['access=on'] if access else []
    if os.path.exists(vmlinux) and not oracle.has_types(kernel):
        words.append(f'types={vmlinux}')
    return ','.join(words) or None


def pages_of(case):
    """Return the plugin's options that a case needs."""
    return 'pages=on' if case in PAGE_CASES else None


def commit(case, kernel, smp, share, plugin=True):
    """Run one case; return (console, errors)."""
    with Guest(kernel=kernel, smp=smp, plugin=plugin, share=share,
               plugin_opts=pages_of(case),
               run='errors', n=case, timeout=300,
               cmdline=WORDS, name=f'error-{case}') as g:
        g.wait_done()
        return g.console, errors_of(g) if plugin else []


class LoadedGuest:
    """A guest that is booted once, and loaded again before each case. WORDS
    are more words for the kernel, QEMU more arguments of QEMU."""

    def __init__(self, kernel, share, folder, options=None, words='',
                 qemu=()):
        disk = make_disk(os.path.join(folder, f'disk-{kernel}'))
        self.guest = Guest(
            kernel=kernel, share=share, end='shell', mem='512M', timeout=300,
            cmdline=f'{words} {WORDS}', name=f'errors-{kernel}',
            plugin_opts=options, qemu=[*drive(disk), *qemu])
        self.guest.shell('true')
        self.monitor('savevm booted')

    def monitor(self, line):
        text = self.guest.hmp_qmp(line).strip()
        assert not text, f'{line}: {text}'

    def commit(self, case):
        """Run one case; return (console, errors)."""
        g = self.guest
        self.monitor('loadvm booted')
        before = len(g.console)
        g.shell(f'sh /share/errors.sh {case} brief')
        return g.console[before:], errors_of(g)


def addresses(words):
    return [int(w, 16) for w in words]


def is_callers(e, found, function):
    """Return true if a backtrace begins in FUNCTION. Without an unwinder it is
    one frame, which may be in the kernel's function that FUNCTION called."""
    inside = e.get('stop') == 'no-unwinder' and found == [None]
    return bool(found) and found[0] == function or inside


def check_report(case, console, errors, share):
    truth = TRUTH.search(console)
    assert truth, 'the module did not say what it did'
    va, block = map(oracle.untagged, addresses(truth.groups()[1:3]))
    bad, alloc = truth.groups()[3:]
    text = '\n'.join(json.dumps(e) for e in errors)
    assert len(errors) == 1, f'{len(errors)} reports:\n{text}'
    e, names = errors[0], kmodsyms.of_file(console, os.path.join(
        share, 'ka_page_errors.ko' if case in PAGE_CASES else 'ka_errors.ko'))
    assert e['error'] == kind_of(case), f"kind {e['error']}\n{text}"
    assert int(e['error_va'], 16) == va, f'not at {va:#x}\n{text}'
    assert e.get('error_code') == CODES.get(case), f'the code\n{text}'
    caught = [names.name(pc) for pc in addresses(e['error_stack'])]
    # The kernel's own functions come first: the one that reports, or the part
    # of free_pages() that the compiler split off (riscv64).
    if kind_of(case) == 'objects-left' or case in PAGE_CASES:
        caught = caught[caught.index(bad):] if bad in caught else caught
    assert is_callers(e, caught, bad), f'not caught in {bad}\n{text}'
    if not block:
        # An earlier block at that address may have been freed.
        assert e['state'] in '-F', f'there is no block\n{text}'
        return
    assert int(e['va'], 16) == block, f'not of block {block:#x}\n{text}'
    made = [names.name(pc) for pc in addresses(e['alloc'])]
    assert is_callers(e, made, alloc), f'not made in {alloc}\n{text}'


def not_judged(guest):
    """Return the line of "ka error" that says what is not judged, or ''."""
    lines = guest.hmp_qmp('ka error -n 1 -w').splitlines()
    return next((line for line in lines if any(
        words in line for words in ('not judged', LATE, EXPORTS))), '')


def check_without(case, console, errors, unjudged, without):
    """Check a case in a kernel that lacks WITHOUT. What is reported is true:
    it is at the address that the module named, and there is at most one."""
    truth = TRUTH.search(console)
    assert truth, 'the module did not say what it did'
    va = oracle.untagged(addresses(truth.groups()[1:2])[0])
    text = '\n'.join(json.dumps(e) for e in errors)
    assert len(errors) <= 1, f'{len(errors)} reports:\n{text}'
    if errors:
        assert int(errors[0]['error_va'], 16) == va, f'not at {va:#x}\n{text}'
        # Only the slab's page distinguishes a slab that is gone.
        kind = errors[0]['error']
        assert kind == kind_of(case) or (
            'types' in without and case == 'invalid-free-slab' and
            kind == 'double-free'), f'kind {kind}\n{text}'
    else:
        # Without data symbols riscv64's kernel may be found late.
        assert kind_of(case) in unjudged or EXPORTS in unjudged or (
            kind_of(case) == 'invalid-free' and LATE in unjudged), \
            f'neither reported nor said to be not judged: {unjudged!r}'


def cases_without(kernel, args):
    return [c for c in cases_of(kernel, args) if c in CASES]


def run_without(tap, args, share, folder):
    for kernel in args.kernel:
        for n, without in enumerate(args.lack):
            where = os.path.join(folder, f'{kernel}-{n}')
            os.makedirs(where)
            loaded = LoadedGuest(kernel, share[kernel], where,
                                 options_of(kernel, without, access=False))
            with loaded.guest:
                for case in cases_without(kernel, args):
                    with tap.test(f'{kernel} without {without}: {case}: '
                                  'reported rightly, or not judged'):
                        console, errors = loaded.commit(case)
                        check_without(case, console, errors,
                                      not_judged(loaded.guest), without)


def check_clean(guest, options):
    """The file of types is used, and accesses are checked."""
    if 'types=' in options:
        assert guest.stat()['kernel.types'] == 'file'
    if 'access=' in options:
        text = guest.hmp_qmp('ka access -v')
        assert 'checked since' in text, text
        assert not guest.stat()['access.missing'], text


def clean(kernel, smp, size, without=None, access=False):
    options = options_of(kernel, without, access)
    with Guest(kernel=kernel, smp=smp, run='work', n=size, timeout=600,
               plugin_opts=options, name=f'clean-{kernel}-{smp}') as g:
        status = g.wait_done()
        assert status == 0, f'the workload ended with status {status}'
        errors = errors_of(g)
        assert not errors, '\n'.join(json.dumps(e) for e in errors)
        check_clean(g, options or '')
        return g.hmp_qmp('ka stat')


def cases_of(kernel, args):
    """Return the cases of a kernel. pages=on hooks nothing without types, and
    KASAN keeps the module from making some. The module repairs SLUB's lists."""
    if not oracle.has_option(kernel, 'SLUB'):
        return []
    types, tags = oracle.has_types(kernel), oracle.has_tags(kernel)
    kept = [case for option, cases in KASAN_KEEPS.items()
            if oracle.has_option(kernel, option) for case in cases]
    return [c for c in args.case if (types or c not in PAGE_CASES) and
            (tags or c not in TAG_CASES) and c not in kept]


def has_symbol(kernel, name):
    """Return true if a kernel that was built here has the symbol."""
    path = kernel_file(kernel, 'System.map')
    if not os.path.exists(path):
        return False
    with open(path, encoding='utf-8') as f:
        return any(line.split()[-1] == name for line in f)


def is_split(kernel, case, errors, guest):
    """Return true if an overlap is rightly not judged. In some builds the
    compiler splits kmem_cache_free(): code of the same file frees by its
    part, which is no call of a hook."""
    return case == 'overlap' and not errors and \
        has_symbol(kernel, 'kmem_cache_free.part.0') and \
        'overlap are not judged' in guest.hmp_qmp('ka error -n 1 -w') and \
        guest.stat()['alloc.unjudged'] > 0


def run_cases_in_one(tap, args, share, folder):
    for kernel in share:        # none if there is no case
        for options in None, 'pages=on':
            cases = [c for c in cases_of(kernel, args)
                     if pages_of(c) == options]
            where = os.path.join(folder, f'{kernel}-{options}')
            os.makedirs(where)
            loaded = LoadedGuest(kernel, share[kernel], where, options) \
                if cases else None
            with loaded.guest if loaded else contextlib.nullcontext():
                for case in cases:
                    with tap.test(f'{kernel}: {case}: reported once, rightly'):
                        console, errors = loaded.commit(case)
                        if not is_split(kernel, case, errors, loaded.guest):
                            check_report(case, console, errors,
                                         share[kernel])


def run_few_symbols(tap, args, share, folder):
    """Run the cases in kernels that have no symbols but their exports."""
    for kernel in share:
        loaded = LoadedGuest(kernel, share[kernel], folder)
        with loaded.guest:
            for case in cases_of(kernel, args):
                with tap.test(f'{kernel}: {case}: reported rightly, or not '
                              'judged'):
                    check_without(case, *loaded.commit(case),
                                  not_judged(loaded.guest), 'types')


def run_cases(tap, args, share):
    for kernel in share:
        for case in cases_of(kernel, args):
            label = f'{kernel}: {case}'
            console = ''
            with tap.test(f'{label}: reported once, rightly'):
                console, errors = commit(case, kernel, 1, share[kernel])
                check_report(case, console, errors, share[kernel])
            if not console:
                continue
            with tap.test(f'{label}: the kernel fares as without the tracer'):
                without, _ = commit(case, kernel, 1, share[kernel], False)
                assert complaints(console) == complaints(without), \
                    f'{complaints(console)} != {complaints(without)}'


def test_cases(tap, args):
    with tempfile.TemporaryDirectory(prefix='ka-errors.') as tmp:
        share = {k: oracle.make_share(os.path.join(tmp, k), ['errors.sh'], k,
                                      modules=True)
                 for k in args.kernel if args.case}
        if args.lack:
            run_without(tap, args, share, tmp)
            return
        few = {k: share.pop(k) for k in list(share)
               if not oracle.has_option(k, 'KALLSYMS')}
        run_few_symbols(tap, args, few, tmp)
        if args.short:
            run_cases_in_one(tap, args, share, tmp)
        else:
            run_cases(tap, args, share)


def rare_and_checked(kernel):
    """Return true for the kernels without tracepoints whose accesses can be
    checked. test_access.py has the other kernels."""
    return not (oracle.has_option(kernel, 'FTRACE') or
                oracle.has_option(kernel, 'SLOB')) and (
        oracle.has_types(kernel) or
        os.path.exists(kernel_file(kernel, 'vmlinux')))


def run_clean(tap, args):
    def runs(tap, kernel, smp, label):
        for i in range(args.runs):
            with tap.test(f'{label}: clean run {i + 1} of {args.runs} '
                          'reports no error'):
                stat = clean(kernel, smp, args.size)
                if i == 0:
                    tap.note(stat)
        if rare_and_checked(kernel):
            with tap.test(f'{label}: nor does one with access checks'):
                tap.note(clean(kernel, smp, args.size, access=True))

    programs.run_over(tap, args.kernel, args.smp, runs, test=None)


def clean_without(tap, args):
    for kernel in args.kernel:
        for without in args.lack:
            with tap.test(f'{kernel} without {without}: a clean run reports '
                          'no error'):
                tap.note(clean(kernel, 2, args.size, without))


def test_without(tap, args, words):
    """Test kernels that appear to lack WORDS."""
    args.lack = words[:1] if args.short and not args.without else words
    if args.case:
        test_cases(tap, args)
    args.lack = words
    clean_without(tap, args)


def counted(tap, what, function, args):
    """Run FUNCTION; print how many of its tests passed."""
    count, failed = tap.count, tap.failed
    function(tap, args)
    n = tap.count - count
    tap.figures('errors', **{what: n, what + '_good': n - tap.failed + failed})


def main():
    ap = programs.arguments(__doc__, short='6.12 only, one clean run')
    ap.add_argument('--case', action='append',
                    choices=CASES + PAGE_CASES + TAG_CASES)
    ap.add_argument('--no-cases', action='store_true',
                    help='clean runs only, which need no module')
    ap.add_argument('--runs', type=int, help='clean runs of each')
    ap.add_argument('--size', type=int, help='rounds of the workload')
    ap.add_argument('--without', action='append', metavar='WORDS',
                    help='sources that the kernel appears to lack; may be '
                         'repeated')
    args = programs.parse(ap, short_smps=programs.SMPS)
    if args.runs is None:
        args.runs = 1 if args.short else 10
    args.size = args.size or (1 if args.short else 2)
    tap = Tap()
    tap.ok({kind_of(c) for c in CASES + PAGE_CASES} == set(kinds()) - OTHERS,
           'there is a case for each kind of error', str(kinds()))
    args.case = [] if args.no_cases else args.case or \
        CASES + PAGE_CASES + TAG_CASES
    args.lack = ()
    if not args.without:
        counted(tap, 'cases', test_cases, args)
        counted(tap, 'clean', run_clean, args)
    if args.without or not args.short or \
            kernel_arch(args.kernel[0]) == 'x86_64':
        args.kernel = args.kernel if args.without else args.kernel[:1]
        test_without(tap, args, args.without or
                     (SHORT_WITHOUT if args.short else WITHOUT))
    tap.done()


if __name__ == '__main__':
    main()
