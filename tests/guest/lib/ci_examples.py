# SPDX-License-Identifier: GPL-2.0-or-later
"""The examples of docs/ci.md: their script steps run in a folder that is like
the checkout of a repository with ka as its submodule."""
import os
import re
import shutil
import subprocess

import yaml

from scripts.lib.prepared import ROOT

NOT_IN_A_CLONE = re.compile(r'\.git$|\.cache$|build')
# Variables that say where this build is. A job has none of these.
KEPT = 'KA_BUILD', 'KA_CACHE', 'KA_NO_SETUP', 'KA_RESULTS', 'HOME', 'PATH', \
    'TMPDIR', 'XDG_RUNTIME_DIR'


def read():
    """Return {heading: YAML} of the page."""
    with open(os.path.join(ROOT, 'docs', 'ci.md'), encoding='utf-8') as f:
        found = re.findall(r'^## ([^\n]*)\n(?:(?!^## ).)*?^```yaml\n(.*?)^```$',
                           f.read(), re.M | re.S)
    return {name: yaml.safe_load(text) for name, text in found}


def github():
    """Return the steps of GitHub's example."""
    job, = read()['GitHub Actions']['jobs'].values()
    return job['steps']


def gitlab():
    """Return the job of GitLab's example."""
    job, = read()['GitLab'].values()
    return job


def script(steps):
    """Return what GitHub runs of steps."""
    return [s['run'] for s in steps if 'run' in s]


def not_in_a_clone(folder, names):
    return [name for name in names if name == '__pycache__' or (
        folder == ROOT and NOT_IN_A_CLONE.match(name))]


class Job:
    """A folder with a copy of this tree as ka/, a kernel, and an initramfs."""

    def __init__(self, folder, kernel, initrd, known=''):
        self.folder = folder
        shutil.copytree(ROOT, self.path('ka'), symlinks=True,
                        ignore=not_in_a_clone)
        os.symlink(kernel, self.path('vmlinuz'))
        os.symlink(initrd, self.path('initrd.img'))
        os.mkdir(self.path('ci'))
        with open(self.path('ci/ka-known.txt'), 'w', encoding='utf-8') as f:
            f.write(known)

    def path(self, name):
        return os.path.join(self.folder, name)

    def read(self, name):
        with open(self.path(name), encoding='utf-8') as f:
            return f.read()

    def run(self, scripts):
        """Run scripts as a runner does, until one fails; return (status,
        output)."""
        output = ''
        for text in scripts:
            done = subprocess.run(
                ['sh', '-e', '-c', text], cwd=self.folder, check=False,
                env={k: v for k, v in os.environ.items() if k in KEPT},
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, timeout=300)
            output += done.stdout
            if done.returncode:
                return done.returncode, output
        return 0, output
