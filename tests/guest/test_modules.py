#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Code that is loaded and unloaded: a module, many times, with allocations in
its init, core and exit sections, and a BPF program. Each frame still has the
right name when the code is gone; no error is reported, and nothing is unknown.
Oracle: what the module and the guest print.

Then the same, but for the BPF program, with a kernel that appears to have no
types (the plugin's option without=), on 1 vCPU.

usage: test_modules.py [--short] [--kernel K]... [--smp N]...
"""
import functools
import json
import os
import re
import tempfile
from collections import Counter

from lib import oracle, programs
from lib.tap import Tap
from scripts.lib.guest import Guest

# Each has a second name at the same address, init_module and cleanup_module:
# the kernel prints these.
LOADING, UNLOADING = 'ka_life_init[ka_life]', 'ka_life_exit[ka_life]'
SITES = {'ka_life_site_init': LOADING, 'ka_life_site_core': LOADING,
         'ka_life_site_exit': UNLOADING}
# These counters must be 0. stack.end_unknown_pc may grow: the kernel has no
# unwind data for some code (ciphers in assembly, tested at boot), which
# interrupts may interrupt. Stacks of the module are checked one by one.
UNKNOWN = ('errors.recorded', 'free.unknown', 'events.unknown_block', 'gaps',
           'stack.end_bad_frame', 'module.failed', 'call.unreadable',
           'call.dropped')
LEARNED = 'cache.unknown', 'task.unknown'       # until they are learned


def lives(guest, va):
    """Return all blocks that ever began at VA, as JSON objects."""
    text = guest.hmp_qmp(f'ka {va} --history -j -s -v -n 0')
    rows = [json.loads(line) for line in text.splitlines()]
    return [r for r in rows if r.get('va') == f'0x{va}']


def plain(frames):
    """Return the names without offsets."""
    return [re.sub(r'\+0x[0-9a-f]+', '', f) for f in frames]


def is_whole(row, without):
    """Return true if the backtrace is whole. Without types arm64's walk reaches
    the last frame, and does not know that the registers are of user mode."""
    return row['stop'] == 'user' or (without and row['stop'] == 'end')


def printed(guest):
    """Return what the module said: (site, address). On the console a line may
    be in the midst of one of the shell's; the kernel's log has it whole."""
    return re.findall(r'ka_life: (\w+)=([0-9a-f]{16})',
                      guest.shell('dmesg | grep ka_life:'))


def check_module(guest, n, without):
    said = printed(guest)
    truth = Counter(said)
    assert sum(truth.values()) == 3 * n, f'{len(said)} lines of the module'
    found = Counter()
    for va in sorted({va for _, va in said}):
        for row in lives(guest, va):
            made = plain(row.get('alloc_symbols', ()))
            if not made or '[ka_life]' not in made[0]:
                continue
            site, gone = made[0].split('[')[0], plain(row['free_symbols'])
            assert made[1] == SITES[site], made
            assert is_whole(row, without), row
            assert gone[0] == 'ka_life_site_free[ka_life]', gone
            assert gone[1] == UNLOADING, gone
            found[site, va] += 1
    assert found == truth, f'{found - truth} too many, {truth - found} missing'


def check_bpf(guest):
    before = guest.stat()['memory.kernel']
    guest.shell('for what in enable kallsyms; do '
                'echo 1 >/proc/sys/net/core/bpf_jit_$what; done; '
                '/share/ka-bpf')
    name = re.search(r'ka-bpf: [0-9a-f]+ t (\S+)\s+\[bpf\]', guest.console)
    assert name, 'the guest did not name its program'
    text = guest.hmp_qmp('ka alloc trie_update_elem -j -s -n 0')
    frames = [plain(json.loads(line)['alloc_symbols'])
              for line in text.splitlines() if '"block"' in line]
    assert any(f'{name.group(1)}[bpf]' in f for f in frames), \
        f'{name.group(1)} in none of {frames}'
    assert guest.stat()['memory.kernel'] > before, before


def check_failed(guest):
    """Load a module that fails at relocation, before its code runs. insmod may
    try more than once."""
    said = guest.shell('insmod /share/ka_cache.ko size=none || echo refused')
    assert 'refused' in said, said
    text = guest.hmp_qmp('ka leak module ka_cache -j')
    rows = [json.loads(line) for line in text.splitlines()]
    assert {(r['type'], r.get('blocks')) for r in rows} == {('module', 0)}, text


def check_off(guest, without):
    """Replace a module by another one at its address, while tracing is off."""
    guest.shell('insmod /share/ka_leaky.ko')
    guest.hmp_qmp('ka off')
    guest.shell('rmmod ka_leaky; insmod /share/ka_life.ko')
    guest.hmp_qmp('ka on')
    guest.shell('rmmod ka_life')
    va = [va for site, va in printed(guest) if site == 'ka_life_site_exit'][-1]
    # The programs that printed it may have had the memory since.
    row = max((r for r in lives(guest, va) if plain(r['alloc_symbols'])[:1] ==
               ['ka_life_site_exit[ka_life]']), key=lambda r: r['alloc_us'])
    made, gone = plain(row['alloc_symbols']), plain(row['free_symbols'])
    assert made[1] == UNLOADING and is_whole(row, without), row
    assert gone[0] == 'ka_life_site_free[ka_life]', gone
    numbers = guest.stat()
    assert numbers['gaps'] == 1, numbers['gaps']
    assert not numbers.get('errors.recorded'), numbers['errors.recorded']


def load_cache(guest, size, more):
    """Load the module; return the address of its cache and of its objects."""
    before = len(guest.console)
    guest.shell(f'insmod /share/ka_cache.ko size={size}; '
                f'echo {more} >/sys/module/ka_cache/parameters/more')
    said = guest.console[before:]
    return (re.search(r'ka_cache: cache=([0-9a-f]{16})', said).group(1),
            re.findall(r'ka_cache: object=([0-9a-f]{16})', said))


def check_cache_off(guest):
    """Replace a cache by another one at its address, while tracing is off."""
    place, _ = load_cache(guest, 512, 8)
    gaps = guest.stat()['gaps']
    guest.hmp_qmp('ka off')
    for _ in range(50):
        guest.shell('rmmod ka_cache')
        there, _ = load_cache(guest, 128, 0)
        if there == place:
            break
    assert there == place, 'the guest does not use the place again'
    guest.hmp_qmp('ka on')
    before = len(guest.console)
    guest.shell('echo 32 >/sys/module/ka_cache/parameters/more')
    objects = re.findall(r'ka_cache: object=([0-9a-f]{16})',
                         guest.console[before:])
    assert len(objects) == 32, objects
    for va in objects:
        row = max(lives(guest, va), key=lambda r: r['alloc_us'])
        assert row['cache'] == 'ka_cache_128', row
        assert row['requested'] == 128 and row['actual'] < 512, row
    numbers = guest.stat()
    assert numbers['gaps'] == gaps + 1, numbers['gaps']
    assert not numbers.get('errors.recorded'), numbers['errors.recorded']


def check_stat(guest, without):
    numbers = guest.stat()
    for key in UNKNOWN + (() if without else LEARNED):
        assert not numbers.get(key), f'{key}: {numbers[key]}\n' + \
            guest.hmp_qmp('ka error -s -n 3')


def run(tap, kernel, smp, label, n, folder, without):
    share = os.path.join(folder, f'{kernel}-{without}')
    if without:
        label += f', without {without}'
    oracle.make_share(share, ['life.sh'], kernel, modules=True)
    with Guest(kernel=kernel, smp=smp, share=share, run='life', n=n,
               timeout=300, cmdline='no_hash_pointers', end='shell',
               plugin_opts=f'without={without}' if without else None,
               name=f'modules-{kernel}-{smp}-{without}') as g:
        with tap.test(f'{label}: runs'):
            assert g.wait_done() == 0
        with tap.test(f'{label}: a module, {n} times'):
            check_module(g, n, without)
        if not without:
            with tap.test(f'{label}: a BPF program'):
                check_bpf(g)
        with tap.test(f'{label}: a module that is refused'):
            check_failed(g)
        with tap.test(f'{label}: nothing is unknown'):
            check_stat(g, without)
        with tap.test(f'{label}: another one, unrecorded'):
            check_off(g, without)
        if smp == 1 and not without:    # or it may be at another place
            with tap.test(f'{label}: another cache, unrecorded'):
                check_cache_off(g)


def main():
    ap = programs.arguments(
        __doc__, short='6.12 only, 10 times instead of 100')
    args, tap = programs.parse(ap, short_smps=programs.SMPS), Tap()
    n = 10 if args.short else 100
    with tempfile.TemporaryDirectory(prefix='ka-modules.') as tmp:
        for without, smps in ((None, args.smp), ('types', args.smp[:1])):
            programs.run_over(
                tap, args.kernel, smps,
                functools.partial(run, n=n, folder=tmp, without=without),
                test=None)
    tap.done()


if __name__ == '__main__':
    main()
