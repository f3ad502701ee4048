# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests of KVM: with the host's, if a guest really runs with it; else in a
machine that has KVM. QEMU emulates an AMD machine with SVM, the outer machine.
Its kernel runs another QEMU, with KVM and the tracer.

    host             qemu -accel tcg -cpu max,+svm
    outer machine      prepared kernel 6.1 with kvm-amd, busybox
                       qemu -accel kvm -plugin libka.so
    guest                prepared kernel, with its initramfs

The guest's console, monitor, QMP and gdb are virtual consoles of the outer
machine, and sockets of the names that ka-run has. So a guest.Guest can have
them, with one limit: a client has to connect before the guest starts, and what
QEMU prints without one is lost. Use QMP, and connect at once.
"""
import contextlib
import io
import os
import re
import shutil
import stat
import subprocess
import tarfile
import tempfile

from . import accel, mkinitramfs
from .guest import Guest
from .prepared import cache_folder, kernel_file, paths
from .qmp import GuestError
from .snapshot_disk import drive, make_disk

OUTER_KERNEL = '6.1'
CONSOLES = 'serial', 'monitor', 'qmp', 'gdb'
MODULES = 'virtio_pci', 'virtio_console', 'virtio_blk', 'kvm_amd'
FIRMWARE = ('/usr/share/seabios/bios-256k.bin', '/usr/share/qemu/kvmvapic.bin',
            '/usr/share/qemu/linuxboot_dma.bin')
MEMORY = 2048           # MiB of the outer machine
# Disks of the outer machine: the guest's archive, and one with the journal.
DISKS = 'out', 'journal'
JOURNAL = '/tmp/journal'

FOLDERS = ('bin', 'dev', 'proc', 'sys', 'tmp', 'run', 'modules', 'guest')
INIT = r'''#!/bin/sh
b=/bin/busybox
$b mount -t proc proc /proc
$b mount -t sysfs sysfs /sys
$b mount -t devtmpfs dev /dev
for m in /modules/*; do
    $b insmod $m
done
echo 0 >/sys/module/kvm/parameters/halt_poll_ns
until [ -c /dev/hvc4 ]; do
    $b sleep 0.1
done
# An open console keeps its settings.
for i in 1 2 3 4; do
    $b stty -F /dev/hvc$i raw -echo
    $b sleep 999999 </dev/hvc$i &
done
echo OUTER-UP
@QEMU@
echo OUTER-END $?
cd /tmp
[ ! -b /dev/vdb ] || $b tar -cf /dev/vdb journal*
$b sync
$b poweroff -f
'''
# Ticks of the timer come late on a busy host.
WORDS = 'no_timer_check panic=-1'


# --- the initramfs of the outer machine ------------------------------------

def libraries(program):
    """Return the paths of the libraries that a program loads."""
    text = subprocess.run(['ldd', program], check=True, text=True,
                          capture_output=True).stdout
    return re.findall(r'(/\S+) \(0x', text)


def guest_command(smp, mem, words, plugin_opts, disk, more=()):
    """Return the command that starts the guest, as a line of shell. MORE:
    arguments of QEMU."""
    args = ['/guest/qemu', '-L', '/guest', '-accel', 'kvm', '-cpu', 'host',
            '-machine', 'q35', '-smp', str(smp), '-m', str(mem),
            '-nodefaults', '-display', 'none', '-no-reboot',
            '-kernel', '/guest/vmlinuz', '-initrd', '/guest/initrd',
            '-append', f"'console=ttyS0 {WORDS} {words}'",
            *drive('/guest/disk')]
    for i, name in enumerate(CONSOLES, 1):
        args += ['-chardev', f'serial,id={name},path=/dev/hvc{i}']
    args += ['-serial', 'chardev:serial', '-mon', 'chardev=monitor',
             '-mon', 'chardev=qmp,mode=control', '-gdb', 'chardev:gdb']
    if disk:
        # The archive has to be on the host when the guest has written it.
        args += ['-drive',
                 'file=/dev/vda,format=raw,if=none,id=out,cache=none',
                 '-device', 'nvme,drive=out,serial=ka']
    if plugin_opts is not None:
        args += ['-plugin', ','.join(filter(None, ['file=/guest/libka.so',
                                                   plugin_opts]))]
    return ' '.join([*args, *more])


# The second one may not begin before its clients are connected, or what it
# prints first is lost.
def one_after_another(first, second):
    """Return a command that runs SECOND when FIRST has ended."""
    return f'{first}\necho OUTER-NEXT $?\n$b sleep 5\n{second}'


# A journal begins with the kernel's symbols, half a megabyte or more.
def killed(command, events):
    """Return a command that kills COMMAND when its journal has EVENTS more
    bytes than the kernel's symbols. That is journal-killed then."""
    return f'''size() {{ $b stat -c %s {JOURNAL} 2>/dev/null || echo 0; }}
{command} &
p=$!
while [ "$(size)" -lt 400000 ]; do $b sleep 0.5; done
$b sleep 0.5
to=$(($(size) + {events}))
while [ "$(size)" -lt $to ]; do $b sleep 0.2; done
kill -9 $p
wait $p
s=$?
$b mv {JOURNAL} {JOURNAL}-killed
(exit $s)'''


