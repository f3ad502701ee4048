#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Which findings ka-farm takes for one bug, without VMs. Oracle: the leaks of
each test are made here, call by call, so it is known how many bugs they are.
test_farm_vms.py has the same of real leaks.
"""
import functools
import hashlib
import json
import sqlite3

from lib import commands, fake_farm
from lib.own_folder import OwnFolder
from lib.tap import Tap
from scripts.lib.farm import FarmError, bisect, bugs, leaks, results, store
from scripts.lib.farm.folder import Folder

tap = Tap()
own = OwnFolder('ka-test-bugs.')
path, write = own.path, own.write
farm = functools.partial(commands.said, 'farm')
PLAN = """
batch = "{}"
[axes]
kernel = ["6.1", "6.12"]
[[job]]
name = "boot"
"""


def digest(*words):
    return hashlib.sha256(' '.join(words).encode()).hexdigest()[:32]


def leak(*frames, own_frame=0, weak=False):
    """A leak whose stack has these frames, FUNCTION+0xOFFSET."""
    names = [f.partition('+')[0] for f in frames]
    return {'kind': 'leak', 'title': f'leak in {names[own_frame]}', 'alt': [],
            'fold': digest('fold', *names), 'exact': digest('exact', *frames),
            'weak': weak, 'blocks': 1, 'hidden': None,
            'text': f'leak alloc[{" ".join(frames)}]',
            'stacks': [{'what': 'allocated', 'frames': list(frames)}]}


def calls(*offsets, more=()):
    """Leaks of one function, by calls at these offsets."""
    return [leak(f'probe+{at:#x}', 'init+0x9', *more) for at in offsets]


def callers(names, at=0x20, more=()):
    """Leaks of one function, which these call."""
    return [leak('get+0x8', f'{n}+{at:#x}', f'init+{i * 5 + at:#x}', *more)
            for i, n in enumerate(names)]


def night(batch, found):
    """Run a batch whose runs have these findings: {kernel: [finding]}."""
    fake, folder = path(f'fake-{batch}'), path(batch)
    program = fake_farm.make(fake)
    for kernel in '6.1', '6.12':
        fake_farm.write(fake, kernel, 1, fake_farm.report(
            kernel, 1, found=found.get(kernel, [])))
    farm('plan', write('p.toml', PLAN.format(batch)), '--dir', folder)
    farm('work', '--index', '0', '--of', '1', '--dir', folder, '--sweep',
         program)
    return folder


def bugs_of(name, *nights):
    """Collect nights, {kernel: [finding]}; return the bugs as a list of
    {(batch, kernel)}."""
    db = path(name + '.db')
    for number, found in enumerate(nights, 1):
        farm('collect', db, '--dir', night(f'{name}{number}', found))
    return seen(db)


def seen(db):
    made = store.Store(db)
    where = {key: (batch[-1], kernel) for key, batch, kernel in made.rows(
        'SELECT key, batch, kernel FROM run')}
    return [{where[k] for k in bug.runs} for bug in bugs.find(made)]


FIVE = calls(0x10, 0x20, 0x30, 0x40, 0x50)
OTHER = calls(0x18, 0x28, 0x38, 0x48, 0x58)        # of another build
NAMES = 'abcde'

# --- leaks of one title ------------------------------------------------------

with tap.test('five calls in a function, and five callers: five bugs each, on '
              'two kernels and in two batches'):
    both = {'6.12': FIVE + callers(NAMES), '6.1': OTHER[::-1] +
            callers(NAMES, 0x33, more=['load+0x1'])}
    got = bugs_of('five', both, both)
    assert got == [{('1', '6.1'), ('1', '6.12'), ('2', '6.1'),
                    ('2', '6.12')}] * 10, got
    names = [b.name for b in bugs.find(store.Store(path('five.db')))]
    assert len(set(names)) == 10, names

with tap.test('one call in a hundred places is one bug until two are in one '
              'run'):
    got = bugs_of('one', {'6.12': callers('a')}, {'6.12': callers('b')})
    assert got == [{('1', '6.12'), ('2', '6.12')}], got
    got = bugs_of('two', {'6.12': callers('a')}, {'6.12': callers('ab')})
    assert got == [{('1', '6.12'), ('2', '6.12')}, {('2', '6.12')}], got

with tap.test('the call that is gone is gone, and a new one is new'):
    for name, second, want in (
            ('gone', FIVE[:1] + FIVE[2:], [2, 1, 2, 2, 2]),
            ('more', [*FIVE, *calls(0x60)], [2, 2, 2, 2, 2, 1]),
            ('edit', calls(0x10, 0x20, 0x38, 0x48, 0x58), [2] * 5),
            ('built', OTHER[:4], [2, 2, 2, 2, 1])):
        got = bugs_of(name, {'6.12': FIVE}, {'6.12': second})
        assert sorted(map(len, got)) == sorted(want), (name, got)
    bugs_of('path', {'6.12': callers('ab')}, {'6.12': callers('bca')})
    folds = {tuple(b.folds) for b in bugs.find(store.Store(path('path.db')))}
    assert folds == {(f['fold'],) for f in callers('abc')}, folds

with tap.test('a weak leak is the bug that begins with the same frames'):
    weak = leak('probe+0x20', weak=True)
    got = bugs_of('weak', {'6.12': [*FIVE, weak]})
    assert len(got) == 5, got
    got = bugs_of('alone', {'6.12': [weak, leak('probe+0x30', weak=True)]})
    assert len(got) == 2, got

with tap.test('helpers before the function of the title; names of compilers'):
    made = leak('kmemdup+0x3', 'probe.isra.0+0x7', 'init+0x9', own_frame=1)
    made['title'] = 'leak in probe'
    assert leaks.own_frame(made['stacks'][0]['frames'], made['title']) == 1
    assert leaks.own_frame(['kmalloc_noprof+0x1[m]'], 'leak in kmalloc') == 0
    assert leaks.offset('f+0x1a[m]') < leaks.offset('f+0x100')
    assert leaks.offset('0xffff') == leaks.offset('') == '0' * 8

# --- errors ------------------------------------------------------------------


def error(title, fold, alt=(), weak=False):
    return {**fake_farm.finding('double-free', 'x', fold), 'title': title,
            'alt': list(alt), 'weak': weak, 'stacks': []}


with tap.test('errors join by fold, by title and by another title; weak ones '
              'by titles only'):
    for name, found, want in (
            ('fold', [error('x', 'a'), error('y', 'a')], 1),
            ('title', [error('x', 'a'), error('x', 'b')], 1),
            ('alt', [error('x', 'a', 'z'), error('y', 'b', 'z')], 1),
            ('chain', [error('x', 'a'), error('y', 'b', 'x'),
                       error('z', 'b')], 1),
            ('none', [error('x', 'a', 'v'), error('y', 'b', 'w')], 2),
            ('soft', [error('x', 'a', weak=True),
                      error('y', 'a', weak=True), error('x', 'b')], 2)):
        assert len(bugs_of(name, {'6.12': found})) == want, name

# --- decisions ---------------------------------------------------------------

with tap.test('people join the five by their title, or some by name or hash'):
    db = path('joined.db')
    assert len(bugs_of('joined', {'6.12': FIVE + callers(NAMES)})) == 10
    farm('bug', db, 'leak in probe', 'the probe')
    assert len(seen(db)) == 6
    farm('bug', db, 'leak in probe')
    first, second, *_ = bugs.find(store.Store(db))
    for word in first.name, second.name:
        assert farm('bug', db, word, 'two') == ''
    assert len(seen(db)) == 9
    fold, = next(b for b in bugs.find(store.Store(db))
                 if b.title == 'leak in get').folds
    assert farm('bug', db, fold, 'two') == ''
    assert len(seen(db)) == 8
    farm('bug', db, first.name)
    assert len(seen(db)) == 9

with tap.test('the report tells bugs of one title apart'):
    text = farm('report', path('five.db'))
    for n in NAMES:
        assert f'  leak in get (get+0x8 {n}+0x' in text, text

with tap.test('bisect wants one bug, and does not take another of the same '
              'title for it'):
    made = store.Store(path('five.db'))
    try:
        bisect.Wanted('leak in get', made)
        raise AssertionError('it was taken')
    except FarmError as e:
        assert '5 bugs are' in str(e) and 'name one: ' in str(e), e
    bug = next(b for b in bugs.find(made) if b.title == 'leak in get')
    wanted = bisect.Wanted(bug.name, made)
    same, = [f for f in callers(NAMES, 0x77)
             if f['fold'] in bug.folds]
    other = callers('z')[0]
    assert wanted.is_in({'findings': [same]})
    assert not wanted.is_in({'findings': [other]})
    assert wanted.may_be_in({'findings': [other]})

# --- what older versions wrote -----------------------------------------------

with tap.test('a result of schema 1 is read, and its leaks are bugs'):
    old = Folder(night('old', {'6.12': FIVE}))
    for key, attempt in old.names():
        name = old.file('results', old.result_name(key, attempt))
        made = results.read(name, key, attempt)
        made['schema'] = 1
        del made['detail']
        for f in made['findings']:
            del f['stacks']
        old.write(name, results.pack(json.dumps(made).encode()))
        assert results.read(name, key, attempt)['detail'] == ''
    farm('collect', path('old.db'), '--dir', old.path)
    assert len(seen(path('old.db'))) == 5

# The tables of version 1, as an older ka-farm made them.
VERSION_1 = """
DROP TABLE artefact;
ALTER TABLE run DROP COLUMN detail; ALTER TABLE run DROP COLUMN line;
ALTER TABLE timing DROP COLUMN folder; ALTER TABLE sample DROP COLUMN batch;
ALTER TABLE finding DROP COLUMN call_order;
ALTER TABLE finding DROP COLUMN call; ALTER TABLE finding DROP COLUMN place;
ALTER TABLE finding DROP COLUMN near; ALTER TABLE finding DROP COLUMN partial;
PRAGMA user_version = 1;
"""


def columns(name):
    """Return the version of a database, and its columns."""
    with sqlite3.connect(path(name)) as db:
        return [db.execute('PRAGMA user_version').fetchone(), *(
            db.execute(f'PRAGMA table_info({table})').fetchall()
            for table in ('run', 'timing', 'finding', 'sample', 'artefact'))]


with tap.test('a database of version 1 is brought to this one, by reading or '
              'by collecting'):
    for words in ('report',), ('collect', '--dir', path('five1')):
        sqlite3.connect(path('old.db')).executescript(VERSION_1)
        farm(words[0], path('old.db'), *words[1:])
        assert columns('old.db') == columns('five.db')
    assert len(seen(path('old.db'))) == 10

tap.done()
