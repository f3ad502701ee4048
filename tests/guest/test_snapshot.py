#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The map of blocks is saved and restored with the VM: savevm and loadvm,
-loadvm, migration. Oracle: what ka lists before and after, compared to the
byte. With --short some tests share a VM.

usage: test_snapshot.py [--short] [--runs N] [--kernel K]...
"""
import contextlib
import os
import tempfile
import time

from lib import programs
from lib.tap import Tap
from scripts.lib.guest import Guest
from scripts.lib.qmp import GuestError
from scripts.lib.snapshot_disk import drive, make_disk

ALL = 'ka 0-ffffffffffffffff -j -v'
# A program that runs when the VM stops, and continues afterwards.
BUSY = ('(while :; do ls -lR /proc/self /sys/kernel; cat /proc/*/status; '
        'done) >/dev/null 2>&1 & ')
# The only program that runs; its page tables may not map the kernel's memory.
SPIN = '(while :; do :; done) & '
WORK = ('for i in {rounds}; do ls -lR /proc/self /sys/kernel /sys/class; '
        'done >/dev/null 2>&1')
ROUNDS = '1 2 3'        # of work(); --short: one
CLEAN = ('errors.recorded', 'free.unknown', 'events.unknown_block', 'gaps',
         'call.unreadable', 'call.dropped', 'call.stale', 'cache.unknown',
         'task.unknown', 'vm.loads_blind')


@contextlib.contextmanager
def guest(kernel, smp, name, qemu=(), **more):
    with tempfile.TemporaryDirectory(prefix='ka-state.') as folder:
        disk = make_disk(os.path.join(folder, 'snapshots.qcow2'))
        with Guest(kernel=kernel, smp=smp, end='shell', mem='512M',
                   timeout=600, name=f'{name}-{kernel}-{smp}',
                   qemu=[*drive(disk), *qemu], **more) as g:
            g.disk = disk
            yield g


def dump(g):
    """Return all that ka lists: blocks, errors, some past lives; and counters
    of what the guest did."""
    blocks = g.hmp_qmp(ALL)
    some = [line.split('"va":"')[1].split('"')[0][2:]
            for line in blocks.splitlines()[::997] if '"va":"' in line]
    lives = [g.hmp_qmp(f'ka {va} --history -j -v') for va in some]
    stat = g.stat()
    counts = {k: v for k, v in stat.items() if not k.startswith(
        ('cost.', 'vm.', 'depot.', 'journal.', 'memory.', 'check.')) and
        'host_bytes' not in k}
    assert len(blocks) > 1 << 20 and some, 'nothing is listed'
    return [blocks, g.hmp_qmp('ka error -j -v'), *lives, counts]


def assert_same(a, b):
    for x, y in zip(a, b):
        if x == y:
            continue
        if isinstance(x, dict):
            raise AssertionError({k: (x.get(k), y.get(k)) for k in x | y
                                  if x.get(k) != y.get(k)})
        rows = [(p, q) for p, q in zip(x.splitlines(), y.splitlines())
                if p != q]
        raise AssertionError(f'{len(rows)} lines differ, and {len(x)} and '
                             f'{len(y)} bytes: {rows[:2]}')


def assert_clean(g, **also):
    stat = g.stat()
    for key, want in {**dict.fromkeys(CLEAN, 0), **also}.items():
        assert stat.get(key, 0) == want, f'{key}: {stat.get(key)}\n' + \
            g.hmp_qmp('ka stat')


def monitor(g, line):
    """Run a command of QEMU's monitor; fail if it prints anything."""
    text = g.hmp_qmp(line).strip()
    assert not text, f'{line}: {text}'


def save(g, name='one'):
    g.qmp('stop')
    monitor(g, 'savevm ' + name)
    return dump(g)


def run_work(g):
    assert 'done' in g.shell(WORK.format(rounds=ROUNDS) + '; echo done')


def work(g):
    g.qmp('cont')
    run_work(g)


def reset(g):
    """Reset the VM: the loaded map becomes that of the previous boot."""
    g.qmp('set_action', reboot='reset')
    monitor(g, 'system_reset')
    end = time.monotonic() + 120
    while True:
        stat = g.stat()
        if stat.get('blocks.previous_boot') and stat['blocks.live'] > 1000:
            break
        assert time.monotonic() < end, g.hmp_qmp('ka stat')
        time.sleep(0.5)
    g.qmp('stop')
    assert_clean(g)


def back_and_on(g, runs):
    """Save the VM; go on and load it, RUNS times."""
    before = save(g)
    for i in range(runs):
        work(g)
        g.qmp('stop')
        assert_clean(g)
        monitor(g, 'loadvm one')
        assert_same(before, dump(g))
    work(g)
    assert_clean(g, **{'vm.loads': runs})


def there_and_back(kernel, smp, runs):
    with guest(kernel, smp, 'loadvm') as g:
        g.shell(BUSY + 'echo')
        back_and_on(g, runs)
        reset(g)


def there_and_elsewhere(kernel, smp, runs):
    """--short: the VM that was loaded continues in another process, and is
    reset there."""
    with guest(kernel, smp, 'loadvm') as g:
        g.shell(BUSY + 'echo')
        back_and_on(g, runs)
        with elsewhere(g, kernel, smp) as to:
            reset(to)


def while_it_spins(kernel, short):
    with guest(kernel, 1, 'loadvm') as g:
        g.shell(SPIN + 'echo')
        back_and_on(g, 1)
        if not short:
            reset(g)


