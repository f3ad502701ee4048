#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest hibernates and wakes: the map is again that of the moment of the
image. In one boot (test_resume), after a reboot, in which another kernel loads
the image, and in another QEMU, which has not seen it saved.

Oracle: the module ka_hibernate, whose blocks live on with their first
backtraces, and which frees one of them twice: that is the only error. Its lost
blocks: none are. The guest's KASLR offset and its modules are those of before.

usage: test_hibernate.py [--short] [--cycles N] [--cmdline WORDS]
                         [--plugin-opts OPTIONS] [--kernel K]... [--smp N]...
"""
import contextlib
import functools
import os
import re
import tempfile
import time

from lib import oracle, programs
from lib.tap import Tap
from scripts.lib.guest import Guest

MIB = 1 << 20
GO = '/sys/module/ka_hibernate/parameters/go'
DRIVERS = 'for m in /share/modules/*.ko; do insmod $m; done'
DISK = '/dev/vda'
RESUME = f'{DRIVERS}; cat /sys/block/vda/dev >/sys/power/resume\n'
# Kernels of arm64 (6.12) cannot copy page tables of 52-bit addresses
# (trans_pgd_create_copy()).
WORDS = 'no_console_suspend panic=0 arm64.nolva'
UNKNOWN = ('gaps', 'events.unknown_block', 'free.unknown', 'call.unreadable',
           'call.dropped')


@contextlib.contextmanager
def machine(kernel, smp, args):
    """Return a function that starts a guest, always with the same disk."""
    with tempfile.TemporaryDirectory(prefix='ka-hibernate.') as tmp:
        share = oracle.make_share(os.path.join(tmp, 'share'), [], kernel,
                                  modules=True)
        oracle.add_drivers(share, kernel, 'virtio_pci', 'virtio_blk')
        image = os.path.join(tmp, 'disk')
        with open(image, 'wb') as f:
            f.truncate(1024 * MIB)

        def start(**more):
            return Guest(kernel=kernel, smp=smp, end='shell', share=share,
                         cmdline=f'{WORDS} {args.cmdline}', mem='512M',
                         timeout=600, qemu=[
                             '-drive', f'if=none,id=d,format=raw,file={image}',
                             '-device', 'virtio-blk-pci,drive=d'],
                         plugin_opts=args.plugin_opts,
                         name=f'hibernate-{kernel}-{smp}', **more)
        yield start


def prepare(g):
    """Load the module; return the address that it frees twice."""
    text = g.shell(f'{DRIVERS}; mkswap {DISK} && swapon {DISK} && echo swaps')
    assert 'swaps' in text, text
    text = g.shell('dmesg -c >/dev/null; insmod /share/ka_hibernate.ko; dmesg')
    return re.search(r'again=([0-9a-f]{16})', text)[1]


def sleep(how):
    return f'echo {how} >/sys/power/disk; echo disk >/sys/power/state; echo $?'


def facts(g):
    """What a guest keeps while it sleeps."""
    rows = g.rows('ka top --by caller -s -n 0')
    mine = [(r['caller_symbol'], r['blocks'], r['live']) for r in rows
            if 'hibernate_take' in str(r.get('caller_symbol'))]
    base = {r['name']: r['start'] for r in g.rows('ka base')
            if r['name'] in ('image', 'text', 'module')}
    return sorted(mine), base


def check_awake(g, before, again, restored):
    """The module frees its blocks, one of them twice."""
    assert facts(g) == before, (facts(g), before)
    assert before[0], 'the module has no blocks'
    stat = g.stat()
    assert stat['vm.images'] == restored, stat['vm.images']
    text = g.hmp_qmp('ka error')
    assert text.startswith('no errors'), text
    g.shell(f'for i in some again rest; do echo $i >{GO}; done')
    errors = [r for r in g.rows('ka error') if r.get('type') == 'error']
    assert [(e['error'], e['error_va'].removeprefix('0x')) for e in errors] == \
        [('double-free', again)], g.hmp_qmp('ka error')
    for name in UNKNOWN:
        assert not g.stat().get(name), (name, g.stat()[name])
    text = g.hmp_qmp('ka leak scan')
    assert re.search('^ *0 leaked blocks', text, re.MULTILINE), text
    assert g.hmp_qmp('ka check').startswith('ok'), g.hmp_qmp('ka check')


def wait_for(what, true):
    end = time.monotonic() + 300
    while not true():
        assert time.monotonic() < end, what
        time.sleep(0.2)


# --- ways -------------------------------------------------------------------

def in_one_boot(g, _):
    """The kernel that saves the image loads it again. Return false if it
    cannot: 6.1 refuses to open the disk, which is in use as swap."""
    text = g.shell(sleep('test_resume')).strip()
    assert text.endswith('0') or 'Device or resource busy' in text, text
    return text.endswith('0')


def after_a_reboot(g, boots):
    """Another kernel, booted for that, loads the image."""
    g.type(sleep('reboot') + '; echo KA-"AWAKE"\n')
    wait_for('no second boot',
             lambda: g.console.count('\nKA-END') == boots + 2)
    wait_for('no shell', lambda: ' # ' in g.console.rpartition('\nKA-END')[2])
    g.type(RESUME)
    wait_for('not awake', lambda: g.console.count('KA-AWAKE') == boots + 1)
    return True


def in_one_process(start, ways):
    """The guest sleeps in these ways, one after the other. Return how often
    it loaded an image."""
    with start() as g:
        g.qmp('set_action', reboot='reset')
        again = prepare(g)
        before = facts(g)
        slept = [way(g, ways[:i].count(after_a_reboot))
                 for i, way in enumerate(ways)].count(True)
        check_awake(g, before, again, slept)
        return slept


def in_another_process(start):
    """No map is that of the image: nothing is judged, and ka says so."""
    with start() as g:
        prepare(g)
        g.type(sleep('shutdown') + '; echo KA-"AWAKE"\n')
        g.wait_exit()
    with start() as g:
        g.shell('true')
        g.type(RESUME)
        wait_for('not awake', lambda: 'KA-AWAKE' in g.console)
        assert g.stat()['vm.images_blind'] == 1, g.hmp_qmp('ka stat')
        assert 'hibernation image of whose moment' in g.qemu_log, g.qemu_log
        g.shell(f'for i in some again rest; do echo $i >{GO}; done')
        text = g.hmp_qmp('ka error')
        assert text.startswith('no errors') and 'unknown' in text, text
        # What is allocated from now on is traced.
        text = g.shell('insmod /share/ka_leaky.ko plant=1; rmmod ka_leaky')
        text = g.hmp_qmp('ka leak module')
        assert 'module ka_leaky unloaded' in text, text


def run(tap, kernel, smp, label, args):
    ways = {'both ways': [in_one_boot, after_a_reboot]} if args.short else {
        way.__name__.replace('_', ' '): [way] * args.cycles
        for way in (in_one_boot, after_a_reboot)}
    for name, them in ways.items():
        with tap.test(f'{label}: {name}'), \
                machine(kernel, smp, args) as start:
            slept = in_one_process(start, them)
            tap.note(f'{label}: {name}: {slept} of {len(them)} images were '
                     'loaded')
    if not args.short:
        with tap.test(f'{label}: in another process'), \
                machine(kernel, smp, args) as start:
            in_another_process(start)


def main():
    ap = programs.arguments(__doc__, short='6.12 on 2 vCPUs, twice in one VM')
    ap.add_argument('--cycles', type=int, default=3, metavar='N',
                    help='times that a VM sleeps in each way (default: 3)')
    ap.add_argument('--cmdline', default='', metavar='WORDS',
                    help='more words for the kernel, such as nokaslr')
    ap.add_argument('--plugin-opts', metavar='OPTIONS',
                    help='more options of the plugin, such as access=on')
    args, tap = programs.parse(ap, short_smps=(2,)), Tap()
    programs.run_over(tap, args.kernel, args.smp,
                      functools.partial(run, args=args), test=None)
    tap.done()


if __name__ == '__main__':
    main()
