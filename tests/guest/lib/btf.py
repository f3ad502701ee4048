# SPDX-License-Identifier: GPL-2.0-or-later
"""Offsets and sizes of the guest's structs, from its /sys/kernel/btf/vmlinux.

The format is that of include/uapi/linux/btf.h (version 1, since 4.18; the
kinds up to BTF_KIND_ENUM64 of 6.0). The tests have their own reader, so that
they do not repeat a mistake of the tracer.
"""

import struct

STRUCT, UNION = 4, 5
# Kind -> bytes that follow the 12 of a type: (fixed, for each member).
TAIL = {1: (4, 0), 3: (12, 0), 4: (0, 12), 5: (0, 12), 6: (0, 8),
        13: (0, 8), 14: (4, 0), 15: (0, 12), 17: (4, 0), 19: (0, 12)}


def plain_btf(data):
    """Return BTF without the layout table of newer kernels, for older
    tools."""
    magic_flags, head = data[:4], int.from_bytes(data[4:8], 'little')
    places = [int.from_bytes(data[i:i + 4], 'little') for i in (8, 12, 16, 20)]
    types = data[head + places[0]:head + places[0] + places[1]]
    names = data[head + places[2]:head + places[2] + places[3]]
    words = (24, 0, len(types), len(types), len(names))
    return magic_flags + b''.join(w.to_bytes(4, 'little') for w in words) + \
        types + names


class Btf:
    def __init__(self, data):
        magic, _, _, head, types, types_len, strings, _ = struct.unpack_from(
            '<HBBIIIII', data)
        if magic != 0xeb9f:
            raise ValueError('not BTF')
        self.data, self.strings = data, head + strings
        self.by_name, self.types = {}, [None]
        at, end = head + types, head + types + types_len
        while at < end:
            name, info, size = struct.unpack_from('<III', data, at)
            kind, n = info >> 24 & 31, info & 0xffff
            fixed, each = TAIL.get(kind, (0, 0))
            if kind in (STRUCT, UNION) and name:
                self.by_name.setdefault(self._string(name),
                                        len(self.types))
            self.types.append((kind, n, size, at, bool(info >> 31)))
            at += 12 + fixed + n * each

    def _string(self, at):
        start = self.strings + at
        return self.data[start:self.data.index(b'\0', start)].decode()

    def size(self, name):
        return self.types[self.by_name[name]][2]

    def offset(self, name, member):
        """Return the byte offset of a member of a struct. Members of
        anonymous structs and unions inside are found too."""
        found = self._find(self.by_name[name], member)
        if found is None:
            raise KeyError(f'struct {name} has no {member}')
        return found

    def _find(self, type_id, member):
        kind, n, _, at, bitfields = self.types[type_id]
        if kind not in (STRUCT, UNION):
            return None
        for i in range(n):
            name, inner, bits = struct.unpack_from('<III', self.data,
                                                   at + 12 + 12 * i)
            offset = (bits & 0xffffff if bitfields else bits) // 8
            if name:
                if self._string(name) == member:
                    return offset
                continue
            deeper = self._find(inner, member)
            if deeper is not None:
                return offset + deeper
        return None
