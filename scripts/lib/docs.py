# SPDX-License-Identifier: GPL-2.0-or-later
"""The pages of docs/ that the program ka-docs renders from the tables of
commands, options, fields, error kinds and counters, the man pages of scripts,
from their help texts, and the pages with tables of exit statuses."""
import os
import re
import subprocess
import sys

from . import manpages, statuses
from .prepared import ROOT

PAGES = {'ka.1': 'man', 'commands.md': 'markdown'}
# Page -> tables that stand in it.
TABLES = {
    'ci.md': (statuses.markdown('sweep'), statuses.ends_markdown()),
    'fault-sweep.md': (statuses.markdown('fault-sweep'),),
}
BUILD = os.path.join(ROOT, 'build')


def run(*command):
    """Run a program; end this one, with its output, if it fails."""
    done = subprocess.run(command, check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        sys.exit(f"this failed: {' '.join(command)}\n{done.stdout}")


def with_tables(name):
    """Return the text of a page in which tables are replaced by those with the
    same heads."""
    with open(path(name), encoding='utf-8') as f:
        text = f.read()
    for table in TABLES[name]:
        head = table.partition('\n')[0]
        text, n = re.subn(rf'^{re.escape(head)}\n(\|.*\n)*',
                          lambda _, t=table: t, text, flags=re.M)
        if n != 1:
            sys.exit(f'docs/{name} has {n} tables with the head {head}')
    return text


def render(build):
    """Build ka-docs in a meson build folder, which is made if it is missing.
    Return {name of the page: its text}."""
    if not os.path.exists(os.path.join(build, 'build.ninja')):
        run('meson', 'setup', build, ROOT)
    run('meson', 'compile', '-C', build, 'ka-docs')
    program = os.path.join(build, 'monitor-cmds', 'ka-docs')
    return {**{name: subprocess.run([program, form], check=True, text=True,
                                    stdout=subprocess.PIPE).stdout
               for name, form in PAGES.items()}, **manpages.render(),
            **{name: with_tables(name) for name in TABLES}}


def path(name):
    return os.path.join(ROOT, 'docs', name)
