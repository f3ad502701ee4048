#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Make the guest's initramfs: a cpio archive, the same bytes for the same
inputs, made without root (the device node is only a header in the archive).
"""
import argparse
import os
import stat

FOLDERS = ['bin', 'dev', 'proc', 'sys', 'tmp', 'ka', 'mnt', 'share',
           'share/out']


class Cpio:
    """Writer of the newc format (Documentation: buffer-format.rst)."""

    def __init__(self, out):
        self.out, self.ino = out, 0

    def add(self, name, mode, data=b'', rdev=(0, 0)):
        self.ino += 1
        raw = name.encode() + b'\0'
        fields = [self.ino, mode, 0, 0, 1, 0, len(data), 0, 0, *rdev,
                  len(raw), 0]
        head = b'070701' + b''.join(b'%08x' % f for f in fields)
        for part in (head + raw, data):
            self.out.write(part + b'\0' * (-len(part) % 4))

    def close(self):
        self.add('TRAILER!!!', 0)


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument('--busybox', required=True)
    ap.add_argument('--tree', required=True,
                    help='init goes to /init, *.sh to /ka')
    ap.add_argument('--output', required=True)
    args = ap.parse_args()
    with open(args.output, 'wb') as out:
        cpio = Cpio(out)
        for name in FOLDERS:
            cpio.add(name, stat.S_IFDIR | 0o755)
        cpio.add('dev/console', stat.S_IFCHR | 0o600, rdev=(5, 1))
        with open(args.busybox, 'rb') as f:
            cpio.add('bin/busybox', stat.S_IFREG | 0o755, f.read())
        cpio.add('bin/sh', stat.S_IFLNK | 0o777, b'busybox')
        for name in sorted(os.listdir(args.tree)):
            with open(os.path.join(args.tree, name), 'rb') as f:
                where = name if name == 'init' else 'ka/' + name
                cpio.add(where, stat.S_IFREG | 0o755, f.read())
        cpio.close()


if __name__ == '__main__':
    main()
