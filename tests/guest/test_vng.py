#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""virtme-ng (vng) runs a command in a guest that scripts/ka-qemu starts, and
the tracer is in it.

Oracle: what the command prints and its exit status, which are known; the
journal of the run; the guest's own /proc.

usage: test_vng.py [--kernel K]...
"""
import glob
import os
import re
import shutil
import subprocess
import tempfile

from lib.programs import kernel_options
from lib.tap import Tap
from scripts.lib.prepared import ROOT, cache_folder, paths

PATHS = paths()
WRAPPER = os.path.join(ROOT, 'scripts', 'ka-qemu')
BUSYBOX = os.path.join(cache_folder('busybox'), 'busybox')
# Folders of the modules that virtme-ng loads.
MODULES = 'kernel/fs/9p', 'kernel/fs/netfs', 'kernel/fs/overlayfs', \
          'kernel/net/9p', 'kernel/drivers/virtio'
# The output has the command's two streams, and what its guest has. Its task has
# a name that no other one has.
COMMAND = '''printf ka-mark >/proc/$$/comm
echo "out: $(uname -r) $(nproc)"
grep MemTotal /proc/meminfo
echo "err: text" >&2
exit 7'''
# On a busy host the kernel sees too few ticks of the timer at boot, and panics.
OPTIONS = ['--append', 'no_timer_check', '--cpus', '2', '--memory', '900M',
           '--qemu-opts=-device virtio-rng-pci,id=mine -name "two words"']


def installed_as(name, folder):
    """Lay out a kernel as its package does, but with few modules: virtme-ng
    looks for them there. Return the path of the kernel."""
    source = os.path.join(PATHS['kernel-' + name], 'modules')
    with open(os.path.join(PATHS['kernel-' + name], 'release'),
              encoding='ascii') as f:
        release = f.read().strip()
    into = os.path.join(folder, 'lib', 'modules', release)
    for part in MODULES:
        shutil.copytree(os.path.join(source, part), os.path.join(into, part))
    for path in glob.glob(os.path.join(source, 'modules.*')):
        shutil.copy(path, into)
    path = os.path.join(folder, 'boot', 'vmlinuz-' + release)
    os.mkdir(os.path.dirname(path))
    return shutil.copy(os.path.join(PATHS['kernel-' + name], 'vmlinuz'), path)


def has_9p(name):
    folder = PATHS.get('kernel-' + name)
    return bool(folder and glob.glob(folder + '/modules/**/9p.ko*',
                                     recursive=True))


def run(kernel, wrapper, command, journal, *options):
    """Run a command by vng. Its output goes through pipes: vng's guest opens
    the files again, and would write over what is there."""
    return subprocess.run(
        [PATHS['vng'], '--run', kernel, '--disable-kvm', '--force-9p',
         '--qemu', wrapper, '--busybox', BUSYBOX, *options, '--', command],
        check=False, text=True, capture_output=True, timeout=1700,
        stdin=subprocess.DEVNULL,
        env={**os.environ, 'KA_PLUGIN_OPTS': 'journal=' + journal})


def check_output(done, kernel):
    text = f'{done.returncode}\n{done.stdout}\n{done.stderr}'
    release = os.path.basename(kernel).removeprefix('vmlinuz-')
    assert f'out: {release} 2\n' in done.stdout, text
    assert 'err: text\n' in done.stderr, text
    memory = int(re.search(r'MemTotal: *(\d+) kB', done.stdout)[1])
    assert 700 << 10 < memory < 900 << 10, text
    assert done.returncode == 7, text


def check_journal(path):
    """Check that the journal has the guest's blocks, and the command's."""
    def ka(*words):
        return subprocess.run([PATHS['program'], '-f', path, *words],
                              check=True, text=True,
                              capture_output=True).stdout
    stat = ka('stat', '-j')
    assert re.search(r'"blocks.live":[1-9]\d{4}', stat), stat
    tasks = ka('top', '--by', 'task', '-n', '0')
    assert re.search(r'^ *[1-9].* ka-mark \d+$', tasks, re.M), tasks


def main():
    tap = Tap()
    for name in kernel_options(('6.12-generic',)):
        label = f'{name}: vng runs a command in a traced guest'
        if not os.path.exists(PATHS['vng']):
            tap.skip(label, 'no virtme-ng: scripts/setup --only vng')
            continue
        if not has_9p(name):
            tap.skip(label, 'no such kernel, or it has no 9p')
            continue
        with tempfile.TemporaryDirectory(prefix='ka-vng.') as folder:
            kernel = installed_as(name, folder)
            wrapper = os.path.join(folder, 'ka-qemu-system-x86_64')
            os.symlink(WRAPPER, wrapper)
            journal = os.path.join(folder, 'run-%i.journal')
            with tap.test(label + ', with its output and exit status'):
                done = run(kernel, wrapper, COMMAND, journal, *OPTIONS)
                check_output(done, kernel)
            with tap.test(f'{name}: the journal has its allocations'):
                found, = glob.glob(os.path.join(folder, '*.journal'))
                check_journal(found)
    tap.done()


if __name__ == '__main__':
    main()
