#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""ka-farm with real VMs: a workload without errors, a module that makes one,
and a module that leaks. Oracle: what these modules do: each job has the bugs of
its module and no other, in each kernel, and the same ones in all.

In the long form: two kernels and three seeds; 20 VMs by Slurm; many short
boots, whose figures are in docs/farm.md.
"""
import argparse
import os
import resource
import shutil
import sqlite3
import subprocess
import tempfile
import time

from lib import oracle, slurm
from lib.tap import Tap
from scripts.lib.farm import questions, store
from scripts.lib.farm.folder import Folder
from scripts.lib.prepared import ROOT

ap = argparse.ArgumentParser(description=__doc__.split('\n\n', maxsplit=1)[0])
ap.add_argument('--short', action='store_true', help='one kernel, one seed')
ap.add_argument('--boots', type=int, default=200, metavar='N',
                help='short boots of the long form')
args = ap.parse_args()

tap = Tap()
top = tempfile.mkdtemp(prefix='ka-test-vms.')
FARM = os.path.join(ROOT, 'scripts', 'farm')
KERNELS = ['6.12'] if args.short else ['6.12', '6.1']
# A kernel panics if the host is too busy for its test of the timer.
PLAN = """
batch = "n1"
[axes]
kernel = [{kernels}]
seed = "1-{seeds}"
[[job]]
name = "clean"
append = "ka.run=life ka.end=poweroff no_timer_check"
options = ["--module-leaks"]
share = "share-{{kernel}}"
[[job]]
name = "error"
append = "ka.run=wrong ka.end=poweroff no_timer_check"
share = "share-{{kernel}}"
[[job]]
name = "leak"
append = "ka.run=leave ka.end=poweroff no_timer_check"
options = ["--module-leaks"]
share = "share-{{kernel}}"
[limits]
attempts = 3
"""
SCRIPTS = {
    'life': 'insmod /share/ka_life.ko && rmmod ka_life\n',
    'wrong': 'insmod /share/ka_errors.ko kind=double-free\n',
    'leave': 'insmod /share/ka_leaky.ko plant=2 && rmmod ka_leaky\n',
}
BOOTS = """
batch = "boots"
[axes]
kernel = ["6.12"]
seed = "1-{}"
[[job]]
name = "boot"
append = "ka.end=poweroff no_timer_check"
"""


def path(*names):
    return os.path.join(top, *names)


def write(name, text):
    with open(path(name), 'w', encoding='utf-8') as f:
        f.write(text)
    return path(name)


def farm(*words, env=None):
    done = subprocess.run([FARM, *words], stdin=subprocess.DEVNULL, text=True,
                          capture_output=True, check=False, env=env)
    assert done.returncode == 0, done
    return done.stdout


def make_share(kernel):
    share = path('share-' + kernel)
    os.mkdir(share)
    modules = oracle.build_modules(kernel)
    for name in 'ka_life', 'ka_errors', 'ka_leaky':
        shutil.copy(os.path.join(modules, name + '.ko'), share)
    for name, text in SCRIPTS.items():
        write(f'share-{kernel}/{name}.sh', text)


def make_plan(name, text):
    farm('plan', write(name + '.toml', text), '--dir', path(name))
    return Folder(path(name))


def bugs_of(view, job):
    """Return {title: kernels with it} of the runs of a job."""
    found = {}
    for bug in view.bugs:
        runs = [view.runs[k] for k in bug.runs if view.runs[k].job == job]
        if runs:
            found[bug.title] = len(runs), {r.kernel for r in runs}
    return found


for kernel in KERNELS:
    make_share(kernel)

with tap.test('each job has the bugs of its module and no other'):
    seeds = 1 if args.short else 3
    begin = time.monotonic()
    folder = make_plan('jobs', PLAN.format(
        kernels=', '.join(f'"{k}"' for k in KERNELS), seeds=seeds))
    farm('submit', 'local', '--dir', folder.path)
    took = time.monotonic() - begin
    farm('collect', path('jobs.db'), '--dir', folder.path)
    view = questions.View(store.Store(path('jobs.db')))
    text = farm('report', path('jobs.db'), '--out', path('pages'))
    assert not view.broken() and not view.missing(), text
    everywhere = seeds * len(KERNELS), set(KERNELS)
    assert not bugs_of(view, 'clean'), text
    wrong, = bugs_of(view, 'error').items()
    assert wrong[0].startswith('double-free in ka_err'), text
    assert wrong[1] == everywhere, text
    left = bugs_of(view, 'leak')
    assert left and all(t.startswith('leak in ') and runs == everywhere
                        for t, runs in left.items()), text
    assert len(view.bugs) == 1 + len(left), text
    tap.note(f'{len(view.runs)} VMs in {took:.0f} s: {sorted(left)}')
    tap.note(text)

# --- the long form -----------------------------------------------------------


def folder_bytes(folder):
    return sum(os.path.getsize(os.path.join(at, name))
               for at, _, names in os.walk(folder.path) for name in names)


def figures(db):
    with sqlite3.connect(db) as made:
        return made.execute(
            'SELECT count(*), avg(cpu_s), avg(wall_s), avg(bytes), max(bytes)'
            ' FROM timing').fetchone()


def memory_peak():
    """Peak of the resident memory of the largest child so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10


def try_boots(n):
    folder = make_plan('boots', BOOTS.format(n))
    begin = time.monotonic()
    farm('submit', 'parallel', '--dir', folder.path)
    wall = time.monotonic() - begin
    begin = time.monotonic()
    farm('collect', path('boots.db'), '--dir', folder.path)
    collect = time.monotonic() - begin
    runs, cpu, each, mean, most = figures(path('boots.db'))
    assert runs >= n and most < 64 << 10, (runs, most)
    size = folder_bytes(folder) / runs
    assert size < 128 << 10, size
    db = os.path.getsize(path('boots.db')) / runs
    tap.figures('farm', boots=runs, wall=round(wall), cpu_a_boot=round(cpu, 2),
                wall_a_boot=round(each, 2), bytes_a_result=round(mean),
                bytes_a_run_in_folder=round(size), bytes_a_run_in_db=round(db),
                collect_s_a_thousand=round(collect * 1000 / runs, 2),
                peak_mib=memory_peak())
    view = questions.View(store.Store(path('boots.db')))
    assert not view.broken() and not view.missing(), view.broken()


if not args.short:
    if args.boots:
        with tap.test(f'{args.boots} boots: sizes stay small'):
            try_boots(args.boots)
    reason = slurm.why_not()
    if reason:
        tap.skip('20 VMs by Slurm', reason)
    else:
        os.mkdir(path('slurm'))
        with slurm.Slurm(path('slurm')) as cluster, \
                tap.test('20 VMs by Slurm: each has a result'):
            folder = make_plan('twenty', BOOTS.format(20))
            farm('submit', 'slurm', '--dir', folder.path, env=cluster.env)
            cluster.wait(lambda: not cluster.jobs(), 3000)
            farm('collect', path('twenty.db'), '--dir', folder.path)
            view = questions.View(store.Store(path('twenty.db')))
            assert len(view.runs) == 20 and not view.missing()
            assert not view.broken(), view.broken()

shutil.rmtree(top)
tap.done()
