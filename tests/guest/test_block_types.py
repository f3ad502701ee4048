#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`ka type` says of an object what the kernel's own pointers say, or that it
does not know.

Oracle: a walk from init_task, by the members of the guest's own types: tasks,
what they point to, their open files, and what these point to. Each pointer has
a type. An object that lies in a larger one (an inode, a mount) must be the
member that the pointer means. Also, the answer is noted for some blocks of
kmalloc() that the walk does not reach.

usage: test_block_types.py [--short] [--kernel K]...
"""
import json
import os
import random
import struct
import tempfile
from collections import Counter

from lib import ftrace, gmem, ksyms, oracle, programs
from lib.btf import Btf
from lib.tap import Tap
from scripts.lib.guest import Guest

KERNELS = '6.12', '5.10', '6.1', '6.18', '7.3', 'arm64-6.12', 'riscv64-6.12'
FDS = 4             # of each process
FILES = 40
SAMPLE = 30         # blocks of kmalloc(), each with a search of all memory
FIFO, KIND = 0o010000, 0o170000
# Where pointers of objects lead to: struct -> (path, struct).
LEADS = {
    'task_struct': [(['nsproxy'], 'nsproxy'), (['thread_pid'], 'pid')],
    'cred': [(['user'], 'user_struct')],
    'files_struct': [(['fdt'], 'fdtable')],
    'file': [(['f_inode'], 'inode'), (['f_path', 'dentry'], 'dentry'),
             (['f_cred'], 'cred'), (['f_path', 'mnt'], 'vfsmount')],
    'dentry': [(['d_sb'], 'super_block'), (['d_parent'], 'dentry')],
    'mm_struct': [(['exe_file'], 'file')],
}
# Members of structs that are themselves structs.
INNER = {'f_path': 'path'}


class Walk:
    """All objects that pointers lead to: {address: struct}."""

    def __init__(self, guest, files):
        symbols = ksyms.Symbols(files['proc.kallsyms'])
        self.btf = Btf(files['btf.vmlinux'])
        self.memory = gmem.Memory(guest)
        self.image = symbols.address('_text'), symbols.address('_end')
        self.found = {}
        self.todo = []
        tasks = gmem.Tasks(self.memory, self.btf, symbols.address('init_task'))
        for va, _, pointers in tasks.walk():
            self.add(va, 'task_struct')
            for (_, name), pointer in pointers.items():
                self.add(pointer, name)
        while self.todo:
            self.follow(*self.todo.pop())

    def add(self, va, name):
        if va and not self.image[0] <= va < self.image[1] and \
                va not in self.found:
            self.found[va] = name
            self.todo.append((va, name))

    def at(self, name, path):
        offset = 0
        for member in path:
            offset += self.btf.offset(name, member)
            name = INNER.get(member)
        return offset

    def follow(self, va, name):
        for path, target in LEADS.get(name, ()):
            if target == 'fdtable':
                self.follow_files(va)
            else:
                self.add(self.memory.u64(va + self.at(name, path)), target)
        if name == 'inode':
            self.follow_inode(va)

    def follow_files(self, va):
        """The first table of a process lies in its files_struct."""
        table = self.memory.u64(va + self.at('files_struct', ['fdt']))
        if table != va + self.at('files_struct', ['fdtab']):
            self.add(table, 'fdtable')
        fds = self.memory.u64(table + self.at('fdtable', ['fd']))
        for file in struct.unpack(f'<{FDS}Q', self.memory.read(fds, 8 * FDS)):
            if list(self.found.values()).count('file') < FILES:
                self.add(file, 'file')

    def follow_inode(self, va):
        mode, = struct.unpack('<H', self.memory.read(
            va + self.at('inode', ['i_mode']), 2))
        if mode & KIND == FIFO:
            self.add(self.memory.u64(va + self.at('inode', ['i_pipe'])),
                     'pipe_inode_info')


def ask(guest, va):
    """Return (block, candidates) of `ka type`."""
    rows = [json.loads(line) for line in
            guest.hmp_qmp(f'ka type {va:x} -j').splitlines()]
    return rows[0], [r for r in rows if r.get('type') == 'block_type']


def is_right(va, name, block, found):
    """Return whether the one certain candidate is what a pointer to NAME
    means: the block, or the member of it that is there."""
    at = va - int(block['va'], 16)
    member = found['member'].split('.') if at else []
    if not at:
        # The first member may be the struct that the pointer means.
        return found['name'] == name or name in ('inode', 'vfsmount')
    return {'inode': 'inode', 'vfsmount': 'mnt'}.get(name, '?') in member[0]


def check_walk(tap, label, guest, found):
    known, asked, wrong = Counter(), Counter(), []
    for va, name in found.items():
        block, candidates = ask(guest, va)
        assert 'va' in block, f'{name} {va:x}: {block}'
        asked[name] += 1
        for c in candidates:
            if c['sure'] == 'yes' and not is_right(va, name, block, c):
                wrong.append(f'{name} {va:x}: {c["text"]}')
        if len(candidates) == 1 and candidates[0]['sure'] == 'yes':
            known[name] += 1
    tap.note(f'{label}: ' + ', '.join(f'{known[n]} of {asked[n]} {n}'
                                      for n in sorted(asked)))
    tap.figures('types', kernel=label, asked=sum(asked.values()),
                known=sum(known.values()), wrong=len(wrong))
    assert not wrong, '\n'.join(wrong)
    assert known['task_struct'] == asked['task_struct'] > 10, known
    # The cache of files is shared with others in some kernels (6.1).
    assert known['pipe_inode_info'], known


def sample(tap, label, guest, found):
    """Note what is known of blocks of kmalloc(). Nothing says what is right;
    but several certain candidates would contradict each other."""
    text = guest.hmp_qmp('ka 0-ffffffffffffffff --layer kmalloc --state A '
                         '-n 0 -j')
    rows = [json.loads(line) for line in text.splitlines()]
    vas = [int(r['va'], 16) for r in rows if r.get('type') == 'block']
    by = Counter()
    for va in random.Random(1).sample(vas, min(SAMPLE, len(vas))):
        candidates = [] if va in found else ask(guest, va)[1]
        assert sum(c['sure'] == 'yes' for c in candidates) <= 1, candidates
        by[candidates[0]['by'] if candidates else 'unknown'] += 1
        for c in candidates:
            tap.note(f'{label}: {va:x} {c["text"]}')
    tap.note(f'{label}: of {sum(by.values())} blocks of kmalloc(): ' +
             ', '.join(f'{n} {how}' for how, n in sorted(by.items())))


def run(tap, kernel):
    with tempfile.TemporaryDirectory(prefix='ka-types.') as tmp:
        share = oracle.make_share(os.path.join(tmp, 'share'),
                                  ['oracle-state.sh'], kernel)
        with Guest(kernel=kernel, run='oracle-state', n=1, share=share,
                   out=os.path.join(tmp, 'out'), cmdline='no_hash_pointers',
                   end='shell', timeout=600, name=f'types-{kernel}') as g:
            assert g.wait_done() == 0, 'the workload failed'
            files = ftrace.read_out(g.collect())
            # A pipe with both ends open, once the last process has it.
            g.shell('sleep 1000 | sleep 1000 & '
                    'until readlink /proc/$!/fd/0 | grep -q pipe; do :; done')
            g.qmp('stop')
            if ksyms.Symbols(files['proc.kallsyms']).address(
                    'init_task') is None:
                tap.skip(f'{kernel}: objects have their types',
                         'where is init_task?')
                return
            walk = Walk(g, files)
            with tap.test(f'{kernel}: objects have their types'):
                check_walk(tap, kernel, g, walk.found)
            with tap.test(f'{kernel}: blocks of kmalloc()'):
                sample(tap, kernel, g, walk.found)


def main():
    ap = programs.arguments(__doc__, short='6.12 only', smp=False)
    args, tap = programs.parse(ap, KERNELS), Tap()
    for kernel in args.kernel:
        run(tap, kernel)
    tap.done()


if __name__ == '__main__':
    main()
