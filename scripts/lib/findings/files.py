# SPDX-License-Identifier: GPL-2.0-or-later
"""Files of a run: each is written whole or not at all, and is of this run."""
import contextlib
import errno
import os
import stat
import subprocess

from . import Refused

MOST_SECONDS = 900      # for a page


def is_special(path):
    """Is it a device or a pipe, which a rename would destroy?"""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


def sync_folder(path):
    folder = os.open(os.path.dirname(path) or '.', os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_whole(path, text):
    """Write a file that is never there in part. A device is written to."""
    if is_special(path):
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)
        return
    path = os.path.realpath(path)
    new = f'{path}.{os.getpid()}.new'
    try:
        with open(new, 'w', encoding='utf-8') as f:
            f.write(text)
            f.flush()
            os.fsync(f.fileno())
        os.replace(new, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(new)
        raise
    sync_folder(path)


def claim(path, keep=False):
    """Raise OSError if the file cannot be written. Remove the one of an
    earlier run, so that nobody takes it for one of this run, unless KEEP."""
    if is_special(path):
        if not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return
    path = os.path.realpath(path)
    new = f'{path}.{os.getpid()}.new'
    with open(new, 'wb'):
        os.unlink(new)
    if not keep:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def write_page(program, source, path):
    """Let the program ka write the page of a journal or VM. SOURCE: its
    options. The program replaces the file."""
    done = subprocess.run([program, *source, 'report', '-o', path], text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, errors='replace',
                          timeout=MOST_SECONDS, check=False)
    if done.returncode:
        raise Refused(done.stderr.strip().removeprefix('ka: ') or
                      f'ka report ended with status {done.returncode}')
