#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest starts another kernel by kexec. The tracer finds that kernel and
sees all from its first event; nothing is left of the kernel before. Oracle:
the counters of `ka stat`: nothing is unknown.

Then ka does not see the call that starts the kernel (without=). The first
command says that another kernel runs: at the same place, where its clock says
so, and at another one, where there is nothing at the place of the old one.

usage: test_kexec.py [--short] [--kernel K]... [--smp N]...
"""
import os
import shutil
import tempfile
import time

from lib import oracle, programs
from lib.tap import Tap
from scripts.lib.guest import Guest
from scripts.lib.prepared import kernel_file, paths

UNKNOWN = ('errors.recorded', 'free.unknown', 'events.unknown_block', 'gaps',
           'stack.end_bad_frame', 'cache.unknown', 'task.unknown',
           'call.unreadable', 'call.dropped')


def make_share(share, kernel):
    oracle.make_share(share, ['kexec.sh'], kernel)
    shutil.copy(kernel_file(kernel), os.path.join(share, 'vmlinuz'))
    shutil.copy(paths()['initrd-' + kernel], os.path.join(share, 'initrd'))


def next_kernel(_, kernel, smp, __):
    with tempfile.TemporaryDirectory(prefix='ka-kexec.') as share:
        make_share(share, kernel)
        with Guest(kernel=kernel, smp=smp, share=share, run='kexec',
                   mem='2G', timeout=240,
                   name=f'kexec-{kernel}-{smp}') as g:
            assert g.wait_done() == 0, g.console[-2000:]
            assert 'ka.second=1' in g.console, 'kexec did not happen'
            numbers, stat = g.stat(), g.hmp_qmp('ka stat')
            assert 'recognised' in stat and 'not recognised' not in stat, stat
            assert numbers['events.checked'] > 50000, stat
            assert numbers['blocks.previous_boot'] > 10000, stat
            for key in UNKNOWN:
                assert not numbers.get(key), f'{key}: {numbers[key]}\n{stat}'
            # Names are those of the second kernel.
            text = g.hmp_qmp('ka alloc start_kernel -w -n 5')
            assert 'start_kernel+' in text, text


def unseen(kernel, smp, kaslr):
    with tempfile.TemporaryDirectory(prefix='ka-kexec.') as share:
        make_share(share, kernel)
        with Guest(kernel=kernel, smp=smp, share=share, run='kexec',
                   mem='2G', timeout=240, kaslr=kaslr,
                   plugin_opts='without=symbol:machine_kexec',
                   name=f'kexec-unseen-{kernel}-{smp}-{kaslr}') as g:
            while not kaslr and 'KA-DONE' not in g.console:
                g.stat()
                time.sleep(0.3)
            assert g.wait_done() == 0, g.console[-2000:]
            assert 'ka.second=1' in g.console, 'kexec did not happen'
            text = ' '.join(g.hmp_qmp('ka error').split())
            assert 'another kernel runs' in text, text
            assert 'no error is certain' in text, text
            assert g.stat()['kernel.replaced'] == 1, g.hmp_qmp('ka stat')
            assert 'memory was replaced' in g.qemu_log, g.qemu_log


def can_load_a_file(kernel):
    with open(kernel_file(kernel, 'config'), encoding='utf-8') as f:
        return 'CONFIG_KEXEC_FILE=y' in f.read()


args = programs.parse(programs.arguments(
    __doc__, short='6.12 on 4 vCPUs only'), short_smps=programs.SMPS[-1:])
tap = Tap()
for name in args.kernel:
    if can_load_a_file(name):
        programs.run_over(tap, [name], args.smp, next_kernel, 'kexec')
        for place in True, False:
            with tap.test(f'{name}: kexec unseen, '
                          f'{"another" if place else "the same"} address'):
                unseen(name, args.smp[0], place)
    else:
        tap.skip(f'{name}: kexec', 'it has no kexec_file_load()')
tap.done()
