#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""How a run of scripts/sweep ends, on real guests: a script that fails, that
never ends, a module that is missing or is none, a hang at boot, in user space
and at shutdown, a guest that is meant to go on. Oracle: guests that end in a
known way. After each run all formats are read, and must have the same findings
and the same problem.

usage: test_sweep_ends.py [--kernel K]
"""
import argparse
import concurrent.futures
import os
import re
import shutil
import tempfile

from lib import commands, oracle, sweeping
from lib.own_folder import OwnFolder
from lib.tap import Tap

ap = argparse.ArgumentParser()
ap.add_argument('--kernel', default='6.12')
args = ap.parse_args()
tap = Tap()
work = OwnFolder('ka-ends.').top
HANG = 45       # seconds, for a guest that hangs


def share_of(kernel):
    """Make a folder with modules: good ones, and one that is none."""
    folder = os.path.join(work, 'share')
    os.mkdir(folder)
    modules = oracle.build_modules(kernel)
    for name in 'ka_halt', 'ka_leaky', 'ka_errors':
        shutil.copy(os.path.join(modules, name + '.ko'), folder)
    with open(os.path.join(folder, 'none.ko'), 'w', encoding='ascii') as f:
        f.write('this is no module\n' * 100)
    return folder


share = share_of(args.kernel)


def sweep(script, *words, timeout=240, kernel=args.kernel):
    """Run a sweep of a guest that runs a script, or nothing."""
    folder = tempfile.mkdtemp(dir=work)
    if script is not None:
        path = os.path.join(folder, 'script.sh')
        with open(path, 'w', encoding='ascii') as f:
            f.write(script)
        words = ('--run', path, *words)
    return sweeping.sweep(folder, '--kernel', kernel, '--share', share,
                          *words, timeout=timeout)


# A guest that hangs does little until its time limit. So these run beside the
# others, from the start.
pool = concurrent.futures.ThreadPoolExecutor(3)


def start(script, *words):
    return pool.submit(sweep, script, *words, timeout=HANG)


WAITS = None, '--append', 'ka.end=wait'
loops = start('while :; do :; done\n')
waits = start(*WAITS)
meant_to_wait = start(*WAITS, '--until-timeout')
boots = start(None, '--initrd', 'none', '--append', 'root=/dev/none rootwait')
halts = {spin: start(f'insmod ka_halt.ko {spin}\n', '--no-health')
         for spin in ('', 'spin=1')}
errs = start('insmod ka_errors.ko kind=double-free\nsleep 1000\n')


def expect(status, names, got):
    assert got.status == status, f'status {got.status}:\n{got.text}'
    assert got.said.names == sorted(names), got.text
    return got


with tap.test('a script that ends well: status 0'):
    got = expect(0, [], sweep('ls none.ko && insmod ka_leaky.ko\n',
                              '--expect', 'none.ko'))
    assert 'No errors were found.' in got.files['html']

with tap.test('a script that fails: status 1, with the end of its output'):
    got = expect(1, ['scenario failed: status 3'],
                 sweep('echo the last words\nexit 3\n'))
    assert '  the last words' in got.text, got.text
    assert 'Linux version' not in got.text, got.text

with tap.test('a module that is missing'):
    expect(1, ['scenario failed: status 1: insmod gone.ko: No such file or '
               'directory'], sweep('insmod /share/gone.ko || exit 1\n'))

with tap.test('a module that is none'):
    got = sweep('insmod none.ko || exit 1\n')
    assert got.status == 1, got.text
    name, = got.said.names
    assert name.startswith('scenario failed: status 1: insmod none.ko: '), name

with tap.test('an error and a script that fails are two findings'):
    got = sweep('insmod ka_errors.ko kind=double-free\nexit 1\n')
    assert got.status == 1 and len(got.said.names) == 2, got.text
    assert got.said.names[0].startswith('double-free in '), got.said

with tap.test('leaks of a scan are on the page of a journal'):
    got = sweep('insmod ka_leaky.ko plant=1 && rmmod ka_leaky\n', '--leaks',
                '--module-leaks', '--journal', os.path.join(work, 'journal'))
    assert got.status == 1 and got.said.names, got.text
    assert all(n.startswith('leak in ') for n in got.said.names), got.said
    assert 'No errors were found' not in got.files['html']

with tap.test('a text that never comes: status 1'):
    expect(1, ['expected text is missing: all is well'],
           sweep('true\n', '--expect', 'all is well'))

with tap.test('the status of ka.run= is that of its script'):
    with open(os.path.join(share, 'seven.sh'), 'w', encoding='ascii') as f:
        f.write('exit 7\n')
    expect(1, ['scenario failed: status 7'], sweep(
        None, '--append', 'ka.run=seven ka.end=poweroff'))

with tap.test('a script that powers off is not known to have ended: status 2'):
    got = expect(2, [], sweep('poweroff -f\n'))
    assert 'did not come to its end' in got.said.problem, got.said


def hangs(phase, got, *texts):
    """All formats have the phase of the guest and what its vCPU did."""
    expect(2, [], got)
    first, *lines = got.said.problem.splitlines()
    assert re.match(rf'no end after \d+ s: {phase}', first), got.text
    assert any('vcpu0' in line for line in lines), got.text
    for text in texts:
        assert any(text in line for line in lines), (text, got.text)


with tap.test('an endless loop: status 2'):
    hangs('user space was running', loops.result(), 'comm=sh')

with tap.test('a guest that waits: status 2, and 0 if it is meant to'):
    hangs('user space was running', waits.result())
    expect(0, [], meant_to_wait.result())

with tap.test('a hang at boot: status 2'):
    hangs('the kernel was booting', boots.result(), 'Waiting for root device')

for spin, text in ('', 'comm='), ('spin=1', 'ka_halt_wait'):
    with tap.test(f'a hang at shutdown: status 2 {spin}'):
        hangs('the kernel was shutting down', halts[spin].result(), text)

with tap.test('an error before a hang: status 1, with the problem'):
    got = errs.result()
    assert got.status == 1 and len(got.said.names) == 1, got.text
    assert 'user space was running' in got.said.problem, got.said

with tap.test('options that exclude each other, and empty texts: status 2'):
    for words in (('--marker', ''), ('--expect', ' '),
                  ('--marker', 'x', '--until-timeout'),
                  ('--run', 'x', '--marker', 'y')):
        done = commands.run('sweep', *words, status=2)
        assert done.stderr.count('\n') == 2, done
        assert words[0] in done.stderr.splitlines()[-1], done

tap.done()
