# SPDX-License-Identifier: GPL-2.0-or-later
"""Paths of what scripts/setup prepared, and folders of the cache. It is the one
place that knows whether ka runs from its tree or is installed."""
import os
import subprocess

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), '..', '..'))
SETUP = os.path.join(ROOT, 'scripts', 'setup')
INSTALLED = os.path.exists(os.path.join(ROOT, 'installed'))


def command(script):
    """Return the name by which users call a script."""
    return 'ka-' + script if INSTALLED else 'scripts/' + script


def paths():
    """Return {'qemu': ..., 'plugin': ..., 'kernel-6.12': ...}: all paths."""
    out = subprocess.run([SETUP, '--paths'], check=True, text=True,
                         capture_output=True).stdout
    return dict(line.split('=', 1) for line in out.splitlines())


def default_kernel():
    """Return the kernel that boots if none is named: a prepared one; if ka is
    installed, the newest of this machine, or '' if none can be read."""
    return paths()['default-kernel'] if INSTALLED else '6.12'


KERNEL_HELP = 'kernel file (default: the newest one in /boot)' if INSTALLED \
    else 'kernel file, or the name of a prepared kernel (default 6.12)'


def kernel_file(name, what='vmlinuz'):
    """Return the path of a file of a prepared kernel: vmlinuz, config,
    modules, headers or release."""
    return os.path.join(paths()['kernel-' + name], what)


def kernel_arch(name):
    """Return the architecture of a prepared kernel, a key of ARCHES. For a
    kernel file return x86_64."""
    return paths().get('arch-' + name, 'x86_64')


def cache_folder(name):
    base = os.environ.get('KA_CACHE') or os.path.join(
        os.environ.get('HOME') or '/root', '.cache', 'ka')
    path = os.path.join(base, name)
    os.makedirs(path, exist_ok=True)
    return path


def results_folder():
    path = os.environ.get('KA_RESULTS') or cache_folder('results')
    os.makedirs(path, exist_ok=True)
    return path
