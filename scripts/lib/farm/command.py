# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line of ka-farm: its commands, and what each does."""
import argparse
import os
import subprocess
import sys

from ..findings import clean
from . import (FarmError, bisect, bugs, engines, kcidb, pages, plan, results,
               store, texts, work)
from .folder import Folder
from .questions import View

EPILOG = """\
A night:
  ka-farm plan PLAN.toml --dir NIGHT        which VMs: NIGHT/plan.jsonl
  ka-farm submit slurm --dir NIGHT          or parallel, or local
  ka-farm status --dir NIGHT                what has run
  ka-farm collect runs.db --dir NIGHT       results into a database
  ka-farm report runs.db --out FOLDER       what is new, gone, flaky
docs/farm.md explains plans, results and the database.

Exit status:
  0  done; work: each of its VMs has a result, whatever that says
  1  work: VMs have no result; collect: files were skipped; step: the kernel
     has the bug
  2  the command could not run
  125  step: it is not known whether the kernel has the bug
"""


# --- commands ----------------------------------------------------------------

def do_plan(args):
    made = plan.read_file(args.plan, args.batch)
    lines = plan.select(made.lines, args.only)
    for text in (*plan.missing_here(lines), *plan.not_replaced(lines)):
        print(f'ka-farm: warning: {text}', file=sys.stderr)
    if args.dry_run:
        for line in lines:
            print(line, line.append)
    else:
        Folder(args.dir).write_plan(lines, made.limits)
    print(f'{len(lines)} VMs', file=sys.stderr)
    return 0


def do_work(args):
    index, of = work.who(args.index, args.of)
    folder = Folder(args.dir)
    lines, limits = folder.plan()
    worker = work.Worker(folder, limits, args.sweep,
                         lambda text: print(text, flush=True))
    return 1 if worker.work(lines[index::of]) else 0


def do_submit(args):
    more = ['--sweep', args.sweep] if args.sweep else []
    return 1 if engines.submit(args.engine, Folder(args.dir), more,
                               args.dry_run) else 0


def state_of(folder, line, attempts):
    """Return (verdict, why) of a line."""
    attempt = attempts.get(line.key)
    if not attempt:
        return 'missing', ''
    path = folder.file('results', folder.result_name(line.key, attempt))
    try:
        r = results.read(path, line.key, attempt)
        return r['verdict'], r['reason']
    except results.BadResult as e:
        return 'unreadable', str(e)


def do_status(args):
    folder = Folder(args.dir)
    lines, _ = folder.plan()
    attempts, counts, named = folder.attempts(), {}, []
    for line in lines:
        verdict, why = state_of(folder, line, attempts)
        counts[verdict] = counts.get(verdict, 0) + 1
        if verdict not in ('clean', 'found'):
            named.append(f'{verdict}: {line}' + (f': {why}' if why else ''))
    print(f'{len(lines)} VMs: ' + ', '.join(
        f'{n} {v}' for v, n in sorted(counts.items())))
    for text in named if args.verbose else ():
        print(text)
    return 0


def do_collect(args):
    skipped, folders = 0, {path: Folder(path) for path in args.dir or ['.']}
    for folder in folders.values():
        folder.names()      # if there is none, no database is made
    with store.writer(args.db) as db:
        for path, folder in folders.items():
            good, bad = store.collect(
                db, folder,
                lambda text: print(clean.line(text), file=sys.stderr))
            print(f'{path}: {good} results collected, {bad} skipped')
            skipped += bad
    return 1 if skipped else 0


def do_report(args):
    view = View(store.Store(args.db), args.batch, args.since)
    if args.out:
        pages.write(view, args.out)
    if args.kcidb:
        kcidb.write(view, args.kcidb)
    print(texts.render(view), end='')
    return 0


