# SPDX-License-Identifier: GPL-2.0-or-later
"""A stand-in for scripts/sweep, for tests of ka-farm: a program that takes its
options, and writes a report that depends only on the kernel and on the seed.

    seed % 10   0 to 5  clean
                6       a double free, in a function of any kernel
                7       a leak
                8       both; the double free from another caller, so that only
                        its title is the same
                9       no end: broken
"""
import json
import os
import shutil
import stat
import subprocess

KERNELS = '6.1', '6.12', 'old', 'new'
PROGRAM = """#!/bin/sh
while [ $# -gt 0 ]; do
    case $1 in
    --json) out=$2; shift ;;
    --append) seed=${2#ka.seed=}; seed=${seed%% *}; shift ;;
    --kernel) kernel=${2##*/}; shift ;;
    esac
    shift
done
echo "console of $kernel, seed $seed"
[ -z "$FAKE_SECONDS" ] || sleep "$FAKE_SECONDS"
[ -z "$FAKE_COUNT" ] || echo "$kernel $seed" >>"$FAKE_COUNT"
cat "$(dirname "$0")/$kernel.$((seed % 10))" >"$out"
"""


def finding(kind, where, fold, more=''):
    return {'kind': kind, 'title': f'{kind} in {where}',
            'alt': [f'bad-free of kmalloc-64 from {where}_open']
            if kind != 'leak' else [], 'fold': fold * 32, 'exact': '',
            'weak': False, 'blocks': 1, 'hidden': None,
            'text': f'{kind} in {where}{more}\n  a stack'}


DOUBLE = finding('double-free', 'close_it', 'a')
OTHER = finding('double-free', 'close_it', 'b', ' from elsewhere')
LEAK = finding('leak', 'probe_it', 'c')
FOUND = {6: [DOUBLE], 7: [LEAK], 8: [OTHER, LEAK]}


def report(kernel, digit, found=None, grown=0):
    problem = 'the guest panicked: Kernel panic' if digit == 9 else None
    found = FOUND.get(digit, []) if found is None else found
    row = {'type': 'top', 'live': 4096 + grown, 'blocks': 2, 'allocs': 9,
           'stack_symbols': ['kmalloc+0x1', 'setup.isra.0+0x2[m]']}
    return {'schema': 1, 'problem': problem, 'warnings': [], 'facts': {
        'kernel': f'{kernel}.1-test', 'arch': 'x86_64', 'ka': '0.1.0',
        'qemu': '10.0.0', 'events': 1000}, 'started': '', 'seconds': 1,
        'host': 'h', 'findings': found,
        'stat': {'events.checked': 1000 + digit, 'tracing.state': 'on'},
        'top': [{'type': 'top_all', 'live': 10000 + grown, 'blocks': 5,
                 'allocs': 99}, row, {**row, 'stack_symbols': [
                     'kmalloc+0x7', 'setup+0x9[m]']}]}


def write(folder, kernel, digit, made):
    with open(os.path.join(folder, f'{kernel}.{digit}'), 'w',
              encoding='utf-8') as f:
        json.dump(made, f)


def make(folder):
    """Write the program and its reports; return its path."""
    os.makedirs(folder, exist_ok=True)
    for kernel in KERNELS:
        for digit in range(10):
            write(folder, kernel, digit, report(kernel, digit))
    path = os.path.join(folder, 'fake-sweep')
    with open(path, 'w', encoding='utf-8') as f:
        f.write(PROGRAM)
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
    return path


def make_package(own, version):
    """Make a package with a kernel of that version, as a distribution's, in
    the folder debs of an OwnFolder."""
    name = f'linux-image-{version}'
    os.makedirs(own.path('deb', 'DEBIAN'))
    os.mkdir(own.path('deb', 'boot'))
    own.write('deb/DEBIAN/control', f'Package: {name}\nVersion: {version}\n'
              'Architecture: amd64\nMaintainer: ka\nDescription: test\n')
    own.write(f'deb/boot/vmlinuz-{version}', 'x')
    subprocess.run(['dpkg-deb', '-b', own.path('deb'), own.path(
        'debs', f'{name}_{version}_amd64.deb')], check=True,
                   stdout=subprocess.DEVNULL)
    shutil.rmtree(own.path('deb'))
