#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A replay is the recorded run: the console, the journal and the listings are
the same, byte for byte, from a copy of the folder; with a disk and a network,
too, whose contents are others by then. A folder that cannot be used is one
line. Oracles: the recorded run; the disk's checksum; numbers that nobody can
repeat.

usage: test_recording.py [--short] [--kernel K]... [--runs N]
"""
import contextlib
import hashlib
import json
import os
import re
import signal
import subprocess
import tempfile

from lib import oracle, programs
from lib.recorded import (KERNELS, TIMEOUT, Run, compare_journals, moved,
                          record, same_at_the_end)
from lib.tap import Tap
from scripts.lib.guest import RUN

tap = Tap()


def same_files(one, other):
    done = subprocess.run(['cmp', one, other], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout


def prompts(run):
    """Return how often the guest's shell has asked."""
    return run.printed().partition(b'\nKA-END')[2].count(b'/ # ')


def check_replay(kernel, folder, *options, typed=()):
    """Record a run and repeat it; return the recording and its console.
    OPTIONS: more ones for ka-run; TYPED: lines for the guest's shell, each of
    which fits into the queue of a serial port."""
    with record(folder, 'r', kernel, *options, types=bool(typed)) as recorded:
        for i, line in enumerate(typed):
            recorded.until(lambda n=i: prompts(recorded) > n)
            recorded.type(line)
        recorded.ended()
    at = moved(folder, 'r')
    with Run(folder, 'replay', '--replay', at, '--journal', 'again') as run:
        same_at_the_end(kernel, run, os.path.join(at, 'journal'))
        run.proc.send_signal(signal.SIGTERM)
        run.ended()
    assert run.printed() == recorded.printed(), 'the consoles differ'
    compare_journals(os.path.join(at, 'journal'),
                     os.path.join(folder, 'again'))
    same_files(os.path.join(at, 'journal'), os.path.join(folder, 'again'))
    return at, recorded.printed().decode('utf-8', 'replace')


def check_typed(kernel, folder):
    """What was typed comes again."""
    _, console = check_replay(
        kernel, folder, '--append', 'ka.end=shell',
        typed=(b'echo $((6 * 7))\n', b'poweroff -f\n'))
    assert re.search('^42\\b', console, re.M), console[-500:]


def done(console):
    assert 'KA-DONE 0' in console, console[-500:]


# --- disks and networks ------------------------------------------------------

MODULES = ('virtio_pci', 'virtio_blk', 'virtio_net', 'ext4', 'crc32c_generic',
           'vmxnet3')
DISK_BYTES = 16 << 20
NUMBER = 'cat /proc/sys/kernel/random/uuid'
# How a disk, and a card of the network "n", are named on the command line.
DISKS = {'virtio': ['-drive', 'format=raw,if=virtio,file={escaped}'],
         'device': ['-drive', 'if=none,id=d,format=raw,file={escaped}',
                    '-device', 'virtio-blk-pci,drive=d']}
CARDS = {'virtio': 'virtio-net-pci', 'vmxnet3': 'vmxnet3'}
NO_CARD = 'none'


def make_share(kernel, folder):
    share = oracle.make_share(os.path.join(folder, 'share'), ['recorded.sh'],
                              kernel)
    oracle.add_drivers(share, kernel, *MODULES)
    return share


def network_words(card):
    return [] if card == NO_CARD else [
        '-netdev', f'user,id=n,guestfwd=tcp:10.0.2.100:7777-cmd:{NUMBER}',
        '-device', f'{CARDS[card]},netdev=n,romfile=']


