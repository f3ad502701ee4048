# SPDX-License-Identifier: GPL-2.0-or-later
"""A VM in the state in which the scenario begins, as often as it is wanted.

A restorer has two functions: restore() returns a paused VM in that state, and
collect() takes it back when its run was looked at. close() ends all.
"""
import atexit
import os
import shutil
import tempfile
import time

from ..guest import Guest
from ..qmp import GuestError
from ..snapshot_disk import drive, make_disk
from .scenario import NAME, READY

STATE = 'ready'
# The VM stays when its guest has ended.
ACTIONS = ['-action', 'reboot=shutdown,shutdown=pause,panic=pause']
# With so many lines in the log of faults a process makes no other run. The log
# takes 65536, and a loop that tries for ever adds tens of thousands.
LOG_LINES = 1000
PLUG_SECONDS = 30
BOOT_SECONDS = 240


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

    def __init__(self, guest, pid, seq=None):
        self.guest = guest
        self.pid = pid              # of the process that runs the scenario
        # Number of the last line of the kernel's log.
        self.seq = last_seq(guest) if seq is None else seq
        self.console_at = 0         # where the console of this run begins
        self.log_lines = 0          # lines that runs added to the log of faults

    def mark_console(self):
        self.console_at = os.path.getsize(self.guest.path('serial.log'))

    def console(self):
        with open(self.guest.path('serial.log'), 'rb') as f:
            f.seek(self.console_at)
            return f.read().decode('utf-8', 'replace').replace('\r', '')


def start_guest(scenario, share, name, qemu=(), options=()):
    """Start a guest that runs the scenario's script."""
    more = list(options)
    if scenario.initrd:
        more += ['--initrd', scenario.initrd]
    if scenario.smp == 1:
        more.append('--icount')
    return Guest(kernel=scenario.kernel, smp=scenario.smp, mem=scenario.mem,
                 run=NAME, end=None, cmdline=scenario.append, share=share,
                 name=name, options=more, timeout=BOOT_SECONDS,
                 qemu=[*scenario.qemu, *ACTIONS, *qemu], ends_with_us=True)


def last_seq(guest):
    """Return the kernel's number of the last line that it printed."""
    rows = guest.rows('ka log -n 1')
    return max([r['seq'] for r in rows if r.get('type') == 'log'] or [-1])


class Loadvm:
    """One QEMU, which loads its own snapshot before each run."""

    def __init__(self, scenario, name='fault-sweep'):
        self.scenario, self.name = scenario, name
        self.dir = tempfile.mkdtemp(prefix=prefix(), dir=fast_folder())
        atexit.register(shutil.rmtree, self.dir, True)
        self.share = scenario.make_share(os.path.join(self.dir, 'share'))
        self.vm = None
        self.fresh = False      # no run has changed the VM yet

    def _boot(self):
        disk = make_disk(os.path.join(self.dir, 'state.qcow2'))
        guest = start_guest(self.scenario, self.share, self.name, drive(disk))
        try:
            pid = int(guest.wait_marker(READY).split()[1])
            guest.qmp('stop')
            self.vm = Vm(guest, pid)
            self._monitor('savevm ' + STATE)
        except BaseException:
            guest.stop()
            raise
        self.fresh = True

    def _monitor(self, line):
        text = self.vm.guest.hmp_qmp(line).strip()
        if text:
            raise GuestError(f'{line}: {text}')

    def _load(self):
        guest = self.vm.guest
        # A VM whose guest has ended cannot continue before a reset.
        if guest.qmp('query-status')['status'] not in ('paused', 'prelaunch'):
            guest.qmp('set_action', reboot='reset')
            del guest.qmp_connection.events[:]
            guest.qmp('system_reset')
            guest.qmp_connection.wait_event('RESET')
            guest.qmp('set_action', reboot='shutdown')
        for number in range(len(self.scenario.plug)):
            self._monitor(f'device_del ka-plug{number}')
        self._monitor('loadvm ' + STATE)

    def _plug(self):
        # QEMU lets go of a chardev some time after the device was taken out.
        end = time.monotonic() + PLUG_SECONDS
        for number, device in enumerate(self.scenario.plug):
            line = f'device_add {device},id=ka-plug{number}'
            while text := self.vm.guest.hmp_qmp(line).strip():
                if 'in use' not in text or time.monotonic() > end:
                    raise GuestError(f'{line}: {text}')
                time.sleep(0.02)

    def restore(self):
        if self.vm and self.vm.log_lines > LOG_LINES:
            self.drop()
        if not self.vm:
            self._boot()
        if not self.fresh:
            self._load()
        self.fresh = False
        self._plug()
        self.vm.mark_console()
        return self.vm

    def collect(self, vm, good=True):
        """Take a VM back. If it is not GOOD, the next one is a new process."""
        if not good:
            self.drop()
        else:
            vm.guest.hmp_qmp('ka fault del all')

    def drop(self):
        if self.vm:
            self.vm.guest.stop()
        self.vm = None

    def close(self):
        self.drop()
        shutil.rmtree(self.dir, ignore_errors=True)
