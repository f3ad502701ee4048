# SPDX-License-Identifier: GPL-2.0-or-later
"""From the table of programs to the jobs of a run."""
import os
import re

from . import PYTHON, ROOT, Job, build_tests

# Each level has the programs of those before it.
LEVELS = 'default', 'full', 'long'

TAKES_SHORT = r"'--short'|kernel_options\(|programs\.arguments\("
TAKES_KERNEL = r"add_argument\('--kernel'|kernel_options\(|" \
               r"programs\.arguments\("
# Kernel -> one with KASAN, which test_access.py compares with.
KASAN = {'6.12': 'kasan-6.12', '6.1': 'kasan-6.1',
         'arm64-6.12': 'arm64-kasan-generic-6.12',
         'riscv64-6.12': 'riscv64-kasan-6.12'}


class ChoiceError(Exception):
    """What the user asked for does not exist."""


class Row:
    """A row of the table."""

    def __init__(self, words, aliases):
        self.suite, self.program, minutes, self.level, *needs = words
        self.seconds = 60 * int(minutes) if minutes != '-' else 0
        self.needs = [(need, level or LEVELS[0]) for word in needs
                      for name, _, level in [word.partition('/')]
                      for need in aliases.get(name, name).split()]
        self.name, _, self.kernel = self.program.partition('@')

    def needs_of(self, level):
        return [word for word, least in self.needs if reaches(level, least)]


def reaches(level, least):
    return LEVELS.index(level) >= LEVELS.index(least)


class Table:
    """All programs.

    aliases  word -> needs
    commands program -> function(quick) that returns its command
    options  "SUITE:PROGRAM" -> options of the quick form
    alone    labels of programs that run alone
    folders  where the other programs are
    """

    def __init__(self, text, aliases=(), commands=(), options=(), alone=(),
                 folders=('tests/guest', 'tests/style')):
        lines = re.sub(r'\n[ \t]+', ' ', text.strip()).splitlines()
        self.rows = [Row(line.split(), dict(aliases)) for line in lines]
        self.suites = list(dict.fromkeys(row.suite for row in self.rows))
        self.commands, self.options = dict(commands), dict(options)
        self.alone, self.folders = alone, folders

    def file(self, name):
        """Return the path of a program; None if it is one of the build's."""
        for folder in self.folders:
            path = os.path.join(ROOT, folder, name + '.py')
            if os.path.exists(path):
                return path
        return None


def contains(path, pattern):
    with open(path, encoding='utf-8') as f:
        return re.search(pattern, f.read())


class Choice:
    """Programs of a level, with other kernels than theirs if KERNELS has
    some."""

    def __init__(self, table, level, kernels=()):
        self.table, self.level = table, level
        self.kernels = tuple(kernels)
        self.quick = level != 'long'

    def jobs(self, words=()):
        """Return the jobs of the level; of these only those that a word names,
        if there are words. What a word names and the level does not have runs
        as in the first level that has it."""
        found = [job for word in words
                 for job in self._named(*word.partition(':')[::2])] \
            if words else self._jobs(self.table.rows)
        return list({(job.label, job.form): job for job in found}.values())

    def _named(self, suite, name):
        if suite not in self.table.suites:
            raise ChoiceError(f"no suite '{suite}'; there are: "
                              + ' '.join(self.table.suites))
        rows = [r for r in self.table.rows if r.suite == suite]
        for level in LEVELS[LEVELS.index(self.level):]:
            found = Choice(self.table, level, self.kernels)._jobs(rows)
            found = [job for job in found if name in ('', job.name)]
            if found:
                return found
        raise ChoiceError(f"suite {suite} has no program '{name}'"
                          + (' that accepts a kernel' if self.kernels else ''))

    def _jobs(self, rows):
        for row in rows:
            if reaches(self.level, row.level):
                for job in self._of_row(row):
                    job.alone = job.label in self.table.alone
                    yield job

    def _of_row(self, row):
        path = self.table.file(row.name)
        if row.name in self.table.commands:
            command = self.table.commands[row.name](self.quick)
            yield self._job(row, row.name, command, row.seconds,
                            form=[w for w in command[2:] if w != '--tap'])
        elif not path:
            yield from self._of_build(row)
        elif not self.kernels or '/style/' in path or \
                contains(path, TAKES_KERNEL):
            yield self._program(row, path)

    def _job(self, row, name, command, seconds, env=(), form=(), level=''):
        return Job(row.suite, name, command, dict(env), seconds,
                   ' '.join(form), level or row.level, self._needs(row))

    def _program(self, row, path):
        form = self._form(row, path)
        quick = Choice(self.table, 'full', self.kernels)._form(row, path)
        name = '-'.join([row.name, *self._kernels(row)] if row.kernel else
                        [row.name])
        return self._job(row, name, [PYTHON, path, *form], row.seconds,
                         form=form,
                         level=row.level if form == quick else 'long')

    def _kernels(self, row):
        return self.kernels or tuple(filter(None, [row.kernel]))

    def _form(self, row, path):
        """Return the options of a program."""
        options = []
        if self.quick:
            given = self.table.options.get(f'{row.suite}:{row.program}')
            if given is not None:
                options += given.split()
            elif contains(path, TAKES_SHORT):
                options += ['--short']
        for kernel in self._kernels(row):
            options += ['--kernel', kernel]
        return options

    def _needs(self, row):
        needs, kernels = row.needs_of(self.level), self._kernels(row)
        if self.kernels:
            needs = [n for n in needs if not n.startswith('k:')]
            if row.name == 'test_access' and not self.quick:
                needs += ['k:' + KASAN.get(k, 'kasan-6.12') for k in kernels]
        return tuple([*needs, *('k:' + k for k in kernels)])

    def _of_build(self, row):
        """Yield the jobs of a row that is one test of the build, or all that
        have no row."""
        rows = {r.name for r in self.table.rows if r.suite == row.suite}
        found = False
        for name, command, env, seconds in build_tests.tests(row.suite,
                                                             self.quick):
            if name not in rows if row.name == '*' else name == row.name:
                found = True
                yield self._job(row, name, command, seconds, env)
        if not found and build_tests.is_built():
            raise ChoiceError(f'the build has no test {row.suite}:{row.name}')


def later_only(jobs, done):
    """Return the jobs that are not in DONE in the same form."""
    seen = {(job.label, job.form) for job in done}
    return [job for job in jobs if (job.label, job.form) not in seen]
