# SPDX-License-Identifier: GPL-2.0-or-later
"""A VM in the state in which the scenario begins, as often as it is wanted.

A restorer has two functions: restore() returns a paused VM in that state, and
collect() takes it back when its run was looked at. close() ends all.
"""
import os
import shutil
import tempfile

from ..guest import Guest
from .scenario import NAME

# The VM stays when its guest has ended.
ACTIONS = ['-action', 'reboot=shutdown,shutdown=pause,panic=pause']
BOOT_SECONDS = 240
# The kernel prints the stack of a task that waits so long: no run takes less
# until it is a hang, so it can say where the task waits.
CMDLINE = 'sysctl.kernel.hung_task_timeout_secs=5'
PREFIX = 'ka-fault-sweep.'


def prefix():
    """Return the beginning of the names of this process's folders."""
    return f'{PREFIX}{os.getpid()}.'


def remove_old():
    """Remove the folders of sweeps that were killed."""
    base = fast_folder()
    for name in os.listdir(base):
        pid = name[len(PREFIX):].partition('.')[0]
        if name.startswith(PREFIX) and pid.isdigit() and \
                not os.path.exists('/proc/' + pid):
            shutil.rmtree(os.path.join(base, name), ignore_errors=True)


def fast_folder():
    """Return a folder in memory if there is one."""
    shm = '/dev/shm'
    return shm if os.access(shm, os.W_OK) else tempfile.gettempdir()


class Vm:
    """A VM that is paused where the scenario begins."""

    def __init__(self, guest, pid, seq):
        self.guest = guest
        self.pid = pid      # of the process that runs the scenario
        self.seq = seq      # of the last line of the kernel's log

    def console(self):
        with open(self.guest.path('serial.log'), 'rb') as f:
            return f.read().decode('utf-8', 'replace').replace('\r', '')


def start_guest(scenario, share, name, qemu=(), options=()):
    """Start a guest that runs the scenario's script."""
    more = list(options)
    if scenario.initrd:
        more += ['--initrd', scenario.initrd]
    if scenario.smp == 1:
        more.append('--icount')
    return Guest(kernel=scenario.kernel, smp=scenario.smp, mem=scenario.mem,
                 accel=scenario.accel, run=NAME, end=None, share=share,
                 cmdline=f'{CMDLINE} {scenario.append}'.strip(),
                 name=name, options=more, timeout=BOOT_SECONDS,
                 qemu=[*scenario.qemu, *ACTIONS, *qemu], ends_with_us=True)


def last_seq(guest):
    """Return the kernel's number of the last line that it printed."""
    rows = guest.rows('ka log -n 1')
    return max([r['seq'] for r in rows if r.get('type') == 'log'] or [-1])
