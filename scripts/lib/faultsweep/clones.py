# SPDX-License-Identifier: GPL-2.0-or-later
"""A restorer that makes clones of a template. The template's memory is a file,
which each clone maps as a private copy on write; its devices are a VM state in
a second file. Each run is a process of its own, so nothing of one run can reach
the next: nothing that a run leaves in QEMU, and no crash of it."""
import atexit
import os
import shutil
import tempfile
import threading
import time

from ..guest import Guest
from ..prepared import kernel_arch
from ..qmp import GuestError
from .restore import Vm, fast_folder, last_seq, prefix, start_guest
from .runner import guest_us
from .scenario import READY

WAIT_SECONDS = 120
POLL_SECONDS = 0.005
ARM_SECONDS = 20        # until accesses are checked


def ram_object(path, size, more):
    """Return QEMU's argument for memory in a file. -m counts MiB if its number
    has no unit, an object counts bytes."""
    size += 'M' * size.isdigit()
    path = path.replace(',', ',,')
    return f'memory-backend-file,id=ka-ram,size={size},mem-path={path},{more}'


def clone_words(words, ram, size):
    """Return the command line of a clone: that of its template, with a private
    mapping of the memory, and the state still to come."""
    words = list(words)
    words[words.index(ram_object(ram, size, 'share=on'))] = ram_object(
        ram, size, 'share=off,readonly=on,rom=off')
    return [*words, '-S', '-incoming', 'defer']


def refuse_written_disks(guest):
    """-snapshot gives each VM its own view of a disk, which is as the file. So
    a clone does not see what the template has written."""
    for row in guest.qmp('query-blockstats'):
        if row['stats']['wr_operations']:
            raise GuestError(f"the guest writes to disk {row['device']} before "
                             'the scenario begins; the scenario itself may')


def ignore_shared(guest):
    """Leave the memory out of the state: it is in a file already."""
    guest.qmp('migrate-set-capabilities', capabilities=[
        {'capability': 'x-ignore-shared', 'state': True}])


def wait_for(guest, read, good, bad=()):
    """Wait until read() returns GOOD."""
    end = time.monotonic() + WAIT_SECONDS
    while True:
        found = read()
        if found == good:
            return
        if found in bad or time.monotonic() > end:
            raise GuestError(f'the state of the VM: {found}: '
                             + guest.qemu_log[-500:])
        time.sleep(POLL_SECONDS)


def plug(guest, devices):
    """Plug in devices that a saved state cannot have."""
    for number, device in enumerate(devices):
        line = f'device_add {device},id=ka-plug{number}'
        text = guest.hmp_qmp(line).strip()
        if text:
            raise GuestError(f'{line}: {text}')


def check_accesses(guest):
    """Begin to check accesses. This happens a moment later, on a vCPU."""
    said = guest.hmp_qmp('ka access on').strip()
    end = time.monotonic() + ARM_SECONDS
    while True:
        row = guest.rows('ka access')[0]
        if row['armed']:
            return
        if time.monotonic() > end:
            raise GuestError(f"ka access on: {said}; ka access: {row['text']}")
        time.sleep(POLL_SECONDS)


class Template:
    """The files of a template, and the command line of its clones. The first
    restorer that needs it makes it, the others wait."""

    def __init__(self, scenario):
        self.scenario = scenario
        self.dir = tempfile.mkdtemp(prefix=prefix(), dir=fast_folder())
        atexit.register(self.close)
        self.ram = os.path.join(self.dir, 'ram')
        self.state = os.path.join(self.dir, 'state')
        self.lock = threading.Lock()
        self.argv = None        # folder of a clone -> its command line
        self.arch = self.pid = self.seq = None
        self.us = None          # time of the VM's clock, of the state

    def make(self):
        with self.lock:
            if not self.argv:
                self._make()

    def _make(self):
        share = self.scenario.make_share(os.path.join(self.dir, 'share'))
        guest = start_guest(self.scenario, share, 'fault-sweep-template', [
            '-object', ram_object(self.ram, self.scenario.mem, 'share=on'),
            '-machine', 'memory-backend=ka-ram', '-snapshot'])
        try:
            pid = int(guest.wait_marker(READY).split()[1])
            guest.qmp('stop')
            refuse_written_disks(guest)
            self.pid, self.seq = pid, last_seq(guest)
            self.us = guest_us(guest)
            self.arch = kernel_arch(self.scenario.kernel)
            argv = self._clone_argv(guest)
            self._save(guest)
        finally:
            guest.stop()
        self.argv = argv

    def _save(self, guest):
        ignore_shared(guest)
        guest.qmp('migrate', uri='file:' + self.state)
        wait_for(guest, lambda: guest.qmp('query-migrate').get('status'),
                 'completed', ('failed', 'cancelled'))

    def _clone_argv(self, guest):
        """Return a function: folder of a clone -> its command line."""
        with open(f'/proc/{guest.proc.pid}/cmdline', 'rb') as f:
            words = f.read().decode().split('\0')[:-1]
        if '-initrd' in words:      # it is in the folder of the guest
            at = words.index('-initrd') + 1
            words[at] = shutil.copy(words[at],
                                    os.path.join(self.dir, 'initrd'))
        words = clone_words(words, self.ram, self.scenario.mem)
        return lambda folder: [w.replace(guest.dir, folder) for w in words]

    def close(self):
        shutil.rmtree(self.dir, ignore_errors=True)


class Clones:
    """restore() starts a clone, collect() ends it."""

    def __init__(self, template):
        self.template = template
        self.vm = None

    def restore(self):
        self.template.make()
        guest = Guest(kernel=self.template.scenario.kernel, end=None,
                      arch=self.template.arch, name='fault-sweep',
                      argv=self.template.argv, timeout=WAIT_SECONDS,
                      ends_with_us=True)
        self.vm = Vm(guest, self.template.pid, self.template.seq)
        ignore_shared(guest)
        guest.qmp('migrate-incoming', uri='file:' + self.template.state)
        wait_for(guest, lambda: guest.qmp('query-status')['status'], 'paused')
        plug(guest, self.template.scenario.plug)
        if self.template.scenario.access:
            check_accesses(guest)
        return self.vm

    def collect(self, vm):
        vm.guest.kill()
        self.vm = None

    def close(self):
        if self.vm:
            self.collect(self.vm)
