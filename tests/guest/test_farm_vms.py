#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""ka-farm with real VMs: a workload without errors, modules that make one, that
leak, leak in ten ways of two titles, and make the kernel warn, and a guest that
hangs. Oracle: what these modules do: each job has the bugs of its module and no
other, in each kernel, and the same ones in all. The command on the page of a
bug must find the bug again.

In the long form 24 VMs of two kernels and three seeds run by GNU parallel, and
again by a Slurm of one node, where a worker is killed in the middle of a VM.
Oracle: both databases have the same lines, verdicts and findings.
"""
import argparse
import contextlib
import functools
import html
import os
import re
import shutil
import signal
import subprocess
import time

from lib import commands, oracle, sick, slurm
from lib.farm_workers import dump, workers
from lib.own_folder import OwnFolder
from lib.tap import Tap
from scripts.lib.farm import questions, store
from scripts.lib.farm.folder import Folder
from scripts.lib.prepared import ROOT

ap = argparse.ArgumentParser(description=__doc__.split('\n\n', maxsplit=1)[0])
ap.add_argument('--short', action='store_true', help='one kernel, one seed')
args = ap.parse_args()

tap = Tap()
own = OwnFolder('ka-test-vms.')
path, write = own.path, own.write
farm = functools.partial(commands.said, 'farm', timeout=None)
KERNELS = ['6.12'] if args.short else ['6.12', '6.1']
# A kernel panics if the host is too busy for its test of the timer.
PLAN = """
batch = "n1"
[axes]
kernel = [{kernels}]
seed = "1-{seeds}"
[[job]]
name = "clean"
append = "ka.run=life ka.end=poweroff"
options = ["--module-leaks"]
share = "share-{{kernel}}"
[[job]]
name = "error"
append = "ka.run=wrong ka.end=poweroff"
share = "share-{{kernel}}"
[[job]]
name = "leak"
append = "ka.run=leave ka.end=poweroff"
options = ["--module-leaks"]
share = "share-{{kernel}}"
[[job]]
name = "five"
seed = 1
append = "ka.run=five ka.end=poweroff"
options = ["--module-leaks"]
share = "share-{{kernel}}"
journal = true
[[job]]
name = "sick"
seed = 1
run = "sick.sh"
share = "share-{{kernel}}"
[limits]
attempts = 3
"""
HANG = """
batch = "n1"
[[job]]
name = "hang"
kernel = "6.12"
smp = 2
timeout = 60
run = "hang.sh"
[limits]
attempts = 1
"""
SCRIPTS = {
    'life': 'insmod /share/ka_life.ko && rmmod ka_life\n',
    'wrong': 'insmod /share/ka_errors.ko kind=double-free\n',
    'leave': 'insmod /share/ka_leaky.ko plant=2 && rmmod ka_leaky\n',
    'five': 'insmod /share/ka_five.ko how=calls && rmmod ka_five && '
            'insmod /share/ka_five.ko how=callers && rmmod ka_five\n',
    'both': '. /share/wrong.sh; . /share/leave.sh\n',
}
SICK = 'insmod /share/ka_sick.ko\n' + sick.way('warn')
MORE = """
[[job]]
name = "both"
kernel = ["6.12"]
seed = "1-2"
append = "ka.run=both ka.end=poweroff"
options = ["--module-leaks"]
share = "share-{kernel}"
"""
# What two runs of a plan have in common. Times, and which stack of the kernel
# has how much memory, differ from boot to boot.
SAME = """
SELECT r.key, r.job, r.kernel, r.release, r.arch, r.seed, r.verdict, r.reason,
    f.number, f.kind, f.title, f.alt, f.fold, f.exact, f.weak, f.blocks,
    f.hidden
FROM last AS r LEFT JOIN finding AS f ON r.key = f.key AND
    r.attempt = f.attempt ORDER BY r.key, f.number
