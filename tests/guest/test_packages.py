#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The Debian packages install in a fresh system beside the distribution's
QEMU, work there for a user who is not root, and leave nothing when they are
removed.

Oracle: apt, dpkg, lintian (in scripts/package), and the files of the system.

usage: test_packages.py [--release 12|13]... [--packages FOLDER]

Without --release: both. Root is needed. FOLDER has packages that
scripts/package made before; they are not made again then.
"""
import argparse
import atexit
import glob
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile

from lib.tap import Tap
from scripts.lib.prepared import ROOT, kernel_file

RECIPE = os.path.join(ROOT, 'scripts', 'package.d', 'Containerfile')
SYSTEM = os.path.join(ROOT, 'scripts', 'lib', 'root')
# The newest kernel of /boot, in the background; ka is asked at its shell.
BOOT = f"""
ka-run --dir ~/vm >~/console 2>&1 </dev/null &
for i in $(seq 600); do
    ! grep -q KA-END ~/console || break
    kill -0 $! || break
    sleep 1
done
ka -q ~/vm/qmp.sock stat -j || tail -n 40 ~/console >&2
kill $!
wait
"""
SWEEP = '--timeout', '300', '--append', 'ka.end=poweroff'
PLAN = """
[axes]
kernel = ["/boot/vmlinuz-6.12"]
[[job]]
name = "boot"
append = "ka.end=poweroff"
"""
FARM = f"""
cd
echo '{PLAN}' >night.toml
ka-farm plan night.toml --dir night
ka-farm submit local --dir night
ka-farm collect runs.db --dir night
ka-farm report runs.db
"""
# A sweep of what a shell calls when it starts.
FAULTS = f"""
echo : >~/scenario
ka-fault-sweep --kernel /boot/vmlinuz-6.12 --n 1 \
    --point kmalloc --run ~/scenario --report ~/faults.json
