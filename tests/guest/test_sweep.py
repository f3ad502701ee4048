#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""scripts/sweep: its statuses, suppressions and JUnit XML, on real guests."""
import os
import shutil
import subprocess
import tempfile
import xml.etree.ElementTree as ET

from kaguest import ROOT, Tap, cache_folder, kernel_file, paths

tap = Tap()
work = tempfile.mkdtemp(prefix='ka-sweep.')


def sweep(*args):
    """(status, output) of a run; JUnit goes to work/junit.xml."""
    done = subprocess.run(
        [os.path.join(ROOT, 'scripts', 'sweep'), '--junit',
         os.path.join(work, 'junit.xml'), '--timeout', '120', *args],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=300, check=False)
    return done.returncode, done.stdout


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


def initrd_with_errors():
    """The prepared initramfs, followed by the module that commits errors."""
    share, tail = os.path.join(work, 'share'), os.path.join(work, 'share.cpio')
    os.mkdir(share)
    here = os.path.join(ROOT, 'tests', 'guest')
    modules = os.path.join(cache_folder('modules'), 'kmod-6.12')
    subprocess.run([os.path.join(here, 'build-kmod.sh'),
                    kernel_file('6.12', ''), modules], check=True)
    for path in (os.path.join(modules, 'ka_errors.ko'),
                 os.path.join(here, 'errors.sh')):
        shutil.copy(path, share)
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

bad = ('--initrd', initrd_with_errors(), '--append',
       'ka.run=errors ka.n=double-free ka.end=poweroff')

with tap.test('an error: status 1, one line, one failure'):
    text = expect(1, sweep(*bad))
    assert 'error[double-free ' in text and ' 1 errors, 0 supp' in text, text
    junit(tests=1, failures=1, errors=0, skipped=0)

with tap.test('a suppressed error: status 0, the unused one is named'):
    rules = write('rules', '# known\ndouble-free ka_err_*\n'
                  'overlap nobody_has_this\n')
    text = expect(0, sweep(*bad, '--suppress', rules))
    assert 'error[double-free' not in text, text
    assert 'unused suppression, line 3: overlap nobody_has_this' in text, text
    junit(tests=1, failures=0, errors=0, skipped=1)

with tap.test('a suppression of another function: status 1'):
    rules = write('rules', 'double-free some_other_function\n')
    expect(1, sweep(*bad, '--suppress', rules))

with tap.test('a kernel that is none: status 2, one error in JUnit'):
    text = expect(2, sweep('--kernel', write('kernel', 'nothing\n')))
    junit(tests=1, failures=0, errors=1, skipped=0)

with tap.test('a marker that never comes: status 2'):
    expect(2, sweep('--marker', 'NEVER', '--append', 'ka.end=poweroff'))

with tap.test('a bad suppression file: status 2, the line is named'):
    text = expect(2, sweep('--suppress', write('rules', 'a b c\n')))
    assert 'line 1' in text, text

with tap.test('wrong arguments: status 2'):
    expect(2, sweep('--no-such-option'))

shutil.rmtree(work)
tap.done()