def do_bug(args):
    """Write a decision of a person, or remove it."""
    if args.title not in bugs.names(store.Store(args.db)):
        print("ka-farm: warning: no finding has the title, hash or name "
              f"'{args.title}' yet", file=sys.stderr)
    with store.writer(args.db) as db, db.change() as change:
        change.execute('DELETE FROM decision WHERE title = ?', (args.title,))
        if args.name:
            change.execute('INSERT INTO decision VALUES (?, ?)',
                           (args.title, args.name))
    return 0


# --- bisect ------------------------------------------------------------------

def prober(args, kernels):
    """Return a Prober of these kernels. What does not exist is refused before
    the first VM runs; another program than ka-sweep may have other kernels."""
    lines = bisect.lines_of(args.plan, args.job)
    for kernel in kernels:
        for text in plan.missing_here(lines(kernel, 1)):
            if not args.sweep:
                raise FarmError(text)
    if args.seeds is not None and args.seeds < 1:
        raise FarmError(f'--seeds {args.seeds} is not 1 or more')
    wanted = bisect.Wanted(args.bug, store.Store(args.db) if args.db else
                           None)
    runs = args.seeds or bisect.runs_needed(args.rate)
    return bisect.Prober(lines, wanted, runs, args.sweep)


def do_bisect(args):
    os.makedirs(args.dir, exist_ok=True)
    kernels = args.kernel
    if args.packages:
        into = os.path.join(os.path.realpath(args.dir), 'kernels')
        os.makedirs(into, exist_ok=True)
        try:
            kernels = bisect.kernels_of_packages(args.packages, into)
        except subprocess.CalledProcessError as e:
            raise FarmError(str(e)) from e
    if len(kernels or ()) < 2:
        raise FarmError('bisect needs --packages FOLDER, or --kernel twice or '
                        'more, the oldest first')
    asked = prober(args, kernels)
    good, bad, unknown = bisect.bisect(
        kernels, lambda k: asked.probe(k, bisect.folder_of(args.dir, k)))
    print(f'last without the bug: {good}\nfirst with the bug: {bad}')
    if unknown:
        print('not known, between them: ' + ' '.join(unknown))
    return 0


def do_step(args):
    got = prober(args, [args.kernel]).probe(
        args.kernel, bisect.folder_of(args.dir, args.name))
    return {bisect.GOOD: 0, bisect.BAD: 1, bisect.UNKNOWN: 125}[got]


# --- arguments ---------------------------------------------------------------

def add_dir(ap, default='.'):
    ap.add_argument('--dir', default=default, metavar='DIR',
                    help='folder of the plan and its results (default: .)')


def add_sweep(ap):
    ap.add_argument('--sweep', metavar='PROGRAM',
                    default=os.environ.get('KA_FARM_SWEEP'),
                    help='a program to run instead of ka-sweep')


def add_probe(ap):
    ap.add_argument('plan', metavar='PLAN.toml')
    ap.add_argument('--job', metavar='NAME', help='the job of the plan that '
                    'shows the bug (default: the first one)')
    ap.add_argument('--bug', required=True, metavar='TITLE',
                    help='title or hash of the bug')
    ap.add_argument('--db', metavar='DB',
                    help='the bug is one of this database, with all of its '
                         'titles and hashes')
    ap.add_argument('--rate', type=float, default=1.0, metavar='P',
                    help='part of the runs that show the bug (default 1): the '
                         'smaller, the more runs')
    ap.add_argument('--seeds', type=int, metavar='N',
                    help='so many runs without the bug mean that it is absent')
    add_sweep(ap)
    ap.add_argument('--dir', default='bisect', metavar='DIR',
                    help='folder of results; a second start goes on '
                         '(default: bisect)')


def plan_options(ap):
    ap.add_argument('plan', metavar='PLAN.toml')
    ap.add_argument('--batch', metavar='NAME',
                    help="name of this batch (default: that of the plan, or "
                         "today's date)")
    ap.add_argument('--only', action='append', default=[], metavar='KEY=V,..',
                    help='only lines whose kernel, seed, smp, mem or job is '
                         'one of the patterns V, or in a range such as 1-9; '
                         'more keys may follow: KEY=V,V,KEY=V')
    ap.add_argument('--dry-run', action='store_true',
                    help='print the lines, write nothing')
    add_dir(ap)


