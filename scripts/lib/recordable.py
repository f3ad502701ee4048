# SPDX-License-Identifier: GPL-2.0-or-later
"""Disks and networks of a run that QEMU records: the user's words, changed so
that QEMU records what comes from there.

    -drive file=F,if=virtio:
            -drive if=none,id=ka-disk0,file=disk0,snapshot=on
            -drive driver=blkreplay,image=ka-disk0,if=virtio
    -nic user:
            -nic user,id=ka-net0
            -object filter-replay,id=ka-filter0,netdev=ka-net0

The image is copied into the folder. What the guest writes goes to a temporary
file of QEMU, so that each run begins with the same bytes.
"""
import os
import re
import struct

from scripts.lib import qemuline

# Members of -drive: those of the guest's device, and those that are about the
# host's file only.
OF_DEVICE = frozenset('if index id readonly werror rerror'.split())
OF_HOST = frozenset('aio cache discard detect-zeroes snapshot'.split())
# Values of cache= that the guest sees: the disk has no cache for writes.
THROUGH = frozenset(('writethrough', 'directsync'))
INTERFACES = frozenset(('none', 'virtio'))
# Members of -netdev user about the host. A replay takes nothing from there.
HOST_NET = frozenset('hostfwd guestfwd smb smbserver tftp tftp-server-name '
                     'bootfile'.split())
# What QEMU accepts, but does not record. Firmware that reads from an AHCI disk
# does not come to an end; a word without an option is such a disk.
OPTIONS = frozenset(('', *'hda hdb hdc hdd cdrom blockdev fda fdb sd mtdblock '
                     'pflash snapshot net smp icount accel enable-kvm loadvm '
                     'incoming virtfs fsdev readconfig daemonize'.split()))
OBJECTS = re.compile('iothread|rng-random|rng-egd|memory-backend-file')
DEVICES = re.compile('ide-|nvme|vhost|vfio|usb-host|usb-mtp|virtio-9p|ivshmem')
KINDS = {'object': OBJECTS, 'device': DEVICES}
QCOW2, EXTERNAL_DATA = b'QFI\xfb', 4


class BadRecording(Exception):
    """This cannot be recorded or replayed; the text says why, in one line."""


def refuse_unrecorded(words):
    for option in qemuline.options(words):
        kind = KINDS.get(option.name)
        what = None
        if option.name in OPTIONS and option.words[1:] != ['none']:
            what = option.words[0]
        elif kind and kind.match(option.value or ''):
            what = ' '.join(option.words[:1] + [kind.match(option.value)[0]])
        elif option.name in ('netdev', 'nic'):
            check_network(option)
        if what:
            raise BadRecording(f'{what}: QEMU does not record this')


def join(*parts):
    return ','.join(filter(None, parts))


# --- disks -------------------------------------------------------------------

def refuse_member(found):
    if found.get('if') not in INTERFACES or not found.get('file'):
        raise BadRecording('-drive: only disks with if=virtio or if=none, and '
                           'file=, are recorded')
    for key, value in found.items():
        if key not in OF_DEVICE | OF_HOST | {'file', 'format'}:
            raise BadRecording(f'-drive {key}={value}: this is not recorded')


def refuse_image(path, kind):
    """The folder must have all of the image."""
    if not os.path.isfile(path):
        raise BadRecording(f'{path} is not an image file')
    with open(path, 'rb') as f:
        head = f.read(80).ljust(80, b'\0')
    if kind == 'raw' or head[:4] != QCOW2:
        return
    version, backing = struct.unpack_from('>IQ', head, 4)
    if backing or version > 2 and head[79] & EXTERNAL_DATA:
        raise BadRecording(f'{path} needs another file; make one image of them '
                           'by qemu-img convert')


def disk(option, number, copy):
    """Return the words for a disk. COPY(path, name) copies its image. Values
    have double commas."""
    found = dict(part.partition('=')[::2]
                 for part in qemuline.split(option.value))
    refuse_member(found)
    path = found['file'].replace(',,', ',')
    refuse_image(path, found.get('format'))
    name, ident = f'disk{number}', f'ka-disk{number}'
    copy(path, name)
    image = join(f'if=none,id={ident},file={name}',
                 'format' in found and f"format={found['format']}",
                 'readonly=on' if found.get('readonly') == 'on' else
                 'snapshot=on')
    device = join(f'driver=blkreplay,image={ident}',
                  *(f'{k}={v}' for k, v in found.items() if k in OF_DEVICE),
                  found.get('cache') in THROUGH and 'cache=writethrough')
    return ['-drive', image, '-drive', device]


# --- networks ----------------------------------------------------------------

def check_network(option):
    kind = qemuline.split(option.value)[0].removeprefix('type=')
    if kind != 'user' and (option.name, kind) != ('nic', 'none'):
        raise BadRecording(f'{option.words[0]} {kind}: only "user" networks '
                           'are recorded')


def network(option, number):
    """Return the words for a network: in the run, and in its replays."""
    parts = qemuline.split(option.value)
    ident = next((p[3:] for p in parts if p.startswith('id=')), None)
    if not ident:
        ident = f'ka-net{number}'
        parts.append('id=' + ident)
    recorder = ['-object',
                f'filter-replay,id=ka-filter{number},netdev={ident}']
    again = [p for p in parts if p.partition('=')[0] not in HOST_NET]
    return ([option.words[0], ','.join(parts), *recorder],
            [option.words[0], ','.join(again), *recorder])