def add_programs(cpio, path):
    """Add busybox, QEMU, the tracer and the libraries that they load."""
    busybox = os.path.join(cache_folder('busybox'), 'busybox')
    mkinitramfs.add_file(cpio, busybox, 'bin/busybox')
    cpio.add('bin/sh', stat.S_IFLNK | 0o777, b'busybox')
    mkinitramfs.add_file(cpio, path['qemu'], 'guest/qemu')
    mkinitramfs.add_file(cpio, path['plugin'], 'guest/libka.so')
    needed = sorted({lib for p in ('qemu', 'plugin')
                     for lib in libraries(path[p])})
    folders = set()
    for lib in needed:
        parts = os.path.dirname(lib).strip('/').split('/')
        folders |= {'/'.join(parts[:n + 1]) for n in range(len(parts))}
    for name in sorted(folders - set(FOLDERS)):
        cpio.add(name, stat.S_IFDIR | 0o755)
    for lib in needed:
        mkinitramfs.add_file(cpio, os.path.realpath(lib), lib.lstrip('/'))


def add_modules(cpio):
    found = mkinitramfs.find_modules(kernel_file(OUTER_KERNEL, 'modules'))
    wanted = []
    for name in MODULES:
        mkinitramfs.with_needed(name, found, wanted)
    for i, (name, data) in enumerate(wanted):
        cpio.add(f'modules/{i:02}-{name}', stat.S_IFREG | 0o644, data)


def guest_initrd(path, share):
    """Return the guest's initramfs, with the files of the folder SHARE. An
    archive begins at a multiple of 4."""
    with open(path, 'rb') as f:
        data = f.read()
    if share:
        added = io.BytesIO()
        cpio = mkinitramfs.Cpio(added)
        mkinitramfs.add_share(cpio, share)
        cpio.close()
        data += b'\0' * (-len(data) % 4) + added.getvalue()
    return data


def make_initramfs(output, kernel, command, share=None):
    """Make the initramfs that runs COMMAND, with the guest's files."""
    path = paths()
    with open(output, 'wb') as out:
        cpio = mkinitramfs.Cpio(out)
        for name in FOLDERS:
            cpio.add(name, stat.S_IFDIR | 0o755)
        cpio.add('dev/console', stat.S_IFCHR | 0o600, rdev=(5, 1))
        add_programs(cpio, path)
        add_modules(cpio)
        for name in FIRMWARE:
            mkinitramfs.add_file(cpio, name,
                                 'guest/' + os.path.basename(name))
        mkinitramfs.add_file(cpio, kernel_file(kernel), 'guest/vmlinuz')
        cpio.add('guest/initrd', stat.S_IFREG | 0o644,
                 guest_initrd(path['initrd-' + kernel], share))
        mkinitramfs.add_file(cpio, make_disk(output + '.disk'), 'guest/disk')
        cpio.add('init', stat.S_IFREG | 0o755,
                 INIT.replace('@QEMU@', command).encode())
        cpio.close()


# --- machines --------------------------------------------------------------

# The clock is that of the host: with -icount, a guest once got an interrupt
# while interrupts were disabled, and waited for ever for a lock that it held.
def outer_command(folder, initrd, la57, disks):
    """Return the command line of the outer machine; its console is stdout."""
    args = [paths()['qemu'], '-accel', 'tcg,thread=multi', '-smp', '2',
            '-cpu', 'max,+svm' + ('' if la57 else ',la57=off'),
            '-machine', 'q35', '-m', str(MEMORY),
            '-nodefaults', '-display', 'none', '-no-reboot',
            '-L', '/usr/share/seabios', '-L', '/usr/share/qemu',
            '-kernel', kernel_file(OUTER_KERNEL), '-initrd', initrd,
            '-append', f'console=ttyS0 quiet mitigations=off {WORDS}',
            '-serial', 'stdio', '-device', 'virtio-serial',
            '-chardev', 'null,id=hvc0', '-device', 'virtconsole,chardev=hvc0']
    for name in CONSOLES:
        at = os.path.join(folder, name + '.sock')
        args += ['-chardev',
                 f'socket,id={name},path={at},server=on,wait=off',
                 '-device', f'virtconsole,chardev={name}']
    for name in disks:
        image = os.path.join(folder, name + '.img')
        with open(image, 'wb') as f:
            f.truncate(2 << 30)
        args += ['-drive', f'if=virtio,format=raw,file={image}']
    return args


