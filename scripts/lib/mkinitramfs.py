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


def add_file(cpio, path, name):
    st = os.stat(path)
    with open(path, 'rb') as f:
        cpio.add(name, stat.S_IFREG | (st.st_mode & 0o777), f.read())


def add_system(cpio, busybox, tree):
    """The whole of it: folders, console, busybox, init and the workloads."""
    for name in FOLDERS:
        cpio.add(name, stat.S_IFDIR | 0o755)
    cpio.add('dev/console', stat.S_IFCHR | 0o600, rdev=(5, 1))
    add_file(cpio, busybox, 'bin/busybox')
    cpio.add('bin/sh', stat.S_IFLNK | 0o777, b'busybox')
    for name in sorted(os.listdir(tree)):
        where = name if name == 'init' else 'ka/' + name
        add_file(cpio, os.path.join(tree, name), where)


def add_share(cpio, folder):
    """A host folder's files, to be appended to a whole initramfs."""
    for base, dirs, files in os.walk(folder):
        dirs.sort()
        inside = os.path.normpath(
            os.path.join('share', os.path.relpath(base, folder)))
        if inside != 'share':
            cpio.add(inside, stat.S_IFDIR | 0o755)
        for name in sorted(files):
            add_file(cpio, os.path.join(base, name), f'{inside}/{name}')


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument('--busybox')
    ap.add_argument('--tree', help='init goes to /init, *.sh to /ka')
    ap.add_argument('--share', help='make an archive of this folder instead')
    ap.add_argument('--output', required=True)
    args = ap.parse_args()
    with open(args.output, 'wb') as out:
        cpio = Cpio(out)
        if args.share:
            add_share(cpio, args.share)
        else:
            add_system(cpio, args.busybox, args.tree)
        cpio.close()


if __name__ == '__main__':
    main()
