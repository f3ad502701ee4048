# SPDX-License-Identifier: GPL-2.0-or-later
"""A disk that boots: GRUB in the gap after the partition table, and one ext4
partition with a kernel and an initramfs."""
import os
import shutil
import struct
import subprocess
import tempfile

SECTOR = 512
START = 2048                    # of the partition, in sectors
LINUX = 0x83                    # its type

CONFIG = """serial
terminal_output serial
linux /boot/vmlinuz {words}
initrd /boot/initrd
boot
"""


def _put_partition(disk, sectors):
    """Write the first entry of the partition table. Its sizes are in sectors
    (LBA), as on large disks."""
    disk.seek(446)
    disk.write(struct.pack('<B3sB3sII', 0x80, b'\xfe\xff\xff', LINUX,
                           b'\xfe\xff\xff', START, sectors))
    disk.seek(510)
    disk.write(b'\x55\xaa')


def _file_system(path, files, size):
    with tempfile.TemporaryDirectory() as tree:
        for name, source in files.items():
            target = os.path.join(tree, name)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            if isinstance(source, bytes):
                with open(target, 'wb') as f:
                    f.write(source)
            else:
                shutil.copyfile(source, target)
        subprocess.run(['mke2fs', '-q', '-t', 'ext4', '-O',
                        '^metadata_csum_seed,^orphan_file', '-d', tree, path,
                        f'{size // 1024}k'], check=True,
                       env={**os.environ, 'PATH': os.environ['PATH'] +
                            ':/usr/sbin:/sbin'})


def make(path, grub, kernel, initrd, words):
    """Write a disk image to PATH. GRUB: the folder of boot.img and core.img."""
    files = {'boot/vmlinuz': kernel, 'boot/initrd': initrd,
             'boot/grub/grub.cfg': CONFIG.format(words=words).encode()}
    size = 32 << 20
    size += sum(len(f) if isinstance(f, bytes) else os.path.getsize(f)
                for f in files.values())
    size -= size % (1 << 20)
    with tempfile.NamedTemporaryFile() as part:
        _file_system(part.name, files, size)
        with open(path, 'wb') as disk:
            for name, at, most in (('boot.img', 0, 440),
                                   ('core.img', SECTOR, START * SECTOR)):
                with open(os.path.join(grub, name), 'rb') as f:
                    code = f.read()
                disk.seek(at)
                disk.write(code[:most])
            _put_partition(disk, size // SECTOR)
            disk.seek(START * SECTOR)
            with open(part.name, 'rb') as f:
                shutil.copyfileobj(f, disk)
