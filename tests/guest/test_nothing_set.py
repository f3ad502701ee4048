#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Nothing set costs nothing: the same code has callbacks before a call point or
a rule is added, after it was added and deleted, and after its calls were
recorded. Oracle: how many callbacks the same workload needs, each time after
QEMU has dropped all code that it translated.

usage: test_nothing_set.py [--short] [--kernel K]...
"""
import os
import tempfile

from lib import programs
from lib.snapshot_disk import drive, make_disk
from lib.tap import Tap
from scripts.lib.guest import Guest

WORK = ('ls -lR /proc/self /sys/kernel >/dev/null 2>&1; '
        'cat /proc/*/stat* >/dev/null 2>&1')
ADD = ('ka calls add mutex_lock,mutex_unlock,kfree,dput,fput,vfs_read,'
       '_copy_to_user,kmem_cache_free',
       "ka fault add kmalloc --if 'size == 7777'",
       "ka fault add capable --if 'pid == 0'")
DELETE = 'ka calls del all', 'ka fault del all'
# Interrupts and timers execute a little more code in one run than in another:
# a part of the callbacks that points and rules need.
PART = 0.1


def run(g, commands):
    for line in commands:
        text = g.hmp_qmp(line).strip()
        assert not text or line.startswith('ka '), f'{line}: {text}'


def work(g):
    assert 'done' in g.shell(WORK + '; echo done')


def callbacks(g, *steps):
    """Load the snapshot, which drops all translated code. Then, for each step:
    run its commands while the VM stands, and the workload. Return the callbacks
    that the last workload needed."""
    g.qmp('stop')
    run(g, ['loadvm one'])
    for commands in steps:
        g.qmp('stop')
        run(g, commands)
        before = g.stat()['cost.callbacks']
        g.qmp('cont')
        work(g)
    return g.stat()['cost.callbacks'] - before


def same(n, expected, of_points):
    assert abs(n - expected) <= PART * of_points, (n, expected, of_points)


def nothing_set(tap, kernel, smp, label):
    with tempfile.TemporaryDirectory(prefix='ka-nothing.') as tmp, \
            tap.test(f'{label}: as many callbacks as before'):
        disk = make_disk(os.path.join(tmp, 'snapshots.qcow2'))
        with Guest(kernel=kernel, smp=smp, end='shell', mem='512M',
                   timeout=600, name='nothing', qemu=drive(disk)) as g:
            work(g)
            g.qmp('stop')
            run(g, ['savevm one'])
            before = callbacks(g, ())
            again = callbacks(g, ())
            added = callbacks(g, ADD)
            run(g, DELETE)
            deleted = callbacks(g, ADD + DELETE)
            warm = callbacks(g, (), ADD + DELETE)
            used = callbacks(g, ADD, DELETE)
            recorded = g.stat()['calls.recorded']
        tap.figures('nothing set', kernel=kernel, smp=smp, before=before,
                    again=again, added=added, deleted=deleted, warm=warm,
                    used=used)
        assert recorded > 1000, recorded
        of_points = added - before
        assert of_points > 50, (added, before)
        same(again, before, of_points)
        same(deleted, before, of_points)
        same(used, warm, of_points)


def main():
    ap = programs.arguments(__doc__, short='6.12 on 1 vCPU only')
    args, tap = programs.parse(ap), Tap()
    programs.run_over(tap, args.kernel, args.smp, nothing_set, test=None)
    tap.done()


if __name__ == '__main__':
    main()
