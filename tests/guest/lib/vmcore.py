# SPDX-License-Identifier: GPL-2.0-or-later
"""Readers of the files of QMP's dump-guest-memory.

An ELF file has notes and the guest's physical memory, in the layout of the ELF
specification and of Linux' struct elf_prstatus (include/linux/elfcore.h). A
compressed file has physical memory, in the layout of makedumpfile's document
IMPLEMENTATION. QEMU writes it in pieces (makedumpfile's flattened format);
unflatten() puts these together.
"""

import mmap
import struct
import zlib

PT_LOAD, PT_NOTE = 1, 4
NT_PRSTATUS = 1
REGS_AT = 112           # pr_reg in a 64-bit struct elf_prstatus

X86_64 = ('R15 R14 R13 R12 RBP RBX R11 R10 R9 R8 RAX RCX RDX RSI RDI '
          'ORIG_RAX RIP CS RFL RSP SS').split()
# Registers in the order of the kernel's struct user_regs_struct.
ORDER = {
    'x86_64': X86_64,
    'aarch64': [f'X{i:02}' for i in range(31)] + ['SP', 'PC', 'PSTATE'],
    'riscv64': ['pc'] + [f'x{i}' for i in range(1, 32)],
}


def unflatten(path, to):
    """Write the pieces of the dump at PATH to their places in the file TO. A
    header of one page precedes the pieces. Each is (place, length, bytes),
    big-endian; a negative place ends the list."""
    with open(path, 'rb') as flat, open(to, 'wb') as out:
        assert flat.read(4096).startswith(b'makedumpfile\0'), 'not flattened'
        while True:
            at, size = struct.unpack('>qq', flat.read(16))
            if at < 0:
                return
            out.seek(at)
            out.write(flat.read(size))


def add_note(path, name, data):
    """Add a note to an ELF dump: move all notes to the end of the file."""
    with open(path, 'r+b') as f:
        head = f.read(64)
        at, = struct.unpack_from('<Q', head, 32)
        each, count = struct.unpack_from('<HH', head, 54)
        for i in range(count):
            f.seek(at + i * each)
            row = list(struct.unpack('<IIQQQQQQ', f.read(56)))
            if row[0] == PT_NOTE:
                break
        f.seek(row[2])
        notes = f.read(row[5])
        name = name.encode() + b'\0'
        notes += struct.pack('<III', len(name), len(data), 0) + \
            name.ljust(len(name) + 3 & ~3, b'\0') + \
            data.ljust(len(data) + 3 & ~3, b'\0')
        row[2], row[5] = f.seek(0, 2), len(notes)
        row[6] = row[5]
        f.write(notes)
        f.seek(at + i * each)
        f.write(struct.pack('<IIQQQQQQ', *row))


class Kdump:
    """A compressed dump after unflatten()."""

    HEAD = struct.Struct('<iiiii')      # behind the names and the time
    DESC = struct.Struct('<qIIQ')
    ZLIB = 1

    def __init__(self, path):
        with open(path, 'rb') as f:
            self.data = f.read()
        assert self.data[:8] == b'KDUMP   ', 'no compressed dump'
        _, self.block, sub, bitmaps, _ = self.HEAD.unpack_from(self.data, 424)
        half = bitmaps // 2 * self.block
        at = (1 + sub) * self.block + half      # the second: pages in the dump
        bits = self.data[at:at + half]
        desc = at + half
        self.place = {}
        for i, byte in enumerate(bits):
            for bit in range(8) if byte else ():
                if byte >> bit & 1:
                    self.place[8 * i + bit] = desc
                    desc += self.DESC.size

    def read(self, pa, size):
        """Return physical memory inside one block, None if the dump does not
        have it."""
        desc = self.place.get(pa // self.block)
        if desc is None:
            return None
        at, length, flags, _ = self.DESC.unpack_from(self.data, desc)
        block = self.data[at:at + length]
        if flags & self.ZLIB:
            block = zlib.decompress(block)
        return block[pa % self.block:][:size]


class Vmcore:
    """An open ELF dump. regs is [{register: value}] of its vCPUs; virtual says
    whether its memory has virtual addresses."""

    def __init__(self, path, arch):
        with open(path, 'rb') as f:
            self.data = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
        assert self.data[:6] == b'\x7fELF\x02\x01', 'no 64-bit ELF file'
        self.loads, self.notes, self.virtual = [], [], False
        at, = struct.unpack_from('<Q', self.data, 32)
        each, count = struct.unpack_from('<HH', self.data, 54)
        for i in range(count):
            kind, _, offset, va, pa, size = struct.unpack_from(
                '<IIQQQQ', self.data, at + i * each)
            if kind == PT_LOAD:
                self.loads.append((pa, size, offset))
                self.virtual = self.virtual or va not in (0, pa)
            elif kind == PT_NOTE:
                self.notes += self._notes(offset, offset + size)
        self.regs = [self._regs(desc, ORDER[arch])
                     for name, kind, desc in self.notes
                     if (name, kind) == ('CORE', NT_PRSTATUS)]

    def _notes(self, at, end):
        while at + 12 <= end:
            name, desc, kind = struct.unpack_from('<III', self.data, at)
            start = at + 12 + (name + 3 & ~3)
            yield (self.data[at + 12:at + 12 + name].rstrip(b'\0').decode(),
                   kind, self.data[start:start + desc])
            at = start + (desc + 3 & ~3)

    @staticmethod
    def _regs(desc, order):
        values = struct.unpack_from(f'<{len(order)}Q', desc, REGS_AT)
        return dict(zip(order, values))

    def note(self, name):
        """Return the contents of a note, None if there is none."""
        return next((d for n, _, d in self.notes if n == name), None)

    def read(self, pa, size):
        """Return physical memory, None if the dump does not have it."""
        for start, length, offset in self.loads:
            if start <= pa and pa + size <= start + length:
                at = offset + pa - start
                return self.data[at:at + size]
        return None

    def close(self):
        self.data.close()