@contextlib.contextmanager
def elsewhere(g, kernel, smp):
    """Save the VM and load it in another process; return that one."""
    before = save(g)
    g.stop()                # it holds the disk
    with Guest(kernel=kernel, smp=smp, end='shell', mem='512M',
               timeout=600, name=f'loaded-{kernel}-{smp}',
               qemu=[*drive(g.disk), '-loadvm', 'one', '-S']) as to:
        to.qmp('query-status')
        assert_same(before, dump(to))
        work(to)
        assert_clean(to, **{'vm.loads': 1})
        yield to


def in_new_process(kernel, smp):
    with guest(kernel, smp, 'saved') as g:
        g.shell(BUSY + 'echo')
        with elsewhere(g, kernel, smp):
            pass


def wait_migrated(g):
    end = time.monotonic() + 600
    while time.monotonic() < end:
        status = g.qmp('query-migrate').get('status')
        if status in ('completed', 'failed'):
            return status
        time.sleep(0.1)
    raise GuestError('the migration does not end')


@contextlib.contextmanager
def target(kernel, smp, plugin=True):
    """Start a VM that waits for migration; return it, and the socket."""
    with tempfile.TemporaryDirectory(prefix='ka-migrate.') as folder, \
            guest(kernel, smp, 'target', plugin=plugin,
                  qemu=['-S', '-incoming', 'defer']) as b:
        yield b, 'unix:' + os.path.join(folder, 'socket')


@contextlib.contextmanager
def two(kernel, smp, plugins=(True, True)):
    """Start a VM and another one that waits for migration; return both, and the
    socket."""
    with guest(kernel, smp, 'source', plugin=plugins[0]) as a:
        a.shell(BUSY + 'echo')
        with target(kernel, smp, plugins[1]) as (b, where):
            yield a, b, where


def migrate(a, b, where):
    b.qmp('migrate-incoming', uri=where, exit_on_error=False)
    a.qmp('migrate', uri=where)
    return wait_migrated(a)


def arrives(a, b, where):
    """Migrate: the map comes along."""
    assert migrate(a, b, where) == 'completed', b.qemu_log
    assert wait_migrated(b) == 'completed', b.qemu_log
    assert_same(dump(a), dump(b))
    work(b)
    assert_clean(b, **{'vm.loads': 1})


def is_refused(a, b, where):
    """Try to migrate to a QEMU without the tracer; A goes on."""
    a_status, b_status = migrate(a, b, where), wait_migrated(b)
    assert b_status == 'failed', (a_status, b_status)
    assert "'plugin/ka'" in b.qemu_log or 'plugin/ka' in b.qemu_log, b.qemu_log
    if a.qmp('query-status')['status'] != 'running':
        a.qmp('cont')
    run_work(a)
    assert_clean(a)


def to_another(kernel, smp):
    with two(kernel, smp) as (a, b, where):
        arrives(a, b, where)


def to_one_without(kernel):
    with two(kernel, 1, (True, False)) as (a, b, where):
        is_refused(a, b, where)


def to_both(kernel, smp):
    """--short: one VM migrates, after a QEMU without the tracer refused it."""
    with two(kernel, smp, (True, False)) as (a, b, where):
        is_refused(a, b, where)
        b.stop()
        with target(kernel, smp) as (c, where):
            arrives(a, c, where)


def from_one_without(kernel):
    with two(kernel, 1, (False, True)) as (a, b, where):
        assert migrate(a, b, where) == 'completed', b.qemu_log
        assert wait_migrated(b) == 'completed', b.qemu_log
        stat = b.stat()
        assert stat['vm.loads_blind'] == 1 and stat['gaps'] >= 1, stat
        assert stat['blocks.live'] == 0, stat
        assert 'came without a map' in b.qemu_log, b.qemu_log
        work(b)
        stat = b.stat()
        assert stat['tracing.kernel'] == 'recognised', stat
        assert stat['blocks.live'] > 100, stat
        assert not stat['errors.recorded'], b.hmp_qmp('ka error -v -s')


def options():
    ap = programs.arguments(__doc__, short='6.12 only, 4 vCPUs, two runs, '
                            'little work',
                            smp=False)
    ap.add_argument('--runs', type=int, help='loads of each snapshot')
    ap.add_argument('--only', help='tests whose names have that word')
    args = programs.parse(ap)
    args.runs = args.runs or (2 if args.short else 10)
    if args.short:
        global ROUNDS       # pylint: disable=global-statement
        ROUNDS = '1'
    return args


def tests_of_loads(k, args):
    """Saved and migrated VMs. With --short some tests share a VM."""
    if args.short:
        yield (f'{k}, 4 vCPU: loadvm brings the map of savevm, {args.runs} '
               'times, and -loadvm in another process', there_and_elsewhere,
               (k, 4, args.runs))
        yield (f'{k}: a QEMU without the tracer refuses, and migration to '
               'another brings the map', to_both, (k, 4))
        return
    for smp in 1, 4:
        yield (f'{k}, {smp} vCPU: loadvm brings the map of savevm, '
               f'{args.runs} times', there_and_back, (k, smp, args.runs))
    yield f'{k}: -loadvm in another process', in_new_process, (k, 4)
    yield f'{k}: migration brings the map', to_another, (k, 4)
    yield f'{k}: a QEMU without the tracer refuses', to_one_without, (k,)


def tests(args):
    for k in args.kernel:
        yield from tests_of_loads(k, args)
        yield (f'{k}: loadvm while a program runs', while_it_spins,
               (k, args.short))
        yield (f'{k}: from a QEMU without the tracer nothing comes',
               from_one_without, (k,))


def main():
    args, tap = options(), Tap()
    for name, function, values in tests(args):
        if args.only and args.only not in name:
            continue
        with tap.test(name):
            function(*values)
    tap.done()


if __name__ == '__main__':
    main()
