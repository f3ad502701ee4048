#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""scripts/fault-sweep finds the errors of the modules kf_*, says where they
are, and finds nothing else; two sweeps report the same; a sweep that is killed
continues. Oracle: the sources of the modules.

usage: test_fault_sweep.py [--short] [--kernel K]...
"""
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

from lib import commands, oracle, programs
from lib.tap import Tap

MODULES = ('good', 'late', 'name', 'loop', 'swallow', 'errptr', 'double',
           'put', 'null', 'retry')
# Module -> its verdict, and a function of the symptom's stack.
EXPECTED = {
    'name': ('leak', 'dev_set_name'),
    'loop': ('leak', 'kf_fill'),
    'null': ('oops', 'kf_set'),
    'swallow': ('bug', 'kf_swallow_exit'),
    'errptr': ('oops', 'kf_clean_up'),
    'double': ('ka-error', 'kf_double_init'),
    'put': ('ka-error', 'kf_put_init'),
    'retry': ('hang', 'kf_try'),
}
CONTROLS = 'good', 'late'
# kf_late does without what it does not get. One failure does not end the loop
# of kf_retry, and kf_swallow returns 0.
MASKED = 'late', 'retry', 'swallow'
SECONDS = 900
KERNELS = '6.12',


class Sweeps:
    """Sweeps in a folder of their own."""

    def __init__(self, folder, kernel):
        self.folder, self.kernel = folder, kernel
        self.share = os.path.join(folder, 'share')
        os.makedirs(self.share)
        built = oracle.build_modules(kernel)
        for name in *(f'kf_{name}' for name in MODULES), 'ka_chardev':
            shutil.copy(os.path.join(built, f'{name}.ko'), self.share)
        shutil.copy(oracle.build_tool('ka_load', kernel),
                    os.path.join(self.share, 'ka-load'))

    def words(self, name, script, *more):
        return ['--kernel', self.kernel, '--jobs', '1',
                '--share', self.share, '--run',
                os.path.join(oracle.INSIDE, 'fault-sweep', script),
                '--report', os.path.join(self.folder, name + '.json'), *more]

    def command(self, name, *more):
        """Return the words of a sweep of kf.sh."""
        words = self.words(name, 'kf.sh', '--point', 'kmalloc', *more)
        for module in MODULES:
            words += ['--module', 'kf_' + module]
        return words

    def run(self, name, *more, status=1):
        return self.start(self.command(name, *more), status)

    @staticmethod
    def start(words, status):
        done = commands.run('fault-sweep', *words, status=status,
                            timeout=SECONDS)
        return done.stdout, done.stderr

    def results(self, name):
        with open(os.path.join(self.folder, name + '.json'),
                  encoding='utf-8') as f:
            return json.load(f)


def module_of(row):
    """Return the module whose call was made to fail."""
    return re.search(r'\[kf_(\w+)\]', ' '.join(row['fault_stack']))[1]


def check_findings(whole):
    """Each module with an error has findings, all of them as expected."""
    found = {}
    for row in whole['results']:
        if row['finding']:
            found.setdefault(module_of(row), []).append(row)
    assert set(found) == set(EXPECTED), set(found)
    for name, rows in found.items():
        for row in rows:
            check_finding(name, row)
        assert len({r['group'] for r in rows}) == 1, [r['text'] for r in rows]
    assert len(whole['groups']) == len(EXPECTED), whole['groups']


def check_finding(name, row):
    want, function = EXPECTED[name]
    assert row['verdict'] == want, f"{name}: {row['text']}"
    assert any(f.startswith(function + '+') for f in row['symptom_stack']), \
        f"{name}: {row['text']}"
    assert row['text'].startswith('a fault was injected'), row['text']
    assert not row['flaky'], row['text']
    # The retry loop ends as soon as one call of it does not fail, so the sweep
    # has to try all of them.
    assert name != 'retry' or row['n'] == 'all', row['text']


def check_others(whole):
    """What is no finding is clean: the load fails, and all is undone."""
    for row in whole['results']:
        assert row['finding'] or row['verdict'] == 'clean' or \
            module_of(row) in MASKED, row['text']
    seen = {module_of(r) for r in whole['results'] if not r['finding']}
    assert set(CONTROLS) <= seen, seen


def interrupted(sweeps, folder):
    """Kill a sweep when it has some results; return what it had done."""
    words = sweeps.command('killed', '--resume', folder, '--n', '1')
    with subprocess.Popen([commands.program('fault-sweep'), *words],
                          stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE) as proc:
        seen = [line for line in iter(proc.stderr.readline, '')
                if line.startswith('[') and not
                (int(line[1:].split('/')[0]) >= 4 and
                 proc.send_signal(signal.SIGKILL))]
    return seen


def check_resume(sweeps):
    folder = os.path.join(sweeps.folder, 'results')
    first = interrupted(sweeps, folder)
    time.sleep(1)
    kept = {n: os.stat(os.path.join(folder, n)).st_mtime_ns
            for n in os.listdir(folder) if n.startswith('0x')}
    assert len(kept) >= 4, f'{kept}\n{first}'
    _, said = sweeps.run('resumed', '--resume', folder, '--n', '1')
    assert f'{len(kept)} results are there already' in said, said
    for name, when in kept.items():
        assert os.stat(os.path.join(folder, name)).st_mtime_ns == when, name
    whole = sweeps.results('resumed')
    assert len(whole['results']) == whole['stacks'], whole
    return whole


def check_same(a, b):
    """All that both have is the same, to the byte."""
    first, second = ({(r['stackid'], str(r['n'])): r for r in x['results']}
                     for x in (a, b))
    for key in first.keys() & second.keys():
        assert first[key] == second[key], f'{first[key]}\n{second[key]}'
    assert second.keys() <= first.keys(), second.keys() - first.keys()


def stack_of(whole, module):
    """Return the stack whose calls kf_MODULE makes."""
    return next(r['stackid'] for r in whole['results']
                if module_of(r) == module)


def run_short(tap, sweeps, kernel):
    with tap.test(f'{kernel}: all errors are found'):
        sweeps.run('one')
        one = sweeps.results('one')
        check_findings(one)
    with tap.test(f'{kernel}: nothing else is found'):
        check_others(one)
    with tap.test(f'{kernel}: another sweep reports the same'):
        sweeps.run('two', '--only', stack_of(one, 'retry'))
        check_same(one, sweeps.results('two'))


def swept_points(sweeps, name, *more):
    """Sweep points.sh; return the results. Nothing in it is an error."""
    sweeps.start(sweeps.words(name, 'points.sh', *more), status=0)
    whole = sweeps.results(name)
    assert all(r['verdict'] == 'clean' for r in whole['results']), whole
    return whole['results']


def check_points(sweeps):
    """Points that are no allocation, and a function that is no point."""
    module = swept_points(sweeps, 'module', '--module', 'ka_chardev',
                          '--point', 'uaccess', '--point', 'misc_register')
    firsts = {r['fault_stack'][0].split('+')[0] for r in module}
    assert firsts == {'ka_chardev_write', 'ka_chardev_init'}, firsts
    mount = swept_points(sweeps, 'mount', '--point', 'capable',
                         '--if', 'task("mount")')
    frames = ' '.join(' '.join(r['fault_stack']) for r in mount)
    assert 'path_mount+' in frames or 'may_mount+' in frames, frames


def run_long(tap, sweeps, kernel):
    with tap.test(f'{kernel}: points that are no allocations'):
        check_points(sweeps)
    with tap.test(f'{kernel}: all errors are found'):
        begin = time.monotonic()
        text, _ = sweeps.run('one')
        tap.note(f'{time.monotonic() - begin:.0f} s; '
                 + text.splitlines()[-1])
        check_findings(sweeps.results('one'))
    with tap.test(f'{kernel}: nothing else is found'):
        check_others(sweeps.results('one'))
    with tap.test(f'{kernel}: a sweep that is killed continues'):
        check_same(sweeps.results('one'), check_resume(sweeps))


def run_kernel(tap, kernel, short):
    with tempfile.TemporaryDirectory(prefix='ka-fsweep.') as folder:
        run = run_short if short else run_long
        run(tap, Sweeps(folder, kernel), kernel)


def main():
    ap = programs.arguments(__doc__, smp=False, short='no sweep is '
                            'killed, and no points but kmalloc')
    args, tap = programs.parse(ap, KERNELS), Tap()
    for kernel in args.kernel:
        run_kernel(tap, kernel, args.short)
    tap.done()


if __name__ == '__main__':
    main()
