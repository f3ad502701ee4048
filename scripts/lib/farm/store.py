# SPDX-License-Identifier: GPL-2.0-or-later
"""The database: what all results say. One process writes at a time. Collecting
the same results again changes nothing: rows have keys of the results, and no
row depends on the order of files. So the text of `.dump` is the same, too,
except for the table timing, which has what differs when a line is run again.

A database must be on a local disk, not on NFS.
"""
import contextlib
import dataclasses
import fcntl
import json
import os
import sqlite3

from . import FarmError, leaks, results, sweeps

SCHEMA = 2
TABLES = """
CREATE TABLE IF NOT EXISTS planned (
    key TEXT PRIMARY KEY, batch TEXT NOT NULL, job TEXT NOT NULL,
    kernel TEXT NOT NULL, seed INTEGER NOT NULL, smp INTEGER NOT NULL,
    mem TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS run (
    key TEXT, attempt INTEGER, batch TEXT NOT NULL, job TEXT NOT NULL,
    kernel TEXT NOT NULL, release TEXT NOT NULL, arch TEXT NOT NULL,
    seed INTEGER NOT NULL, smp INTEGER NOT NULL, mem TEXT NOT NULL,
    ka TEXT NOT NULL, qemu TEXT NOT NULL, verdict TEXT NOT NULL,
    reason TEXT NOT NULL, warnings TEXT NOT NULL, left_out TEXT NOT NULL,
    detail TEXT NOT NULL DEFAULT '', line TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (key, attempt)) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS run_batch ON run (batch, kernel, job);
CREATE TABLE IF NOT EXISTS timing (
    key TEXT, attempt INTEGER, host TEXT NOT NULL, begin INTEGER NOT NULL,
    wall_s REAL NOT NULL, cpu_s REAL NOT NULL, bytes INTEGER NOT NULL,
    folder TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (key, attempt)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS finding (
    key TEXT, attempt INTEGER, number INTEGER, kind TEXT NOT NULL,
    title TEXT NOT NULL, alt TEXT NOT NULL, fold TEXT NOT NULL,
    exact TEXT NOT NULL, weak INTEGER NOT NULL, blocks INTEGER NOT NULL,
    hidden TEXT NOT NULL, call_order TEXT NOT NULL DEFAULT '',
    call TEXT NOT NULL DEFAULT '', place TEXT NOT NULL DEFAULT '',
    near TEXT NOT NULL DEFAULT '', partial INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (key, attempt, number)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sample (
    fold TEXT, exact TEXT, key TEXT NOT NULL, attempt INTEGER NOT NULL,
    number INTEGER NOT NULL, text TEXT NOT NULL,
    batch TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (fold, exact)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS stack (
    fold TEXT PRIMARY KEY, frames TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS account (
    key TEXT, attempt INTEGER, fold TEXT, live INTEGER NOT NULL,
    blocks INTEGER NOT NULL, allocs INTEGER NOT NULL,
    PRIMARY KEY (key, attempt, fold)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS metric (
    key TEXT, attempt INTEGER, name TEXT, value INTEGER NOT NULL,
    PRIMARY KEY (key, attempt, name)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS artefact (
    key TEXT, attempt INTEGER, name TEXT, bytes INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    PRIMARY KEY (key, attempt, name)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS decision (
    title TEXT PRIMARY KEY, bug TEXT NOT NULL) STRICT, WITHOUT ROWID;
"""
# What a database of version 1 lacks; TABLES makes what is missing as a whole.
FROM_1 = """
ALTER TABLE run ADD COLUMN detail TEXT NOT NULL DEFAULT '';
ALTER TABLE run ADD COLUMN line TEXT NOT NULL DEFAULT '';
ALTER TABLE timing ADD COLUMN folder TEXT NOT NULL DEFAULT '';
ALTER TABLE finding ADD COLUMN call_order TEXT NOT NULL DEFAULT '';
ALTER TABLE finding ADD COLUMN call TEXT NOT NULL DEFAULT '';
ALTER TABLE finding ADD COLUMN place TEXT NOT NULL DEFAULT '';
ALTER TABLE finding ADD COLUMN near TEXT NOT NULL DEFAULT '';
ALTER TABLE finding ADD COLUMN partial INTEGER NOT NULL DEFAULT 0;
UPDATE finding SET place = fold, call = exact WHERE kind = 'leak';
ALTER TABLE sample ADD COLUMN batch TEXT NOT NULL DEFAULT '';
UPDATE sample SET batch = coalesce(
    (SELECT r.batch FROM run AS r WHERE r.key = sample.key LIMIT 1), '');
"""
UPGRADES = {0: '', 1: FROM_1}
# What runs are told apart by: the last attempt of a line is its result.
LAST = """
CREATE TEMP VIEW last AS SELECT * FROM run AS r WHERE attempt =
    (SELECT max(attempt) FROM run WHERE key = r.key);
"""
CHUNK = 200         # results a transaction


