#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A leak scan reports all objects that a module loses, and few others; `ka
refs` prints who refers to an object.

Oracle: the module ka_leaks. It loses twenty objects (on riscv64 one more), each
in another way, among a hundred thousand that it keeps, and prints their
addresses.

usage: test_leaks.py [--short] [--kernel K]... [--smp N]... [--objects N]
                     [--append WORDS]
"""
import json
import os
import re
import tempfile
import time

from lib import oracle, programs
from lib.gdbcli import Gdb
from lib.pause import pause
from lib.tap import Tap
from scripts.lib.guest import Guest
from scripts.lib.prepared import kernel_arch

KERNELS = '6.12', '6.1', 'arm64-6.12', 'riscv64-6.12'
LOST = 20
# On riscv64 there is one whose address stays in a task's thread_info.
REGISTERS = 'registers'
OTHERS = 20         # leaks of the kernel's own, and what rules do not know
SCAN_MIB_S = 1024   # of guest memory, on one core
REFS_S = 1.0        # of 1 GiB
EVERY_S = 2         # from a scan to the next while the VM runs
MOMENTS = 20        # of a busy guest
# A few tasks come and go: their stacks, /proc files and pids wait for grace
# periods.
BUSY = ('(while :; do cat /proc/self/status | cat | cat | cat | cat | cat; '
        'done) >/dev/null 2>&1 & true')


def rows(text):
    return [json.loads(line) for line in text.splitlines()]


def scan(guest, options=''):
    """Run a scan; return (rows of leaks, its figures)."""
    found = rows(guest.hmp_qmp('ka leak scan -j -s -n 0 ' + options))
    assert 'fail' not in found[-1], found[-1]
    return found[:-1], found[-1]


def unreferenced(guest, command='scan'):
    """Return {address: backtrace}, parsed as scripts parse kmemleak's
    report."""
    text = guest.hmp_qmp(f'ka leak {command} --format kmemleak')
    leaks = {}
    for part in text.split('unreferenced object 0x')[1:]:
        leaks[int(part[:16], 16)] = re.findall(r'>\] (.+)', part)
    return leaks


def planted(guest):
    return {int(va, 16): kind for kind, va in
            re.findall(r'ka_leaks: ([\w-]+)=([0-9a-f]{16})', guest.console)}


def name_holders(tap, guest, leaks, lost):
    """If a leak was missed, print the words that refer to it."""
    for va in sorted(set(lost) - set(leaks)):
        for row in refs(guest, va)[0]:
            tap.note(f'{lost[va]} {va:x}: {str(row)[:300]}')


def check_found(tap, leaks, lost):
    assert len(lost) == LOST + (REGISTERS in lost.values()), lost
    missed = {kind for va, kind in lost.items() if va not in leaks}
    assert not missed, f'not found: {missed}'
    others = {va: frames for va, frames in leaks.items() if va not in lost}
    tap.note(f'{len(others)} others')
    for va, frames in others.items():
        tap.note(f'  {va:016x} {", ".join(frames[:6])}')
    assert len(others) <= OTHERS, f'{len(others)} others'
    ours = [f for f in others.values() if any('[ka_leaks]' in x for x in f)]
    assert not ours, f'the module holds these: {ours}'


def cpu_of(guest, fn):
    """Call FN while no vCPU runs; return (its result, CPU seconds of QEMU)."""
    before = guest.cpu_seconds()
    result = fn()
    return result, max(guest.cpu_seconds() - before, 0.01)


def check_speed(tap, kernel, sums, seconds):
    speed = sums['guest_bytes'] / 2**20 / seconds
    tap.figures('leaks', kernel=kernel, guest_mib_per_s=round(speed),
                read_mib=sums['read_bytes'] >> 20, blocks=sums['blocks'],
                cpu_ms=round(seconds * 1000), ms=sums['host_us'] // 1000)
    assert speed >= SCAN_MIB_S, f'{speed:.0f} MiB of guest memory a second'


def check_clear(guest, n):
    text = guest.hmp_qmp('ka leak dismiss')
    assert text.startswith(f'{n} blocks'), text
    leaks, sums = scan(guest)
    assert not leaks and sums['cleared'] == n, (leaks, sums)


def refs(guest, va):
    found = rows(guest.hmp_qmp(f'ka refs {va:x} -j -s -n 0'))
    # freelist: free objects, or objects that were allocated from it
    return [r for r in found[:-1] if r.get('place') != 'freelist'], found[-1]


def check_refs(guest, lost):
    """Check `ka refs` for lost objects that refer to each other, and a task."""
    by_kind = {kind: va for va, kind in lost.items()}
    (found, _), seconds = cpu_of(guest, lambda: refs(guest,
                                                     by_kind['cycle-b']))
    # an empty list points to itself
    owners = [int(r.get('va', '0'), 16) for r in found]
    assert owners == [by_kind['cycle-a']] + [by_kind['cycle-b']] * 2, found
    assert [r['ref'] for r in found] == ['start'] + ['interior'] * 2, found
    assert refs(guest, by_kind['kmalloc-4000'])[0] == []
    assert seconds <= REFS_S, f'{seconds} s'
    init = guest.hmp_qmp('ka refs init_task -j -s -n 0')
    assert '"ref_member":"real_parent"' in init, init[-2000:]
    assert any(r.get('symbol', '').startswith('init_task+')
               for r in rows(init)), init[-2000:]


def check_registers(guest, lost):
    """Registers that an exception saved in thread_info are no reference, but
    `ka refs` prints them."""
    va, = (va for va, kind in lost.items() if kind == REGISTERS)
    found, _ = refs(guest, va)
    assert {'thread_info.a1', 'thread_info.a2'} <= {
        r.get('ref_member') for r in found}, found


def check_abandoned(guest, n):
    """Abandon a scan: the VM and the next scan are not affected."""
    guest.qmp('cont')
    gdb = Gdb(guest)
    gdb.stop()
    gdb.abandon('monitor ka leak scan')
    pause(guest)
    leaks, sums = scan(guest)
    assert not leaks and sums['cleared'] == n, (leaks, sums)


def check_busy(guest):
    """Scan while tasks come and go: few objects in use are reported."""
    guest.qmp('cont')
    guest.shell(BUSY)
    for _ in range(MOMENTS):
        time.sleep(0.1)
        pause(guest)
        leaks, _ = scan(guest)
        assert not leaks, [' '.join(r['alloc_symbols'][:4]) for r in leaks]
        guest.qmp('cont')


def check_running(guest):
    """Searches pause a running VM."""
    for line in 'ka leak scan -n 1', 'ka refs init_task -n 1':
        text = guest.hmp_qmp(line)
        assert ' MiB searched in ' in text or 'no vCPU maps' in text, text
        assert guest.qmp('query-status')['running']


def scans_so_far(guest):
    sums = rows(guest.hmp_qmp('ka stat -j'))[-1]
    return sums['leak.scans']


def check_by_itself(tap, guest, lost):
    """With leak-scan= and a running VM, a later scan reports all lost objects.
    The first scan may be too early."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        leaks = unreferenced(guest, 'list')
        if set(lost) <= set(leaks):
            break
        time.sleep(0.5)
    check_found(tap, leaks, lost)
    text = guest.hmp_qmp('ka leak scan --every 0')
    assert text.startswith('no more periodic scans'), text
    n = scans_so_far(guest)
    assert n > 0
    time.sleep(EVERY_S + 1.5)
    assert scans_so_far(guest) == n


def run(tap, args, kernel, smp, label):
    with tempfile.TemporaryDirectory(prefix='ka-leaks.') as tmp:
        share = oracle.make_share(os.path.join(tmp, 'share'), ['leaks.sh'],
                                  kernel, modules=True)
        with Guest(kernel=kernel, smp=smp, share=share, run='leaks',
                   n=args.objects, timeout=600,
                   cmdline=f'no_hash_pointers {args.append}',
                   plugin_opts=f'leak-scan={EVERY_S}',
                   end='shell', name=f'leaks-{kernel}-{smp}') as g:
            with tap.test(f'{label}: runs'):
                assert g.wait_done() == 0
            with tap.test(f'{label}: a running VM is paused'):
                check_running(g)
            lost = planted(g)
            with tap.test(f'{label}: scans by itself'):
                check_by_itself(tap, g, lost)
            pause(g)
            with tap.test(f'{label}: leaks'):
                found = unreferenced(g)
                name_holders(tap, g, found, lost)
                check_found(tap, found, lost)
            with tap.test(f'{label}: speed'):
                (_, sums), seconds = cpu_of(g, lambda: scan(g))
                assert not sums['missing'], sums
                check_speed(tap, kernel, sums, seconds)
            with tap.test(f'{label}: stacks are roots by default'):
                without = scan(g, '--no-stacks')[1]
                assert without['leaks'] > sums['leaks'], f'{without}, {sums}'
                scan(g)
            with tap.test(f'{label}: clear'):
                check_clear(g, sums['leaks'])
            with tap.test(f'{label}: refs'):
                check_refs(g, lost)
            if kernel_arch(kernel) == 'riscv64':
                with tap.test(f'{label}: saved registers are no references'):
                    check_registers(g, lost)
            with tap.test(f'{label}: Ctrl-C'):
                check_abandoned(g, sums['leaks'])
            with tap.test(f'{label}: a busy guest leaks nothing'):
                check_busy(g)


def main():
    ap = programs.arguments(__doc__, short='one vCPU only')
    ap.add_argument('--objects', type=int, default=100000)
    ap.add_argument('--append', default='', metavar='WORDS',
                    help='more words for the kernel command line')
    args, tap = programs.parse(ap, KERNELS, KERNELS), Tap()
    programs.run_over(
        tap, args.kernel, args.smp, lambda tap, kernel, smp, label:
        run(tap, args, kernel, smp, label), test=None)
    tap.done()


if __name__ == '__main__':
    main()
