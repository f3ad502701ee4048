#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Many short boots by ka-farm on two cores, with a search for leaks at the end
of each: memory of the workers, the folder, the temporary files and the database
stay bounded, as functions of the number of runs. Oracle: sizes that this
program reads itself while the workers run. Its figures are in docs/farm.md.

    tests/guest/test_farm_boots.py --boots 200 --log boots.tsv
"""
import argparse
import contextlib
import os
import resource
import sqlite3
import subprocess
import time

from lib import commands
from lib.farm_workers import workers
from lib.own_folder import OwnFolder
from lib.tap import Tap
from scripts.lib.farm import plan, questions, results, store
from scripts.lib.farm.folder import Folder

ap = argparse.ArgumentParser(description=__doc__.split('\n\n', maxsplit=1)[0])
ap.add_argument('--boots', type=int, default=200, metavar='N')
ap.add_argument('--vms', type=int, default=2, metavar='N', help='at once')
ap.add_argument('--log', metavar='FILE', help='write what was read every '
                'five seconds to FILE')
args = ap.parse_args()

tap = Tap()
own = OwnFolder('ka-test-boots.')
top, path = own.top, own.path
# A kernel panics if the host is too busy for its test of the timer.
PLAN = """
batch = "boots"
[axes]
kernel = ["6.12"]
seed = "1-{}"
[[job]]
name = "boot"
append = "ka.end=poweroff"
options = ["--leaks"]
[limits]
vms = {}
minutes = 1000
"""
THOUSAND = 1000
# Bounds, in bytes.
WORKER = 8 << 20        # that a worker grows after its first runs
A_RUN = 64 << 10        # of the folder, and of the database, a run
RUNNING = 64 << 20      # of temporary files, a VM that runs


def farm(*words):
    """Run a command; return (seconds of the clock, of CPU)."""
    begin, before = time.monotonic(), children_cpu()
    commands.run('farm', *words, timeout=None)
    return time.monotonic() - begin, children_cpu() - before


def children_cpu():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# --- what is read while the workers run ---------------------------------------

def resident(pid):
    """Return the peak of a process's resident memory, in bytes."""
    with contextlib.suppress(OSError, IndexError), \
            open(f'/proc/{pid}/status', encoding='utf-8') as f:
        return int(f.read().partition('VmHWM:')[2].split()[0]) << 10
    return 0


def usage(folder):
    """Return (bytes on the disk, files) of a folder; files may go away."""
    size = files = 0
    for at, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                size += os.lstat(os.path.join(at, name)).st_blocks * 512
                files += 1
    return size, files


COLUMNS = ('seconds', 'runs', 'worker', 'folder', 'files', 'tmp', 'tmp_files',
           'db')


def sample(begin, folder):
    """Return a row: see COLUMNS. Sizes are bytes."""
    db = path('boots.db')
    return (round(time.monotonic() - begin), len(folder.names()),
            max(map(resident, workers(folder)), default=0),
            *usage(folder.path), *usage(path('tmp')),
            os.path.getsize(db) if os.path.exists(db) else 0)


