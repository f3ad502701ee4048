# SPDX-License-Identifier: GPL-2.0-or-later
"""Start the workers of a plan. An engine only has to run a command N times with
the numbers 0 to N - 1; which VM ran is said by the results, never by the
engine. So what an engine lost is simply submitted again.
"""
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

from ..prepared import ROOT
from . import FarmError, work

MOST_TASKS = 1000       # Slurm's MaxArraySize is 1001 unless a site says more
PROGRAM = os.environ.get('KA_FARM_PROGRAM') or \
    os.path.join(ROOT, 'scripts', 'farm')
TRIES = 3               # of a task, before it waits for the next submit

# The task of Slurm: if a worker was killed before it wrote its results, the
# task is run again. Only this task: the plain id of an array's first task
# would mean all of them.
TASK = """\
{command} || {{
  [ "${{SLURM_RESTART_COUNT:-0}}" -lt {tries} ] &&
    scontrol requeue "${{SLURM_ARRAY_JOB_ID}}_${{SLURM_ARRAY_TASK_ID}}"
  exit 1
}}"""


def at_once(lines, limits):
    """How many VMs run at once on this machine."""
    smp = max(line.smp for line in lines)
    return limits.vms or max(1, (os.cpu_count() or 1) // smp)


def megabytes(lines):
    """Memory of a worker: that of its largest VM, a quarter more, and 512 MiB
    for QEMU and the tracer."""
    def size(mem):
        number, unit = int(mem.rstrip('MG')), mem[-1]
        return number * 1024 if unit == 'G' else number
    return max(size(line.mem) for line in lines) * 5 // 4 + 512


def minutes(lines, limits):
    """When an engine may end a worker: it begins no VM after its minutes, and
    the last one has its time."""
    longest = max(line.timeout for line in lines) + work.GRACE
    return limits.minutes + longest // 60 + 5


def worker(folder, of, more):
    return [PROGRAM, 'work', '--dir', folder.path, '--of', str(of), *more]


def tasks(lines):
    """A task for each line, but not more than an array may have."""
    return min(len(lines), MOST_TASKS)


def run_all(commands, stdin=subprocess.DEVNULL, terms=1):
    """Run programs side by side; return the largest status. If this process
    is ended they are, too, by so many SIGTERMs."""
    procs = []
    try:
        for command in commands:
            procs.append(subprocess.Popen(command, stdin=stdin))
        return max(abs(proc.wait()) for proc in procs)
    except BaseException:
        for _ in range(terms):
            for proc in procs:
                proc.terminate()
            time.sleep(0.5)
        for proc in procs:
            proc.wait()
        raise


# --- engines: each returns the exit status -----------------------------------

def local(folder, lines, limits, more, dry):
    """A few processes of this machine."""
    of = min(at_once(lines, limits), len(lines))
    commands = [[*worker(folder, of, more), '--index', str(i)]
                for i in range(of)]
    if dry:
        print('\n'.join(map(shlex.join, commands)))
        return 0
    return run_all(commands)


def parallel(folder, lines, limits, more, dry):
    """GNU parallel; its variable PARALLEL may name other hosts."""
    of = tasks(lines)
    words = ['parallel', '--will-cite', '-j', str(at_once(lines, limits)),
             '--joblog', folder.file('engine', 'joblog'), '--retries',
             str(TRIES), shlex.join(worker(folder, of, more)) + ' --index {}']
    if dry:
        print(shlex.join(words))
        return 0
    need('parallel', 'parallel')
    numbers = '\n'.join(map(str, range(of))) + '\n'
    with tempfile.TemporaryFile() as f:
        f.write(numbers.encode())
        f.seek(0)
        # The first SIGTERM only lets it start no more jobs.
        return run_all([words], stdin=f, terms=2)


def slurm(folder, lines, limits, more, dry):
    """An array of Slurm."""
    of = tasks(lines)
    task = TASK.format(command=shlex.join(worker(folder, of, more)),
                       tries=TRIES)
    words = ['sbatch', '--parsable', '--job-name=ka-farm',
             f'--array=0-{of - 1}' + (f'%{limits.vms}' if limits.vms else ''),
             '--requeue', '--open-mode=append',
             f'--cpus-per-task={max(line.smp for line in lines)}',
             f'--mem={megabytes(lines)}M', f'--time={minutes(lines, limits)}',
             '--output=' + folder.file('engine', 'slurm-%A_%a.log'),
             '--chdir=' + folder.path, '--wrap', task]
    if dry:
        print(shlex.join(words))
        return 0
    need('sbatch', 'slurm-client')
    return subprocess.run(words, check=False).returncode


ENGINES = {'local': local, 'parallel': parallel, 'slurm': slurm}


def need(program, package):
    if not shutil.which(program):
        raise FarmError(f'there is no program {program}; it is in the '
                        f'package {package}')


def submit(name, folder, more, dry):
    """Start the workers of a plan. Nothing is started if all is done."""
    lines, limits = folder.plan()
    done = folder.attempts()
    left = [line for line in lines if line.key not in done]
    print(f'{len(lines)} VMs, {len(left)} without a result',
          file=sys.stderr, flush=True)
    return ENGINES[name](folder, lines, limits, more, dry) if lines else 0