class Store:
    """A database, open."""

    def __init__(self, path, write=False):
        self.path = path
        if not write and not os.path.exists(path):
            raise FarmError(f'{path}: no such file; ka-farm collect makes it')
        try:
            self._open(write)
            if not write and 0 < self._version() < SCHEMA:
                self.db.close()
                with writer(path):
                    pass        # brings it to this version
                self._open(write)
            if write:
                self.db.execute('PRAGMA journal_mode = WAL')
                self.db.execute('PRAGMA synchronous = NORMAL')
                self._create()
            version = self._version()
            if version != SCHEMA:
                raise FarmError(f'{path}: version {version} of a database of '
                                f'ka-farm; this program reads {SCHEMA}')
            self.db.executescript(LAST)
        except sqlite3.Error as e:
            raise FarmError(f'{path}: {e}') from e

    def _open(self, write):
        self.db = sqlite3.connect(
            self.path if write else f'file:{quote(self.path)}?mode=ro',
            uri=not write, isolation_level=None, timeout=60)

    def _version(self):
        return self.db.execute('PRAGMA user_version').fetchone()[0]

    def _create(self):
        """Make the tables, or bring those of an older version to this one."""
        more = UPGRADES.get(self._version())
        if more is not None:
            self.db.executescript(f'BEGIN; {more} {TABLES} PRAGMA '
                                  f'user_version = {SCHEMA}; COMMIT;')

    def rows(self, sql, *values):
        return self.db.execute(sql, values).fetchall()

    @contextlib.contextmanager
    def change(self):
        """A transaction: all of it, or nothing."""
        self.db.execute('BEGIN IMMEDIATE')
        try:
            yield self.db
            self.db.execute('COMMIT')
        except BaseException:
            if self.db.in_transaction:
                self.db.execute('ROLLBACK')
            raise

    def close(self):
        self.db.close()


def quote(path):
    return path.replace('%', '%25').replace('?', '%3f').replace('#', '%23')


@contextlib.contextmanager
def writer(path):
    """Open a database to write to it. A second writer waits here."""
    try:
        lock = open(path + '.lock', 'wb')
    except OSError as e:
        raise FarmError(str(e)) from e
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        store = Store(path, write=True)
        try:
            yield store
        except sqlite3.Error as e:
            raise FarmError(f'{path}: {e}') from e
        finally:
            store.close()


# --- collect -----------------------------------------------------------------

def put(db, table, rows):
    """Write rows; those with the same key are replaced."""
    if rows:
        marks = ', '.join('?' * len(rows[0]))
        db.executemany(f'INSERT OR REPLACE INTO {table} VALUES ({marks})',
                       rows)


# Of a batch the first key, of several the last batch: what was kept of its run
# is most likely still there.
SAMPLE = """
INSERT INTO sample VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (fold, exact) DO UPDATE SET key = excluded.key,
    attempt = excluded.attempt, number = excluded.number,
    text = excluded.text, batch = excluded.batch
WHERE excluded.batch > batch OR excluded.batch = batch AND
    (excluded.key, excluded.attempt, excluded.number) <=
    (key, attempt, number)
"""
# Of the same functions with and without a deeper stack, the first is kept.
STACK = """
INSERT INTO stack VALUES (?, ?) ON CONFLICT (fold) DO UPDATE
SET frames = min(frames, excluded.frames)
"""


