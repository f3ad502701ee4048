# SPDX-License-Identifier: GPL-2.0-or-later
"""The private folder of a run: the console, the report and the journal of a VM,
and the folder of its sweep. The worker removes it after the run.

A worker that is killed cannot do that, and a journal may be large. So a worker
and its sweep hold a lock (flock) on a file in the folder as long as one of them
lives. The next worker removes each folder whose lock it gets. Process ids would
not do: the other worker may be in a container that has the same /tmp.
"""
import contextlib
import fcntl
import os
import re
import shutil
import tempfile

PREFIX = 'ka-farm.'
NAME = re.compile(re.escape(PREFIX) + r'[a-z0-9_]{8}')      # of mkdtemp()
LOCK = 'lock'
FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW


def take(lock):
    """Lock an open file. Return false if another process has the lock, or has
    removed the file meanwhile."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return os.fstat(lock).st_nlink > 0


def make(base):
    """Return a new folder, and the number of its locked file."""
    while True:
        path = tempfile.mkdtemp(prefix=PREFIX, dir=base)
        lock = os.open(os.path.join(path, LOCK),
                       FLAGS | os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        if take(lock):
            return path, lock
        os.close(lock)      # another worker was faster, and removes the folder


def remove(path):
    """Remove a folder, the lock last: if this process is killed, the next one
    can go on. What cannot be removed stays."""
    with os.scandir(path) as entries:
        for entry in list(entries):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            elif entry.name != LOCK:
                os.unlink(entry.path)
    shutil.rmtree(path, ignore_errors=True)


def remove_if_left(path):
    """Remove a folder of this user if no process has its lock. A folder without
    a lock file has just been made."""
    folder = os.open(path, FLAGS | os.O_RDONLY | os.O_DIRECTORY)
    try:
        if os.fstat(folder).st_uid != os.geteuid():
            return
        lock = os.open(LOCK, FLAGS | os.O_RDWR | os.O_NONBLOCK,
                       dir_fd=folder)
        try:
            if take(lock):
                remove(path)
        finally:
            os.close(lock)
    finally:
        os.close(folder)


@contextlib.contextmanager
def folder():
    """Make a folder, and remove it at the end. Remove those of workers that
    were killed before. Yield its path, and the number of its locked file for
    children."""
    base = tempfile.gettempdir()
    for name in filter(NAME.fullmatch, os.listdir(base)):
        with contextlib.suppress(OSError):
            remove_if_left(os.path.join(base, name))
    path, lock = make(base)
    try:
        yield path, lock
    finally:
        with contextlib.suppress(OSError):
            remove(path)
        os.close(lock)
