#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A leak scan finds each object that was lost with the unload of a module,
though its address stays in per-CPU memory that was given back.

Oracle: the module ka_lost prints what it loses.

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


def planted(text):
    return {int(va, 16): kind for kind, va in
            re.findall(r'ka_lost: ([\w-]+)=([0-9a-f]{16})', text)}


def scan(guest):
    """Return {address: row} of all leaked blocks."""
    text = guest.hmp_qmp('ka leak scan --format kmemleak -n 0')
    leaks = re.findall(r'unreferenced object 0x([0-9a-f]+)', text)
    assert leaks, text
    return {int(va, 16) for va in leaks}


def check_lost(tap, guest):
    lost = planted(guest.shell("dmesg | grep 'ka_lost: '"))
    assert len(lost) >= 6 + 2 + 23 + 1, lost
    stop(guest)
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


def run(tap, kernel, smp, label):
    with tempfile.TemporaryDirectory(prefix='ka-unloaded.') as tmp:
        share = oracle.make_share(os.path.join(tmp, 'share'), ['lost.sh'],
                                  kernel, modules=True)
        with Guest(kernel=kernel, smp=smp, share=share, run='lost',
                   cmdline='no_hash_pointers', end='shell', timeout=300,
                   name=f'unloaded-{kernel}-{smp}') as g:
            with tap.test(f'{label}: runs'):
                assert g.wait_done() == 0
            with tap.test(f'{label}: all that was lost is found'):
                check_lost(tap, g)


def main():
    ap = programs.arguments(__doc__, short='6.12 with two vCPUs only')
    args, tap = programs.parse(ap, short_smps=(2,)), Tap()
    programs.run_over(
        tap, args.kernel, args.smp, lambda tap, kernel, smp, label:
        run(tap, kernel, smp, label), test=None)
    tap.done()


if __name__ == '__main__':
    main()
