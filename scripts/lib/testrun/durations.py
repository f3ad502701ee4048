# SPDX-License-Identifier: GPL-2.0-or-later
"""How long each program took in its last run, by its form. The file is
durations.json in the cache: {"SUITE:PROGRAM OPTIONS": {"seconds", "cpu",
"level"}}."""
import contextlib
import json
import os

from . import cache_folder


def key(job):
    return f'{job.label} {job.form}'.rstrip()


class Durations:
    """The longest programs start first: then no long one is left alone at the
    end."""

    def __init__(self, path=None):
        self.path = path or os.path.join(cache_folder(), 'durations.json')
        self.rows = {}
        with contextlib.suppress(OSError, ValueError):
            with open(self.path, encoding='utf-8') as f:
                self.rows = {k: v for k, v in json.load(f).items()
                             if isinstance(v, dict)}

    def add(self, job, result):
        self.rows[key(job)] = {'seconds': round(result.seconds, 1),
                               'cpu': round(result.cpu, 1),
                               'level': job.level}

    def seconds(self, job):
        """What the program took. One that never ran may be long."""
        return self.rows.get(key(job), {}).get('seconds', float('inf'))

    def longest_first(self, jobs):
        return sorted(jobs, key=lambda job: -self.seconds(job))

    def save(self):
        with contextlib.suppress(OSError):
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            with open(self.path + '.new', 'w', encoding='utf-8') as f:
                json.dump(self.rows, f, indent=1, sort_keys=True)
            os.replace(self.path + '.new', self.path)

    def table(self, jobs):
        """Yield lines: what each program took, the slowest first; and sums."""
        known = [j for j in self.longest_first(jobs) if key(j) in self.rows]
        yield f'{"seconds":>9} {"CPU":>9}  level    program'
        rows = [self.rows[key(j)] for j in known]
        for job, row in zip(known, rows):
            yield (f'{row["seconds"]:9.1f} {row["cpu"]:9.1f}  {job.level:8} '
                   f'{key(job)}')
        yield (f'{sum(r["seconds"] for r in rows):9.1f} '
               f'{sum(r["cpu"] for r in rows):9.1f}  {len(known)} programs')
        for job in jobs:
            if key(job) not in self.rows:
                yield f'{"?":>9} {"?":>9}  {job.level:8} {key(job)}'