"""


def make_share(kernel):
    share = path('share-' + kernel)
    os.mkdir(share)
    modules = oracle.build_modules(kernel)
    for name in 'ka_life', 'ka_errors', 'ka_leaky', 'ka_five', 'ka_sick':
        shutil.copy(os.path.join(modules, name + '.ko'), share)
    for name, text in SCRIPTS.items():
        write(f'share-{kernel}/{name}.sh', text)


def make_plan(name, text):
    farm('plan', write(name + '.toml', text), '--dir', path(name))
    return Folder(path(name))


def list_bugs(view, job):
    """Return [(title, runs, kernels)] of the bugs of a job."""
    found = []
    for bug in view.bugs:
        runs = [view.runs[k] for k in bug.runs if view.runs[k].job == job]
        if runs:
            found.append((bug.title, len(runs), {r.kernel for r in runs}))
    return found


def bugs_of(view, job):
    """Return {title: (runs, kernels)} of a job whose titles differ."""
    found = list_bugs(view, job)
    assert len({title for title, *_ in found}) == len(found), found
    return {title: tuple(rest) for title, *rest in found}


def check_more(view, text):
    """Five leaks by one function, five through another, and a warning, each in
    all kernels."""
    once = len(KERNELS), set(KERNELS)
    assert sorted(list_bugs(view, 'five')) == [
        (title, *once) for title in ('leak in ka_five_calls',
                                     'leak in ka_five_get')
        for _ in range(5)], text
    assert list_bugs(view, 'sick') == [('WARNING in ka_sick_warn', *once)], \
        text


def check_bugs(view, text):
    """The bugs of each job are those of its modules, in each kernel."""
    assert not view.broken() and not view.missing(), text
    everywhere = SEEDS * len(KERNELS), set(KERNELS)
    assert not bugs_of(view, 'clean'), text
    wrong, = bugs_of(view, 'error').items()
    assert wrong[0].startswith('double-free in ka_err'), text
    assert wrong[1] == everywhere, text
    left = bugs_of(view, 'leak')
    assert left and all(t.startswith('leak in ') and runs == everywhere
                        for t, runs in left.items()), text
    check_more(view, text)
    assert len(view.bugs) == 1 + len(left) + 10 + 1, text
    if not args.short:
        assert bugs_of(view, 'both') == {
            title: (2, {'6.12'}) for title in (wrong[0], *left)}, text


def collect(name):
    """Collect a folder; return its view and report."""
    farm('collect', path(name + '.db'), '--dir', path(name))
    return (questions.View(store.Store(path(name + '.db'))),
            farm('report', path(name + '.db'), '--out', path('pages')))


SEEDS = 1 if args.short else 3
ENGINE = 'local' if args.short else 'parallel'
JOBS = PLAN.format(kernels=', '.join(f'"{k}"' for k in KERNELS),
                   seeds=SEEDS) + ('' if args.short else MORE)
for kernel in KERNELS:
    make_share(kernel)
write('sick.sh', SICK)
write('hang.sh', 'while :; do :; done\n')

with tap.test('each job has the bugs of its module and no other; a bug of two '
              'kernels is one'):
    begin = time.monotonic()
    made = make_plan('jobs', JOBS)
    farm('submit', ENGINE, '--dir', made.path)
    took = time.monotonic() - begin
    view, text = collect('jobs')
    check_bugs(view, text)
    tap.note(f'{len(view.runs)} VMs by {ENGINE} in {took:.0f} s')
    tap.note(text)

def command_of(name):
    """Return the command on a page that repeats its run, and the page."""
    with open(path('pages', name), encoding='utf-8') as f:
        page = f.read()
    command = re.search(r'<pre>(scripts/sweep .*?)</pre>', page, re.S)
    return html.unescape(command[1]), page


with tap.test('the command on the page of a bug finds it again, and its page '
              'has console and journal'):
    bug = next(b for b in view.bugs if b.title == 'leak in ka_five_get')
    command, page = command_of(f'bug-{bug.name}.html')
    for end in '.txt', '.journal.zst':
        link = re.search(rf'href="(runs/[0-9a-f.]+{re.escape(end)})"', page)
        assert os.path.getsize(path('pages', link[1])) > 1000, end
    done = subprocess.run(['sh', '-c', command], cwd=ROOT, text=True,
                          capture_output=True, check=False)
    assert done.returncode == 1, done
    assert len(re.findall(r'^ *leak\[.*alloc\[ka_five_get', done.stdout,
                          re.M)) == 5, done.stdout

with tap.test('a guest that hangs is broken: reason, stacks of the vCPUs, '
              'console and command are on its page'):
    made = make_plan('hang', HANG)
    farm('submit', 'local', '--dir', made.path)
    hung, text = collect('hang')
    run, = hung.broken()
    assert 'broken: ' in text and run.reason in text, text
    detail, _, line = hung.about(run)
    assert all(re.search(rf'^vcpu{n} ', detail, re.M) for n in (0, 1)), detail
    command, page = command_of(f'run-{run.key}.{run.attempt}.html')
    assert html.escape(detail) in page and '.txt"' in page, page
    assert command.endswith(f"--run {path('hang.sh')}"), command
    tap.note(run.reason)

# --- the long form -----------------------------------------------------------


def children(pid):
    with contextlib.suppress(OSError), \
            open(f'/proc/{pid}/task/{pid}/children', encoding='ascii') as f:
        return [int(word) for word in f.read().split()]
    return []


def vms(folder):
    """Return (worker, QEMU) of each VM that runs."""
    return [(worker, qemu) for worker in workers(folder)
            for sweep in children(worker) for qemu in children(sweep)]


def kill_one(cluster, folder):
    """Kill a worker in the middle of a VM; the VM must end, too."""
    cluster.wait(lambda: len(folder.names()) >= 4, 600)
    cluster.wait(lambda: vms(folder), 600)
    time.sleep(3)
    worker, qemu = vms(folder)[0]
    os.kill(worker, signal.SIGKILL)
    cluster.wait(lambda: not os.path.exists(f'/proc/{qemu}'), 60)


def by_slurm():
    """Run the same plan; return (folder, view, report)."""
    os.mkdir(path('slurm'))
    with slurm.Slurm(path('slurm')) as cluster:
        made = make_plan('array', JOBS)
        farm('submit', 'slurm', '--dir', made.path, env=cluster.env)
        kill_one(cluster, made)
        cluster.wait(lambda: not cluster.jobs(), 3000)
        return made, *collect('array')


def tear(folder):
    """Cut a result in the middle; return its name."""
    name = folder.result_name(*folder.names()[0])
    torn = folder.file('results', name)
    os.truncate(torn, os.path.getsize(torn) // 2)
    return name


def long_form():
    with tap.test('the same by Slurm, a worker is killed: the same store'):
        made, view, text = by_slurm()
        check_bugs(view, text)
        got, want = (store.Store(path(name)).rows(SAME)
                     for name in ('array.db', 'jobs.db'))
        assert got == want, [(a, b) for a, b in zip(got, want) if a != b][:4]
        assert len({row[0] for row in got}) == 24
    with tap.test('collecting again changes nothing; a torn result is named '
                  'and skipped'):
        before = dump(path('array.db'), ())
        collect('array')
        assert dump(path('array.db'), ()) == before
        name = tear(made)
        text = farm('collect', path('array.db'), '--dir', made.path, status=1)
        assert f"'{name}': skipped: " in text, text
        assert dump(path('array.db'), ()) == before


if not args.short:
    reason = slurm.why_not()
    if reason:
        tap.skip('24 VMs by Slurm', reason)
    else:
        long_form()

tap.done()
