#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""With access=on, guests that are in order have no error: from their boot on,
with files, processes, network, and modules that are loaded and unloaded; and
while threads on all vCPUs drop the last references of blocks at the same time.
The map agrees with each access that is suspected, and the functions whose
accesses are explained are on a list (lib/explained.txt). Accesses that are
wrong, on four vCPUs at once, are counted one by one. Oracles: a kernel of the
distribution is in order; the list, whose functions somebody has read; the
module ka_vcpus, which knows what it does.

usage: test_access_silence.py [--short] [--kernel K]... [--smp N]... [--runs N]
                              [--size N] [--case boots|many]...
"""
import os
import re
import tempfile
import time
from collections import Counter

from lib import explained, oracle, programs, stale
from lib.tap import Tap
from scripts.lib.guest import Guest
from scripts.lib.prepared import kernel_arch

CASES = 'boots', 'many'
KERNELS = '6.12', '6.1', '6.18', '7.3', 'arm64-6.12', 'riscv64-6.12'
MODULES = ('loop', 'dummy', 'veth', 'bridge', 'crc32c_generic', 'ext4', 'vfat',
           'nls_cp437', 'nls_ascii', 'overlay', 'virtio_pci', 'virtio_net')
# What the workload prints when it was done, in each round.
DONE = 'files on ext4', 'files on vfat', 'files on overlay', 'ping over veth'
DATA = 256 << 10        # bytes that the guest gets from the network
CARD = 'virtio-net-pci,netdev=net,romfile='
CHECKS = 'access=verify'
ZERO = ('access.disagreed', 'access.unseen_alloc', 'access.dropped',
        'access.missing', 'access.no_memory')
COUNTED = 'events.checked', *(f'access.{reason}' for reason in
                              (*explained.REASONS, 'page_gone', 'no_list'))
SHARED = 20000          # blocks that each pair of vCPUs shares


# --- boots -------------------------------------------------------------------

def check(guest):
    """Nothing is reported, and the map agrees with the shadow."""
    errors, stat = guest.hmp_qmp('ka error -n 20 -s -v'), guest.stat()
    assert errors.startswith('no errors'), errors
    bad = {name: stat[name] for name in ZERO if stat.get(name)}
    assert not bad, bad
    return stat


def check_network(console):
    """QEMU without user networking has no card."""
    assert 'access-silence: no card' in console or (
        'access-silence: fetched' in console and
        f'access-silence: echoed {DATA}' in console), console


def check_work(console, share, rounds):
    """Each round used all file systems, and loaded and unloaded all modules."""
    n = len(os.listdir(os.path.join(share, 'modules')))
    for text in (*DONE, f'loaded {n}', f'unloaded {n}'):
        found = re.findall(f'^access-silence: {text}\\b', console, re.M)
        assert len(found) == rounds, f'{text}: {len(found)} of {rounds}\n' + \
            console[-4000:]


def run(tap, args, share, kernel, smp):
    """Boot once, and run the workload. Return what `ka access -v` says, and
    figures."""
    net = f'user,id=net,restrict=on,tftp={share},' \
          'guestfwd=tcp:10.0.2.100:7777-cmd:cat'
    with Guest(kernel=kernel, smp=smp, run='access-silence', n=args.size,
               share=share, plugin_opts=CHECKS, timeout=900,
               qemu=['-netdev', net, '-device', CARD],
               name=f'silence-{kernel}-{smp}') as g:
        assert g.wait_done() == 0
        text = g.hmp_qmp('ka access -v')
        tap.note(text)
        assert 'checked since' in text, text
        stat, console = check(g), g.settled_console()
        check_network(console)
        check_work(console, share, args.size)
    return text, {name: stat[name] for name in COUNTED}


def make_share(folder, kernel):
    """Fill /share, and the folder of the TFTP server."""
    share = oracle.make_share(folder, ['access-silence.sh'], kernel)
    oracle.add_drivers(share, kernel, *MODULES)
    with open(os.path.join(share, 'data'), 'wb') as f:
        f.write(os.urandom(DATA))
    return share


def boots(tap, args, kernel, tmp):
    """Return (architecture, the functions of explained accesses)."""
    share = make_share(os.path.join(tmp, kernel), kernel)
    known, arch = explained.read(), kernel_arch(kernel)
    seen = set()
    for smp in args.smp:
        total, begin = Counter(), time.monotonic()
        for i in range(args.runs):
            label = f'{kernel}, {smp} vCPU: boot {i + 1} of {args.runs}'
            text, start = '', time.monotonic()
            with tap.test(f'{label} has no error'):
                text, figures = run(tap, args, share, kernel, smp)
                total.update(figures, clean=1)
            tap.note(f'{label} took {time.monotonic() - start:.0f} s')
            new = explained.new(text, arch, known)
            seen |= set(explained.seen(text))
            tap.ok(text and not new, f'{label}: the functions of explained '
                   'accesses are on the list', '\n'.join(new))
        tap.figures('access-silence', kernel=kernel, smp=smp, boots=args.runs,
                    seconds=round(time.monotonic() - begin), **total)
    tap.note(f'{kernel}: on the list, but not seen: ' +
             ' '.join(explained.unseen(seen, arch, known)))
    return arch, seen


def all_boots(tap, args, tmp):
    rows = {}
    for kernel in args.kernel:
        arch, seen = boots(tap, args, kernel, tmp)
        rows.setdefault(arch, set()).update(seen)
    if set(args.kernel) >= set(KERNELS):
        never = explained.never(rows, explained.read())
        tap.ok(not never, 'each function on the list was seen',
               '\n'.join(never))


# --- many vCPUs --------------------------------------------------------------

def shared(guest, size):
    stale.run_part(guest, 'share', SHARED * size)
    check(guest)


def many(tap, args, kernel, tmp):
    if not oracle.can_build_modules(kernel):
        tap.skip(f'{kernel}: many vCPUs', 'the archive has no headers for it')
        return
    share = oracle.make_share(os.path.join(tmp, kernel + '-many'), [], kernel,
                              modules=True)
    with Guest(kernel=kernel, smp=stale.READERS, end='shell', share=share,
               plugin_opts=CHECKS, timeout=900, cmdline='nosoftlockup',
               name=f'silence-many-{kernel}') as g:
        g.wait_marker('KA-END')
        g.shell('insmod /share/ka_vcpus.ko')
        with tap.test(f'{kernel}: threads that drop references have no error'):
            shared(g, args.size)
        with tap.test(f'{kernel}: {stale.TIMES} wrong accesses of each thread '
                      f'are counted {stale.TIMES}'):
            stale.check(g, stale.READERS)


def main():
    ap = programs.arguments(__doc__, short='6.12 on 1 vCPU, one boot')
    ap.add_argument('--runs', type=int, help='boots of each')
    ap.add_argument('--size', type=int, help='rounds of the workload')
    ap.add_argument('--case', action='append', choices=CASES,
                    help='only the boots, or only many vCPUs')
    args = programs.parse(ap, kernels=KERNELS)
    args.case = args.case or CASES
    args.runs = args.runs or (1 if args.short else 10)
    args.size = args.size or (1 if args.short else 4)
    tap = Tap()
    with tempfile.TemporaryDirectory(prefix='ka-silence.') as tmp:
        if 'boots' in args.case:
            all_boots(tap, args, tmp)
        for kernel in args.kernel if 'many' in args.case else ():
            with tap.test(f'{kernel}: the module of many vCPUs runs'):
                many(tap, args, kernel, tmp)
    tap.done()


if __name__ == '__main__':
    main()
