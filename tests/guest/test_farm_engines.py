#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""ka-farm with engines: GNU parallel, and a Slurm of one node that this program
sets up. The VMs are those of lib/fake_farm.py. Oracle: the database of the same
plan, run by one worker that nothing disturbs. Workers and collectors are killed
at random, disks are full, files are torn, the plan is changed: the database
must be the same, and no line may be lost, or counted twice.
"""
import argparse
import contextlib
import os
import random
import shutil
import subprocess
import time

from lib import commands, fake_farm
from lib.farm_workers import dump, kill_one
from lib.slurm import Slurm, why_not
from lib.own_folder import OwnFolder
from lib.tap import Tap
from scripts.lib.farm import work
from scripts.lib.farm.folder import Folder

ap = argparse.ArgumentParser(description=__doc__.split('\n\n', maxsplit=1)[0])
ap.add_argument('--short', action='store_true', help='100 lines, not 1000')
ap.add_argument('--lines', type=int, default=1000, metavar='N',
                help='lines of the long form (default 1000)')
ap.add_argument('--seed', type=int, default=random.randrange(1 << 32))
args = ap.parse_args()

tap = Tap()
tap.note(f'--seed {args.seed}')
chance = random.Random(args.seed)
own = OwnFolder('ka-test-engines.')
top, path = own.top, own.path
FAKE = fake_farm.make(os.path.join(top, 'fake'))
FARM = commands.program('farm')
LINES = 100 if args.short else args.lines
PLAN = """
batch = "n1"
[axes]
kernel = ["6.12", "6.1"]
seed = "1-{}"
[[job]]
name = "boot"
[limits]
vms = {}
"""


def make_plan(name, seeds, vms=4):
    with open(path('plan.toml'), 'w', encoding='utf-8') as f:
        f.write(PLAN.format(seeds, vms))
    run('plan', path('plan.toml'), '--dir', path(name))
    return Folder(path(name))


def start(*words, env=None, **more):
    return subprocess.Popen(
        [FARM, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, start_new_session=True,
        env={**(env or os.environ), 'KA_FARM_SWEEP': FAKE, **more})


def run(*words, env=None, status=0, **more):
    with start(*words, env=env, **more) as proc:
        text = proc.communicate(timeout=600)[0]
    assert proc.returncode == status, f'{proc.returncode} {words}:\n{text}'
    return text


def expected(name, seeds):
    """Run a plan in this process; return the dump of its database."""
    folder = make_plan(name, seeds)
    lines, limits = folder.plan()
    work.Worker(folder, limits, FAKE, lambda _: None).work(lines)
    run('collect', path(name + '.db'), '--dir', folder.path)
    return dump(path(name + '.db'))


def missing(folder):
    lines, _ = folder.plan()
    return {x.key for x in lines} - set(folder.attempts())


# --- disturbed ---------------------------------------------------------------

def spoil(folder):
    """Tear a result, and put others where none belongs."""
    names = sorted(os.listdir(folder.results))
    names = [n for n in names if n.endswith('.zst')]
    if names:
        torn = folder.file('results', chance.choice(names))
        with contextlib.suppress(OSError):
            size = os.path.getsize(torn)
            os.truncate(torn, chance.randrange(size) if size else 0)
        name = chance.choice(names)
        with contextlib.suppress(OSError):
            shutil.copy(folder.file('results', name),
                        folder.file('results', 'copy of ' + name))
            shutil.copy(folder.file('results', name),
                        folder.file('results', 'f' * 32 + '.1.json.zst'))


def collect_and_kill(folder, db):
    """Start two collectors, and kill one of them."""
    procs = [start('collect', db, '--dir', folder.path) for _ in range(2)]
    time.sleep(chance.random() * 0.5)
    procs[0].kill()
    for proc in procs:
        proc.communicate()
    assert procs[1].returncode in (0, 1), procs[1].returncode


def disturb(folder, runs, db, more=None):
    """Disturb an engine while runs() is true; return how many workers were
    killed. more: called now and then."""
    killed = number = 0
    while runs():
        number += 1
        killed += kill_one(folder, chance)
        if number % 4 == 2:
            spoil(folder)
        if number % 6 == 3:
            collect_and_kill(folder, db)
        if number % 20 == 19 and more:
            more()
        time.sleep(0.05 + chance.random() * 0.3)
    return killed


def clean(folder):
    """Remove what spoil() put there. Torn results stay: their lines are run
    again."""
    for name in os.listdir(folder.results):
        if name.startswith(('copy', 'f' * 32)):
            os.unlink(folder.file('results', name))


def finish(folder, submit):
    """Run what is left, undisturbed; return how many submits that took."""
    for number in range(1, 6):
        clean(folder)
        submit()
        state = run('status', '--dir', folder.path)
        if 'missing' not in state and 'unreadable' not in state:
            return number
    raise AssertionError(state)


def check_store(folder, name):
    """The database is that of the undisturbed run."""
    assert not missing(folder), len(missing(folder))
    run('collect', path(name), '--dir', folder.path)
    got = dump(path(name))
    assert got == want, [x for x in got + want
                         if (x in got) != (x in want)][:6]


want = expected('calm', LINES // 2)

if shutil.which('parallel'):
    with tap.test(f'{LINES} lines by parallel, killed and torn: the same '
                  'database'):
        made = make_plan('wild', LINES // 4)
        engine = start('submit', 'parallel', '--dir', made.path,
                       FAKE_SECONDS='0.3')
        time.sleep(1)
        make_plan('wild', LINES // 2)       # the plan has more lines now
        killed = disturb(made, lambda: engine.poll() is None, path('wild.db'))
        engine.communicate()
        rounds = finish(made, lambda: run('submit', 'parallel', '--dir',
                                          made.path))
        check_store(made, 'wild.db')
        assert killed > 3, killed
        tap.note(f'{killed} workers killed, {rounds} more submits')
else:
    tap.skip('lines by parallel', 'parallel is not installed')

with tap.test('local: workers of this machine, the same database'):
    made = make_plan('local', 10, vms=3)
    run('submit', 'local', '--dir', made.path)
    run('collect', path('local.db'), '--dir', made.path)
    ten = expected('ten', 10)
    assert dump(path('local.db')) == ten

with tap.test('a worker that is ended ends its sweep, and writes no result'):
    made = make_plan('ended', 1)
    proc = start('work', '--index', '0', '--of', '2', '--dir', made.path,
                 FAKE_SECONDS='120.25')
    time.sleep(1.5)
    proc.terminate()
    proc.communicate(timeout=60)
    assert proc.returncode != 0 and len(missing(made)) == 2
    left = subprocess.run(['pgrep', '-f', 'sleep 120[.]25'], check=False,
                          capture_output=True)
    assert not left.stdout, left.stdout

# --- a full disk -------------------------------------------------------------


@contextlib.contextmanager
def small_disk(name, size):
    os.mkdir(path(name))
    done = subprocess.run(['mount', '-t', 'tmpfs', '-o', f'size={size}',
                           'ka-test', path(name)], check=False,
                          capture_output=True)
    if done.returncode:
        yield False
        return
    try:
        yield True
    finally:
        subprocess.run(['umount', '-l', path(name)], check=True)


def fill(name):
    with contextlib.suppress(OSError), open(path(name, 'fill'), 'wb') as f:
        while True:
            f.write(b'x' * 4096)
            f.flush()


with small_disk('disk', '1m') as mounted:
    if not mounted:
        tap.skip('a full disk', 'no tmpfs can be mounted')
    else:
        with tap.test('a full disk: no result, no part of one, status not 0; '
                      'with room again all is done'):
            made = make_plan('disk/d', 10)
            fill('disk')
            with start('work', '--index', '0', '--of', '1', '--dir',
                       made.path) as proc:
                text = proc.communicate()[0]
            assert proc.returncode != 0 and 'No space left' in text, text
            assert 'Traceback' not in text, text
            assert os.listdir(made.results) == []
            os.unlink(path('disk', 'fill'))
            run('work', '--index', '0', '--of', '1', '--dir', made.path)
            shutil.copytree(made.path, path('roomy'))
            fill('disk')
            text = run('collect', path('disk', 'x.db'), '--dir',
                       path('roomy'), status=2)
            assert 'full' in text or 'No space' in text or 'I/O' in text, text
            os.unlink(path('disk', 'fill'))
            shutil.rmtree(made.path)
            run('collect', path('disk', 'x.db'), '--dir', path('roomy'))
            assert dump(path('disk', 'x.db')) == ten

# --- Slurm -------------------------------------------------------------------


def by_slurm(cluster, name, seeds, **more):
    folder = make_plan(name, seeds, vms=0)
    run('submit', 'slurm', '--dir', folder.path, env=cluster.env, **more)
    return folder


def submit_and_wait(cluster, folder):
    run('submit', 'slurm', '--dir', folder.path, env=cluster.env)
    cluster.wait(lambda: not cluster.jobs(), 3000)


def many_by_slurm(cluster):
    """As by parallel; slurmd is killed, too."""
    made = make_plan('many', LINES // 4, vms=0)
    run('submit', 'slurm', '--dir', made.path, env=cluster.env)
    cluster.wait(made.names)
    make_plan('many', LINES // 2, vms=0)
    daemons = []

    def kill_daemon():
        cluster.kill_slurmd()
        cluster.start_slurmd()
        daemons.append(len(made.names()))

    killed = disturb(made, cluster.jobs, path('many.db'), kill_daemon)
    rounds = finish(made, lambda: submit_and_wait(cluster, made))
    check_store(made, 'many.db')
    assert killed > 3 and daemons, (killed, daemons)
    tap.note(f'{killed} workers and {len(daemons)} times slurmd killed, '
             f'{rounds} more submits')


reason = why_not()
if reason:
    tap.skip('an array of 20 VMs by Slurm', reason)
else:
    os.mkdir(path('slurm'))
    with Slurm(path('slurm'), cpus=4, memory=8000) as cluster:
        with tap.test('an array of 20 VMs by Slurm, one worker killed: nothing '
                      'is lost or counted twice'):
            made = by_slurm(cluster, 'array', 10, FAKE_SECONDS='0.3',
                            FAKE_COUNT=path('count'))
            cluster.wait(lambda: len(made.names()) >= 4)
            cluster.wait(lambda: kill_one(made, chance))
            cluster.wait(lambda: not cluster.jobs(), 180)
            assert not missing(made), missing(made)
            run('collect', path('array.db'), '--dir', made.path)
            assert dump(path('array.db')) == ten
            with open(path('count'), encoding='ascii') as f:
                ran = f.read().splitlines()
            assert len(set(ran)) == 20, ran
            tap.note(f'{len(ran)} runs of 20 VMs and 2 repeats')

        with tap.test('slurmd is killed and starts again: nothing is lost'):
            made = by_slurm(cluster, 'daemon', 10, FAKE_SECONDS='0.3')
            cluster.wait(lambda: len(made.names()) >= 4)
            cluster.kill_slurmd()
            time.sleep(1)
            cluster.start_slurmd()
            cluster.wait(lambda: not cluster.jobs(), 180)
            if missing(made):
                run('submit', 'slurm', '--dir', made.path, env=cluster.env)
                cluster.wait(lambda: not cluster.jobs(), 180)
            assert not missing(made), missing(made)
            run('collect', path('daemon.db'), '--dir', made.path)
            assert dump(path('daemon.db')) == ten

        if not args.short:
            with tap.test(f'{LINES} lines by Slurm, killed and torn: the same '
                          'database'):
                many_by_slurm(cluster)

tap.done()