def forget(db, key, attempt):
    """Remove what an older file of a result said."""
    for table in 'finding', 'account', 'metric', 'artefact':
        db.execute(f'DELETE FROM {table} WHERE key = ? AND attempt = ?',
                   (key, attempt))


def whole_text(f):
    """Return the text of a finding, and its stacks, a frame a line."""
    return '\n'.join([f['text'], *(
        '\n'.join(['', s['what'] + ':', *('    ' + t for t in s['frames'])])
        for s in f['stacks'])])


def add_findings(db, r):
    who, batch = (r['key'], r['attempt']), r['line']['batch']
    put(db, 'finding', [
        (*who, n, f['kind'], f['title'], '\n'.join(f['alt']), f['fold'],
         f['exact'], int(f['weak']), f['blocks'], f['hidden'],
         *dataclasses.astuple(leaks.read_call(f, sweeps.frame_name)))
        for n, f in enumerate(r['findings'])])
    db.executemany(SAMPLE, [
        (f['fold'], f['exact'], *who, n, whole_text(f), batch)
        for n, f in enumerate(r['findings'])])


def add(db, r, size, folder):
    """Write a result, which is in a folder."""
    who, line, facts = (r['key'], r['attempt']), r['line'], r['facts']
    forget(db, *who)
    put(db, 'run', [(*who, line['batch'], line['job'], line['kernel'],
                     facts.get('kernel', ''), facts.get('arch', ''),
                     line['seed'], line['smp'], line['mem'],
                     facts.get('ka', ''), facts.get('qemu', ''),
                     r['verdict'], r['reason'], '\n'.join(r['warnings']),
                     json.dumps(r['left_out'], sort_keys=True), r['detail'],
                     json.dumps(line, sort_keys=True))])
    put(db, 'timing', [(*who, r['host'], r['begin'], float(r['wall_s']),
                        float(r['cpu_s']), size, folder)])
    add_findings(db, r)
    put(db, 'artefact', [(*who, a['name'], a['bytes'], a['sha256'])
                         for a in r['artefacts']])
    stacks = [*r['accounts'], r['others']]
    db.executemany(STACK, [(a['fold'], '\n'.join(a['frames']))
                           for a in stacks])
    put(db, 'account', [(*who, a['fold'], a['live'], a['blocks'], a['allocs'])
                        for a in stacks])
    put(db, 'metric', [(*who, name, value)
                       for name, value in r['stat'].items()])


def planned(db, lines):
    """Write the lines of a plan: all that its batches have."""
    for batch in sorted({line.batch for line in lines}):
        db.execute('DELETE FROM planned WHERE batch = ?', (batch,))
    put(db, 'planned', [(line.key, line.batch, line.job, line.kernel,
                         line.seed, line.smp, line.mem) for line in lines])


def collect(store, folder, say):
    """Collect the results of a folder. Return (collected, skipped). say() is
    told of each file that is skipped, and why."""
    try:
        lines, _ = folder.plan()
    except FarmError:
        lines = []      # results alone are enough
    names = folder.names()
    with store.change() as db:
        planned(db, lines)
    bad = [(name, 'its name is not KEY.ATTEMPT.json.zst')
           for name in folder.strangers()]
    for at in range(0, max(1, len(names)), CHUNK):
        with store.change() as db:
            bad += collect_chunk(db, folder, names[at:at + CHUNK])
    for name, why in bad:
        say(f'{name!a}: skipped: {why}')
    return len(names) + len(folder.strangers()) - len(bad), len(bad)


def collect_chunk(db, folder, names):
    bad = []
    for key, attempt in names:
        name = folder.result_name(key, attempt)
        path = folder.file('results', name)
        try:
            r = results.read(path, key, attempt)
        except results.BadResult as e:
            bad.append((name, str(e)))
        else:
            add(db, r, results.size(path), folder.path)
    return bad
