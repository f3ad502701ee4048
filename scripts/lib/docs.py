# SPDX-License-Identifier: GPL-2.0-or-later
"""The pages of docs/ that the program ka-docs renders from the tables of
commands, options, fields, error kinds and counters, and the man pages of
scripts, from their help texts."""
import os
import subprocess
import sys

from . import manpages
from .prepared import ROOT

PAGES = {'ka.1': 'man', 'commands.md': 'markdown'}
BUILD = os.path.join(ROOT, 'build')


def run(*command):
    """Run a program; end this one, with its output, if it fails."""
    done = subprocess.run(command, check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        sys.exit(f"this failed: {' '.join(command)}\n{done.stdout}")


def render(build):
    """Build ka-docs in a meson build folder, which is made if it is missing.
    Return {name of the page: its text}."""
    if not os.path.exists(os.path.join(build, 'build.ninja')):
        run('meson', 'setup', build, ROOT)
    run('meson', 'compile', '-C', build, 'ka-docs')
    program = os.path.join(build, 'monitor-cmds', 'ka-docs')
    return {**{name: subprocess.run([program, form], check=True, text=True,
                                    stdout=subprocess.PIPE).stdout
               for name, form in PAGES.items()}, **manpages.render()}


def path(name):
    return os.path.join(ROOT, 'docs', name)
