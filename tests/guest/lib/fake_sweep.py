# SPDX-License-Identifier: GPL-2.0-or-later
"""A stand-in for the VM of a fault sweep: it answers the commands of ka."""
import os
import re
import shutil
import tempfile

from scripts.lib.faultsweep.restore import Vm

MARKER = '\nKA-SWEEP-READY 7\n'
STACKS = {
    '0x0000000000000001': ('first+0x1[kf]', 2),
    '0x0000000000000002': ('second+0x1[kf]', 1),
    '0x0000000000000003': ('third+0x1[kf]', 1),
}


class FakeGuest:
    """What a call that fails leads to is in BROKEN: {stackid: kind}."""

    def __init__(self, broken):
        self.broken = broken
        self.dir = tempfile.mkdtemp(prefix='ka-fake.')
        self.added, self.us, self.running, self.hung = [], 1000, False, False
        self.print(MARKER)

    def path(self, name):
        return os.path.join(self.dir, name)

    def print(self, text):
        with open(self.path('serial.log'), 'a', encoding='ascii') as f:
            f.write(text)

    @staticmethod
    def alive():
        return True

    def failing(self):
        found = re.search(r'stackid == (0x\w+)', ' '.join(self.added))
        return found[1] if found else None

    def type(self, text):
        if text != '\n':
            self.print('\nKA-SWEEP-UNLOADED\n')
            return
        self.hung = self.broken.get(self.failing()) == 'hang'
        if not self.hung:
            status = 1 if self.failing() else 0
            self.print(f'\nKA-SWEEP-DONE {status}\n')

    def qmp(self, name, **_):
        if name == 'cont':
            self.running = True
        elif name == 'stop':
            self.running = False
        return {'status': 'running', 'running': True}

    @staticmethod
    def hmp_qmp(_):
        return ''

    def rows(self, line):
        kind = self.broken.get(self.failing())
        words = line.split()
        if line.startswith('ka fault add'):
            self.added.append(line)
            return [{'type': 'fault_added', 'rule': len(self.added)}]
        name = ' '.join(words[1:3])
        if name == 'top -n':
            self.us += 10000000 * self.hung
            return [{'type': 'top_all', 'us': self.us}]
        if name == 'fault list':
            return [{'rule': 1, 'done': 1, 'refused_log_full': 0}]
        if line.startswith('ka fault log --by stack'):
            return [{'rule': 1, 'stackid': h, 'selected': n, 'cut': 0,
                     'function': '__kmalloc', 'size': 8, 'flags': '0xcc0',
                     'chance': 'rare', 'frames': f, 'calls': n}
                    for h, (f, n) in STACKS.items()]
        if name == 'fault log':
            return [{'rule': 1, 'function': '__kmalloc', 'value': '0x0',
                     'size': 8, 'flags': '0xcc0', 'frames': 'first+0x1[kf]'}]
        if name == 'mod -v':
            return [{'type': 'loaded_module', 'name': 'kf',
                     'state': 'unloaded', 'unloaded_us': self.us}]
        if name == 'mod -n':
            return [{'type': 'loaded_module', 'name': 'kf', 'state': 'Live',
                     'refs': 1, 'users': 'none'}] * (kind == 'stuck')
        if name == 'log -n' and kind == 'oops':
            return [{'type': 'log', 'seq': 9, 'facility': 0, 'stack': 'f+0x1',
                     'text': 'Oops: 0002 [#1]'}]
        if name == 'leak scan' and kind == 'leak':
            return [{'type': 'block', 'va': '0x1', 'requested': 8,
                     'alloc_symbols': ['second+0x1[kf]']}]
        if name == 'leak module':
            return [{'type': 'module', 'name': 'kf', 'unloaded_us': 10000},
                    {'type': 'block', 'va': '0x2', 'kept': 'percpu',
                     'alloc_symbols': [f'of_{self.failing()}+0x1']}]
        return []


class FakeRestorer:
    """Counts what is restored."""

    def __init__(self, broken):
        self.broken = broken
        self.restored = 0

    def restore(self):
        self.restored += 1
        return Vm(FakeGuest(self.broken), 7, -1)

    def collect(self, vm):
        shutil.rmtree(vm.guest.dir)

    def close(self):
        pass
