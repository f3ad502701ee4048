#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Run the guest tests over kernels and vCPUs, and write what they counted as
a table. Called by scripts/matrix.

Every figure is one that a test program printed, in a line "# figures {...}"
of its TAP; no other state is kept than the table itself.
"""
import argparse
import collections
import datetime
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from runtests import PLAN_LINE, PYTHON, ROOT, SKIP_WORD, TEST_LINE

GUEST = os.path.join(ROOT, 'tests', 'guest')
TABLE = os.path.join(ROOT, 'docs', 'kernels.md')
NO_MODULES = 77         # of kmod/build.sh: no headers or no compiler
TIMEOUT = 7200

Program = collections.namedtuple('Program', 'name file options modules cell')


def cell_events(f):
    return '{matched} / {missing} / {unexplained} / {wrong}'.format(**f)


def cell_stacks(f):
    return '{compared} / {equal}'.format(**f)


def cell_state(f):
    return ('{agree} of {caches} caches, {right} of {objects} objects'
            .format(**f))


def cell_errors(f):
    cases = '{cases_good} of {cases} cases, '.format(**f) if f['cases'] else ''
    return cases + '{clean_good} of {clean} clean runs'.format(**f)


def cell_tests(f):
    return '{passed} of {tests}'.format(**f)


# What is run: column, program, options by vCPUs, whether it needs modules
# built for the kernel, what its cell says. The cases of test_errors.py are for
# one vCPU; without modules it has none.
PROGRAMS = (
    Program('events', 'test_oracle_events', lambda smp, kmod: [], False,
            cell_events),
    Program('stacks', 'test_oracle_stacks', lambda smp, kmod: [], False,
            cell_stacks),
    Program('state', 'test_oracle_state', lambda smp, kmod: [], False,
            cell_state),
    Program('errors', 'test_errors',
            lambda smp, kmod: [] if smp == 1 and kmod else ['--no-cases'],
            False, cell_errors),
    Program('modules', 'test_modules', lambda smp, kmod: [], True,
            cell_tests),
)

HEAD = '''<!-- SPDX-License-Identifier: GPL-2.0-or-later -->
<!-- Written by scripts/matrix; not to be edited. -->
# Kernels

What the tracer was compared with, and what came out. `scripts/matrix` runs
the test programs of [tests/guest](../tests/guest/README.md) and writes a row
when it is done; each figure is one that a program counted.

* **events**: of the guest's own trace of its allocators: matched with ours /
  missing in ours / ours that are unexplained / matched, but the call site is
  in no frame of ours.
* **backtraces**: compared with the kernel's own / equal.
* **state**: caches that agree with `/proc/slabinfo`; objects that `init_task`
  leads to that are live blocks of the right cache.
* **errors**: cases of a module that commits each error (on 1 vCPU; the long
  form runs each without the tracer, too, and the kernel must fare the same),
  and boots with a workload that report none.
* **modules**: tests of a module and a BPF program that come and go; "-" where
  no module can be built, for want of the kernel's headers.
* A program that failed is named in the last column, and its cell is bold; a
  cell with a dash is one of a program that ended before it had counted.

'''
COLUMNS = ('kernel', 'vCPUs', 'architecture', 'release', 'build', 'events',
           'backtraces', 'state', 'errors', 'modules', 'form', 'run on',
           'result')


# --- the table ---------------------------------------------------------------

def line_of(cells):
    return '| ' + ' | '.join(c.replace('|', '\\|') for c in cells) + ' |\n'


def read_rows(path):
    """{(kernel, vCPUs): line} of a table that is there."""
    rows = {}
    try:
        with open(path, encoding='utf-8') as f:
            for line in f:
                cells = re.split(r'\s*(?<!\\)\|\s*', line.strip())[1:-1]
                if len(cells) == len(COLUMNS) and cells[1].isdigit():
                    rows[cells[0], int(cells[1])] = line
    except FileNotFoundError:
        pass
    return rows


def write_rows(path, rows, order):
    def place(key):
        known = key[0] in order
        return (not known, order.index(key[0]) if known else 0, key)
    with open(path + '.new', 'w', encoding='utf-8') as f:
        f.write(HEAD + line_of(COLUMNS) + '|-' * len(COLUMNS) + '|\n')
        for key in sorted(rows, key=place):
            f.write(rows[key])
    os.replace(path + '.new', path)


def banner_words(banner, path):
    """(release, build) as the guest's banner has them; without a banner (no
    program ran to its end) the release that was prepared."""
    m = re.match(r'Linux version (\S+) .*#\d+ (.*)', banner)
    if m:
        return f'`{m.group(1)}`', m.group(2)
    with open(os.path.join(path, 'release'), encoding='utf-8') as f:
        return f'`{f.read().strip()}`', '-'


# --- one program -------------------------------------------------------------

class Outcome:
    """What a program's TAP says."""

    def __init__(self):
        self.figures = {'tests': 0, 'passed': 0}
        self.planned = None

    def line(self, text):
        test, plan = TEST_LINE.match(text), PLAN_LINE.match(text)
        if text.startswith('# figures '):
            self.figures.update(json.loads(text[len('# figures '):]))
        elif test and not SKIP_WORD.search(test.group(2)):
            self.figures['tests'] += 1
            self.figures['passed'] += not test.group(1)
        elif plan:
            self.planned = int(plan.group(1))

    def good(self, status):
        f = self.figures
        return not status and self.planned and f['tests'] == f['passed']

    def cell(self, program, good):
        try:
            text = program.cell(self.figures)
        except KeyError:
            text = '-'
        return text if good else f'**{text}**'


