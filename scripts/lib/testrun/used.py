# SPDX-License-Identifier: GPL-2.0-or-later
"""Which files a test program starts or opens, by strace; and which of them
neither the usual set-up nor the program's row in the table provides. On a bare
machine such a program fails, or skips what it should test."""
import dataclasses
import glob
import os
import re
import subprocess
import tempfile

from . import cache_folder
from .needs import SETUP
from .process import run_job

STRACE = ('strace', '-f', '--seccomp-bpf', '-qq', '-z', '-e',
          'trace=execve,open,openat', '-o')
FILE = re.compile(r'(?:execve|open|openat)\((?:AT_FDCWD, )?"(/[^"]+)"')
SYSTEM = ('/usr/', '/bin/', '/sbin/', '/lib', '/opt/', '/home/', '/root/.')
# Not looked at: libraries, because a package of a program depends on them, or
# they are plugins that a program takes if they are there; lists that other
# packages extend; and what ldd tries.
IGNORED = re.compile(r'\.so($|\.)|\.pth$|\.cache$|/bfd-plugins/|/ld-linux|'
                     r'/usr/share/(locale|mime|zoneinfo)/|/usr/lib/locale/|'
                     r'/gconv/')
# Folder of the cache -> the step that makes it. The others come with kernels
# or with the usual set-up.
STEPS = {'efi': 'efi', 'drgn': 'drgn-newer', 'readers': 'readers',
         'multitool': 'multitool', 'vng': 'vng', 'syzkaller': 'syzkaller'}
# A program does without these.
OPTIONAL = 'python3-zstandard', 'lsb-release'
ARCHES = {'arm64': 'aarch64', 'riscv64': 'riscv64'}
USUAL = 'k:6.12', 'k:6.1', 'qemu-patched', 'packages', 'meson'


def merged(path):
    """Return the path as in a system whose /bin is /usr/bin."""
    return re.sub(r'^/(bin|sbin|lib\w*)/', r'/usr/\1/', path)


class Packages:
    """The installed packages: their files, and what they depend on."""

    def __init__(self):
        self.depends, self.first, self.owner = {}, set(), {}
        provided = {}
        fields = '${Package}|${Essential}|${Priority}|${Provides}|' \
                 '${Pre-Depends}, ${Depends}\n'
        said = subprocess.run(['dpkg-query', '-W', '-f', fields], text=True,
                              check=True, stdout=subprocess.PIPE).stdout
        for line in said.splitlines():
            name, essential, priority, provides, depends = line.split('|', 4)
            self.depends[name] = names(depends)
            if essential == 'yes' or priority == 'required':
                self.first.add(name)
            for other in names(provides):
                provided.setdefault(other, set()).add(name)
        for name, wanted in self.depends.items():
            self.depends[name] = wanted | set().union(
                *(provided.get(w, ()) for w in wanted))
        for path in glob.glob('/var/lib/dpkg/info/*.list'):
            name = os.path.basename(path)[:-5].split(':')[0]
            with open(path, encoding='utf-8') as f:
                for line in f:
                    self.owner[merged(line.rstrip('\n'))] = name

    def closure(self, wanted):
        """Return the packages and all that they depend on."""
        found, todo = set(), [*wanted, *self.first]
        while todo:
            name = todo.pop()
            if name in self.depends and name not in found:
                found.add(name)
                todo += self.depends[name]
        return found

    def of_file(self, path):
        for form in path, os.path.realpath(path):
            form = re.sub(r'/__pycache__/([^/]*)\.cpython-\d+(\.opt-\d)?\.pyc$',
                          r'/\1.py', merged(form))
            if form in self.owner:
                return self.owner[form]
        return None


def names(text):
    """Return the packages of a field like Depends."""
    return {re.split(r'[ :(]', word.strip())[0]
            for word in re.split('[,|]', text) if word.strip()}


def step_packages():
    """Return {step: its packages}."""
    said = subprocess.run([SETUP, '--packages'], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    steps = {}
    for line in said.splitlines():
        step, package = line.split()
        steps.setdefault(step, []).append(package)
    return steps


def words_of(need):
    """Return what a need brings: itself, and steps that come with a kernel."""
    arch = need.removeprefix('k:').split('-')[0]
    if not need.startswith('k:') or arch not in ARCHES:
        return {need}
    return {need, 'qemu-' + ARCHES[arch], 'cross-' + arch}


def artefact(path):
    """Return the need that makes a file of the cache; None for the usual
    set-up, the build and what a run itself makes."""
    folder, _, rest = path.partition('/')
    name = rest.split('/')[0]
    if folder == 'kernels':
        return 'k:' + name
    if folder == 'initramfs':
        return 'k:' + name.rpartition('-')[0]
    if folder == 'qemu':
        return 'qemu-' + name.rpartition('-')[0]
    if folder == 'build' and name.partition('-')[2]:
        return 'build-' + name.split('-')[0]
    return STEPS.get(folder)


class Checker:
    """Compares files with what a row asks for."""

    def __init__(self):
        self.packages, self.steps = Packages(), step_packages()
        self.cache = os.path.abspath(cache_folder()) + '/'

    def closure(self, words):
        return self.packages.closure(
            p for word in words for p in self.steps.get(word, ()))

    def missing(self, needs, paths):
        """Yield a line for each thing that is not asked for."""
        words = set(USUAL).union(*map(words_of, needs))
        installed, seen = self.closure(words).union(OPTIONAL), set()
        for path in sorted(paths):
            if path.startswith(self.cache):
                need = artefact(path.removeprefix(self.cache))
                what = None if need is None or need in words else \
                    f'needs {need}'
            elif path.startswith(SYSTEM) and not IGNORED.search(path):
                package = self.packages.of_file(path)
                what = None if package in installed else \
                    f'needs the package {package}' if package else \
                    f'{path} is of no package'
                if package and what:
                    what += ', ' + self.steps_with(package)
            else:
                continue
            if what and what not in seen:
                seen.add(what)
                yield f'{what}: {path}'

    def steps_with(self, package):
        found = [s for s in self.steps if package in self.closure([s])]
        return 'which comes with ' + ' or '.join(found) if found else \
            'which no step installs'


def check(job, checker, screen, folder):
    """Run a program under strace; print what its row lacks. Return whether it
    lacks nothing."""
    with tempfile.NamedTemporaryFile('r', prefix='ka-uses.',
                                     errors='replace') as trace:
        traced = dataclasses.replace(
            job, command=[*STRACE, trace.name, *job.command],
            seconds=4 * job.seconds)
        result = run_job(traced, folder)
        # A folder and a program's own files may be gone by now.
        paths = {m.group(1) for m in map(FILE.search, trace) if m}
    paths = {p for p in paths if os.path.isfile(p)}
    lines = list(checker.missing(job.needs, paths))
    screen.say(f'  {"FAIL" if lines else "ok":4} {job.label}: {len(paths)} '
               f'files, {result.sums()}',
               *('    ' + line for line in lines))
    return not lines


def check_all(jobs, screen, folder):
    """Check programs one after the other. Return whether no row lacks
    anything."""
    checker, good = Checker(), 0
    for job in jobs:
        screen.status(job.label)
        good += check(job, checker, screen, folder)
    screen.say('# these are programs whose rows were checked, not tests:',
               f'{good} passed, {len(jobs) - good} failed, 0 skipped')
    return good == len(jobs)
