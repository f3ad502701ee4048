#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A replay is the recorded run: the console, the journal's events and the
listings are the same, byte for byte, from a copy of the folder. A folder that
cannot be used is one line. Oracle: the recorded run.

usage: test_recording.py [--short] [--kernel K]...
"""
import contextlib
import json
import os
import signal
import subprocess
import tempfile

from lib import programs
from lib.recorded import (KERNELS, TIMEOUT, Run, compare_journals, moved,
                          record, same_at_the_end)
from lib.tap import Tap
from scripts.lib.guest import RUN

tap = Tap()


def check_replay(kernel, folder):
    with record(folder, 'r', kernel) as recorded:
        recorded.ended()
    assert b'KA-DONE 0' in recorded.printed(), recorded.printed()[-500:]
    at = moved(folder, 'r')
    with Run(folder, 'replay', '--replay', at, '--journal', 'again') as run:
        same_at_the_end(kernel, run, os.path.join(at, 'journal'))
        run.proc.send_signal(signal.SIGTERM)
        run.ended()
    assert run.printed() == recorded.printed(), 'the consoles differ'
    compare_journals(os.path.join(at, 'journal'),
                     os.path.join(folder, 'again'))
    return at


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
            ('one vCPU', '--smp', '2'), ('disks', '--disk-boot'),
            ('-drive: disks are not', '--', '-drive', 'file=x'),
            ('-nic: networks are not', '--', '-nic', 'user'),
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
        with tap.test(f'{kernel}: the replay of a moved recording is equal'):
            at = check_replay(kernel, folder)
        if at and kernel == KERNELS[0]:
            with tap.test('a folder that cannot be used is one line'):
                check_refusals(at)
            with tap.test('a full disk is one line'):
                check_full(folder)
        if not short:
            with tap.test(f'{kernel}: a recording that was killed'):
                check_killed(kernel, folder)


def main():
    ap = programs.arguments(__doc__, short='6.12 only, without a killed run',
                            smp=False)
    args = programs.parse(ap, kernels=KERNELS)
    for kernel in args.kernel:
        check(kernel, args.short)
    tap.done()


if __name__ == '__main__':
    main()