class OnHost(Guest):
    """A guest of the host's KVM. It has a disk for snapshots, and with out= a
    journal."""

    def __init__(self, plugin_opts, mem, out, **options):
        self._files = tempfile.TemporaryDirectory(prefix='ka-kvm.')
        self.journal = os.path.join(self._files.name, 'journal')
        disk = make_disk(os.path.join(self._files.name, 'disk'))
        super().__init__(
            accel='kvm', plugin=plugin_opts is not None, mem=f'{mem}M', out=out,
            plugin_opts=plugin_opts or None, qemu=drive(disk),
            journal=self.journal if out else None, **options)

    def stop(self):
        super().stop()
        self._files.cleanup()


def in_outer(plugin_opts, mem, out, make, la57, *, kernel, smp, run, n, end,
             cmdline, share, kaslr, timeout, name):
    """Start a guest in the outer machine. It has a disk for its archive if it
    has a workload: a state with that disk cannot be moved."""
    archive = out and run
    words = [f'ka.end={end}', f'ka.run={run} ka.n={n}' if run else '', cmdline,
             'ka.out=nvme0n1' if archive else '',
             '' if kaslr else 'nokaslr']
    if out:
        plugin_opts = ','.join(filter(None, [plugin_opts,
                                             f'journal={JOURNAL}']))

    def one(*more):
        return guest_command(smp, mem, ' '.join(words), plugin_opts, archive,
                             more)

    command = make(one) if make else one()

    def argv(folder):
        initrd = os.path.join(folder, 'outer-initrd')
        make_initramfs(initrd, kernel, command, share)
        return outer_command(folder, initrd, la57, DISKS if out else ())

    return Guest(kernel=kernel, smp=smp, timeout=timeout, name=name, out=out,
                 argv=argv)


def start(kernel='6.1', smp=1, mem=256, run=None, n=1, end='wait', cmdline='',
          plugin_opts='', timeout=600, name='kvm', share=None, la57=False,
          out=None, kaslr=True, make=None):
    """Start a guest with KVM; return it when its QMP answers. plugin_opts:
    None: without the tracer. share, kaslr: as in Guest. out: as in Guest; the
    tracer then writes a journal, see fetch_journal(). la57: the outer machine
    has page tables of five levels, which cost time. make: makes the command of
    the outer machine from a function that returns the guest's, with more
    arguments of QEMU; then the guest is in the outer machine."""
    options = {'kernel': kernel, 'smp': smp, 'run': run, 'n': n, 'end': end,
               'cmdline': cmdline, 'share': share, 'kaslr': kaslr,
               'timeout': timeout, 'name': name}
    if make or not has_kvm(kernel):
        guest = in_outer(plugin_opts, mem, out, make, la57, **options)
    else:
        guest = OnHost(plugin_opts, mem, out, **options)
    try:
        guest.qmp('query-status')
    except BaseException:
        guest.keep()
        guest.stop()
        raise
    return guest


@contextlib.contextmanager
def worked(before=None, **options):
    """Start a guest, call before(guest) if that is given, and wait until its
    workload is done."""
    with start(**options) as guest:
        if before:
            before(guest)
        guest.wait_marker('KA-DONE')
        yield guest


def fetch_journal(guest, path, name='journal'):
    """End a guest that was started with out=; write its journal to PATH. NAME:
    journal-killed: that of killed()."""
    with contextlib.suppress(GuestError):
        guest.qmp('quit')
    guest.wait_exit()
    if isinstance(guest, OnHost):
        shutil.copy(guest.journal, path)
        return
    with tarfile.open(guest.path('journal.img')) as tar:
        with open(path, 'wb') as f:
            f.write(tar.extractfile(name).read())


def exit_status(guest):
    """Wait until the guest's QEMU has ended; return its status."""
    status = guest.wait_exit()
    if isinstance(guest, OnHost):
        return status
    return int(re.search(r'^OUTER-END (\d+)', guest.qemu_log, re.M).group(1))


def has_kvm(kernel=OUTER_KERNEL):
    """Return whether a guest really runs with the host's KVM."""
    return accel.probe(paths()['qemu'], kernel_file(kernel)) is None
