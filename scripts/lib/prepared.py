# SPDX-License-Identifier: GPL-2.0-or-later
"""What scripts/setup prepared, and where it is."""
import os
import subprocess

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), '..', '..'))
SETUP = os.path.join(ROOT, 'scripts', 'setup')


def paths():
    """What the cache holds: {'qemu': ..., 'plugin': ..., 'kernel-6.12': ...}"""
    out = subprocess.run([SETUP, '--paths'], check=True, text=True,
                         capture_output=True).stdout
    return dict(line.split('=', 1) for line in out.splitlines())


def kernel_file(name, what='vmlinuz'):
    """Of a prepared kernel: vmlinuz, config, modules, headers, release."""
    return os.path.join(paths()['kernel-' + name], what)


def kernel_arch(name):
    """The architecture of a prepared kernel, a key of ARCHES; of a kernel
    file the usual one."""
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
