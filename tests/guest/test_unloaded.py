#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What modules leave behind when they are unloaded: a leak scan and `ka leak
module` report each object that is lost, though its address stays in per-CPU
memory that was given back, and none that the kernel's own tables keep.

Oracle: the module ka_lost prints what it loses; the kernel's own modules lose
nothing, except those of LEAKY.

usage: test_unloaded.py [--short] [--kernel K]... [--smp N]...
"""
import json
import os
import re
import tempfile
import time

from lib import oracle, programs
from lib.tap import Tap
from scripts.lib.guest import Guest

OTHERS = 20         # leaks of the kernel's own, and what rules do not know
MODULES = ('8021q', 'dummy', 'bridge', 'veth', 'macvlan', 'bonding', 'vxlan',
           'tun', 'nf_tables', 'sctp', 'xfs', 'nfsd', 'overlay', 'loop', 'zram',
           'null_blk', 'dm_mod', 'raid1')
SHORT_MODULES = '8021q', 'dummy', 'bridge', 'veth', 'xfs', 'nfsd', 'null_blk'
# 6.12.117 loses a hardware queue context with each load: slabinfo agrees.
LEAKY = ('null_blk',)


def rows(text):
    return [json.loads(line) for line in text.splitlines()]


def stop(guest):
    """Stop the VM while a vCPU maps the kernel."""
    for _ in range(20):
        guest.qmp('stop')
        if 'no vCPU maps' not in guest.hmp_qmp('ka refs 0'):
            return
        guest.qmp('cont')
        time.sleep(0.2)


def planted(guest):
    """Parse the console. A program that read the kernel's log would get pages
    that were a stack before, with old addresses in them."""
    return {int(va, 16): kind for kind, va in re.findall(
        r'ka_lost: ([\w-]+)=([0-9a-f]{16})', guest.console)}


def scan(guest):
    """Return the addresses of all leaked blocks."""
    found = rows(guest.hmp_qmp('ka leak scan -a -j -n 0'))
    assert 'fail' not in found[-1], found[-1]
    assert found[-1]['leaks'] == len(found) - 1, found[-1]
    return {int(row['va'], 16) for row in found[:-1]}


def check_scan(tap, guest, lost):
    lost = {va: kind for va, kind in lost.items() if 'page' not in kind}
    assert len(lost) >= 6 + 2 + 23 + 1, lost
    leaks = scan(guest)
    missed = {va: kind for va, kind in lost.items() if va not in leaks}
    for va, kind in missed.items():
        tap.note(f'{kind}: ' + guest.hmp_qmp(f'ka refs {va:x} -s'))
    others = leaks - set(lost)
    for va in others:
        tap.note(guest.hmp_qmp(f'ka {va:x} -s'))
    tap.figures('lost', found=len(lost) - len(missed), of=len(lost),
                others=len(others))
    assert not missed, missed
    assert len(others) <= OTHERS, f'{len(others)} others'


def check_running(guest):
    """A scan of a running VM pauses it; the guest goes on afterwards."""
    text = guest.hmp_qmp('ka leak scan -n 1')
    while 'no vCPU maps' in text:
        time.sleep(0.2)
        text = guest.hmp_qmp('ka leak scan -n 1')
    assert 'leaked blocks of' in text, text
    assert guest.qmp('query-status')['running']


def check_lost_module(tap, guest, lost):
    """Each object of ka_lost is a leak of the module, pages included."""
    head, *found = rows(guest.hmp_qmp('ka leak module ka_lost -a -j -n 0'))
    leaks = {int(row['va'], 16) for row in found if 'leak' in row}
    for row in found:
        if 'kept' in row:
            tap.note(f"{lost.get(int(row['va'], 16))}: {row['kept']} "
                     f"{row.get('kept_by')} {row.get('kept_in')}")
    tap.figures('lost_by_module', found=len(leaks & set(lost)), of=len(lost),
                kept=head['kept'])
    for va in set(lost) - leaks:
        tap.note(guest.hmp_qmp(f'ka {va:x} --history -s -n 5'))
    assert leaks == set(lost), (
        {k: v for k, v in lost.items() if k not in leaks}, leaks - set(lost),
        head)
    assert head['leaked'] == len(leaks) and head['pages'] == 1, head


def check_clean_modules(tap, guest, modules):
    text = guest.hmp_qmp('ka leak module -a -j -s -n 0')
    leaked, name = {}, None
    for row in rows(text):
        if row['type'] == 'module':
            name = row['name']
            if name != 'ka_lost':
                leaked[name] = leaked.get(name, 0) + row['leaked']
                tap.note(f"{name}: {row['blocks']} left, {row['kept']} kept, "
                         f"{row['leaked']} leaked")
        elif 'leak' in row and name != 'ka_lost':
            tap.note(f"{name}: leak of {' '.join(row['alloc_symbols'][:6])}")
        else:
            assert name == 'ka_lost' or row.get('kept_by') or \
                row['kept'] == 'otherwise', row
    assert len(leaked) >= len(modules), sorted(leaked)
    wrong = {k: n for k, n in leaked.items() if n and k not in LEAKY}
    assert not wrong, wrong


def run(tap, kernel, smp, label, modules):
    with tempfile.TemporaryDirectory(prefix='ka-unloaded.') as tmp:
        share = oracle.make_share(os.path.join(tmp, 'share'), ['lost.sh'],
                                  kernel, modules=True)
        oracle.add_drivers(share, kernel, *modules)
        with Guest(kernel=kernel, smp=smp, share=share, run='lost',
                   cmdline='no_hash_pointers', end='shell', timeout=300,
                   plugin_opts='pages=on',
                   name=f'unloaded-{kernel}-{smp}') as g:
            with tap.test(f'{label}: runs'):
                assert g.wait_done() == 0
            lost = planted(g)
            with tap.test(f'{label}: a scan pauses a running VM'):
                check_running(g)
            stop(g)
            with tap.test(f'{label}: all that was lost is found'):
                check_scan(tap, g, lost)
            with tap.test(f'{label}: and is a leak of its module'):
                check_lost_module(tap, g, lost)
            with tap.test(f'{label}: modules that lose nothing'):
                check_clean_modules(tap, g, modules)


def main():
    ap = programs.arguments(__doc__, short='6.12, two vCPUs, few modules')
    args, tap = programs.parse(ap, short_smps=(2,)), Tap()
    modules = SHORT_MODULES if args.short else MODULES
    programs.run_over(
        tap, args.kernel, args.smp, lambda tap, kernel, smp, label:
        run(tap, kernel, smp, label, modules), test=None)
    tap.done()


if __name__ == '__main__':
    main()