def watch(proc, folder):
    """Read sizes until the workers have ended, and collect results four times
    meanwhile. Return the rows."""
    begin, rows = time.monotonic(), []
    parts = [args.boots * n // 4 for n in (1, 2, 3)]
    while proc.poll() is None:
        rows.append(sample(begin, folder))
        if parts and rows[-1][1] >= parts[0]:
            del parts[0]
            farm('collect', path('boots.db'), '--dir', folder.path)
            tap.note(dict(zip(COLUMNS, sample(begin, folder))))
        time.sleep(5)
    farm('collect', path('boots.db'), '--dir', folder.path)
    rows.append(sample(begin, folder))
    tap.note(dict(zip(COLUMNS, rows[-1])))
    return rows


def write_log(rows):
    if args.log:
        with open(args.log, 'w', encoding='ascii') as f:
            for row in (COLUMNS, *rows):
                f.write('\t'.join(map(str, row)) + '\n')


def column(rows, name):
    return [row[COLUMNS.index(name)] for row in rows]


# --- boots -------------------------------------------------------------------

def make_plan():
    with open(path('plan.toml'), 'w', encoding='utf-8') as f:
        f.write(PLAN.format(args.boots, args.vms))
    farm('plan', path('plan.toml'), '--dir', path('boots'))
    return Folder(path('boots'))


def run_all(folder):
    """Run the plan; return (rows, seconds of the clock)."""
    os.mkdir(path('tmp'))
    begin = time.monotonic()
    with open(path('out'), 'wb') as out, subprocess.Popen(
            [commands.program('farm'), 'submit', 'local', '--dir', folder.path],
            stdin=subprocess.DEVNULL, stdout=out, stderr=out,
            env={**os.environ, 'TMPDIR': path('tmp')}) as proc:
        try:
            rows = watch(proc, folder)
        except BaseException:
            proc.terminate()
            raise
    return rows, time.monotonic() - begin


def ask(sql):
    with sqlite3.connect(path('boots.db')) as db:
        return db.execute(sql).fetchone()


def middle(name):
    """Return the median of a column of the table timing."""
    return ask(f'SELECT {name} FROM timing ORDER BY {name} LIMIT 1 OFFSET '
               '(SELECT count(*) / 2 FROM timing)')[0]


with tap.test(f'{args.boots} boots: each has a result'):
    folder = make_plan()
    rows, wall = run_all(folder)
    write_log(rows)
    view = questions.View(store.Store(path('boots.db')))
    runs, broken = ask("SELECT count(*), sum(verdict = 'broken') FROM run")
    tap.note(f'{runs} runs of {args.boots} VMs, {broken} broken; broken at '
             f'last: {len(view.broken())}')
    assert len(view.runs) == args.boots and not view.missing()
    cpu, = ask('SELECT sum(cpu_s) FROM timing')
    tap.figures(
        'boots', boots=args.boots, runs=runs, broken=broken,
        wall_s=round(wall), cpu_s=round(cpu), cpu_a_run=middle('cpu_s'),
        wall_a_run=middle('wall_s'), bytes_a_result=middle('bytes'),
        boots_an_hour_a_core=round(runs * 3600 / wall / args.vms),
        boots_an_hour_a_core_of_cpu=round(runs * 3600 / cpu))

with tap.test('memory of workers does not grow with the runs'):
    first = [m for n, m in zip(column(rows, 'runs'), column(rows, 'worker'))
             if m and n <= max(4, args.boots // 10)]
    assert max(column(rows, 'worker')) <= max(first) + WORKER, rows[-5:]

with tap.test('the folder and the database have so much a run'):
    size, files = usage(folder.path)
    assert files <= 2 * runs + 10, files
    assert size <= A_RUN * runs + (1 << 20), size
    assert os.path.getsize(path('boots.db')) <= A_RUN * runs + (1 << 20)

with tap.test('temporary files are those of the VMs that run'):
    assert usage(path('tmp')) == (0, 0), os.listdir(path('tmp'))
    assert max(column(rows, 'tmp')) <= args.vms * RUNNING

# --- a thousand results ------------------------------------------------------


def copy_results(folder, n):
    """Write a thousand results: those of the boots, under other seeds."""
    names = folder.names()
    made = Folder(path('thousand'))
    made.make()
    lines = []
    for number in range(n):
        key, attempt = names[number % len(names)]
        r = results.read(folder.file('results', folder.result_name(
            key, attempt)), key, attempt)
        r['line']['seed'] = args.boots + 1 + number
        line = plan.from_dict(r['line'], 'line')
        made.write('results/' + made.result_name(line.key, 1), results.render(
            {**r, 'key': line.key, 'attempt': 1}))
        lines.append(line)
    made.write_plan(lines, plan.Limits())
    return made


with tap.test('a thousand results are collected, and collected again'):
    many = copy_results(folder, THOUSAND)
    times = [farm('collect', path('many.db'), '--dir', many.path)
             for _ in range(2)]
    took = farm('report', path('many.db'), '--out', path('pages'))
    tap.figures('collect', results=THOUSAND,
                first_s=round(times[0][0], 1), first_cpu=round(times[0][1], 1),
                again_s=round(times[1][0], 1), again_cpu=round(times[1][1], 1),
                report_s=round(took[0], 1), report_cpu=round(took[1], 1),
                db_bytes_a_run=os.path.getsize(path('many.db')) // THOUSAND)

tap.done()
