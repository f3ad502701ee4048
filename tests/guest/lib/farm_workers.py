# SPDX-License-Identifier: GPL-2.0-or-later
"""What tests of ka-farm share: find and kill its workers, dump its database."""
import contextlib
import os
import signal
import sqlite3


def dump(db, leave_out=('timing',)):
    """The statements of `.dump`, without those of some tables."""
    with sqlite3.connect(db) as made:
        return [line for line in made.iterdump()
                if not any(f'INTO "{t}"' in line for t in leave_out)]


def workers(folder):
    """Return the processes of workers of a folder. A child that has not begun
    its program yet looks like its worker, but is the sweep."""
    found = {}
    for pid in filter(str.isdigit, os.listdir('/proc')):
        with contextlib.suppress(OSError):
            with open(f'/proc/{pid}/cmdline', 'rb') as f:
                words = f.read().split(b'\0')
            if b'work' in words and folder.path.encode() in words and \
                    b'python' in words[0]:
                found[int(pid)] = parent(pid)
    return [pid for pid, of in found.items() if of not in found]


def parent(pid):
    with open(f'/proc/{pid}/stat', encoding='ascii') as f:
        return int(f.read().rpartition(')')[2].split()[1])


def kill_one(folder, chance):
    """Kill a worker of a folder. Return whether there was one."""
    pids = workers(folder)
    if pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(chance.choice(pids), signal.SIGKILL)
    return bool(pids)
