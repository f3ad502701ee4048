#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""vCPUs are plugged and unplugged. ka shows nothing of a vCPU that is gone,
whose registers QEMU has freed, and shows the vCPUs after it as before. And the
VM is reset while the tracer's thread saves its status to the journal.

Oracle: QEMU's own list of vCPUs; after a reset, the counters of `ka stat`.

usage: test_hotplug.py [--short] [--kernel K]...
"""
import json
import os
import sys
import tempfile
import time

from lib.programs import kernel_options
from lib.tap import Tap
from scripts.lib.guest import Guest
from scripts.lib.prepared import kernel_arch

# Each new vCPU takes a TCG context, which is never released.
CPUS = '1,maxcpus=8'
RESETS = 5 if '--short' in sys.argv else 20


def plug(g, n):
    """Plug the vCPUs 1 to @n."""
    free = [c for c in g.qmp('query-hotpluggable-cpus')
            if 'qom-path' not in c]
    free.sort(key=lambda c: sorted(c['props'].items()))
    for i, cpu in enumerate(free[:n], 1):
        g.qmp_connection.cmd('device_add', {
            'driver': cpu['type'], 'id': f'cpu{i}', **cpu['props']})
    wait_for(g, lambda cpus: len(cpus) == n + 1)


def unplug(g, i):
    g.qmp_connection.cmd('device_del', {'id': f'cpu{i}'})
    wait_for(g, lambda cpus: i not in cpus)


def wait_for(g, good, seconds=60):
    end = time.monotonic() + seconds
    while not good([c['cpu-index'] for c in g.qmp('query-cpus-fast')]):
        assert time.monotonic() < end, 'the guest does not play along'
        time.sleep(0.2)


def lines(g, command):
    return [json.loads(line) for line in g.hmp_qmp(command).splitlines()]


def comes_and_goes(kernel):
    with Guest(kernel=kernel, qemu=['-smp', CPUS], run='files',
               name=f'hotplug-{kernel}') as g:
        g.wait_done()
        plug(g, 3)
        unplug(g, 2)
        g.qmp('stop')
        assert not lines(g, 'ka regs --cpu 2 -j')
        assert 'unplugged' in g.hmp_qmp('ka stack --cpu 2')
        for there in 0, 1, 3:
            text = g.hmp_qmp(f'ka stack --cpu {there}')
            assert 'unplugged' not in text, text
        assert 'vCPUs are 0 to 3' in g.hmp_qmp('ka regs --cpu 4')
        scan = lines(g, 'ka leak scan -j')[-1]
        assert scan.get('type') == 'scan', scan
        g.qmp('cont')
        unplug(g, 3)
        g.qmp('stop')
        assert 'vCPUs are 0 to 1' in g.hmp_qmp('ka regs --cpu 3')


def is_reset(kernel):
    with tempfile.TemporaryDirectory(prefix='ka-reset.') as tmp:
        journal = os.path.join(tmp, 'journal')
        with Guest(kernel=kernel, smp=2, run='files', journal=journal,
                   qemu=['-action', 'reboot=reset'],
                   name=f'reset-{kernel}') as g:
            g.wait_done()
            before = g.stat()['blocks.live']
            for i in range(RESETS):
                g.hmp_qmp('system_reset')
                time.sleep(0.7 + i * 0.05)
            end = time.monotonic() + 120
            while g.console.count('KA-DONE') < 2:
                assert time.monotonic() < end, g.console[-2000:]
                time.sleep(0.2)
            numbers = g.stat()
            assert numbers['blocks.live'] > before / 2, numbers
            assert not numbers.get('errors.recorded'), numbers


def main():
    tap = Tap()
    for kernel in kernel_options():
        if kernel_arch(kernel) != 'x86_64':
            tap.skip(f'{kernel}: vCPUs come and go', 'QEMU plugs none there')
            continue
        with tap.test(f'{kernel}: vCPUs come and go'):
            comes_and_goes(kernel)
        with tap.test(f'{kernel}: resets, with a journal'):
            is_reset(kernel)
    tap.done()


if __name__ == '__main__':
    main()
