#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The runner of the tests, with programs of our own: levels, needs, programs
that run once more, figures. And its table: each program of the tree has a row,
and what rows ask for exists. Starts no guest.
"""
import contextlib
import glob
import io
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), '..', '..'))
sys.path[:0] = [os.path.join(ROOT, 'scripts', 'lib'),
                os.path.join(ROOT, 'tests', 'guest')]
# pylint: disable=wrong-import-position
import runtests                                         # noqa: E402
from lib.tap import Tap                                 # noqa: E402
from testrun import Job, bare, used                     # noqa: E402
from testrun.choice import (LEVELS, Choice, ChoiceError,    # noqa: E402
                            Table, later_only)
from testrun.durations import Durations                 # noqa: E402
from testrun.needs import SetUp, setup_arguments        # noqa: E402
from testrun.repeat import repeat_job                   # noqa: E402
from testrun.results import Result                      # noqa: E402
from testrun.schedule import Run, flaky_lines           # noqa: E402
from testrun.screen import Screen                       # noqa: E402

GOOD = 'print("ok 1 - a\\n1..1")'
BAD = 'print("not ok 1 - a\\n# why\\n1..1")'
# Fails in its first run, and passes in later ones.
ONCE = f'''
import os, sys
path = sys.argv[1]
if os.path.exists(path):
    {GOOD}
else:
    open(path, "w").close()
    {BAD}
'''
TAKES_BOTH = 'kernel_' 'options()'
TEXT = '''
one  test_a           1  default
one  test_b           2  full     tool k:6.1/long
     pair
one  test_c           3  long     tool/long
two  test_a@arm64-k   1  full
'''


class FakeSetUp(SetUp):
    """Steps of ours: "bad" fails, "slow" waits for the event go."""

    go = threading.Event()

    def _make(self, word):
        if word == 'slow':
            self.go.wait(30)
        return 'set-up of bad failed, see LOG' if word == 'bad' else ''


def job(name, code, *args, **more):
    return Job('fake', name, [sys.executable, '-c', code, *args], {}, 60,
               **more)


def run(tmp, *jobs, threads=2, during=None):
    """Run jobs as scripts/test does; return (Run, what it printed)."""
    out = io.StringIO()
    screen = Screen(out)
    words = dict.fromkeys(word for j in jobs for word in j.needs)
    setup = FakeSetUp(words, screen)
    one = Run(jobs, setup, screen, os.path.join(tmp, 'results'),
              Durations(os.path.join(tmp, 'durations.json')))
    setup.start()
    if during:
        threading.Thread(target=during, args=(one,)).start()
    one.together([j for j in jobs if not j.alone], threads)
    one.together([j for j in jobs if j.alone], 1)
    one.again()
    return one, out.getvalue()


# --- the table ---------------------------------------------------------------

def steps_and_kernels():
    said = subprocess.run([os.path.join(ROOT, 'scripts', 'setup'), '--help'],
                          check=True, text=True, stdout=subprocess.PIPE).stdout
    words = ' '.join(re.findall(r'^Steps.*: (.*)', said, re.M)).split()
    return words, re.search(r'^Kernels: (.*)', said, re.M)[1].split()


def test_own_table():
    table, names = runtests.ALL, {row.name for row in runtests.ALL.rows}
    programs = {os.path.basename(path)[:-3] for folder in ('guest', 'style')
                for path in glob.glob(f'{ROOT}/tests/{folder}/test_*.py')}
    assert programs - names == set(runtests.BY_HAND), programs - names
    without = [r.name for r in table.rows if r.name.startswith('test_') and
               not table.file(r.name)]
    assert not without, without
    steps, kernels = steps_and_kernels()
    for row in table.rows:
        assert row.level in LEVELS, row.program
        for word, level in row.needs:
            assert level in LEVELS, (row.program, word)
            known = word[2:] in kernels if word[:2] == 'k:' else word in steps
            assert known, f'{row.program} needs {word}'
        assert not row.kernel or row.kernel in kernels, row.program


def test_levels(tmp):
    table = fake_table(tmp)
    forms = {level: [(j.label, j.form, j.level, j.needs)
                     for j in Choice(table, level).jobs()] for level in LEVELS}
    assert forms == {
        'default': [('one:test_a', '', 'default', ())],
        'full': [('one:test_a', '', 'default', ()),
                 ('one:test_b', '--short', 'full', ('tool', 'x', 'y')),
                 ('two:test_a-arm64-k', '--kernel arm64-k', 'full',
                  ('k:arm64-k',))],
        'long': [('one:test_a', '', 'default', ()),
                 ('one:test_b', '', 'long', ('tool', 'k:6.1', 'x', 'y')),
                 ('one:test_c', '', 'long', ('tool',)),
                 ('two:test_a-arm64-k', '--kernel arm64-k', 'full',
                  ('k:arm64-k',))]}, forms


def fake_table(tmp):
    codes = {'test_a': GOOD, 'test_b': TAKES_BOTH, 'test_c': GOOD}
    for name, code in codes.items():
        with open(os.path.join(tmp, name + '.py'), 'w', encoding='ascii') as f:
            f.write(code)
    return Table(TEXT, aliases={'pair': 'x y'}, folders=(tmp,))


def test_words(tmp):
    """What is named runs, if need be as at a later level."""
    table = fake_table(tmp)

    def labels(level, *words, kernels=()):
        return [(j.name, j.form) for j in
                Choice(table, level, kernels).jobs(words)]

    assert labels('full', 'one') == [('test_a', ''), ('test_b', '--short')]
    assert labels('default', 'one:test_b') == [('test_b', '--short')]
    assert labels('full', 'one:test_c', 'one:test_c') == [('test_c', '')]
    assert labels('full', kernels=['k1']) == [
        ('test_b', '--short --kernel k1')]
    for wrong in 'three', 'one:test_x':
        try:
            assert not labels('full', wrong), wrong
        except ChoiceError as e:
            assert wrong.split(':')[-1] in str(e), e
    first = Choice(table, 'default').jobs()
    rest = later_only(Choice(table, 'full').jobs(), first)
    assert [j.label for j in rest] == ['one:test_b', 'two:test_a-arm64-k']


# --- runs --------------------------------------------------------------------

def test_results():
    for text, status, want in (
            ('ok 1 - a\n1..1', 0, (1, 0, 0)),
            ('ok 1 - a\n1..2', 0, (1, 1, 0)),       # planned more
            ('ok 1 - a', 0, (1, 1, 0)),             # no plan
            ('ok 1 - a\n1..1', 3, (1, 1, 0)),       # a bad status
            ('', 0, (0, 1, 0)),                     # no test
            ('', 77, (0, 0, 1)),
            ('1..0 # SKIP no tool', 0, (0, 0, 1)),
            ('ok 1 - a # SKIP why\n1..1', 0, (0, 0, 1)),
            ('not ok 1 - a\nBail out! b', 1, (0, 1, 0))):
        result = Result('x:y')
        for line in text.splitlines():
            result.line(line)
        result.end(status)
        found = result.passed, result.failed, result.skipped
        assert found == want, (text, status, found)


def test_needs(tmp):
    """A program waits for its needs and no other does. A failed step fails the
    programs that need it."""
    FakeSetUp.go.clear()

    def release(one):
        while not one.results:
            time.sleep(0.01)
        before.extend(j.name for j in one.results)
        FakeSetUp.go.set()

    before = []
    one, out = run(tmp, job('waits', GOOD, needs=('slow',)),
                   job('unlucky', GOOD, needs=('bad',)), job('good', GOOD),
                   during=release)
    assert before == ['good'], before
    assert one.total().sums() == '2 passed, 1 failed, 0 skipped', out
    assert 'FAIL fake:unlucky: set-up of bad failed, see LOG' in out, out
    assert not one.flaky and 'once more' not in out, out


def test_alone(tmp):
    """A program that runs alone starts when the others have ended."""
    path = os.path.join(tmp, 'order')
    code = f'open({path!r}, "a").write(__import__("sys").argv[1])\n{GOOD}'
    run(tmp, job('c', code, 'c', alone=True), job('a', code, 'a'),
        job('b', code, 'b'))
    with open(path, encoding='ascii') as f:
        order = f.read()
    assert sorted(order) == ['a', 'b', 'c'] and order[2] == 'c', order


def test_again(tmp):
    one, out = run(tmp, job('rare', ONCE, os.path.join(tmp, 'was')),
                   job('bad', BAD), job('good', GOOD))
    assert one.total().sums() == '2 passed, 1 failed, 0 skipped', out
    (flaky, first, second), = one.flaky
    assert flaky.name == 'rare'
    for result, want in (first, 'not ok'), (second, 'ok'):
        with open(result.log, encoding='ascii') as f:
            assert f.read().startswith(want), result.log
    lines = list(flaky_lines(one.flaky))
    assert lines[0].startswith('flaky fake:rare: '), lines
    assert first.log in lines[1] and second.log in lines[2], lines
    assert out.count('FAIL fake:bad: a') == 2, out
    kept = sorted(os.listdir(os.path.join(tmp, 'results')))
    assert kept == ['fake-bad.1.log', 'fake-bad.2.log', 'fake-rare.1.log',
                    'fake-rare.2.log'], kept


def test_many_failures(tmp):
    one, out = run(tmp, *(job(f'bad{n}', BAD) for n in range(11)))
    assert one.total().failed == 11 and 'none of them runs again' in out, out


def test_limit(tmp):
    late = job('late', 'import time; time.sleep(60)')
    late.seconds = 1
    one, out = run(tmp, late)
    assert one.total().failed and 'stopped after 1 s' in out, out


def test_repeat(tmp):
    out = io.StringIO()
    good = repeat_job(job('rare', ONCE, os.path.join(tmp, 'was')), 4, tmp,
                      Screen(out))
    lines = out.getvalue().splitlines()
    assert not good and lines[-1] == '3 passed, 1 failed, 0 skipped', lines
    assert os.listdir(tmp).count('fake-rare.1.log') == 1, os.listdir(tmp)
    assert not glob.glob(os.path.join(tmp, '*.[234].log'))
    # The user ends it in the third run. A shell starts what it runs in the
    # background with SIGINT ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    out, begin = io.StringIO(), time.monotonic()
    threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
    repeat_job(job('long', f'import time\n{GOOD}\ntime.sleep(0.4)'), 1000,
               tmp, Screen(out))
    lines = out.getvalue().splitlines()
    assert time.monotonic() - begin < 20
    assert any('interrupted after' in line for line in lines), lines
    assert re.fullmatch('[1-4] passed, 0 failed, 0 skipped', lines[-1]), lines


def test_times(tmp):
    path = os.path.join(tmp, 'durations.json')
    jobs = [job('quick', GOOD, level='default'), job('slow', GOOD, form='-x'),
            job('new', GOOD)]
    durations = Durations(path)
    for one, seconds, cpu in zip(jobs, (1.25, 70), (0.5, 9)):
        result = Result('x')
        result.seconds, result.cpu = seconds, cpu
        durations.add(one, result)
    durations.save()
    again = Durations(path)
    assert [j.name for j in again.longest_first(jobs)] == [
        'new', 'slow', 'quick']
    lines = [' '.join(line.split()) for line in again.table(jobs)]
    assert lines == ['seconds CPU level program',
                     '70.0 9.0 full fake:slow -x',
                     '1.2 0.5 default fake:quick', '71.2 9.5 2 programs',
                     '? ? full fake:new'], lines


# --- what programs use -------------------------------------------------------

def test_uses():
    checker = used.Checker.__new__(used.Checker)
    packages = used.Packages.__new__(used.Packages)
    packages.first = {'base'}
    packages.depends = {'base': set(), 'tool': {'libtool'}, 'libtool': set(),
                        'other': set()}
    packages.owner = {'/usr/bin/tool': 'tool',
                      '/usr/lib/libtool.txt': 'libtool',
                      '/usr/bin/other': 'other', '/usr/bin/sh': 'base',
                      '/usr/lib/python3/x.py': 'other'}
    checker.packages, checker.cache = packages, '/cache/'
    checker.steps = {'tool': ['tool'], 'lots': ['other', 'tool']}

    def lacks(paths, *needs):
        return [line.rpartition(': ')[0]
                for line in checker.missing(needs, paths)]

    assert not lacks(['/bin/sh', '/tmp/x', '/cache/kernels/6.12/v/vmlinuz'])
    assert not lacks(['/usr/bin/tool', '/usr/lib/libtool.txt'], 'tool')
    assert lacks(['/bin/tool', '/lib/libtool.txt', '/lib/x.so'], 'other') == [
        'needs the package tool, which comes with tool or lots',
        'needs the package libtool, which comes with tool or lots']
    assert lacks(['/usr/lib/python3/__pycache__/x.cpython-311.pyc']) == [
        'needs the package other, which comes with lots']
    assert lacks(['/usr/local/bin/y']) == ['/usr/local/bin/y is of no package']
    arm = ['/cache/kernels/arm64-6.12/v/vmlinuz', '/cache/qemu/aarch64-00/q',
           '/cache/initramfs/arm64-6.12-00/initrd', '/cache/efi/x']
    assert lacks(arm) == ['needs efi', 'needs k:arm64-6.12',
                          'needs qemu-aarch64']
    assert lacks(arm, 'k:arm64-6.12', 'efi') == []
    assert used.names('a (>= 1) | b:any, c') == {'a', 'b', 'c'}
    assert setup_arguments('lldb') == ['--only', 'lldb']
    assert setup_arguments('k:arm64-6.1') == ['--kernel', 'arm64-6.1',
                                              '--only', 'cross-arm64']


# --- bare systems ------------------------------------------------------------

def test_bare(tmp):
    log = os.path.join(tmp, 'log')
    for text, want in (('x\n3 passed, 0 failed, 1 skipped\n', 3),
                       ('step failed\n', None), ('', None)):
        with open(log, 'w', encoding='ascii') as f:
            f.write(text)
        counts = bare.sums(log)
        assert (counts and counts['passed']) == want, (text, counts)
    report = bare.Report(tmp, '12', 'c1')
    row = {'result': 'passed', 'counts': counts, 'seconds': 61, 'commit': 'c1'}
    with contextlib.redirect_stdout(io.StringIO()) as out:
        report.add('one', row)
        report.add('two', {**row, 'result': 'failed'})
        assert not report.end()
    assert out.getvalue().endswith('1 passed, 1 failed, 0 skipped\n')
    assert report.known('one') and not report.known('two')
    assert not bare.Report(tmp, '12', 'c2').known('one')
    with open(os.path.join(tmp, 'summary-12.txt'), encoding='ascii') as f:
        assert len(f.readlines()) == 2


def main():
    tap = Tap()
    for name, fn in list(globals().items()):
        if name.startswith('test_') and callable(fn):
            with tap.test(name[5:].replace('_', ' ')), \
                    tempfile.TemporaryDirectory(prefix='ka-runtests.') as tmp:
                fn(*[tmp][:fn.__code__.co_argcount])
    tap.done()


if __name__ == '__main__':
    main()
