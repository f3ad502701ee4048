#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""ka-farm says what a kernel reports of itself, and how a VM ended: a job for
each way of lib/sick.py, for each end that nobody asked for, and two that are
well. Oracle: what the guests were told to do. A job has the bug of its guest,
with the title that scripts/sweep has for it, and no other; the text and the
page of the bug have the title, too.

usage: test_farm_sick.py [--kernel K]...
    default: 6.12, and a kernel that checks its locks (lockdep-6.12)
"""
import argparse
import functools
import html
import os
import re
import shutil

from lib import commands, oracle, sick
from lib.own_folder import OwnFolder
from lib.tap import Tap
from scripts.lib.farm import questions, store
from scripts.lib.prepared import paths

ap = argparse.ArgumentParser(description=__doc__.split('\n\n', maxsplit=1)[0])
ap.add_argument('--kernel', action='append')
args = ap.parse_args()
tap = Tap()
own = OwnFolder('ka-test-sick.')
farm = functools.partial(commands.said, 'farm', timeout=None)
LOCKDEP, = sick.LOCKDEP
# Options of sweep for which a plan has keys.
KEYS = {'--smp': ('smp', int), '--mem': ('mem', str)}
LOAD = 'insmod /share/ka_sick.ko\n'
# Ends: the script, more keys of the job, the verdict, and a pattern of the
# title of the finding or of the reason why the run is broken.
WELL = ('well', 'exit 0\n', {}, 'clean', ''), \
    ('well with accesses', 'exit 0\n', {'options': ['--access']}, 'clean', '')
ENDS = WELL + (
    ('hang at boot', '', {
        'append': 'rdinit=/none root=/dev/none rootwait', 'timeout': 60},
     'broken', r'no end after \d+ s: the kernel was booting'),
    ('hang at shutdown', 'insmod /share/ka_halt.ko\n', {
        'options': ['--no-health'], 'timeout': 90},
     'broken', r'no end after \d+ s: the kernel was shutting down'),
    ('failing insmod', 'insmod /share/none.ko || exit 1\n', {}, 'found',
     r'scenario failed: status 1: insmod none\.ko: '),
    ('missing module', 'insmod /share/gone.ko || exit 1\n', {}, 'found',
     r'scenario failed: status 1: insmod gone\.ko: No such file'),
    ('failing script', 'exit 3\n', {}, 'found', 'scenario failed: status 3$'),
    ('endless loop', 'while :; do :; done\n', {'timeout': 60}, 'broken',
     r'no end after \d+ s: user space was running'),
)


def make_share(kernel):
    share = own.path('share-' + kernel)
    os.mkdir(share)
    for name in 'ka_sick', 'ka_halt':
        shutil.copy(os.path.join(oracle.build_modules(kernel), name + '.ko'),
                    share)
    own.write(f'share-{kernel}/none.ko', 'this is no module\n' * 100)


def toml(value):
    return str(value) if isinstance(value, int) else repr(value)


def job(kernel, number, script, keys):
    """Return the text of a job; its script is a file beside the plan."""
    name = f'{kernel}-{number}'
    own.write(name + '.sh', script)
    keys = {'name': name, 'kernel': [kernel], 'share': 'share-{kernel}',
            'run': name + '.sh', 'timeout': 400, **keys}
    return name, '[[job]]\n' + ''.join(f'{k} = {toml(v)}\n'
                                       for k, v in keys.items())


def sick_job(guest):
    """Return the script and the keys of a guest of lib/sick.py."""
    options = dict(zip(guest.options[::2], guest.options[1::2]))
    keys = {KEYS[o][0]: KEYS[o][1](v) for o, v in options.items()}
    return LOAD + guest.script + 'exit 0\n', {'append': guest.words, **keys}


def jobs_of(kernel):
    """Yield (name, job's name, job's text, verdict, pattern)."""
    rows = [(g.name, *sick_job(g), 'found', re.escape(g.title) + '$')
            for g in sick.on(kernel)]
    if kernel != LOCKDEP:
        rows += ENDS
    for number, (name, script, keys, verdict, pattern) in enumerate(rows):
        yield name, *job(kernel, number, script, keys), verdict, pattern


def run_all(jobs):
    """Run a plan; return the view of its database and the report's text."""
    text = 'batch = "n1"\n' + ''.join(j[2] for j in jobs) + \
        '[limits]\nattempts = 1\nvms = 2\n'
    farm('plan', own.write('plan.toml', text), '--dir', own.path('night'))
    farm('submit', 'local', '--dir', own.path('night'))
    farm('collect', own.path('runs.db'), '--dir', own.path('night'))
    report = farm('report', own.path('runs.db'), '--out', own.path('pages'))
    return questions.View(store.Store(own.path('runs.db'))), report


def page(name):
    with open(own.path('pages', name), encoding='utf-8') as f:
        return html.unescape(f.read())


def check(view, report, name, job_name, verdict, pattern):
    run, = (r for r in view.runs.values() if r.job == job_name)
    bugs = [b for b in view.bugs if run.key in b.runs]
    got = f'{run.verdict} {run.reason} {[b.title for b in bugs]}'
    assert run.verdict == verdict, got
    if verdict != 'found':
        assert not bugs and re.match(pattern, run.reason or ''), got
        return
    bug, = bugs
    assert re.match(pattern, bug.title), got
    assert bug.title in report, (bug.title, report)
    assert bug.title in page(f'bug-{bug.name}.html'), bug.title


kernels = [k for k in args.kernel or ('6.12', LOCKDEP)
           if paths().get('kernel-' + k)]
for kernel in kernels:
    make_share(kernel)
every = [j for kernel in kernels for j in jobs_of(kernel)]
with tap.test('a plan of guests that are not well runs'):
    view, report = run_all(every)
    for name, job_name, _, verdict, pattern in every:
        with tap.test(f'{job_name}: {name}: {verdict}'):
            check(view, report, name, job_name, verdict, pattern)
tap.done()
