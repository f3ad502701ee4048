# SPDX-License-Identifier: GPL-2.0-or-later
"""The folder of results: one file for each stack and number of a call. A file
is complete or does not exist, whenever this program is killed."""
import contextlib
import fcntl
import json
import os

from ..files import write_whole

RECORD = 'record.json'


class ResultsError(Exception):
    """A folder of results cannot be used; the text says why."""


class Results:
    """A folder, or nothing but memory without one."""

    def __init__(self, folder=None):
        self.folder = folder
        self.memory = {}
        self.lock = None
        if folder:
            os.makedirs(folder, exist_ok=True)
            self._lock()
            self._remove_unfinished()

    def _lock(self):
        # pylint: disable=consider-using-with
        self.lock = open(os.path.join(self.folder, 'lock'), 'w',
                         encoding='ascii')
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as e:
            raise ResultsError(f'{self.folder}: another sweep uses it') from e

    def _remove_unfinished(self):
        for name in os.listdir(self.folder):
            if name.endswith('.new'):
                with contextlib.suppress(OSError):
                    os.unlink(os.path.join(self.folder, name))

    def _load(self, name):
        if not self.folder:
            return self.memory.get(name)
        path = os.path.join(self.folder, name)
        try:
            with open(path, encoding='utf-8') as f:
                return json.load(f)
        except FileNotFoundError:
            return None
        except ValueError as e:
            raise ResultsError(f'{path}: {e}') from e

    def _save(self, name, value):
        self.memory[name] = value
        if self.folder:
            write_whole(os.path.join(self.folder, name),
                        json.dumps(value, indent=1) + '\n')

    def record(self, fingerprint):
        """Return what was recorded before the runs, or None. Refuse a folder
        that another scenario has filled."""
        found = self._load(RECORD)
        if found and found['fingerprint'] != fingerprint:
            raise ResultsError(f'{self.folder}: has results of another '
                               'scenario, kernel or options')
        return found

    def save_record(self, record):
        self._save(RECORD, record)

    def get(self, key):
        return self._load(key + '.json')

    def put(self, key, result):
        self._save(key + '.json', result)
