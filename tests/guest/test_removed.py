#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Blocks end with the memory that they are in. virtio-mem plugs and unplugs
memory, a balloon takes some and gives it back, free pages are reported to the
host, a DIMM is unplugged, a memory block and single pages go offline, while
files fill the memory.

Oracle: the kernel's count of the pages that are in use, /proc/zoneinfo: ka's
count changes by as much. /sys/devices/system/memory: no block is in memory that
is not listed there.

usage: test_removed.py [--short] [--kernel K]... [--smp N]...
"""
import contextlib
import functools
import os
import re
import tempfile
import time

from lib import oracle, programs
from lib.tap import Tap
from scripts.lib.guest import Guest, GuestError
from scripts.lib.prepared import kernel_arch

KERNELS = '6.12', '6.1', 'arm64-6.12', 'riscv64-6.12'
MIB = 1 << 20
PAGE = 4096
MEM = 512 * MIB
PLUGGED = 512 * MIB
DRIVERS = 'virtio_pci', 'virtio_mem', 'virtio_balloon', 'hwpoison_inject'
LOAD = 'for m in /share/modules/*.ko; do insmod $m; done'
MEMORY = '/sys/devices/system/memory'
POISON = '/sys/kernel/debug/hwpoison/unpoison-pfn'
# It allocates and frees the pages of a balloon.
TAKER = 'update_balloon_size_func'
# Each vCPU keeps a part of the count for itself, for a while.
NOISE = MIB
VIRTIO_MEM = ['-object', f'memory-backend-ram,id=plug,size={PLUGGED}',
              '-device', 'virtio-mem-pci,id=vm,memdev=plug,requested-size=0']
BALLOON = ['-device', 'virtio-balloon-pci,id=balloon,free-page-reporting=on']


class World:
    """A guest, and what both sides said at first."""

    def __init__(self, tap, label, guest):
        self.tap, self.label, self.guest = tap, label, guest
        self.first = None
        direct = next(r for r in guest.rows('ka base') if r['name'] == 'direct')
        self.base = int(direct['start'], 16) - int(
            re.fullmatch(r'of physical (\w+) on', direct['note'])[1], 16)
        self.size = int(self.shell(f'cat {MEMORY}/block_size_bytes')
                        .split()[-1], 16)

    def shell(self, command):
        return self.guest.shell(command)

    def stat(self, name):
        return self.guest.stat().get(name, 0)

    def used(self):
        """Bytes of the pages that are handed out, as the kernel counts. What
        is in the lists of a vCPU is free, but not in its sum."""
        text = self.shell('cat /proc/zoneinfo')
        managed, free, listed = (
            sum(map(int, re.findall(rf'^ +{key} +(\d+)\r?$', text, re.M)))
            for key in ('managed', 'nr_free_pages', 'count:'))
        return (managed - free - listed) * PAGE

    def difference(self):
        """What the kernel counts more than ka, since the first time. ka does
        not know pages from before its first event."""
        for _ in range(10):
            ours = self.guest.rows('ka top --layer pages -n 1')[0]['live']
            found = self.used() - ours
            self.first = found if self.first is None else self.first
            if abs(found - self.first) <= NOISE:
                break
            time.sleep(1)       # free pages are being reported
        return found - self.first

    def blocks(self):
        """Return the blocks in the direct map, with symbols."""
        return [r for r in self.guest.rows(
                    'ka 0-ffffffffffffffff -v -s -n 0 --layer pages')
                if r['type'] == 'block']

    def live(self):
        return [r for r in self.blocks() if r['state'] == 'A']

    def physical(self, row):
        return int(row['va'], 16) - self.base

    def misplaced(self):
        """Return live blocks in memory that is not online."""
        text = self.shell(f'grep -l online {MEMORY}/memory*/state')
        online = set(map(int, re.findall(r'memory(\d+)/state', text)))
        assert online, text
        return [r for r in self.live()
                if self.physical(r) // self.size not in online]

    def check(self, what):
        """Both sides changed by as much, no block is where no memory is, and
        nothing is an error."""
        d = self.difference()
        self.tap.note(f'{self.label}, {what}: {self.used() // MIB} MiB in use, '
                      f'the kernel and ka differ by {d // 1024} KiB')
        assert abs(d) <= NOISE, (what, d)
        wrong = self.misplaced()
        assert not wrong, (what, len(wrong), wrong[0])
        text = self.guest.hmp_qmp('ka error')
        assert text.startswith('no errors'), (what, text)

    def sample(self, name):
        """Return a live block of one page that NAME allocated."""
        found = [r for r in self.live() if r['requested'] == PAGE and
                 any(name in f for f in r['alloc_symbols'])]
        assert found, name
        return found[len(found) // 2]

    def check_removed(self, row, *names):
        """The block ended because its memory was removed, by NAMES."""
        rows = [r for r in self.guest.rows(f'ka {row["va"]} -s --history')
                if r.get('alloc_us') == row['alloc_us']]
        assert rows and rows[0].get('ended') == 'removed', (row, rows)
        text = str(rows[0]['free_symbols'])
        assert any(name in text for name in names), rows[0]

    def fill(self, mib):
        self.shell('mkdir -p /work; mount -t tmpfs -o size=90% work /work; '
                   f'dd if=/dev/zero of=/work/big bs=1M count={mib}; '
                   'for i in $(seq 300); do echo $i >/work/$i; done')

    def empty(self):
        self.shell('rm -r /work/*; umount /work')


# --- virtio-mem ---------------------------------------------------------------

def plug(world, size):
    """Return the size that the guest comes to: kernel memory can be in it."""
    vm, steady = '/machine/peripheral/vm', 0
    world.guest.qmp('qom-set', path=vm, property='requested-size', value=size)
    now = None
    while now != size and steady < 8:
        time.sleep(1)
        before, now = now, world.guest.qmp('qom-get', path=vm, property='size')
        steady = steady + 1 if now == before else 0
    return now


def check_virtio_mem(world, turns):
    for turn in turns:
        assert plug(world, PLUGGED) == PLUGGED
        world.check(f'{turn} plug')
        world.fill(600)
        world.check('filled')
        world.empty()
        left = plug(world, 0)
        assert left <= PLUGGED // 2, left
        world.check(f'{turn} unplug, {left // MIB} MiB left')
        gone = [r for r in world.blocks() if r.get('ended') == 'removed']
        assert gone and world.stat('removed.bytes') > PLUGGED // 4, len(gone)
        assert all('virtio_mem' in str(r['free_symbols']) for r in gone), gone


# --- balloon ------------------------------------------------------------------

def set_balloon(world, size):
    world.guest.qmp('balloon', value=size)
    for _ in range(240):
        if world.guest.qmp('query-balloon')['actual'] == size:
            return
        time.sleep(0.5)
    raise GuestError(f'the balloon did not come to {size}')


def check_balloon(world):
    before = world.stat('removed.blocks')
    set_balloon(world, MEM - 128 * MIB)
    world.check('balloon')
    taken = world.stat('removed.blocks') - before
    assert taken >= 128 * MIB // PAGE, taken
    one = next(r for r in world.blocks() if r.get('ended') == 'removed' and
               TAKER in str(r['alloc_symbols']))
    world.check_removed(one, TAKER)
    told = world.guest.rows(f'ka whatis {one["va"]}')[0]
    assert told['block'].startswith('removed block'), told
    world.shell('echo 1 >/proc/sys/vm/compact_memory')
    world.check('balloon, compacted')
    set_balloon(world, MEM)
    world.check('no balloon')
    text = str([r['alloc_symbols'] for r in world.live()])
    assert TAKER not in text


# --- a DIMM, a memory block, a page -------------------------------------------

def numbers(world):
    text = world.shell(f'ls {MEMORY}')
    return set(map(int, re.findall(r'\bmemory(\d+)', text)))


def wait(what, fn, seconds=60):
    for _ in range(seconds):
        if fn():
            return
        time.sleep(1)
    raise GuestError(f'{what}: not within {seconds} s')


def file_page(world, number):
    """Return a page of a file, in that memory block."""
    return next(r for r in world.live() if r['requested'] == PAGE and
                'shmem_' in str(r['alloc_symbols']) and
                world.physical(r) // world.size == number)


def check_offline(world, number):
    state = f'{MEMORY}/memory{number}/state'
    row = file_page(world, number)
    text = world.shell(f'echo offline >{state}; cat {state}')
    assert 'offline' in text, text
    world.check('a memory block is offline')
    world.shell(f'echo online_movable >{state}; cat {state}')
    world.check('it is online again')
    return row


def check_page(world, number):
    """Single pages: one that is moved, one that is lost, and comes back."""
    for how in 'soft', 'hard':
        row = file_page(world, number)
        name = f'{MEMORY}/{how}_offline_page'
        text = world.shell(f'echo {world.physical(row):#x} >{name} && echo did')
        assert 'did' in text, text
        now = [r for r in world.live() if r['va'] == row['va']]
        assert not now, now
        world.check(f'a page is offline ({how})')
    pfn = world.physical(row) // PAGE
    world.shell('mount -t debugfs debugfs /sys/kernel/debug; '
                f'echo {pfn} >{POISON}')
    world.check('it is back')


def check_dimm(world, whole):
    """@whole: pages can be offlined, too"""
    before = numbers(world)
    world.shell(f'echo online_movable >{MEMORY}/auto_online_blocks')
    world.guest.qmp('object-add', **{'qom-type': 'memory-backend-ram',
                                     'id': 'd', 'size': 256 * MIB})
    world.guest.qmp_connection.cmd('device_add', {
        'driver': 'pc-dimm', 'id': 'dimm', 'memdev': 'd'})
    wait('a DIMM is plugged', lambda: len(numbers(world) - before) == 2)
    added = sorted(numbers(world) - before)
    world.fill(300)         # movable memory is filled first
    world.check('a DIMM, filled')
    check_offline(world, added[0])
    if whole:
        check_page(world, added[1])
    world.empty()
    world.fill(300)
    world.empty()
    world.guest.qmp_connection.cmd('device_del', {'id': 'dimm'})
    wait('the DIMM is unplugged', lambda: numbers(world) == before)
    world.check('no DIMM')


@contextlib.contextmanager
def start(tap, kernel, smp, label, **options):
    """A World with a balloon, and the names of the drivers that it has."""
    x86 = kernel_arch(kernel) == 'x86_64'
    with tempfile.TemporaryDirectory(prefix='ka-removed.') as tmp:
        share = oracle.make_share(os.path.join(tmp, 'share'), [], kernel)
        oracle.add_drivers(share, kernel, *DRIVERS)
        has = ' '.join(os.listdir(os.path.join(share, 'modules')))
        plugs = 'virtio_mem' in has
        more = ['-m', '512M,maxmem=4G,slots=2'] if x86 or plugs else []
        with Guest(kernel=kernel, smp=smp, end='shell', share=share, mem='512M',
                   cmdline='memhp_default_state=online_kernel', timeout=600,
                   qemu=[*more, *(VIRTIO_MEM if plugs else []), *BALLOON],
                   name=f'removed-{kernel}-{smp}', **options) as g:
            g.shell(LOAD)
            yield World(tap, label, g), has
            text = g.hmp_qmp('ka check')
            assert text.startswith('ok: '), text


def run(turns, tap, kernel, smp, label):
    with start(tap, kernel, smp, label, plugin_opts='pages=on') as (world, has):
        world.check('at first')
        check_balloon(world)
        if 'virtio_mem' in has:
            check_virtio_mem(world, turns)
        if kernel_arch(kernel) == 'x86_64':
            check_dimm(world, 'hwpoison' in has)


def run_without(tap, kernel, smp, label):
    """If the kernel lacks the functions that ka hooks, blocks stay live."""
    words = '+'.join(f'symbol:{name}' for name in
                     ('adjust_managed_page_count', '__offline_isolated_pages',
                      'balloon_page_migrate'))
    with start(tap, kernel, smp, label,
               plugin_opts=f'pages=on,without={words}') as (world, _):
        set_balloon(world, MEM - 128 * MIB)
        live = [r for r in world.live()
                if TAKER in str(r['alloc_symbols'])]
        assert len(live) == 128 * MIB // PAGE, len(live)
        text = world.guest.hmp_qmp('ka stat -v')
        assert re.search('adjust_managed_page_count.* missing', text), text
        set_balloon(world, MEM)
        text = world.guest.hmp_qmp('ka error')
        assert text.startswith('no errors'), text


def main():
    ap = programs.arguments(__doc__, short='6.12 on 1 vCPU, once')
    args, tap = programs.parse(ap, kernels=KERNELS), Tap()
    turns = ('first',) if args.short else ('first', 'second')
    programs.run_over(tap, args.kernel, args.smp,
                      functools.partial(run, turns),
                      'blocks end with their memory')
    programs.run_over(tap, args.kernel[:1], args.smp[:1], run_without,
                      'without the functions, blocks stay live')
    tap.done()


if __name__ == '__main__':
    main()