echo "status $?"
"""
# The beginnings of paths that apt and dpkg change, or that are the user's.
OTHERS = ('./home/', './tmp/', './debs/', './proc/', './dev/', './sys/',
          './run/', './var/cache/', './var/log/', './var/lib/apt/',
          './var/lib/dpkg/', './etc/ld.so.cache')

ap = argparse.ArgumentParser(description=__doc__.split('\n\n', maxsplit=1)[0])
ap.add_argument('--release', action='append', choices=('12', '13'))
ap.add_argument('--packages', metavar='FOLDER',
                help='test the packages that are there')
args = ap.parse_args()
tap = Tap()
work = tempfile.mkdtemp(prefix='ka-packages.')
atexit.register(shutil.rmtree, work, ignore_errors=True)


def make_packages(release):
    """Return the files of the two packages."""
    folder = args.packages
    if not folder:
        folder = os.path.join(work, 'debs' + release)
        os.mkdir(folder)
        subprocess.run([os.path.join(ROOT, 'scripts', 'package'), '--release',
                        release, '--output', folder], check=True,
                       stdout=subprocess.PIPE)
    found = sorted(glob.glob(os.path.join(folder, f'ka*~deb{release}.*.deb')))
    assert [os.path.basename(p).split('_')[0] for p in found] == [
        'ka-qemu', 'ka'], found
    return found


class System:
    """A fresh system of a release, in a folder."""

    def __init__(self, release):
        self.folder = os.path.join(tempfile.mkdtemp(dir=work), release)
        subprocess.run([SYSTEM, 'make', release, self.folder], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.run('useradd', '--create-home', 'tester')
        image = kernel_file('6.12')
        shutil.copy(image, os.path.join(self.folder, 'boot', 'vmlinuz-6.12'))
        os.mkdir(os.path.join(self.folder, 'debs'))

    def run(self, *command, fails=False):
        done = subprocess.run([SYSTEM, 'run', self.folder, *command],
                              check=False, text=True, capture_output=True)
        if not fails:
            assert done.returncode == 0, done
        return done

    def user(self, script):
        """Run a script as the user; return its output."""
        return self.run('runuser', '-u', 'tester', '--', 'env',
                        'HOME=/home/tester', 'sh', '-c', script).stdout

    def add(self, *packages):
        self.run('apt-get', 'install', '-y', *packages)

    def add_files(self, files):
        for path in files:
            shutil.copy(path, os.path.join(self.folder, 'debs'))
        self.add(*('/debs/' + os.path.basename(path) for path in files))

    def files(self):
        out = self.run('find', '.', '-xdev').stdout
        return {p for p in out.splitlines() if not p.startswith(OTHERS)}


def check_programs(system):
    for name in ('ka', 'ka-run', 'ka-sweep', 'ka-fault-sweep', 'ka-farm'):
        assert 'usage' in system.user(name + ' --help').lower(), name
    for arch in 'x86_64', 'aarch64', 'riscv64':
        said = system.user(f'ka-qemu-system-{arch} --version')
        assert said.startswith('QEMU emulator version 10.0'), said
    said = system.user('ka-run --version')
    assert '/usr/libexec/ka/qemu-system-x86_64' in said, said
    system.user('python3 -c "import ka"')


def check_stat(text):
    stat = json.loads(text.splitlines()[0])
    assert stat['tracing.kernel'] == 'recognised', stat
    assert stat['events.checked'] > 10000, stat


def check_sweep(system):
    said = system.user(shlex.join(
        ['ka-sweep', *SWEEP, '--kernel', '/boot/vmlinuz-6.12']))
    assert said.startswith('swept at end'), said


def check_farm(system):
    said = system.user(FARM)
    assert '/boot/vmlinuz-6.12: 1 clean' in said, said


def check_faults(system):
    said = system.user(FAULTS)
    assert re.search(r'^[0-9]+ stacks, [0-9]+ faults: ', said, re.M), said
    # A kernel may have bugs; the sweep must be complete.
    assert re.search('^status [01]$', said, re.M), said


def buildah(*words):
    """Run buildah with images of our own. It needs neither a server nor
    control groups so."""
    done = subprocess.run(
        ['buildah', '--root', os.path.join(work, 'containers'), '--runroot',
         os.path.join(work, 'containers-run'), *words], check=False, text=True,
        capture_output=True, env={**os.environ, 'STORAGE_DRIVER': 'vfs',
                                  'BUILDAH_ISOLATION': 'chroot'})
    assert done.returncode == 0, done
    return done.stdout.strip()


def check_container(release, files):
    """Make the container of the recipe, from an image that is a fresh system,
    and sweep in it."""
    system = System(release)
    made = buildah('from', 'scratch')
    buildah('add', made, system.folder, '/')
    buildah('commit', made, f'docker.io/library/debian:{release}-slim')
    context = os.path.join(work, 'context' + release)
    os.mkdir(context)
    for path in files:
        shutil.copy(path, context)
    image = 'ka' + release
    buildah('bud', '--pull-never', '--build-arg', 'DEBIAN=' + release, '-f',
            RECIPE, '-t', image, context)
    entry = buildah('inspect', '--format', '{{.OCIv1.Config.Entrypoint}}',
                    '--type', 'image', image).strip('[]')
    boot = os.path.join(system.folder, 'boot')
    said = buildah('run', '-v', f'{boot}:/work:ro',
                   buildah('from', '--pull-never', image), entry,
                   *SWEEP, '--kernel', '/work/vmlinuz-6.12')
    assert said.startswith('swept at end'), said


def check_release(release):
    name = f'Debian {release}'
    with tap.test(f'{name}: the packages are made, lintian finds no error'):
        files = make_packages(release)
    with tap.test(f'{name}: a fresh system'):
        system = System(release)
        # It is there before ours, and stays.
        system.add('--no-install-recommends', 'qemu-system-x86')
        before = system.files()
    with tap.test(f'{name}: they install beside its QEMU'):
        system.add_files(files)
        system.run('dpkg', '--verify', 'ka', 'ka-qemu', 'qemu-system-x86')
        said = system.user('qemu-system-x86_64 --version')
        assert said.startswith('QEMU emulator version'), said
    with tap.test(f'{name}: each program starts'):
        check_programs(system)
    with tap.test(f'{name}: as a user ka-run boots, and ka answers'):
        check_stat(system.user(BOOT))
    with tap.test(f'{name}: as a user ka-sweep boots and gives its status'):
        check_sweep(system)
    with tap.test(f'{name}: as a user ka-farm runs a VM and reports it'):
        check_farm(system)
    with tap.test(f'{name}: as a user ka-fault-sweep sweeps'):
        check_faults(system)
    with tap.test(f'{name}: removal leaves nothing'):
        system.run('apt-get', 'purge', '-y', 'ka', 'ka-qemu')
        system.run('apt-get', 'autoremove', '--purge', '-y')
        left = sorted(system.files() - before)
        assert not left, left
        gone = sorted(before - system.files())
        assert not gone, gone
        assert not glob.glob(os.path.join(
            system.folder, 'var/lib/dpkg/info/ka*')), 'dpkg knows them'
    if not shutil.which('buildah'):
        tap.skip(f'{name}: a container of the recipe sweeps',
                 'scripts/setup --only container')
        return
    with tap.test(f'{name}: a container of the recipe sweeps'):
        check_container(release, files)


if os.getuid():
    tap.skip('the packages in fresh systems', 'root is needed')
else:
    for wanted in args.release or ('12', '13'):
        check_release(wanted)
tap.done()
