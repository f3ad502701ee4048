#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The exit statuses, suppressions and reports of scripts/sweep, on real
guests. Oracle: workloads that end in a known way, with known errors.
"""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import xml.etree.ElementTree as ET

from lib import oracle
from lib.tap import Tap
from scripts.lib.prepared import ROOT, cache_folder, kernel_file, paths
from scripts.lib.qmp import Qmp
from scripts.lib.signals import hear_hangups

tap = Tap()
work = tempfile.mkdtemp(prefix='ka-sweep.')


def command(*args):
    """Return the command line of a sweep that writes work/junit.xml."""
    return [os.path.join(ROOT, 'scripts', 'sweep'), '--junit',
            os.path.join(work, 'junit.xml'), '--timeout', '120', *args]


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


def disturbed(disturb, *qemu):
    """Run a sweep whose guest waits, call disturb(pid), wait for the end of
    QEMU; return (status, output)."""
    log = os.path.join(work, 'log')
    with open(log, 'w', encoding='utf-8') as out:
        proc = subprocess.Popen(
            command('--console', '--marker', 'NEVER', '--append',
                    'ka.end=wait', '--', *qemu),
            stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
            preexec_fn=hear_hangups)
        end = time.monotonic() + 100
        while 'KA-DONE' not in read(log) and time.monotonic() < end:
            time.sleep(0.1)
        qemu_pid = child_of(proc.pid)
        disturb(proc.pid)
        status = proc.wait(60)
    with contextlib.suppress(ProcessLookupError):
        os.kill(qemu_pid, 0)
        raise AssertionError('QEMU has not ended')
    return status, read(log)


def read(path):
    with open(path, encoding='utf-8', errors='replace') as f:
        return f.read()


def junit(**want):
    suite = ET.parse(os.path.join(work, 'junit.xml')).getroot()[0]
    found = {k: int(suite.get(k)) for k in want}
    assert found == want, f'JUnit counts {found}'
    return suite


def write(name, text):
    path = os.path.join(work, name)
    with open(path, 'w', encoding='utf-8') as f:
        f.write(text)
    return path


LEAKY = 'insmod /share/ka_leaky.ko plant=1\nrmmod ka_leaky\n'
STALE = 'insmod /share/ka_access.ko\n' \
        'echo uaf_load >/sys/module/ka_access/parameters/run\n'
# Workloads that end the guest in other ways.
WORKLOADS = {
    'panic': 'echo c >/proc/sysrq-trigger\n',
    'leaky': LEAKY,
    'stale': STALE,
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


def expect(status, got):
    assert got[0] == status, f'status {got[0]}:\n{got[1]}'
    return got[1]


with tap.test('a clean guest that ends: status 0'):
    text = expect(0, sweep('--append', 'ka.end=poweroff'))
    assert 'swept at end' in text and ' 0 errors, 0 suppressed' in text, text
    junit(tests=1, failures=0, errors=0, skipped=0)

with tap.test('a marker on the console ends the wait'):
    text = expect(0, sweep('--marker', 'KA-DONE', '--append', 'ka.end=wait'))
    assert 'swept at marker' in text, text

with tap.test('live bytes that grew: status 1; a mark that never comes: 2'):
    text = expect(1, sweep('--max-growth', 'Linux version', '1',
                           '--max-growth', 'Linux version', '1G',
                           '--append', 'ka.end=poweroff'))
    assert 'growth of ' in text, text
    assert "since 'Linux version', the limit is 1\n" in text, text
    assert 'the limit is 1073741824' not in text, text
    assert '  the stacks that grew most' in text, text
    expect(0, sweep('--max-growth', 'Linux version', '1G',
                    '--append', 'ka.end=poweroff'))
    text = expect(2, sweep('--max-growth', 'NEVER', '1G',
                           '--append', 'ka.end=poweroff'))
    assert "growth since 'NEVER': it never came" in text, text
    assert sweep('--max-growth', 'x', '1T')[0] == 2

initrd = initrd_with_errors()
bad = ('--initrd', initrd, '--append',
       'ka.run=errors ka.n=double-free ka.end=poweroff')

with tap.test('an error: status 1, one title and hash in each format'):
    files = {k: os.path.join(work, k) for k in ('sarif', 'ktap', 'baseline')}
    rules = write('rules', 'double-free some_other_function\n')
    other = write('other', '0123456789abcdef double-free in f\n')
    text = expect(1, sweep(*bad, '--suppress', rules, '--baseline', other,
                           '--sarif', files['sarif'], '--ktap', files['ktap'],
                           '--write-baseline', files['baseline']))
    assert 'error[double-free ' in text and ' 1 errors, 0 supp' in text, text
    case = junit(tests=1, failures=1, errors=0, skipped=0).find('testcase')
    with open(files['sarif'], encoding='utf-8') as f:
        result, = json.load(f)['runs'][0]['results']
    title = case.get('name')
    assert re.fullmatch(r'double-free in ka_err_\w+', title), title
    fold = result['partialFingerprints']['kaFold/v1']
    assert result['properties']['title'] == title, result
    assert f'\nnot ok 1 {title}\n' in read(files['ktap']), read(files['ktap'])
    assert f'\n{fold} {title}\n' in read(files['baseline'])
    facts = {p.get('name'): p.get('value') for p in case.find('properties')}
    assert facts['fold'] == fold and facts['weak'] == '0', facts
    facts = {p.get('name'): p.get('value')
             for p in junit(tests=1).find('properties')}
    assert facts['kernel'].startswith('6.12.') and facts['arch'] == 'x86_64'

with tap.test('a finding of the baseline: status 0'):
    text = expect(0, sweep(*bad, '--baseline', files['baseline']))
    assert '0 errors, 0 suppressed, 1 known' in text, text
    junit(tests=1, failures=0, errors=0, skipped=1)
    text = expect(2, sweep('--baseline', write('other', 'nothing\n')))
    assert 'baseline: line 1' in text, text

with tap.test('--access: a use after free is an error'):
    text = expect(1, sweep('--access', '--initrd', initrd, '--append',
                           'ka.run=stale ka.end=poweroff'))
    assert 'error[use-after-free ' in text and ' 1 errors, 0 supp' in text, text
    junit(tests=1, failures=1, errors=0, skipped=0)

with tap.test('--module-leaks and --leaks: what a module left, once'):
    text = expect(1, sweep('--module-leaks', '--leaks', '--initrd', initrd,
                           '--append', 'ka.run=leaky ka.end=poweroff'))
    assert 'left by module ka_leaky' in text, text
    found = [c.get('name') for c in junit(errors=0).iter('testcase')]
    assert found and all(n.startswith('leak in') for n in found), found
    assert len(found) == len(set(found)), found

with tap.test('a reboot is an end: status 0, and only what is asked for is '
              'looked for'):
    text = expect(0, sweep('--initrd', initrd, '--append', 'ka.run=not-asked'))
    assert 'swept at end' in text and ' 0 errors, 0 supp' in text, text

with tap.test('a suppressed error: status 0, the unused one is named'):
    rules = write('rules', '# known\ndouble-free ka_err_*\n'
                  'overlap nobody_has_this\n')
    text = expect(0, sweep(*bad, '--suppress', rules))
    assert 'error[double-free' not in text, text
    assert 'unused suppression, line 3: overlap nobody_has_this' in text, text
    junit(tests=1, failures=0, errors=0, skipped=1)

with tap.test('a kernel that is none: status 2, one error in JUnit'):
    text = expect(2, sweep('--kernel', write('kernel', 'nothing\n')))
    junit(tests=1, failures=0, errors=1, skipped=0)

with tap.test('a marker that never comes: status 2'):
    expect(2, sweep('--marker', 'NEVER', '--append', 'ka.end=poweroff'))

with tap.test('a marker printed as the guest powers off is seen'):
    text = expect(0, sweep('--marker', 'Power down', '--append',
                           'ka.end=poweroff'))
    assert 'swept at marker' in text, text

with tap.test('a panic that resets the guest: status 2, the panic is reported'):
    text = expect(2, sweep('--initrd', initrd, '--append', 'ka.run=panic'))
    assert 'panicked: Kernel panic - not syncing: sysrq' in text, text
    assert ' 0 errors, 0 suppressed' in text, text
    junit(tests=1, failures=0, errors=1, skipped=0)

with tap.test('a panic that the guest stays in: status 2, without the timeout'):
    text = expect(2, sweep('--initrd', initrd, '--append', 'ka.run=panic',
                           '--append', 'panic=0'))
    assert 'panicked: Kernel panic - not syncing: sysrq' in text, text
    assert 'swept at panic' in text, text
    junit(tests=1, failures=0, errors=1, skipped=0)

with tap.test('an error, then a panic: status 1, both in JUnit'):
    text = expect(1, sweep('--initrd', initrd, '--append',
                           'ka.run=error-panic'))
    assert 'error[double-free ' in text and 'Kernel panic' in text, text
    junit(tests=2, failures=1, errors=1, skipped=0)

with tap.test('another kernel by kexec: status 2'):
    text = expect(2, sweep('--initrd', initrd, '--mem', '2G', '--append',
                           'ka.run=kexec ka.end=poweroff'))
    assert 'the guest booted again' in text, text

for number in signal.SIGTERM, signal.SIGHUP:
    with tap.test(f'{number.name}: status 2, JUnit, and QEMU has ended'):
        expect(2, disturbed(lambda pid, n=number: os.kill(pid, n)))
        junit(tests=1, failures=0, errors=1, skipped=0)

with tap.test('QEMU is killed: status 2'):
    text = expect(2, disturbed(
        lambda pid: os.kill(child_of(pid), signal.SIGKILL)))
    junit(tests=1, failures=0, errors=1, skipped=0)

with tap.test('the tracer and the VM are stopped: status 2, both are reported'):
    qmp = os.path.join(work, 'qmp')

    def stop_all(_):
        monitor = Qmp(qmp, 10)
        for word in 'off', 'on', 'off':
            monitor.cmd('human-monitor-command',
                        {'command-line': f'ka {word}'})
        monitor.cmd('stop')

    text = expect(2, disturbed(stop_all, '-qmp',
                               f'unix:{qmp},server=on,wait=off'))
    assert 'the VM was stopped: paused' in text, text
    assert 'tracing was switched off' in text, text
    assert 'warning: gaps 1:' in text, text
    assert 'warning: gaps 1:' in junit(errors=1).find('system-out').text, text

with tap.test('JUnit that cannot be written: status 2, before a VM starts'):
    text = expect(2, sweep('--junit', work + '/none/junit.xml'))
    assert text.startswith('sweep: ') and text.count('\n') == 1, text
    text = expect(2, sweep('--junit', '/dev/full', '--kernel',
                           write('kernel', 'nothing\n')))
    assert 'Traceback' not in text and 'No space left' in text, text

with tap.test('a report that cannot be written: status 2, no traceback'):
    with open('/dev/full', 'w', encoding='ascii') as full:
        done = subprocess.run(
            command('--append', 'ka.end=poweroff'), stdout=full, text=True,
            stderr=subprocess.PIPE, timeout=300, check=False)
    assert done.returncode == 2, done
    assert 'No space left' in done.stderr, done
    assert 'Traceback' not in done.stderr, done

with tap.test('a bad suppression file: status 2, the line is named'):
    text = expect(2, sweep('--suppress', write('rules', 'a b c\n')))
    assert 'line 1' in text, text

with tap.test('wrong arguments: status 2'):
    expect(2, sweep('--no-such-option'))
    for value in 'inf', 'nan', '0', '-1', '1e10', 'x':
        text = expect(2, sweep('--timeout', value))
        assert 'argument --timeout' in text.splitlines()[-1], text

shutil.rmtree(work)
tap.done()