def work_options(ap):
    ap.add_argument('--index', type=int, metavar='I')
    ap.add_argument('--of', type=int, metavar='N')
    add_sweep(ap)
    add_dir(ap)


def submit_options(ap):
    ap.add_argument('engine', choices=sorted(engines.ENGINES))
    ap.add_argument('--dry-run', action='store_true',
                    help='print the command, start nothing')
    add_sweep(ap)
    add_dir(ap)


def status_options(ap):
    ap.add_argument('-v', dest='verbose', action='store_true',
                    help='name the VMs without a result, and broken ones')
    add_dir(ap)


def collect_options(ap):
    ap.add_argument('db', metavar='DB')
    ap.add_argument('--dir', action='append', metavar='DIR',
                    help='folder with results; can be given several times '
                         '(default: .)')


def report_options(ap):
    ap.add_argument('db', metavar='DB')
    ap.add_argument('--batch', metavar='NAME', help='(default: the last one)')
    ap.add_argument('--since', metavar='NAME',
                    help='compare with batches from this one on (default: the '
                         '14 before)')
    ap.add_argument('--out', metavar='FOLDER',
                    help='write HTML pages, and the text, to FOLDER')
    ap.add_argument('--kcidb', metavar='FILE',
                    help="write a report for KernelCI's database")


def bug_options(ap):
    ap.add_argument('db', metavar='DB')
    ap.add_argument('title', metavar='TITLE',
                    help="a title, a hash 'fold', or a leak by the name of "
                         'its bug')
    ap.add_argument('name', nargs='?', metavar='NAME',
                    help='all that has the same NAME is one bug, what has '
                         'another NAME is none of it; without NAME the '
                         'decision is removed')


def bisect_options(ap):
    add_probe(ap)
    ap.add_argument('--kernel', action='append', metavar='K',
                    help='a kernel, the oldest first; twice or more')
    ap.add_argument('--packages', metavar='FOLDER',
                    help='the kernels of all linux-image-*.deb in FOLDER, in '
                         'the order of their versions')


def step_options(ap):
    add_probe(ap)
    ap.add_argument('--kernel', required=True, metavar='K')
    ap.add_argument('--name', required=True, metavar='NAME',
                    help='of this kernel, such as a commit: its results are '
                         'kept')


# These write results, or read them.
PACKED = 'work', 'submit', 'collect', 'bisect', 'step'
# name -> (what it does, its options, its function)
COMMANDS = {
    'plan': ('write the lines of a plan, one a VM', plan_options, do_plan),
    'work': ('run the lines of worker I of N', work_options, do_work),
    'submit': ('start all workers', submit_options, do_submit),
    'status': ('count results', status_options, do_status),
    'collect': ('put results into a database', collect_options, do_collect),
    'report': ('say what is new, gone, flaky and grew', report_options,
               do_report),
    'bug': ('decide which titles are one bug', bug_options, do_bug),
    'bisect': ('find the first kernel with a bug', bisect_options, do_bisect),
    'step': ('tell git bisect whether a kernel has a bug', step_options,
             do_step),
}


def run(argv):
    """Run a command; return its exit status."""
    ap = argparse.ArgumentParser(
        prog='ka-farm', description='Run many VMs under the tracer, and '
        'report what they found together.', epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = ap.add_subparsers(dest='command', required=True,
                                 metavar='COMMAND')
    for name, (text, options, _) in COMMANDS.items():
        options(commands.add_parser(name, help=text, description=text))
    args = ap.parse_args(argv)
    if args.command in PACKED:
        results.need_zstd()
    return COMMANDS[args.command][2](args)
