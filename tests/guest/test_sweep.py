#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The exit statuses, suppressions and reports of scripts/sweep, on real
guests, and the examples of docs/ci.md. Oracle: workloads that end in a known
way, with known errors.
"""
import contextlib
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import time
import unittest.mock
import xml.etree.ElementTree as ET

from lib import ci_examples, oracle
from lib.own_folder import OwnFolder
from lib.tap import Tap
from scripts import ka
from scripts.lib.mkinitramfs import Cpio
from scripts.lib.prepared import ROOT, cache_folder, kernel_file, paths
from scripts.lib.qmp import Qmp
from scripts.lib.signals import hear_hangups

tap = Tap()
own = OwnFolder('ka-sweep.')
work, write = own.top, own.write


def command(*args):
    """Return the command line of a sweep that writes work/junit.xml."""
    return [os.path.join(ROOT, 'scripts', 'sweep'), '--junit',
            os.path.join(work, 'junit.xml'), '--timeout', '240', *args]


def sweep(*args):
    """Run a sweep; return (status, output)."""
    done = subprocess.run(
        command(*args), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=300, check=False)
    return done.returncode, done.stdout


def child_of(pid):
    """Return the process of QEMU when the guest runs."""
    with open(f'/proc/{pid}/task/{pid}/children', encoding='ascii') as f:
        child, = f.read().split()
    return int(child)


def hear_all():
    """Let a child receive SIGHUP and SIGINT, which whoever started this test
    may ignore."""
    hear_hangups()
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def disturbed(disturb, *args, at='Linux version'):
    """Run a sweep whose guest waits, call disturb(pid) when the console shows
    a text, wait for the end of QEMU; return (status, output)."""
    log = os.path.join(work, 'log')
    with open(log, 'w', encoding='utf-8') as out:
        proc = subprocess.Popen(
            command('--console', '--marker', 'NEVER', '--append',
                    'ka.end=wait', *args),
            stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
            preexec_fn=hear_all)
        end = time.monotonic() + 100
        while at not in read(log) and time.monotonic() < end:
            time.sleep(0.1)
        qemu_pid = child_of(proc.pid)
        disturb(proc.pid)
        status = proc.wait(60)
    for _ in range(100):
        if not os.path.exists(f'/proc/{qemu_pid}'):
            return status, read(log)
        time.sleep(0.1)
    raise AssertionError('QEMU has not ended')


def read(path):
    with open(path, encoding='utf-8', errors='replace') as f:
        return f.read()


def junit(**want):
    suite = ET.parse(os.path.join(work, 'junit.xml')).getroot()[0]
    found = {k: int(suite.get(k)) for k in want}
    assert found == want, f'JUnit counts {found}'
    return suite


LEAKY = 'insmod /share/ka_leaky.ko plant=1\nrmmod ka_leaky\n'
STALE = 'insmod /share/ka_access.ko\n' \
        'echo uaf_load >/sys/module/ka_access/parameters/run\n'
# Workloads that end the guest in other ways.
WORKLOADS = {
    'panic': 'echo c >/proc/sysrq-trigger\n',
    'stale-leaky': STALE + LEAKY,
    'error-leaky': 'insmod /share/ka_errors.ko kind=double-free\n' + LEAKY,
    'not-asked': LEAKY + STALE + 'reboot -f\n',
    'error-panic': 'insmod /share/ka_errors.ko kind=double-free\n'
                   'echo c >/proc/sysrq-trigger\n',
}


def initrd_with_errors():
    """Make an initramfs: the prepared one, and the module that commits
    errors."""
    share, tail = os.path.join(work, 'share'), os.path.join(work, 'share.cpio')
    os.mkdir(share)
    modules = os.path.join(cache_folder('modules'), 'kmod-6.12')
    subprocess.run([os.path.join(oracle.INSIDE, 'kmod', 'build.sh'),
                    kernel_file('6.12', ''), modules], check=True)
    oracle.make_share(share, ['kexec.sh'], '6.12')
    for path in (os.path.join(modules, 'ka_errors.ko'),
                 os.path.join(modules, 'ka_access.ko'),
                 os.path.join(modules, 'ka_leaky.ko'),
                 os.path.join(oracle.INSIDE, 'errors.sh'), kernel_file('6.12')):
        shutil.copy(path, share)
    shutil.copy(paths()['initrd-6.12'], os.path.join(share, 'initrd'))
    for name, text in WORKLOADS.items():
        write(f'share/{name}.sh', text)
    subprocess.run([os.path.join(ROOT, 'scripts', 'lib', 'mkinitramfs.py'),
                    '--share', share, '--output', tail], check=True)
    whole = os.path.join(work, 'initrd')
    with open(whole, 'wb') as out:
        for part in (paths()['initrd-6.12'], tail):
            with open(part, 'rb') as f:
                shutil.copyfileobj(f, out)
    return whole


# The first process of a guest that knows nothing of ka.
INIT = """#!/bin/sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
{}
sleep 1
poweroff -f
"""


def initrd_of_job(initrd, do):
    """Make an initramfs whose first process does this."""
    path = os.path.join(work, 'job-initrd')
    with open(path, 'wb') as out, open(initrd, 'rb') as f:
        shutil.copyfileobj(f, out)
        out.write(b'\0' * (-out.tell() % 4))
        cpio = Cpio(out)
        cpio.add('init', stat.S_IFREG | 0o755, INIT.format(do).encode())
        cpio.close()
    return path


@contextlib.contextmanager
def job(do):
    """A job whose guest does this."""
    with tempfile.TemporaryDirectory(dir=work) as folder:
        yield ci_examples.Job(folder, kernel_file('6.12'),
                              initrd_of_job(initrd, do))


def written(name):
    """Return the text of a report."""
    return read(os.path.join(work, name))


def expect(status, got):
    assert got[0] == status, f'status {got[0]}:\n{got[1]}'
    return got[1]


initrd = initrd_with_errors()

with tap.test('the example for GitHub: an error is status 1, with one title '
              'and hash in each format'), \
        job('insmod /share/ka_errors.ko kind=double-free') as a:
    text = expect(1, a.run(ci_examples.script(ci_examples.github())))
    assert 'double-free    ' in text and ' 1 finding, 0 supp' in text, text
    known = a.read('ka-out/known.txt')
    fold, title = known.splitlines()[-1].split(' ', 1)
    assert re.fullmatch(r'double-free in ka_err_\w+', title), title
    result, = json.loads(a.read('ka-out/ka.sarif'))['runs'][0]['results']
    assert result['partialFingerprints']['kaFold/v1'] == fold, result
    assert result['properties']['title'] == title, result
    suite = ET.fromstring(a.read('ka-out/junit.xml'))[0]
    case, = suite.iter('testcase')
    assert case.get('name') == title and case.find('failure') is not None
    facts = {p.get('name'): p.get('value') for p in case.find('properties')}
    assert facts['fold'] == fold and facts['weak'] == '0', facts
    facts = {p.get('name'): p.get('value') for p in suite.find('properties')}
    assert facts['kernel'].startswith('6.12.') and facts['arch'] == 'x86_64'
    assert title in a.read('ka-out/ka.html')
    one, = ka.Journal(a.path('ka-out/ka.journal'), program=os.path.join(
        paths()['build'], 'monitor-cmds', 'ka')).errors()
    assert one.fold == fold, one
    assert not [n for n in os.listdir(a.path('ka-out')) if '.new' in n]

with tap.test('the example for GitHub: what is uploaded is there, always'):
    uploads = [s for s in ci_examples.github() if 'upload' in s.get('uses', '')]
    assert len(uploads) == 2, uploads
    assert all(s['if'] == 'always()' for s in uploads), uploads
    assert [s['with'].get('sarif_file') or s['with']['path'] for s in uploads
            ] == ['ka-out/ka.sarif', 'ka-out']

with tap.test('the examples save the cache, whatever the sweep finds'):
    steps = ci_examples.github()
    uses = [s.get('uses', '').split('@')[0] for s in steps]
    restore, save = (steps[uses.index('actions/cache/' + what)]
                     for what in ('restore', 'save'))
    assert 'actions/cache' not in uses, uses
    assert restore['with']['path'] == save['with']['path'] == '~/.cache/ka'
    assert '!cancelled()' in save['if'], save
    at = next(i for i, s in enumerate(steps) if s.get('name') == 'sweep')
    assert steps.index(restore) < at < steps.index(save), uses
    assert ci_examples.gitlab()['cache']['when'] == 'always'

with tap.test('the example for GitLab: a clean guest that ends is status 0'), \
        job('ls /') as a:
    text = expect(0, a.run(ci_examples.gitlab()['script']))
    assert 'swept at end' in text and ' 0 findings, 0 suppressed' in text, text
    kept = ci_examples.gitlab()['artifacts']
    assert kept['when'] == 'always' and kept['paths'] == ['ka-out'], kept
    case, = ET.fromstring(a.read(kept['reports']['junit'])).iter('testcase')
    assert case.get('name') == 'no allocation errors' and len(case) == 0
    assert '</html>' in a.read('ka-out/ka.html')
    assert a.read('ka-out/known.txt').count('\n') == 1

with tap.test('a marker on the console ends the wait; live bytes that grew '
              'are a finding: status 1'):
    text = expect(1, sweep('--max-growth', 'Linux version', '1',
                           '--max-growth', 'Linux version', '1G',
                           '--marker', 'KA-DONE', '--append', 'ka.end=wait'))
    assert 'swept at marker' in text, text
    assert 'growth of ' in text, text
    assert "since 'Linux version', the limit is 1\n" in text, text
    assert 'the limit is 1073741824' not in text, text
    assert '  the stacks that grew most' in text, text
    assert sweep('--max-growth', 'x', '1T')[0] == 2

with tap.test('findings of the baseline or suppressed: status 0, in each '
              'format, and unused suppressions are named'):
    rules = write('rules', '# known\nleak *\noverlap nobody_has_this\n'
                  'double-free some_other_function\n')
    text = expect(0, sweep(
        '--module-leaks', '--suppress', rules, '--baseline',
        write('known', known), '--ktap', os.path.join(work, 'ktap'),
        '--kasan-text', os.path.join(work, 'kasan'), '--initrd', initrd,
        '--append', 'ka.run=error-leaky ka.end=poweroff'))
    assert 'double-free    ' not in text, text
    assert 'unused suppression, line 3: overlap nobody_has_this' in text, text
    assert re.search(r' 0 findings, [1-9]\d* suppressed, 1 known\n', text), text
    suite = junit(failures=0, errors=0)
    assert suite.get('tests') == suite.get('skipped') != '0'
    assert f' {title} # SKIP known: {fold}\n' in written('ktap')
    assert written('kasan') == ''
    text = expect(2, sweep('--baseline', write('other', 'nothing\n')))
    assert 'baseline: line 1' in text, text

with tap.test('--access, --module-leaks, --leaks: a use after free, and what '
              'a module left, once; in the words of KASAN and kmemleak'):
    files = {k: os.path.join(work, k) for k in ('kasan', 'html')}
    text = expect(1, sweep(
        '--access', '--slab-check', '--module-leaks', '--leaks',
        '--kasan-text', files['kasan'], '--html', files['html'],
        '--initrd', initrd, '--append', 'ka.run=stale-leaky ka.end=poweroff'))
    assert 'use-after-free ' in text, text
    assert 'left by module ka_leaky' in text, text
    found = [c.get('name') for c in junit(errors=0).iter('testcase')]
    assert len(found) > 1 and len(found) == len(set(found)), found
    first, *left = found
    assert first.startswith('use-after-free in'), found
    assert all(n.startswith('leak in') for n in left), found
    assert 'BUG: KASAN: slab-use-after-free in ' in written('kasan')
    assert '\nunreferenced object 0x' in written('kasan'), written('kasan')
    assert first in written('html')

with tap.test('a reboot is an end: status 0, and only what is asked for is '
              'looked for'):
    text = expect(0, sweep('--initrd', initrd, '--append', 'ka.run=not-asked'))
    assert 'swept at end' in text and ' 0 findings, 0 supp' in text, text

with tap.test('a kernel that is none: status 2, one error in JUnit'):
    text = expect(2, sweep('--kernel', write('kernel', 'nothing\n')))
    junit(tests=1, failures=0, errors=1, skipped=0)

with tap.test('a marker, and a mark of growth, that never come: status 2'):
    text = expect(2, sweep('--marker', 'NEVER', '--max-growth', 'NEITHER', '1G',
                           '--append', 'ka.end=poweroff'))
    assert "the marker 'NEVER' never came" in text, text
    assert "growth since 'NEITHER': it never came" in text, text

with tap.test('a marker printed as the guest powers off is seen'):
    text = expect(0, sweep('--marker', 'Power down', '--append',
                           'ka.end=poweroff'))
    assert 'swept at marker' in text, text

with tap.test('a panic that the guest stays in: status 2, without the timeout'):
    text = expect(2, sweep('--no-health', '--initrd', initrd, '--append',
                           'ka.run=panic', '--append', 'panic=0'))
    assert 'panicked: Kernel panic - not syncing: sysrq' in text, text
    assert 'swept at panic' in text, text
    junit(tests=1, failures=0, errors=1, skipped=0)

with tap.test('an error, then a panic that resets the guest: status 1, both '
              'in JUnit, and no baseline'):
    path = write('kept', 'old\n')
    text = expect(1, sweep('--no-health', '--initrd', initrd, '--append',
                           'ka.run=error-panic', '--write-baseline', path))
    assert 'double-free    ' in text and 'Kernel panic' in text, text
    assert 'kept: not written' in text and read(path) == 'old\n', text
    junit(tests=2, failures=1, errors=1, skipped=0)

with tap.test('another kernel by kexec: status 2'):
    text = expect(2, sweep('--initrd', initrd, '--mem', '2G', '--append',
                           'ka.run=kexec ka.end=poweroff'))
    assert 'the guest booted again' in text, text

for number in signal.SIGTERM, signal.SIGHUP, signal.SIGINT:
    with tap.test(f'{number.name}: status 2, JUnit, and QEMU has ended'):
        expect(2, disturbed(lambda pid, n=number: os.kill(pid, n)))
        junit(tests=1, failures=0, errors=1, skipped=0)


with tap.test('SIGKILL: QEMU has ended'):
    with unittest.mock.patch.dict(os.environ, TMPDIR=work):
        status, _ = disturbed(lambda pid: os.kill(pid, signal.SIGKILL))
    assert status == -signal.SIGKILL, status


def kill_qemu(pid):
    os.kill(child_of(pid), signal.SIGKILL)


with tap.test('QEMU is killed: status 2'):
    text = expect(2, disturbed(kill_qemu))
    assert 'sweep: QEMU ended by SIGKILL:\n' in text, text
    junit(tests=1, failures=0, errors=1, skipped=0)

with tap.test('QEMU is killed after an error: the journal has it: status 1'):
    files = {k: os.path.join(work, k) for k in ('journal', 'html')}
    text = expect(1, disturbed(
        kill_qemu, '--journal', files['journal'], '--html', files['html'],
        '--initrd', initrd, '--append', 'ka.run=errors ka.n=double-free',
        at='KA-DONE'))
    assert 'sweep: QEMU ended by SIGKILL:\n' in text, text
    assert 'its journal was read, 1 finding' in text, text
    junit(tests=2, failures=1, errors=1, skipped=0)
    assert title in written('html')

with tap.test('the tracer and the VM are stopped: status 2, both are reported'):
    qmp = os.path.join(work, 'qmp')

    def stop_all(_):
        monitor = Qmp(qmp, 10)
        for word in 'off', 'on', 'off':
            monitor.cmd('human-monitor-command',
                        {'command-line': f'ka {word}'})
        monitor.cmd('stop')

    text = expect(2, disturbed(stop_all, '--', '-qmp',
                               f'unix:{qmp},server=on,wait=off', at='KA-DONE'))
    assert 'the VM was stopped: paused' in text, text
    assert 'tracing was switched off' in text, text
    assert 'warning: gaps 1:' in text, text
    assert 'warning: gaps 1:' in junit(errors=1).find('system-out').text, text

with tap.test('a file that cannot be written: status 2, before a VM starts'):
    for option in '--junit', '--sarif', '--html', '--journal':
        for path, why in ((work + '/none/file', 'No such file or directory'),
                          (work, 'Is a directory')):
            assert expect(2, sweep(option, path)) == f'sweep: {path}: {why}\n'
    path = write('old', 'of an earlier run')
    text = expect(2, sweep('--junit', '/dev/full', '--ktap', path, '--kernel',
                           write('kernel', 'nothing\n')))
    assert text.endswith('sweep: /dev/full: No space left on device\n'), text
    assert 'Traceback' not in text and 'not ok 1 sweep' in read(path), text

with tap.test('a report that cannot be written: status 2, no traceback'):
    with open('/dev/full', 'w', encoding='ascii') as full:
        done = subprocess.run(
            command('--marker', 'Run /init'), stdout=full, text=True,
            stderr=subprocess.PIPE, timeout=300, check=False)
    assert done.returncode == 2, done
    assert done.stderr == 'sweep: standard output: No space left on device\n'

with tap.test('a bad suppression file: status 2, the line is named'):
    text = expect(2, sweep('--suppress', write('rules', 'a b c\n')))
    assert 'line 1' in text, text

with tap.test('wrong arguments: status 2'):
    expect(2, sweep('--no-such-option'))
    for value in 'inf', 'nan', '0', '-1', '1e10', 'x':
        text = expect(2, sweep('--timeout', value))
        assert 'argument --timeout' in text.splitlines()[-1], text

tap.done()
