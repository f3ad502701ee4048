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
"""
import json
import os
import re
import tempfile

from lib import explained, oracle, programs
from lib.tap import Tap
from scripts.lib.guest import Guest
from scripts.lib.prepared import kernel_arch

KERNELS = '6.12', '6.1', '6.18', '7.3', 'arm64-6.12', 'riscv64-6.12'
MODULES = 'loop', 'dummy', 'ext4', 'vfat', 'virtio_pci', 'virtio_net'
DATA = 256 << 10        # bytes that the guest gets from the network
CARD = 'virtio-net-pci,netdev=net,romfile='
WORDS = 'no_timer_check'
READERS = 4             # vCPUs whose threads read freed objects
STALE = 1000            # times that each of them does
SHARED = 20000          # blocks that each pair of vCPUs shares


# --- boots -------------------------------------------------------------------

def check(guest):
    """Nothing is reported, and the map agrees with the shadow."""
    errors, stat = guest.hmp_qmp('ka error -n 20 -s -v'), guest.stat()
    assert errors.startswith('no errors'), errors
    assert not stat['access.disagreed'], stat['access.disagreed']
    return stat


def check_network(console):
    """QEMU without user networking has no card."""
    assert 'access-silence: no card' in console or (
        'access-silence: fetched' in console and
        f'access-silence: echoed {DATA}' in console), console


def run(tap, args, share, kernel, smp):
    """Boot once, and run the workload."""
    net = f'user,id=net,restrict=on,tftp={share},' \
          'guestfwd=tcp:10.0.2.100:7777-cmd:cat'
    with Guest(kernel=kernel, smp=smp, run='access-silence', n=args.size,
               share=share, plugin_opts='access=on', timeout=900, cmdline=WORDS,
               qemu=['-netdev', net, '-device', CARD],
               name=f'silence-{kernel}-{smp}') as g:
        assert g.wait_done() == 0
        text = g.hmp_qmp('ka access -v')
        tap.note(text)
        assert 'checked since' in text, text
        check(g)
        check_network(g.settled_console())
    return text


def make_share(folder, kernel):
    """Fill /share, and the folder of the TFTP server."""
    share = oracle.make_share(folder, ['access-silence.sh'], kernel)
    oracle.add_drivers(share, kernel, *MODULES)
    with open(os.path.join(share, 'data'), 'wb') as f:
        f.write(os.urandom(DATA))
    return share


def boots(tap, args, kernel, tmp):
    share = make_share(os.path.join(tmp, kernel), kernel)
    known, arch = explained.read(), kernel_arch(kernel)
    for smp in args.smp:
        for i in range(args.runs):
            label = f'{kernel}, {smp} vCPU: boot {i + 1} of {args.runs}'
            text = ''
            with tap.test(f'{label} has no error'):
                text = run(tap, args, share, kernel, smp)
            new = explained.new(text, arch, known)
            tap.ok(text and not new, f'{label}: the functions of explained '
                   'accesses are on the list', '\n'.join(new))


# --- many vCPUs --------------------------------------------------------------

def counts_of(guest):
    """Return {function: how often its errors were counted}."""
    counts = {}
    for line in guest.hmp_qmp('ka error -n 0 -j -s').splitlines():
        row = json.loads(line)
        if row.get('type') == 'error':
            name = re.match(r'\w+', row['error_stack_symbols'][0])[0]
            counts[name] = counts.get(name, 0) + row['error_count']
    return counts


def run_part(guest, part, rounds):
    text = guest.shell(f'echo {rounds} >/sys/module/ka_vcpus/parameters/{part} '
                       '&& echo done')
    assert 'done' in text, text


def shared(guest, size):
    run_part(guest, 'share', SHARED * size)
    check(guest)


def stale(guest):
    run_part(guest, 'stale', STALE)
    want = {f'ka_vcpus_read_{i}': STALE for i in range(READERS)}
    want['ka_vcpus_modify'] = STALE
    counts = counts_of(guest)
    assert counts == want, counts
    stat = guest.stat()
    assert stat['events.access'] >= sum(want.values()), stat
    assert not stat['access.disagreed'], stat['access.disagreed']


def many(tap, args, kernel, tmp):
    share = oracle.make_share(os.path.join(tmp, kernel + '-many'), [], kernel,
                              modules=True)
    with Guest(kernel=kernel, smp=READERS, end='shell', share=share,
               plugin_opts='access=on', timeout=900,
               cmdline=WORDS + ' nosoftlockup',
               name=f'silence-many-{kernel}') as g:
        g.wait_marker('KA-END')
        g.shell('insmod /share/ka_vcpus.ko')
        with tap.test(f'{kernel}: threads that drop references have no error'):
            shared(g, args.size)
        with tap.test(f'{kernel}: {STALE} wrong accesses of each thread are '
                      f'counted {STALE}'):
            stale(g)


def main():
    ap = programs.arguments(__doc__, short='6.12 on 1 vCPU, one boot')
    ap.add_argument('--runs', type=int, help='boots of each')
    ap.add_argument('--size', type=int, help='rounds of the workload')
    args = programs.parse(ap, kernels=KERNELS)
    args.runs = args.runs or (1 if args.short else 10)
    args.size = args.size or (1 if args.short else 4)
    tap = Tap()
    with tempfile.TemporaryDirectory(prefix='ka-silence.') as tmp:
        for kernel in args.kernel:
            boots(tap, args, kernel, tmp)
            with tap.test(f'{kernel}: the module of many vCPUs runs'):
                many(tap, args, kernel, tmp)
    tap.done()


if __name__ == '__main__':
    main()
