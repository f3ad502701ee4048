#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Each leak that kmemleak reports, ka reports too, with the same backtrace.

Oracle: kmemleak, the kernel's own detector, on a kernel that is built with it.
The module ka_leaks loses twenty objects; kmemleak scans until it reports
nothing new; then the VM is stopped and ka scans.

usage: test_kmemleak.py [--kernel K] [--smp N]... [--objects N]
"""
import argparse
import os
import re
import tempfile
import time

from lib import oracle, programs
from lib.tap import Tap
from scripts.lib.guest import Guest
from test_leaks import OTHERS, planted, scan, stop

KERNEL = 'kmemleak-6.12'
FILE = '/sys/kernel/debug/kmemleak'
MIN_AGE_S = 5       # younger blocks it does not report
SCANS = 5           # at most
SHOWN = 'hash'      # as both report it
HEAD = re.compile(r'^unreferenced object(?: \(\w+\))? 0x([0-9a-f]+) ', re.M)


def reports(text):
    """Parse a report in kmemleak's format; return {address: text}."""
    heads = list(HEAD.finditer(text))
    ends = [h.start() for h in heads[1:]] + [len(text)]
    return {int(h[1], 16): text[h.start():end]
            for h, end in zip(heads, ends)}


def uptime(guest):
    return float(guest.shell('cat /proc/uptime').split()[0])


def kmemleak_scan(guest):
    """Run one scan of kmemleak; return its seconds (in the guest, on the
    host)."""
    before, began = uptime(guest), time.monotonic()
    guest.shell(f'echo scan > {FILE}', timeout=600)
    took = time.monotonic() - began
    return uptime(guest) - before, took


def kmemleak_reports(tap, guest):
    """Scan until a scan reports nothing new; return the report. The first time
    that kmemleak sees an object it only stores its checksum."""
    guest.shell('mount -t debugfs debugfs /sys/kernel/debug')
    guest.shell(f'sleep {MIN_AGE_S + 1}')
    found, times = None, []
    for n in range(SCANS):
        times.append(kmemleak_scan(guest))
        before, found = found, reports(guest.shell(f'cat {FILE}', 300))
        tap.note(f'kmemleak, scan {n + 1}: {len(found)} blocks, '
                 f'{times[-1][0]:.1f} s of guest time, {times[-1][1]:.1f} s')
        if n and found.keys() == before.keys():
            break
    return found, times


def frames(report):
    """Return the backtrace of a report in one line. ka prints addresses too."""
    text = report.partition('backtrace')[2]
    return ' '.join(re.findall(r'^ {4}(?:\[<\w+>\] )?(\S+)', text, re.M)[:6])


def backtrace(report):
    """Return its lines without the addresses that ka prints before symbols."""
    text = report.partition('backtrace')[2]
    return re.findall(r'^ {4}(?:\[<\w+>\] )?(\S.*)$', text, re.M)


def check_same_backtraces(theirs, ours):
    """Compare backtraces. kmemleak's begin in the allocator, and have no name
    for code that was freed after init."""
    n = 0
    for va in sorted(set(theirs) & set(ours)):
        a, b = backtrace(theirs[va]), backtrace(ours[va])
        assert b and b[0] in a, (a, b)
        a = a[a.index(b[0]):]
        pairs = [(x, y) for x, y in zip(a, b) if not x.startswith('0x')]
        assert all(x == y for x, y in pairs), (a, b)
        n += len(pairs)
    return n


def print_table(tap, lost, theirs, ours):
    tap.note('| lost object | kmemleak | ka |')
    tap.note('|---|---|---|')
    for va, kind in lost.items():
        words = ['yes' if va in found else 'no' for found in (theirs, ours)]
        tap.note(f"| {kind} | {' | '.join(words)} |")
    for what, n in (('of the twenty', [len(set(found) & set(lost))
                                       for found in (theirs, ours)]),
                    ('others', [len(set(found) - set(lost))
                                for found in (theirs, ours)])):
        tap.note(f'| {what} | {n[0]} | {n[1]} |')
    for name, found in (('kmemleak', theirs), ('ka', ours)):
        others = [va for va in found if va not in lost]
        tap.note(f'{len(others)} others of {name}')
        for va in others:
            tap.note(f'  {va:016x} {frames(found[va])}')
        tap.note(f'{name}, {SHOWN}:')
        tap.note(''.join(found[va] for va, kind in lost.items()
                         if kind == SHOWN and va in found))


def check_within(guest, theirs, ours):
    missed = [va for va in theirs if va not in ours]
    why = ''.join(f'{va:016x} {frames(theirs[va])}\n'
                  f'{guest.hmp_qmp(f"ka refs {va:x} -s -n 10")}'
                  for va in missed)
    assert not missed, f'ka does not report\n{why}'


def check_ours(lost, ours):
    missed = [kind for va, kind in lost.items() if va not in ours]
    assert not missed, f'not found: {missed}'
    assert len(ours) - len(lost) <= OTHERS, len(ours)


def run(tap, args, smp, label):
    with tempfile.TemporaryDirectory(prefix='ka-kmemleak.') as tmp:
        share = oracle.make_share(os.path.join(tmp, 'share'), ['leaks.sh'],
                                  args.kernel, modules=True)
        with Guest(kernel=args.kernel, smp=smp, share=share, run='leaks',
                   n=args.objects, timeout=600, cmdline='no_hash_pointers',
                   end='shell', name=f'kmemleak-{smp}') as g:
            with tap.test(f'{label}: runs'):
                assert g.wait_done() == 0
            lost = planted(g)
            with tap.test(f'{label}: kmemleak'):
                theirs, times = kmemleak_reports(tap, g)
            stop(g)
            ours = reports(g.hmp_qmp('ka leak scan --format kmemleak'))
            _, sums = scan(g)
            print_table(tap, lost, theirs, ours)
            with tap.test(f'{label}: ka reports what kmemleak does'):
                check_within(g, theirs, ours)
            with tap.test(f'{label}: the same backtraces'):
                n = check_same_backtraces(theirs, ours)
                tap.note(f'{n} frames are equal to the letter')
            with tap.test(f'{label}: ka reports all that was lost'):
                check_ours(lost, ours)
            tap.figures('kmemleak', kernel=args.kernel, smp=smp,
                        kmemleak=len(set(lost) & set(theirs)),
                        kmemleak_others=len(set(theirs) - set(lost)),
                        kmemleak_guest_s=round(min(t for t, _ in times), 1),
                        kmemleak_host_s=round(min(t for _, t in times), 1),
                        ka=len(set(lost) & set(ours)),
                        ka_others=len(set(ours) - set(lost)),
                        ka_ms=sums['host_us'] // 1000, blocks=sums['blocks'],
                        read_mib=sums['read_bytes'] >> 20)


def main():
    ap = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    ap.add_argument('--kernel', default=KERNEL)
    ap.add_argument('--smp', action='append', type=int)
    ap.add_argument('--objects', type=int, default=100000)
    args = ap.parse_args()
    tap = Tap()
    programs.run_over(
        tap, [args.kernel], args.smp or programs.SMPS,
        lambda tap, kernel, smp, label: run(tap, args, smp, label), test=None)
    tap.done()


if __name__ == '__main__':
    main()
