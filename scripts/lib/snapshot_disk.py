# SPDX-License-Identifier: GPL-2.0-or-later
"""An empty disk for savevm and loadvm, and QEMU's arguments for it. The guest
does not see the disk.

usage: snapshot_disk.py FILE
"""
import struct
import sys

CLUSTER = 1 << 16
NODE = 'vmstate'        # what QMP calls the disk of drive()


def make_disk(path, size=4 << 30):
    """Make an empty qcow2 file, for snapshots; return its path. Snapshots need
    no room on the disk itself: the file grows behind it. Version 2: a header,
    one page of the refcount table, and no data."""
    entries = -(-size // (CLUSTER * CLUSTER // 8))
    head = struct.pack('>4sIQIIQIIQQIIQ', b'QFI\xfb', 2, 0, 0, 16, size, 0,
                       entries, 3 * CLUSTER, CLUSTER, 1, 0, 0)
    with open(path, 'wb') as f:
        for part in (head, struct.pack('>Q', 2 * CLUSTER),
                     struct.pack('>H', 1) * 4, b''):
            f.write(part.ljust(CLUSTER, b'\0'))
    return path


def drive(path):
    return ['-drive', f'if=none,id=snapshots,node-name={NODE},format=qcow2,'
            f'file={path}']


if __name__ == '__main__':
    make_disk(sys.argv[1])
