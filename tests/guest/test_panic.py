#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest that panics or has a triple fault under scripts/ka-run stays, paused,
and can be asked; one that powers off or reboots ends QEMU, as before. Oracle:
QEMU's own state of the VM, and what the guest was told to do.

usage: test_panic.py [--short]
"""
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

from lib import oracle
from lib.tap import Tap
from scripts.lib.guest import RUN, Guest
from scripts.lib.prepared import paths

tap = Tap()
short = '--short' in sys.argv
KA = os.path.join(paths()['build'], 'monitor-cmds', 'ka')

PANIC = 'echo c >/proc/sysrq-trigger'
TRIPLE = 'insmod /share/ka_triple.ko'
# What the guest does, and what ka-run says: a pattern, or None if QEMU ends.
ENDS = {
    PANIC: 'the guest has panicked: the VM is paused',
    TRIPLE: r'the guest has reset itself without a panic or a reboot \(a '
            r'triple fault\?\): the VM is paused',
    'reboot -f': None,
    'poweroff -f': None,
}


def ask(path, *words):
    done = subprocess.run([KA, '-q', path, *words], text=True, timeout=60,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    assert done.returncode == 0, done.stdout
    return done.stdout


def until_said(guest, pattern):
    end = time.monotonic() + 180     # a boot on a busy host, too
    while not re.search(pattern, guest.qemu_log):
        assert guest.alive(), f'QEMU has ended:\n{guest.qemu_log}'
        assert time.monotonic() < end, guest.qemu_log + guest.console[-500:]
        time.sleep(0.1)


def can_be_asked(path):
    """The VM stands, and all that was traced is there."""
    assert 'blocks.live' in ask(path, 'stat')
    assert ' alloc[' in ask(path, 'regs') + ask(path, 'stack')
    assert ' alloc[' in ask(path, 'alloc', 'start_kernel', '-n', '1')


def share_with(folder, kernel, word):
    """Make a share whose workload, end, runs WORD."""
    share = oracle.make_share(os.path.join(folder, 'share'), [], kernel,
                              modules=word == TRIPLE)
    with open(os.path.join(share, 'end.sh'), 'w', encoding='ascii') as f:
        f.write(word + '\n')
    return share


def stays(guest, pattern, check=can_be_asked):
    until_said(guest, pattern)
    line, = (s for s in guest.qemu_log.splitlines() if 'paused' in s)
    path = guest.path('qmp.sock')
    assert f'{KA} -q {path}' in line, line
    assert f'"kill {guest.proc.pid}" ends it' in line, line
    assert not guest.qmp('query-status')['running']
    guest.qmp_connection.close()
    check(path)
    guest.proc.send_signal(signal.SIGTERM)
    guest.wait_exit(20)


def end_with(kernel, word, pattern, smp):
    with tempfile.TemporaryDirectory(prefix='ka-panic.') as tmp:
        with Guest(kernel=kernel, smp=smp, run='end', name='panic',
                   share=share_with(tmp, kernel, word),
                   options=['--panic', 'pause']) as g:
            if pattern:
                stays(g, pattern)
            else:
                assert g.wait_exit(60) == 0, g.qemu_log
                assert 'paused' not in g.qemu_log, g.qemu_log


def untold():
    """Without the tracer nothing says why the guest reset the VM, as after a
    triple fault."""
    with tempfile.TemporaryDirectory(prefix='ka-panic.') as tmp:
        with Guest(plugin=False, run='end', name='panic',
                   share=share_with(tmp, '6.12', PANIC),
                   options=['--panic', 'pause']) as g:
            stays(g, r'has reset itself \(a panic, a triple fault or a '
                     r'reboot\): the VM is paused', lambda path: None)


def as_a_user():
    """Without a folder; ended by Ctrl-C."""
    with tempfile.TemporaryDirectory(prefix='ka-panic.') as tmp, \
            subprocess.Popen(
                [RUN, '--append', 'ka.run=end', '--share',
                 share_with(tmp, '6.12', PANIC)],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE, start_new_session=True) as proc:
        try:
            path = None
            for raw in proc.stderr:
                line = raw.decode()
                path = line.split()[1] if line.startswith('QMP:') else path
                if 'paused' in line:
                    break
            can_be_asked(path)
            os.killpg(proc.pid, signal.SIGINT)
            proc.communicate(timeout=30)
        finally:
            if proc.poll() is None:
                os.killpg(proc.pid, signal.SIGKILL)
    assert not os.path.exists(os.path.dirname(path)), 'the folder stays'


def used_folder():
    """A second VM does not take the sockets of the first."""
    with Guest(options=['--paused'], name='used') as g:
        g.qmp('query-status')
        done = subprocess.run([RUN, '--dir', g.dir], text=True, timeout=60,
                              stdin=subprocess.DEVNULL, capture_output=True,
                              check=False)
        assert done.returncode == 1, done
        assert done.stderr.count('\n') == 1, done.stderr
        assert 'another VM uses' in done.stderr, done.stderr
        g.qmp('query-status')


for what, said in ENDS.items():
    with tap.test(f'6.12, {what.split(">")[0]}: ' +
                  ('QEMU ends' if said is None else 'the VM stays')):
        end_with('6.12', what, said, 1)
if not short:
    with tap.test('6.1 on 4 vCPUs panics: the VM stays'):
        end_with('6.1', PANIC, ENDS[PANIC], 4)
    with tap.test('6.1 on 4 vCPUs has a triple fault: the VM stays'):
        end_with('6.1', TRIPLE, ENDS[TRIPLE], 4)
with tap.test('a reset of which nothing is known: the VM stays'):
    untold()
with tap.test('a panic of a guest that a user started'):
    as_a_user()
with tap.test('a folder whose sockets another VM uses is refused'):
    used_folder()
tap.done()
