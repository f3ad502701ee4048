# SPDX-License-Identifier: GPL-2.0-or-later
"""The memory of a stopped guest, by kernel address, and its tasks."""

import os
import struct

from scripts.lib.qmp import GuestError


class Memory:
    """Guest memory, read by QMP's memsave. It walks the page tables that a vCPU
    has at this moment. A vCPU that was stopped in firmware (riscv64's machine
    mode) has none; then another vCPU is used."""

    def __init__(self, guest):
        self.guest = guest
        self.file = guest.path('memory')
        self.vcpus = [cpu['cpu-index']
                      for cpu in guest.qmp('query-cpus-fast')]

    def _save(self, va, size):
        error = None
        for _ in range(len(self.vcpus)):
            try:
                # QMP's integers are signed.
                return self.guest.qmp('memsave', size=size, filename=self.file,
                                      val=va - (1 << 64) if va >> 63 else va,
                                      cpu_index=self.vcpus[0])
            except GuestError as e:
                error = e
                self.vcpus.append(self.vcpus.pop(0))
        raise error

    def read(self, va, size):
        self._save(va, size)
        with open(self.file, 'rb') as f:
            data = f.read()
        os.unlink(self.file)
        return data

    def u64(self, va):
        return struct.unpack('<Q', self.read(va, 8))[0]


class Tasks:
    """A walk over init_task with the offsets of the guest's own BTF."""

    # Pointers of a task_struct, and the structs that they point to.
    POINTERS = (('mm', 'mm_struct'), ('active_mm', 'mm_struct'),
                ('files', 'files_struct'), ('fs', 'fs_struct'),
                ('real_cred', 'cred'), ('cred', 'cred'),
                ('signal', 'signal_struct'), ('sighand', 'sighand_struct'))

    def __init__(self, memory, btf, init_task):
        self.memory, self.btf, self.init_task = memory, btf, init_task
        self.size = btf.size('task_struct')

    def _field(self, data, name, fmt='<Q'):
        at = self.btf.offset('task_struct', name)
        return struct.unpack_from(fmt, data, at)[0]

    def walk(self):
        """Yield (address, name, {(member, struct): pointer}) of each thread,
        except the first task, which is not allocated."""
        tasks = self.btf.offset('task_struct', 'tasks')
        leader, seen = self.init_task, set()
        while leader not in seen:
            seen.add(leader)
            data = self.memory.read(leader, self.size)
            for va in self._threads(leader, data):
                thread = data if va == leader else \
                    self.memory.read(va, self.size)
                if va != self.init_task:
                    yield va, self._comm(thread), self._pointers(thread)
            leader = self._field(data, 'tasks') - tasks

    def _threads(self, leader, data):
        node = self.btf.offset('task_struct', 'thread_node')
        head = self._field(data, 'signal') + \
            self.btf.offset('signal_struct', 'thread_head')
        threads, at = [leader], self._field(data, 'thread_node')
        while at != head and at - node not in threads:
            threads.append(at - node)
            at = self.memory.u64(at)
        return threads

    def _comm(self, data):
        at = self.btf.offset('task_struct', 'comm')
        return data[at:at + 16].split(b'\0')[0].decode('latin-1')

    def _pointers(self, data):
        return {pair: self._field(data, pair[0]) for pair in self.POINTERS}
