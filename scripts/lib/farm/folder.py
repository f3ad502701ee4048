# SPDX-License-Identifier: GPL-2.0-or-later
"""The folder that all workers of a plan share, on one machine or by NFS:

    plan.jsonl                    the lines
    results/KEY.ATTEMPT.json.zst  a result; the name is there when it is whole
    kept/KEY.ATTEMPT.*            the end of the console, a journal
    engine/                       logs of the engine

A result is never changed. An attempt that has one is not run again.
"""
import contextlib
import os
import re
import tempfile
import time

from . import FarmError, plan

RESULT = re.compile(r'([0-9a-f]{32})\.([1-9][0-9]{0,2})\.json\.zst')
NEW = '.new-'           # begin of the name of a file that is not whole
OLD = 24 * 3600         # seconds: nobody writes to it any more


class Folder:
    """Its paths, its plan, and which results there are."""

    def __init__(self, path):
        self.path = os.path.realpath(path)

    def file(self, *names):
        return os.path.join(self.path, *names)

    @property
    def results(self):
        return self.file('results')

    def make(self):
        for name in 'results', 'kept', 'engine':
            os.makedirs(self.file(name), exist_ok=True)

    @contextlib.contextmanager
    def new(self, name):
        """Open a file to write it. Its name is there when all of it is. A
        host that loses its power can still leave a torn file: who reads it
        says so, and its line is run again."""
        place = self.file(name)
        number, new = tempfile.mkstemp(dir=os.path.dirname(place),
                                       prefix=NEW)
        try:
            with os.fdopen(number, 'wb') as f:
                yield f
            os.chmod(new, 0o644)
            os.replace(new, place)
        except BaseException:
            os.unlink(new)
            raise

    def write(self, name, data):
        with self.new(name) as f:
            f.write(data)

    def remove_old(self):
        """Remove what workers that were killed did not write to its end."""
        last = time.time() - OLD
        for folder in 'results', 'kept':
            for name in os.listdir(self.file(folder)):
                path = self.file(folder, name)
                with contextlib.suppress(FileNotFoundError):
                    if name.startswith(NEW) and os.stat(
                            path, follow_symlinks=False).st_mtime < last:
                        os.unlink(path)

    def write_plan(self, lines, limits):
        self.make()
        self.write('plan.jsonl', plan.render(lines, limits).encode())

    def plan(self):
        """Return (lines, limits)."""
        try:
            with open(self.file('plan.jsonl'), encoding='utf-8') as f:
                text = f.read(plan.MOST_PLAN + 1)
        except (OSError, UnicodeDecodeError) as e:
            raise FarmError(f'{e}; ka-farm plan writes it') from e
        if len(text) > plan.MOST_PLAN:
            raise FarmError('plan.jsonl is too large')
        return plan.parse(text)

    def attempts(self):
        """Return {key: number of the last attempt that has a result}."""
        found = {}
        for key, attempt in self.names():
            found[key] = max(attempt, found.get(key, 0))
        return found

    def names(self):
        """Return (key, attempt) of each result, sorted."""
        try:
            names = os.listdir(self.results)
        except OSError as e:
            raise FarmError(f'{e}; ka-farm plan makes this folder') from e
        found = (RESULT.fullmatch(name) for name in names)
        return sorted((m[1], int(m[2])) for m in found if m)

    def strangers(self):
        """Return names in the folder of results that are none of ours."""
        return sorted(n for n in os.listdir(self.results)
                      if not RESULT.fullmatch(n) and not n.startswith(NEW))

    @staticmethod
    def result_name(key, attempt):
        return f'{key}.{attempt}.json.zst'
