#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Workers of ka-farm: what they leave behind when they are killed, and the
memory that they need. Sweeps are scripts that sleep, so no VM runs."""
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time

from lib import commands
from lib.own_folder import OwnFolder
from lib.tap import Tap
from scripts.lib.farm import plan, scratch
from scripts.lib.farm.folder import Folder
from scripts.lib.prepared import ROOT

tap = Tap()
own = OwnFolder('ka-test-work.')
top, path, write = own.top, own.path, own.write
FARM = commands.program('farm')
PLAN = """
batch = "n1"
[axes]
kernel = ["6.12"]
[[job]]
name = "boot"
"""


def make_plan(name):
    folder, made = Folder(path(name)), plan.Plan(PLAN, top)
    folder.write_plan(made.lines, made.limits)
    return folder


def wait(what, seconds=30):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, 'it does not happen'
        time.sleep(0.05)


def has_ended(pid):
    """Return whether a process has ended, or is a zombie."""
    try:
        with open(f'/proc/{pid}/stat', encoding='utf-8') as f:
            return f.read().rpartition(')')[2].split()[0] == 'Z'
    except FileNotFoundError:
        return True


# --- workers that are killed --------------------------------------------------

SLEEPER = """#!/bin/sh
echo $$ >"$TMPDIR/pid"
exec sleep 100
"""
# In the folder for temporary files, but not of a run that was killed.
OTHERS = 'ka-farm.linklink', 'ka-farm.short', 'ka-farm.nolock00', 'other'

farm = make_plan('farm')
os.mkdir(path('tmp'))
os.chmod(write('sleeper', SLEEPER), 0o755)
tempfile.tempdir = path('tmp')      # of scratch.folder() in this process


def there():
    return sorted(os.listdir(path('tmp')))


def sweep_of_worker():
    """Return the process of the sweep and its folder, or None. GNU parallel
    has files of its own there."""
    for name in set(there()) - set(OTHERS):
        if not scratch.NAME.fullmatch(name):
            continue
        with contextlib.suppress(FileNotFoundError, ValueError), \
                open(path('tmp', name, 'pid'), encoding='ascii') as f:
            return int(f.read()), name
    return None


@contextlib.contextmanager
def start(*words):
    """Start ka-farm. It is terminated at the end, and its workers with it."""
    with subprocess.Popen(
            [FARM, *words, '--dir', farm.path, '--sweep', path('sleeper')],
            env={**os.environ, 'TMPDIR': path('tmp')},
            stderr=subprocess.PIPE) as proc:
        try:
            yield proc
        finally:
            proc.terminate()


with tap.test('a worker is killed: its sweep ends; the next worker removes '
              'their files, and no others'):
    for name in OTHERS[1:]:
        os.mkdir(path('tmp', name))
    write(f'tmp/{OTHERS[1]}/lock', '')
    os.symlink(OTHERS[1], path('tmp', OTHERS[0]))
    with start('work', '--index', '0', '--of', '1') as proc:
        wait(sweep_of_worker)
        pid, mine = sweep_of_worker()
        with scratch.folder() as (other, _):
            assert there() == sorted([*OTHERS, mine, os.path.basename(other)])
        proc.kill()
    wait(lambda: has_ended(pid))
    with scratch.folder():
        pass
    assert there() == sorted(OTHERS)
    assert os.path.exists(path('tmp', OTHERS[1], 'lock'))

with tap.test('a sweep that outlives its worker keeps its files'):
    mine, lock = scratch.make(path('tmp'))
    with subprocess.Popen(['sleep', '100'], pass_fds=[lock]) as proc:
        os.close(lock)
        with scratch.folder():
            assert os.path.exists(mine)
        proc.kill()
    with scratch.folder():
        assert not os.path.exists(mine)

for engine in 'local', 'parallel':
    if not shutil.which(engine) and engine == 'parallel':
        tap.skip('submit parallel is ended', 'parallel is not installed')
        continue
    with tap.test(f'submit {engine} is ended: so are its workers and sweeps'):
        with start('submit', engine) as proc:
            wait(sweep_of_worker)
            pid, _ = sweep_of_worker()
            proc.terminate()
            proc.wait(30)
        wait(lambda p=pid: has_ended(p))
        wait(lambda: there() == sorted(OTHERS))

if os.geteuid():
    tap.skip('files of other users stay', 'it needs root')
else:
    with tap.test('files of other users stay'):
        theirs = path('tmp', 'ka-farm.theirs00')
        os.mkdir(theirs)
        write(theirs + '/lock', '')
        os.chown(theirs, 1, 1)
        with scratch.folder():
            assert os.path.exists(theirs)

with tap.test('results that a killed worker did not finish are removed'):
    for name, hours in ('.new-old', 25), ('.new-young', 1):
        write('farm/kept/' + name, 'x')
        at = time.time() - hours * 3600
        os.utime(farm.file('kept', name), (at, at))
    farm.remove_old()
    assert os.listdir(farm.file('kept')) == ['.new-young']

with tap.test('without zstd a worker says what to install'):
    os.mkdir(path('none'))
    write('none/zstandard.py', 'raise ImportError\n')
    done = subprocess.run(
        ['/usr/bin/python3', FARM, 'work', '--dir', farm.path, '--index', '0',
         '--of', '1'], check=False, capture_output=True, text=True,
        env={**os.environ, 'PATH': path('none'), 'PYTHONPATH': path('none')})
    assert done.returncode == 2, done
    assert done.stderr == ('ka-farm: results are packed by zstd: install '
                           'python3-zstandard or zstd\n'), done

# --- memory ------------------------------------------------------------------

# Pack a file; print how much more memory that took, in MiB.
PACK = """
import resource, sys
from scripts.lib.farm import results
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
if sys.argv[1] == 'program':
    results.zstandard = None
before = peak()
with open(sys.argv[2], 'rb') as source, open(sys.argv[3], 'wb') as into:
    results.pack_file(source, into)
print((peak() - before) >> 10)
"""

with tap.test('a large journal is packed, but not read into memory'):
    os.truncate(write('big', ''), 256 << 20)
    for how in 'module', 'program':
        grown = subprocess.run(
            [sys.executable, '-c', PACK, how, path('big'), path('packed')],
            cwd=ROOT, check=True, capture_output=True, text=True).stdout
        assert int(grown) < 64, f'{how}: {grown} MiB'
        same = subprocess.run('zstd -dc packed | cmp - big', shell=True,
                              cwd=top, check=False, capture_output=True)
        assert same.returncode == 0, same

tap.done()
