# SPDX-License-Identifier: GPL-2.0-or-later
"""Man pages of the scripts that are installed, made from their help texts.

A help text has "usage:" first, then paragraphs and tables. A row of a table is
indented: a term, two spaces or a new line, and what it means, indented more.
"""
import os
import re
import shutil
import subprocess
import tempfile

from .prepared import ROOT

# Page -> its command, what it does, and the page of docs/ that has more.
PAGES = {
    'ka-run.1': (['ka-run'], 'start a guest under QEMU with the tracer',
                 'README.md'),
    'ka-sweep.1': (['sweep'], 'boot a guest and report the errors of its '
                              'kernel', 'docs/ci.md'),
    'ka-fault-sweep.1': (['fault-sweep'], 'make each call of a scenario fail '
                                          'once', 'docs/fault-sweep.md'),
    'ka-farm.1': (['farm'], 'run many VMs, and report what they found '
                            'together', 'docs/farm.md'),
    'ka-qemu.1': (['ka-qemu'], 'QEMU with the tracer, for tools that start '
                               'QEMU', 'docs/install.md'),
}
# A command of a command, as argparse lists them.
COMMAND = re.compile(r'^ {4}(\S+)(?: {2,}(\S.*))$')
HEADINGS = {'Options:': 'OPTIONS', 'Exit status:': 'EXIT STATUS',
            'Variables:': 'ENVIRONMENT',
            'Positional arguments:': 'COMMANDS'}
OPTION = re.compile(r'^ {2}(-\S.*?|\S+(?: \S+)*)(?: {2,}(\S.*))?$')


def helps(wanted):
    """Return {page: help text}, as the scripts print it when they are
    installed: from a copy with the file that says so."""
    with tempfile.TemporaryDirectory(prefix='ka-man.') as tree:
        shutil.copytree(os.path.join(ROOT, 'scripts'),
                        os.path.join(tree, 'scripts'),
                        ignore=shutil.ignore_patterns('__pycache__'))
        with open(os.path.join(tree, 'installed'), 'w', encoding='ascii'):
            pass
        env = {**os.environ, 'COLUMNS': '80', 'PYTHONDONTWRITEBYTECODE': '1'}
        return {page: subprocess.run(
            [os.path.join(tree, 'scripts', command[0]), *command[1:],
             '--help'], check=True, text=True, capture_output=True,
            env=env).stdout for page, (command, *_) in wanted.items()}


def escape(text):
    """Escape a line of text for roff."""
    text = text.replace('\\', r'\e').replace('-', r'\-')
    return re.sub(r"^([.'])", r'\\&\1', text)


class Page:
    """A page that grows by the lines of a help text."""

    def __init__(self):
        self.out, self.list, self.gap = [], False, False

    def heading(self, text):
        self.out.append('.SH ' + text)
        self.list = self.gap = False

    def row(self, term, text):
        self.out += ['.TP', '.B ' + escape(term)]
        if text:
            self.out.append(escape(text))
        self.list, self.gap = True, False

    def line(self, text):
        if self.list or self.gap:
            self.out.append('.PP')
        self.out.append(escape(text))
        self.list = self.gap = False

    def add(self, line):
        found = OPTION.match(line) or COMMAND.match(line)
        if not line.strip():
            self.gap = not (self.out and self.out[-1].startswith('.SH'))
        elif line.capitalize() in HEADINGS:
            self.heading(HEADINGS[line.capitalize()])
        elif line.startswith('Exit status, '):
            self.heading(HEADINGS['Exit status:'])
            self.line(line)
        elif found:
            self.row(*found.groups())
        elif line.startswith(' ') and self.list:
            self.out.append(escape(line.strip()))
        else:
            self.line(line.strip())


def synopsis(usage):
    """Yield the lines for a usage, which may have several forms."""
    forms = re.split(r'\n *(?=ka-)', usage.removeprefix('usage: '))
    for number, form in enumerate(forms):
        command, *words = form.split()
        yield from (['.br'] if number else [])
        yield '.B ' + escape(command)
        yield escape(' '.join(words))


def roff(name, what, more, text):
    """Return the page of a command from its help text."""
    usage, _, rest = text.partition('\n\n')
    page = Page()
    page.heading('DESCRIPTION')
    for line in rest.rstrip().split('\n'):
        page.add(line)
    return '\n'.join([
        '.\\" SPDX-License-Identifier: GPL-2.0-or-later',
        '.\\" Made by scripts/gen-docs from the help text; do not edit.',
        f'.TH {name.upper()} 1 "" "ka" "User Commands"', '.SH NAME',
        f'{escape(name)} \\- {escape(what)}', '.SH SYNOPSIS',
        *synopsis(usage), *page.out, '.SH SEE ALSO',
        '.BR ka (1),', f'{escape(more)} in the documentation of ka', ''])


def render():
    """Return {page: its text}."""
    return {page: roff(page[:-2], *PAGES[page][1:], text)
            for page, text in helps(PAGES).items()}
