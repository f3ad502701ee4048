#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Make the guest's initramfs, a cpio archive. The same inputs result in the
same bytes. Root is not needed: a device node is only a header in the archive.
"""
import argparse
import lzma
import os
import re
import stat

FOLDERS = ['bin', 'dev', 'proc', 'sys', 'tmp', 'ka', 'mnt', 'share',
           'share/out', 'ka/modules']


class Cpio:
    """Writer of the newc format (buffer-format.rst of the kernel's docs)."""

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


def find_modules(folder):
    """Return {name: path} of the modules in a folder."""
    found = {}
    for base, _, files in os.walk(folder):
        for name in files:
            word, dot, end = name.partition('.ko')
            if dot and end in ('', '.xz'):
                found[word.replace('-', '_')] = os.path.join(base, name)
    return found


def read_module(path):
    with (lzma.open if path.endswith('.xz') else open)(path, 'rb') as f:
        return f.read()


def with_needed(name, found, wanted):
    """Append (name, contents) of a module to WANTED, after the modules that it
    depends on."""
    if name not in found or name in dict(wanted):
        return
    data = read_module(found[name])
    needs = re.search(rb'\0depends=([^\0]*)\0', data).group(1).decode()
    for other in filter(None, needs.split(',')):
        with_needed(other.replace('-', '_'), found, wanted)
    wanted.append((name, data))


def add_modules(cpio, folder, module):
    """Add MODULE and the modules that it needs. Their names sort in the order
    in which init loads them. A module that is built in is skipped."""
    wanted = []
    with_needed(module, find_modules(folder), wanted)
    for i, (name, data) in enumerate(wanted):
        cpio.add(f'ka/modules/{i}-{name}.ko', stat.S_IFREG | 0o644, data)


def add_system(cpio, busybox, tree):
    """Add the whole system: folders, console, busybox, init, workloads."""
    for name in FOLDERS:
        cpio.add(name, stat.S_IFDIR | 0o755)
    cpio.add('dev/console', stat.S_IFCHR | 0o600, rdev=(5, 1))
    add_file(cpio, busybox, 'bin/busybox')
    cpio.add('bin/sh', stat.S_IFLNK | 0o777, b'busybox')
    for name in sorted(os.listdir(tree)):
        where = name if name == 'init' else 'ka/' + name
        add_file(cpio, os.path.join(tree, name), where)


def add_share(cpio, folder):
    """Add the files of a host folder as /share. The archive is appended to a
    whole initramfs."""
    for base, dirs, files in os.walk(folder):
        dirs.sort()
        inside = os.path.normpath(
            os.path.join('share', os.path.relpath(base, folder)))
        cpio.add(inside, stat.S_IFDIR | 0o755)
        for name in sorted(files):
            add_file(cpio, os.path.join(base, name), f'{inside}/{name}')


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument('--busybox')
    ap.add_argument('--modules', help="folder of the kernel's modules")
    ap.add_argument('--module', help='the module to put into /ka/modules')
    ap.add_argument('--tree', help='folder whose init becomes /init; other '
                                       'files go to /ka')
    ap.add_argument('--share', help='make an archive of only this folder')
    ap.add_argument('--output', required=True)
    args = ap.parse_args()
    with open(args.output, 'wb') as out:
        cpio = Cpio(out)
        if args.share:
            add_share(cpio, args.share)
        else:
            add_system(cpio, args.busybox, args.tree)
            if args.module:
                add_modules(cpio, args.modules, args.module)
        cpio.close()


if __name__ == '__main__':
    main()