def check_devices(kernel, folder, disk, card, n=1):
    """The guest reads and writes a disk, and gets numbers from the network.
    What the guest writes is in no file afterwards. The replay has no use for
    the image and the host."""
    image = os.path.join(folder, 'an,image')
    data = os.urandom(DISK_BYTES // 2).ljust(DISK_BYTES, b'\0')
    with open(image, 'wb') as f:
        f.write(data)
    at, console = check_replay(
        kernel, folder, '--share', make_share(kernel, folder), '--append',
        f'ka.run=recorded ka.n={n}', '--',
        *(word.format(escaped=image.replace(',', ',,'))
          for word in DISKS[disk]), *network_words(card))
    done(console)
    sums = re.findall('^recorded: (?:disk|written) ([0-9a-f]{64})', console,
                      re.M)
    assert sums[0] == hashlib.sha256(data).hexdigest(), console[-3000:]
    assert sums[1] != sums[0], console[-3000:]
    numbers = re.findall('^recorded: number ([0-9a-f-]{36})', console, re.M)
    assert len(set(numbers)) == 3 * (card != NO_CARD), console[-3000:]
    for path in image, os.path.join(at, 'disk0'):
        with open(path, 'rb') as f:
            assert f.read() == data, path
    return at


def check_disk_words(kernel, folder):
    """One line for each disk and network that cannot be recorded."""
    image = os.path.join(folder, 'image')
    with open(image, 'wb') as f:
        f.write(b'QFI\xfb\0\0\0\2\0\0\0\0\0\0\0\x50'.ljust(4096, b'\0'))
    for text, *words in (
            ('needs another file; make one image', '-drive',
             f'if=virtio,file={image}'),
            ('is not an image file', '-drive', f'if=virtio,file={folder}'),
            ('-drive: only disks with if=virtio or', '-drive',
             f'if=pflash,file={image}'),
            ('-drive: only disks with if=virtio or', '-drive',
             f'file={image}'),
            ('-drive: only disks with if=virtio or', '-drive', 'if=virtio'),
            ('-drive file.locking=off: this is', '-drive',
             f'if=virtio,file.locking=off,file={image}'),
            ('-hda: QEMU does not record this', '-hda', image),
            ('-device ide-: QEMU does not record', '-device',
             'ide-hd,drive=d'),
            ('-nic tap: only "user" networks', '-nic', 'tap'),
            ('-net: QEMU does not record this', '-net', 'user'),
            ('-device nvme: QEMU does not record this', '-device',
             'nvme,drive=d'),
            ('-virtfs: QEMU does not record this', '-virtfs', 'local'),
            ('-snapshot: QEMU does not record this', '-snapshot')):
        refused(text, '--record', folder + '-new', '--kernel', kernel, '--',
                *words)
        assert not os.path.exists(folder + '-new'), words


# --- many recordings ---------------------------------------------------------

# What is done in each of them, again from the beginning after the last one.
VARIED = ('files', 'virtio virtio', 'procs', 'device virtio', 'typed',
          'virtio none', 'device vmxnet3', 'panic', 'procs 2', 'work 2')
VARIED_KERNELS = KERNELS[:2]


def check_varied(kernel, folder, what):
    name, *more = what.split()
    if name in DISKS:
        check_devices(kernel, folder, name, *more)
    elif name == 'typed':
        check_typed(kernel, folder)
    elif name == 'panic':
        share = os.path.join(folder, 'share')
        os.mkdir(share)
        with open(os.path.join(share, 'panic.sh'), 'w', encoding='utf-8') as f:
            f.write('sh /ka/files.sh\necho c >/proc/sysrq-trigger\n')
        _, console = check_replay(kernel, folder, '--share', share,
                                  '--append', 'ka.run=panic')
        assert 'Kernel panic' in console, console[-1000:]
    else:
        _, console = check_replay(kernel, folder, '--append', f'ka.run={name} '
                                  f"ka.n={more[0] if more else 1}")
        done(console)


def varied(kernel, runs):
    for i in range(runs):
        what = VARIED[i % len(VARIED)]
        with tempfile.TemporaryDirectory(prefix='ka-recording.') as folder, \
                tap.test(f'{kernel}: recording {i + 1} of {runs}: {what}'):
            check_varied(kernel, folder, what)


# --- folders that cannot be used ---------------------------------------------

def refused(text, *options):
    done = subprocess.run([RUN, *options], stdin=subprocess.DEVNULL, text=True,
                          capture_output=True, timeout=120, check=False)
    assert done.returncode == 2 and not done.stdout, done
    assert done.stderr.count('\n') == 1 and text in done.stderr, done.stderr


@contextlib.contextmanager
def changed(folder, name, data):
    """Let a file of the folder have other bytes; None: let it be missing."""
    path = os.path.join(folder, name)
    os.rename(path, path + '.kept')
    if data is not None:
        with open(path, 'wb') as f:
            f.write(data)
    try:
        yield
    finally:
        os.replace(path + '.kept', path)


def manifest_with(folder, **values):
    with open(os.path.join(folder, 'manifest.json'), encoding='utf-8') as f:
        found = {**json.load(f), **values}
    return json.dumps(found).encode()


def check_refusals(folder):
    for name, data, text in (
            ('manifest.json', None, 'not a recording'),
            ('manifest.json', b'{"forma', 'manifest.json is damaged'),
            ('manifest.json', b'[]', 'not a recording'),
            ('manifest.json', manifest_with(folder, version=7),
             'another version of ka (version 7'),
            ('manifest.json', manifest_with(folder, files=None),
             'manifest.json is damaged'),
            ('manifest.json', manifest_with(folder, end={'log': 'x'}),
             'manifest.json is damaged'),
            ('manifest.json', manifest_with(folder, files={'kernel': 1}),
             'manifest.json is damaged'),
            ('manifest.json', manifest_with(folder, arch='vax'),
             'of an unknown architecture'),
            ('manifest.json', manifest_with(folder, qemu='0' * 64),
             'made by another build of QEMU'),
            ('manifest.json', manifest_with(folder, tracer='0' * 64),
             'made by another build of the tracer'),
            ('kernel', None, 'kernel is missing'),
            ('initrd', b'x', 'initrd is not the file that was recorded'),
            ('log', None, 'log is missing'),
            ('log', b'x' * 4096, 'log has 4096 bytes, not ')):
        with changed(folder, name, data):
            refused(text, '--replay', folder)
    refused('exists; name a new folder', '--record', folder)
    refused('not a recording', '--replay', folder + '-none')
    for text, *options in (
            ('one vCPU', '--smp', '2'), ('is not kept', '--out', 'x'),
            ('journal is in', '--no-plugin')):
        refused(text, '--record', folder + '-new', *options)
        assert not os.path.exists(folder + '-new'), options
    refused('--smp: the machine', '--replay', folder, '--smp', '2')
    refused('not both', '--replay', folder, '--record', folder + '-new')


def check_full(folder):
    """A file system of 4 MiB has no room for the kernel."""
    script = 'mount -t tmpfs -o size=4m none "$1" && shift && exec "$@"'
    place = os.path.join(folder, 'small')
    os.mkdir(place)
    done = subprocess.run(
        ['unshare', '-m', 'sh', '-c', script, 'sh', place, RUN, '--record',
         os.path.join(place, 'r')], stdin=subprocess.DEVNULL, text=True,
        capture_output=True, timeout=120, check=False)
    assert done.returncode == 2, done
    assert done.stderr.count('\n') == 1, done.stderr
    assert 'No space left on device' in done.stderr, done.stderr


# --- a recording that is cut off ---------------------------------------------

def check_killed(kernel, folder):
    """QEMU is killed while it records. What is there replays: its console is
    the beginning of the recorded one, up to the last events."""
    with record(folder, 'k', kernel, '--append', 'ka.n=50') as run:
        run.until(lambda: b'Run /init' in run.printed())
        subprocess.run(['pkill', '-KILL', '-P', str(run.proc.pid)],
                       check=True)
        run.proc.wait(60)
        assert run.proc.returncode == 2, run.text()
        assert 'the recording has no end' in run.text(), run.text()
    with Run(folder, 'again', '--replay', 'k') as replay:
        replay.proc.wait(TIMEOUT)
        assert 'the recording was cut off' in replay.text(), replay.text()
    printed = replay.printed()
    assert run.printed().startswith(printed) and \
        b'Linux version' in printed, printed[-500:]


def check(kernel, short):
    with tempfile.TemporaryDirectory(prefix='ka-recording.') as folder:
        at = None
        with tap.test(f'{kernel}: the replay of a moved recording is equal, '
                      'with a disk and a network'):
            at = check_devices(kernel, folder, 'virtio', 'virtio')
        if at and kernel == KERNELS[0]:
            with tap.test('a folder that cannot be used is one line'):
                check_refusals(at)
            with tap.test('a disk that cannot be recorded is one line'):
                check_disk_words(kernel, folder)
            with tap.test('a full disk is one line'):
                check_full(folder)
        if not short:
            with tap.test(f'{kernel}: a recording that was killed'):
                check_killed(kernel, folder)


def main():
    ap = programs.arguments(__doc__, short='6.12 only, without a killed run',
                            smp=False)
    ap.add_argument('--runs', type=int,
                    help='only so many different recordings of each kernel')
    args = programs.parse(ap, kernels=KERNELS)
    for kernel in args.kernel:
        if args.runs is None:
            check(kernel, args.short)
        varied(kernel, args.runs if args.runs is not None else
               0 if args.short or kernel not in VARIED_KERNELS else len(VARIED))
    tap.done()


if __name__ == '__main__':
    main()
