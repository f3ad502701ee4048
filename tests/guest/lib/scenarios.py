# SPDX-License-Identifier: GPL-2.0-or-later
"""Scenarios for fault sweeps: scripts of inside/scenarios/, each of which
loads a module of the distribution, uses it a little, and unloads it.

The first comment of a script has lines 'KEY: VALUE'; the values of lines with
the same key are joined:

    modules   what must be in /share/modules, with all that they need
    sweep     the modules whose calls are to fail (default: the last of these)
    functions instead: functions; a call with one of them on its stack may fail
    kernel    the prepared kernel that has these modules (default: 6.12)
    files     files that must be in /share, see FILES
    qemu      arguments for QEMU
    plug      devices for QEMU that cannot be saved with the VM's state
"""
import os
import re
import shlex
import shutil
import subprocess
from collections import defaultdict, namedtuple

from scripts.lib import mkinitramfs
from scripts.lib.prepared import kernel_file, paths

from . import oracle

FOLDER = os.path.join(oracle.INSIDE, 'scenarios')
STEPS = 'steps.sh'          # functions that the scripts share
TOOLS = 'ka_load', 'ka_nft', 'ka_use'
UUID = '0f0e0d0c-0b0a-4908-8706-050403020100'

Scenario = namedtuple('Scenario', 'name path modules sweep functions kernel '
                      'files qemu plug')


def names():
    return sorted(name[:-len('.sh')] for name in os.listdir(FOLDER)
                  if name != STEPS)


def read(name):
    """Parse the first comment of a script."""
    path = os.path.join(FOLDER, name + '.sh')
    found = defaultdict(str)
    with open(path, encoding='utf-8') as f:
        for key, value in re.findall(r'^# (\w+): (.*)$', f.read(), re.M):
            found[key] += ' ' + value
    modules, functions = found['modules'].split(), found['functions'].split()
    sweep = found['sweep'].split() or ([] if functions else modules[-1:])
    return Scenario(name, path, modules, sweep, functions,
                    found['kernel'].strip() or '6.12', found['files'].split(),
                    shlex.split(found['qemu']), found['plug'].split())


def condition(scenario):
    """Return the condition of the calls that may fail."""
    return ' || '.join([f'stack("mod:{m}")' for m in scenario.sweep] +
                       [f'stack({f})' for f in scenario.functions])


def missing(scenario, kernel):
    """Return the modules that a prepared kernel lacks; None if it is not
    prepared."""
    if not paths().get('kernel-' + kernel):
        return None
    folder = kernel_file(kernel, 'modules')
    with open(os.path.join(folder, 'modules.builtin'), encoding='ascii') as f:
        built_in = {os.path.basename(line.strip()).partition('.')[0]
                    .replace('-', '_') for line in f}
    found = mkinitramfs.find_modules(folder)
    return [m for m in scenario.modules if m not in found and m not in built_in]


def _make_ext4(path):
    """Make an ext4 with a small journal; busybox can only make ext2."""
    subprocess.run(['mke2fs', '-q', '-t', 'ext4', '-b', '1024', '-J', 'size=1',
                    '-U', UUID, '-E', f'hash_seed={UUID}', path, '2560k'],
                   check=True,
                   stdout=subprocess.DEVNULL,
                   env={**os.environ, 'PATH': os.environ['PATH'] +
                        ':/usr/sbin:/sbin'})


FILES = {'ext4.img': _make_ext4}


def make_share(folder, scenario, kernel):
    """Fill a folder for the guest's /share."""
    os.makedirs(folder)
    for source in scenario.path, os.path.join(FOLDER, STEPS):
        shutil.copy(source, folder)
    for tool in TOOLS:
        shutil.copy(oracle.build_tool(tool, kernel),
                    os.path.join(folder, tool.replace('_', '-')))
    for name in scenario.files:
        FILES[name](os.path.join(folder, name))
    oracle.add_drivers(folder, kernel, *scenario.modules)
    return folder
