#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""ka works when it is installed: with meson's DESTDIR, in a folder that can be
moved, for a user who is not root, and while the source tree, the build and the
cache are out of reach (as root: in a mount namespace without them).

Oracle: exit statuses, the guest's console, and mandoc and man for the pages.

usage: test_install.py [--short] [--kernel K]...
"""
import atexit
import glob
import json
import os
import re
import shutil
import subprocess
import tempfile
import time

from lib import page_blocks
from lib.programs import kernel_options
from lib.tap import Tap
from scripts.lib.prepared import (
    ROOT, cache_folder, kernel_arch, kernel_file, paths)

NOBODY = '65534'
# $1: how many folders to hide; they and the command follow.
HIDE = """
n=$1; shift
while [ "$n" -gt 0 ]; do
    mount -t tmpfs none "$1" || exit 99
    shift; n=$((n - 1))
done
exec setpriv --reuid NOBODY --regid NOBODY --clear-groups "$@"
""".replace('NOBODY', NOBODY)

tap = Tap()
kernels = [k for k in kernel_options() if kernel_arch(k) == 'x86_64']
place = paths()
build = os.environ.get('KA_BUILD') or place['build']
work = tempfile.mkdtemp(prefix='ka-install.')
os.chmod(work, 0o755)
atexit.register(shutil.rmtree, work, ignore_errors=True)
home = os.path.join(work, 'home')
os.mkdir(home, 0o755)
if not os.getuid():
    os.chown(home, int(NOBODY), int(NOBODY))


def meson_option(name):
    out = subprocess.run(['meson', 'introspect', '--buildoptions', build],
                         check=True, capture_output=True, text=True).stdout
    return next(o['value'] for o in json.loads(out) if o['name'] == name)


def install():
    """Install to a folder, move it, and return where its prefix is then."""
    first = os.path.join(work, 'first')
    subprocess.run(['meson', 'install', '-C', build, '--no-rebuild', '--quiet',
                    '--destdir', first], check=True, capture_output=True)
    os.rename(first, os.path.join(work, 'moved'))
    return os.path.join(work, 'moved', meson_option('prefix').lstrip('/'))


def add_qemu(prefix):
    """Copy the emulator to where the package with the emulators has it."""
    folder = os.path.join(prefix, meson_option('libexecdir'), 'ka')
    os.makedirs(folder)
    shutil.copy(place['qemu'], folder)


def as_user(*command):
    """Return a command line that runs a command as another user without our
    files. If root does not run this, the command runs as it is."""
    if os.getuid():
        return list(command)
    hidden = [p for p in (ROOT, build, cache_folder('')) if os.path.isdir(p)
              and not os.path.realpath(p).startswith(ROOT + os.sep)]
    return ['unshare', '-m', 'sh', '-c', HIDE, 'sh', str(len(hidden)), *hidden,
            *command]


def environment(prefix):
    keep = {k: v for k, v in os.environ.items()
            if not k.startswith('KA_') and k not in ('PYTHONPATH', 'TMPDIR')}
    return {**keep, 'HOME': home, 'XDG_RUNTIME_DIR': home,
            'KA_BUSYBOX': os.path.join(work, 'busybox'),
            'PATH': os.path.join(prefix, 'bin') + ':/usr/bin:/bin'}


def run(prefix, *command):
    return subprocess.run(as_user(*command), cwd='/', check=False, text=True,
                          capture_output=True, timeout=600,
                          env=environment(prefix))


def wait_for(path, text, proc):
    end = time.monotonic() + 300
    while True:
        with open(path, encoding='utf-8', errors='replace') as f:
            found = f.read()
        if text in found:
            return
        assert proc.poll() is None and time.monotonic() < end, found[-2000:]
        time.sleep(0.1)


def planned(emulators):
    """Configure the tree as docs/install.md says; return where its files would
    be installed."""
    line = page_blocks.under('install', 'meson install')[0].splitlines()[0]
    assert line.startswith('meson setup build --prefix=/opt/ka '), line
    folder = os.path.join(work, 'configured')
    for word, value in (('build', folder), ('FILE,...', ','.join(emulators)),
                        ('FOLDER', os.path.join(os.path.dirname(emulators[0]),
                                                'include'))):
        line = line.replace(word, value, 1)
    subprocess.run(line.split(), check=True, cwd=ROOT, capture_output=True)
    out = subprocess.run(['meson', 'introspect', '--installed', folder],
                         check=True, capture_output=True, text=True).stdout
    return set(json.loads(out).values())


def boot(prefix, *options, end=()):
    """Boot to the shell with ka-run; return what ka says of the VM."""
    console = os.path.join(work, 'console')
    sockets = os.path.join(home, 'vm')
    with open(console, 'wb') as out, subprocess.Popen(
            as_user('ka-run', *options, '--dir', sockets, *end), cwd='/',
            env=environment(prefix), stdin=subprocess.PIPE, stdout=out,
            stderr=out) as proc:
        try:
            wait_for(console, 'KA-END', proc)
            done = run(prefix, 'ka', '-q', sockets + '/qmp.sock', 'stat', '-j')
        finally:
            proc.terminate()
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[0])


def texts(folder):
    """Yield (path, contents) of the files in a folder."""
    for base, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(base, name), 'rb') as f:
                yield os.path.join(base, name), f.read()


with tap.test('meson install, with DESTDIR'):
    top = install()
    add_qemu(top)
    shutil.copy(os.path.join(cache_folder('busybox'), 'busybox'), work)

with tap.test('meson setup with a prefix and emulators'):
    qemus = [place[key] for key in ('qemu', 'qemu-aarch64', 'qemu-riscv64')
             if os.path.exists(place.get(key, ''))]
    targets = planned(qemus)
    assert {f'/opt/ka/libexec/ka/{os.path.basename(q)}'
            for q in qemus} < targets, targets
    assert {'/opt/ka/bin/ka', '/opt/ka/bin/ka-run'} < targets, targets

with tap.test('no installed file names the source tree or the build'):
    for path, data in texts(top):
        for word in ROOT, os.path.realpath(build):
            # One of them may be above the folder of this test.
            assert word.encode() + b'/' not in data, (path, word)

with tap.test('each program says how it is used, by its own name'):
    for program in sorted(os.listdir(os.path.join(top, 'bin'))):
        done = run(top, program, '--help')
        assert done.returncode == 0, (program, done)
        assert 'scripts/' not in done.stdout.replace('share/ka/scripts/', ''), \
            (program, done.stdout)

with tap.test('versions and paths'):
    done = run(top, 'ka-run', '--version')
    assert done.returncode == 0 and 'QEMU emulator version' in done.stdout, done
    assert done.stdout.splitlines()[0] == run(
        top, 'ka', '--version').stdout.strip(), done.stdout
    assert ROOT not in done.stdout, done.stdout

with tap.test('the Python package'):
    found = glob.glob(os.path.join(top, 'lib', '**', 'ka.py'), recursive=True)
    done = run(top, 'env', 'PYTHONPATH=' + os.path.dirname(found[0]),
               '/usr/bin/python3', '-c',
               'import ka; print(ka.__file__, ka.find_program())')
    assert done.stdout.split() == [found[0], 'ka'], done

pages = glob.glob(os.path.join(top, 'share', 'man', 'man1', '*'))
for name, words in (('mandoc', ['mandoc', '-Tlint', '-Wwarning']),
                    ('man', ['man', '--warnings', '-l', '-Tutf8'])):
    if not shutil.which(name):
        tap.skip(f'{name} has no complaint about man pages',
                 'scripts/setup --only man')
        continue
    with tap.test(f'{name} has no complaint about man pages'):
        assert len(pages) >= 4, pages
        for page in pages:
            done = subprocess.run([*words, page], check=False, text=True,
                                  capture_output=True)
            said = done.stderr + (done.stdout if name == 'mandoc' else '')
            # The same source is to give the same page each day.
            assert not [line for line in said.splitlines()
                        if 'missing date' not in line], said

for name in kernels:
    image = shutil.copy(kernel_file(name), os.path.join(work, 'vmlinuz'))
    # It is the first one that needs the initramfs.
    with tap.test(f'ka-sweep of {name} gives its status'):
        done = run(top, 'ka-sweep', '--kernel', image, '--append',
                   'ka.end=poweroff', '--timeout', '300')
        assert done.returncode == 0, done
        assert done.stdout.startswith('swept at end'), done
    with tap.test(f'ka-run boots {name}, and ka answers'):
        stat = boot(top, '--kernel', image)
        assert stat['tracing.kernel'] == 'recognised', stat
        assert stat['events.checked'] > 10000, stat

with tap.test('ka-run with --initrd, and arguments of QEMU'):
    shutil.copy(place['initrd-' + kernels[0]], os.path.join(work, 'initrd'))
    stat = boot(top, '--kernel', image, '--initrd',
                os.path.join(work, 'initrd'), end=('--', '-m', '2G'))
    assert stat['events.checked'] > 10000, stat
    with open(os.path.join(work, 'console'), encoding='utf-8',
              errors='replace') as file:
        found = re.search(r'Memory: \d+K/(\d+)K available', file.read())
    assert 2000 << 10 < int(found[1]) <= 2 << 20, found
tap.done()
