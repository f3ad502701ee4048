#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`ka slab check` finds each damage of a list of free objects, and nothing in
lists that are in order.

Oracle: the module ka_bad_slab, which damages lists one at a time, prints where,
and repairs them; in a cache of its own, and in one of kmalloc(). Without the
module the guest works, and nothing may be found: also with slub_debug=FZPU,
slab_nomerge and init_on_free=1, and in a storm of allocations on 8 vCPUs with a
check each second. The time is measured in a guest of 1 GiB.

usage: test_slab_check.py [--short] [--kernel K]... [--storm MINUTES]
"""
import json
import os
import re
import tempfile
import time

from lib import ftrace, oracle, programs
from lib.btf import Btf
from lib.tap import Tap
from scripts.lib.guest import Guest

KERNELS = '6.12', '5.10', '6.1', '6.18', '7.3', 'arm64-6.12', 'riscv64-6.12'
STANDS_MS = 100     # at most, for a guest of 1 GiB
OPTIONS = 'slub_debug=FZPU', 'slab_nomerge', 'init_on_free=1'
# Damage -> the findings that there must be, the first at the place that the
# module prints; and what the module prints: an object, a slab, or nothing.
DAMAGES = {
    'next': (['outside'], 'object'), 'cycle': (['cycle'], 'object'),
    'live': (['live-on-list', 'count'], 'object'),
    'push': (['live-on-list'], 'object'), 'twice': (['cycle'], 'object'),
    'other': (['wrong-slab'], 'object'), 'head': (['wrong-slab'], 'slab'),
    'count': (['count'], 'slab'), 'cache': (['wrong-cache'], 'slab'),
    'partial': (['length'], None),
}
SETS = 'own', 'kmalloc'
STORM_SECONDS = 1   # from a check to the next
# The kernel's tables of processes, files and names. In a session of its own: a
# signal to a job of the shell at times ends the shell as well.
BUSY = ('touch /tmp/busy; setsid sh -c "while [ -e /tmp/busy ]; do '
        'cat /proc/self/status | cat | cat | cat; '
        'ls -R /proc/1 /sys/kernel/slab | head -c 100000; done" '
        '</dev/null >/dev/null 2>&1 & true')
IDLE = 'rm /tmp/busy'


def check(guest, options=''):
    """Return (findings, the last object) of a check. A vCPU that was stopped in
    user mode or in firmware may not map the kernel."""
    for _ in range(20):
        rows = [json.loads(line) for line in guest.hmp_qmp(
            f'ka slab check -j -n 0 {options}').splitlines()]
        if 'no vCPU maps' not in rows[-1].get('fail', ''):
            break
        time.sleep(0.2)
    assert rows[-1].get('type') == 'slab_check', rows[-1]
    found = [r for r in rows if r['type'] == 'finding']
    assert rows[-1]['findings'] == len(found), rows
    return found, rows[-1]


def check_clean(guest):
    found, last = check(guest)
    assert not found, '\n'.join(f['text'] for f in found)
    assert last['caches'] > 50 and last['free_objects'] > 100, last
    assert last['why'] is None and not last['unreadable'], last
    return last


# --- damages -----------------------------------------------------------------

def parameters(btf):
    """Return the parameters of the module, from the types of the guest."""
    slab = 'slab' if 'slab' in btf.by_name else 'page'
    cache = 'kmem_cache'
    row = {name + '_at': btf.offset(slab, name)
           for name in ('freelist', 'counters', 'slab_cache')}
    row['offset_at'] = btf.offset(cache, 'offset')
    try:
        row['random_at'] = btf.offset(cache, 'random')
    except KeyError:
        pass        # free pointers are plain
    try:
        row['node_at'] = btf.offset(cache, 'node')
    except KeyError:
        row['node_at'] = btf.offset(cache, 'per_node') + \
            btf.offset('kmem_cache_per_node_ptrs', 'node')
    row['nr_partial_at'] = btf.offset('kmem_cache_node', 'nr_partial')
    return ' '.join(f'{k}={v}' for k, v in row.items())


def write(guest, name, text):
    folder = '/sys/module/ka_bad_slab/parameters'
    guest.shell(f'echo {text} >{folder}/{name} || echo KA-FAILED')


def is_placed(found, what, cache, slab, at):
    if not what:
        return found['cache_va'] == f'0x{cache}'
    return found['slab'] == f'0x{slab}' and \
        found[what] == f'0x{at}' and found['cache_va'] == f'0x{cache}'


def make_damage(guest, name, where):
    """Return the addresses that the module prints: cache, slab, place. A kernel
    prints them later than the shell does what follows."""
    line = re.compile(rf'damage={name} cache=(\w+) slab=(\w+) at=(\w+)\n')
    before = len(line.findall(guest.console))
    write(guest, 'in', SETS.index(where))
    write(guest, 'damage', name)
    for _ in range(200):
        lines = line.findall(guest.console)
        if len(lines) > before:
            return lines[-1]
        time.sleep(0.1)
    raise AssertionError(f'the module did not print {name}')


def check_damage(guest, name, where):
    kinds, what = DAMAGES[name]
    try:
        cache, slab, at = make_damage(guest, name, where)
        found, _ = check(guest)
    finally:
        write(guest, 'repair', 1)
    text = '\n'.join(f['text'] for f in found) + f'\nat {at} of {slab}'
    assert sorted(f['kind'] for f in found) == sorted(kinds), text
    first, = (f for f in found if f['kind'] == kinds[0])
    assert is_placed(first, what, cache, slab, at), f'{first}\n{text}'


def check_damages(tap, guest, label, out):
    btf = Btf(ftrace.read_out(out)['btf.vmlinux'])
    guest.shell(f'insmod /share/ka_bad_slab.ko {parameters(btf)}')
    errors = []
    for _ in range(200):
        errors = re.findall(r'ka_bad_slab: set=(\w+) .*error=(-?\d+)\n',
                            guest.console)
        if len(errors) == len(SETS):
            break
        time.sleep(0.1)
    assert errors == [(s, '0') for s in SETS], errors
    check_clean(guest)
    for where in SETS:
        for name in DAMAGES:
            with tap.test(f'{label}: {name}, {where}'):
                check_damage(guest, name, where)
        with tap.test(f'{label}: repaired, {where}'):
            check_clean(guest)
    with tap.test(f'{label}: one cache, and none'):
        assert check(guest, 'ka_bad_slab')[1]['caches'] == 1
        text = guest.hmp_qmp('ka slab check no-such-cache')
        assert text.startswith('ka: "no-such-cache": no cache'), text
        check_off(guest)


def check_off(guest):
    """While recording is off, an object that is freed is live in the map."""
    guest.hmp_qmp('ka off')
    guest.shell('ls -R /sys/class >/dev/null')
    found, last = check(guest)
    assert not found and last['why'] == 'recording is off', (found, last)


def run(tap, kernel, modules):
    with tempfile.TemporaryDirectory(prefix='ka-slab.') as tmp:
        out = os.path.join(tmp, 'out')
        share = oracle.make_share(os.path.join(tmp, 'share'),
                                  ['oracle-state.sh'], kernel, modules=modules)
        with Guest(kernel=kernel, smp=2, run='oracle-state', n=1, share=share,
                   out=out, cmdline='no_hash_pointers', end='shell',
                   timeout=600, name=f'slab-{kernel}') as g:
            assert g.wait_done() == 0, 'the workload failed'
            g.collect()
            with tap.test(f'{kernel}: a guest that works'):
                check_working(tap, g, kernel)
            if modules:
                check_damages(tap, g, kernel, out)
            else:
                tap.skip(f'{kernel}: damages', 'no headers for the module')


def check_working(tap, guest, label, times=10):
    """Check while processes come and go. Note the time that the VM stands."""
    guest.shell(BUSY)
    rows = []
    for _ in range(times):
        rows.append(check_clean(guest))
        time.sleep(0.2)
    ms = sorted(r['host_us'] / 1000 for r in rows)[len(rows) // 2]
    last = rows[-1]
    tap.figures('slab-check', kernel=label, ms=round(ms, 1),
                caches=last['caches'], slabs=last['slabs'],
                objects=last['free_objects'],
                transit=max(r['transit'] for r in rows),
                unsure=max(r['unsure'] for r in rows))
    guest.shell(IDLE)


def run_options(tap, kernel):
    for words in OPTIONS:
        label = f'{kernel}, {words}'
        with tap.test(f'{label}: nothing is found'):
            with Guest(kernel=kernel, smp=2, run='work', end='shell',
                       cmdline=words, timeout=600,
                       name=f'slab-{words.split("=")[0]}') as g:
                assert g.wait_done() == 0
                check_working(tap, g, label)


def run_storm(tap, kernel, minutes):
    with tempfile.TemporaryDirectory(prefix='ka-slab.') as tmp, \
            tap.test(f'{kernel}: {minutes:g} minutes of the storm'):
        share = oracle.make_share(os.path.join(tmp, 'share'), ['nothing.sh'],
                                  kernel, modules=True)
        with Guest(kernel=kernel, smp=8, run='nothing', end='shell',
                   share=share, timeout=600, name='slab-storm') as g:
            assert g.wait_done() == 0
            g.shell('insmod /share/ka_stress.ko && '
                    'echo 1 >/sys/module/ka_stress/parameters/run')
            end = time.monotonic() + 60 * minutes
            transit = checks = 0
            while time.monotonic() < end:
                transit = max(transit, check_clean(g)['transit'])
                checks += 1
                time.sleep(STORM_SECONDS)
            text = g.shell('cat /sys/module/ka_stress/parameters/done')
            done = sum(int(n) for n in re.findall(r'^\w+ (\d+)$', text, re.M))
            tap.figures('slab-storm', kernel=kernel, checks=checks,
                        transit=transit, done=done)
            assert done > 10000, text


def main():
    ap = programs.arguments(__doc__, short='6.12 only, without the storm and '
                            'options of the kernel', smp=False)
    ap.add_argument('--storm', type=float, default=10, metavar='MINUTES',
                    help='0: no storm (default 10)')
    args = programs.parse(ap, KERNELS)
    tap = Tap()
    for kernel in args.kernel:
        run(tap, kernel, oracle.can_build_modules(kernel))
    if not args.short:
        run_options(tap, args.kernel[0])
    if not args.short and args.storm:
        run_storm(tap, args.kernel[0], args.storm)
    tap.done()


if __name__ == '__main__':
    main()