class Progress:
    """One line, kept up to date; nothing at all in a pipe."""

    def __init__(self):
        self.begin, self.on = time.monotonic(), sys.stdout.isatty()

    def elapsed(self):
        s = int(time.monotonic() - self.begin)
        return f'{s // 60}:{s % 60:02d}'

    def show(self, text):
        if self.on:
            width = shutil.get_terminal_size().columns
            line = f'[{self.elapsed()}] {text}'[:width - 1]
            print(f'\r\033[K{line}', end='', flush=True)

    def say(self, text):
        print(('\r\033[K' if self.on else '') + text, flush=True)


def end_program(proc):
    """Interrupted, it ends its guest; killed, it could not."""
    os.killpg(proc.pid, signal.SIGINT)
    try:
        proc.wait(60)
    except subprocess.TimeoutExpired:
        os.killpg(proc.pid, signal.SIGKILL)


def run_program(argv, log, outcome, tick):
    """Runs it with its output in LOG; its status."""
    with open(log, 'wb') as out, subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=out,
            stderr=subprocess.STDOUT, start_new_session=True) as proc:
        end = time.monotonic() + TIMEOUT
        try:
            while proc.poll() is None and time.monotonic() < end:
                tick()
                time.sleep(0.5)
        finally:
            if proc.poll() is None:
                end_program(proc)
            status = proc.wait()
    with open(log, encoding='utf-8', errors='replace') as f:
        for line in f:
            outcome.line(line.rstrip('\n'))
    return status


# --- a row -------------------------------------------------------------------

class Matrix:
    def __init__(self, args):
        self.args, self.progress = args, Progress()
        self.paths = dict(line.split('=', 1) for line in subprocess.run(
            [os.path.join(ROOT, 'scripts', 'setup'), '--paths'], check=True,
            capture_output=True, text=True).stdout.splitlines())
        self.order = [key[len('initrd-'):] for key in self.paths
                      if key.startswith('initrd-')]
        self.results = os.environ['KA_RESULTS']
        os.makedirs(self.results, exist_ok=True)
        self.failed, self.banner = False, ''

    def prepared(self):
        return [k for k in self.order
                if os.path.exists(self.paths['initrd-' + k])]

    def has_modules(self, kernel):
        out = os.path.join(os.path.dirname(os.path.dirname(
            os.path.dirname(self.paths['kernel-' + kernel]))),
            'modules', 'kmod-' + kernel)
        os.makedirs(os.path.dirname(out), exist_ok=True)
        return subprocess.run(
            [os.path.join(GUEST, 'inside', 'kmod', 'build.sh'),
             self.paths['kernel-' + kernel], out], capture_output=True,
            check=False).returncode != NO_MODULES

    def program(self, program, kernel, smp, kmod):
        """(cell, good)"""
        label = f'{kernel}, {smp} vCPU: {program.name}'
        log = os.path.join(self.results,
                           f'{kernel}-{smp}-{program.name}.log')
        outcome = Outcome()
        argv = [PYTHON, os.path.join(GUEST, program.file + '.py'),
                '--kernel', kernel, '--smp', str(smp),
                *program.options(smp, kmod)]
        if self.args.short:
            argv.append('--short')
        status = run_program(argv, log, outcome,
                             lambda: self.progress.show(label))
        self.banner = outcome.figures.get('banner') or self.banner
        good = outcome.good(status)
        if not good:
            self.progress.say(f'FAIL {label}: {log}')
        return outcome.cell(program, good), good

    def row(self, kernel, smp):
        kmod, cells, bad = self.has_modules(kernel), {}, []
        self.banner = ''
        for program in PROGRAMS:
            if program.modules and not kmod:
                cells[program.name] = '-'
                continue
            cells[program.name], good = self.program(program, kernel, smp,
                                                     kmod)
            if not good:
                bad.append(program.name)
        self.failed = self.failed or bool(bad)
        release, build = banner_words(self.banner,
                                      self.paths['kernel-' + kernel])
        result = 'failed: ' + ', '.join(bad) if bad else 'passed'
        self.progress.say(f'{kernel}, {smp} vCPU: {result}')
        return line_of([kernel, str(smp), self.paths['arch-' + kernel],
                        release, build, *cells.values(),
                        'short' if self.args.short else 'long',
                        datetime.date.today().isoformat(), result])

    def run(self):
        for kernel in self.args.kernel or self.prepared():
            for smp in self.args.smp or (1, 4):
                line = self.row(kernel, smp)
                # Read again: another run may have written meanwhile.
                rows = read_rows(self.args.output)
                rows[kernel, smp] = line
                write_rows(self.args.output, rows, self.order)
        return 1 if self.failed else 0


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument('--short', action='store_true')
    ap.add_argument('--smp', type=int, action='append')
    ap.add_argument('--output', default=TABLE)
    ap.add_argument('kernel', nargs='*')
    args = ap.parse_args()
    matrix = Matrix(args)
    for kernel in args.kernel:
        if 'initrd-' + kernel not in matrix.paths:
            sys.exit(f"matrix: unknown kernel '{kernel}'")
        if kernel not in matrix.prepared():
            sys.exit(f'matrix: {kernel} is not prepared, see scripts/setup')
    sys.exit(matrix.run())


if __name__ == '__main__':
    for number in signal.SIGTERM, signal.SIGHUP:
        if signal.getsignal(number) != signal.SIG_IGN:      # nohup stays
            signal.signal(number, lambda n, _: sys.exit(128 + n))
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
