# SPDX-License-Identifier: GPL-2.0-or-later
"""Check the file of the plugin: each build has the same bytes, only its entry
points are visible, and it does not contain the path of the build.

usage: scripts/check plugin [--tap] --qemu-include FOLDER [--build FOLDER]

The plugin is built twice with gcc, in folders of different names and depths,
and everything once with clang if that is installed. Warnings are errors. The
folders are always the same ones of the cache, so that ccache compiles only
files that changed since the last check. With --build, the first of the two
plugins is that of a finished build of this tree.
"""
import argparse
import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess

from .prepared import ROOT, cache_folder

ENTRY_POINTS = {'qemu_plugin_install', 'qemu_plugin_version'}
PLUGIN = 'libka.so'
# The parts of the tree that a build needs.
SOURCES = ('meson.build', 'meson_options.txt', 'guest-symbols',
           'kalloc-tracer', 'monitor-cmds', 'qemu-patches', 'scripts', 'docs',
           'tests')


def run(*command, env=None):
    done = subprocess.run(command, check=False, text=True,
                          env={**os.environ, **(env or {})},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}:\n{done.stdout[-4000:]}")
    return done.stdout


def copy_sources(to):
    for name in SOURCES:
        path = os.path.join(ROOT, name)
        if os.path.isdir(path):
            shutil.copytree(path, os.path.join(to, name))
        else:
            os.makedirs(os.path.dirname(os.path.join(to, name)),
                        exist_ok=True)
            shutil.copy(path, os.path.join(to, name))


def build(source, folder, qemu_include, compiler='cc', targets=(PLUGIN,)):
    """Build the sources in a folder; return the path of the plugin. Meson
    itself uses ccache only if no compiler is named."""
    run('meson', 'setup', folder, source, '-Dqemu_include=' + qemu_include,
        env={'CC': 'ccache ' + compiler})
    run('ninja', '-C', folder, *targets,
        env={'CCACHE_DIR': cache_folder('ccache')})
    return os.path.join(folder, PLUGIN)


def contents(path):
    with open(path, 'rb') as f:
        return f.read()


def visible(path):
    """Return the names that the file defines for the dynamic linker."""
    return {line.split()[-1] for line in
            run('nm', '-D', '--defined-only', path).splitlines()}


# --- checks: each yields lines that report errors ----------------------------

def check_same_bytes(first, second):
    """two builds in different folders give the same bytes"""
    hashes = [hashlib.sha256(contents(p)).hexdigest() for p in (first, second)]
    if len(set(hashes)) != 1:
        for path, digest in zip((first, second), hashes):
            yield f'{path}: sha256 {digest}'


def check_visible(first, second):
    """only the entry points are visible"""
    found = visible(first)
    for name in sorted(found - ENTRY_POINTS):
        yield f'{name} is visible'
    for name in sorted(ENTRY_POINTS - found):
        yield f'{name} is not visible'


def check_paths(first, second):
    """the file does not contain a path of the machine that built it"""
    for path in (first, second):
        for where in ROOT, os.path.dirname(os.path.dirname(path)):
            if where.encode() in contents(path):
                yield f'{path}: contains {where}'


CHECKS = (check_same_bytes, check_visible, check_paths)


def with_clang(folder, source, qemu_include):
    """Build everything with clang; return the errors."""
    try:
        build(source, os.path.join(folder, 'clang'), qemu_include, 'clang', ())
        return []
    except RuntimeError as e:
        return str(e).splitlines()


def build_copy(source, qemu_include):
    """Copy the tree and build the plugin beside it; return its path."""
    os.makedirs(source)
    copy_sources(source)
    return build(source, source + '.build', qemu_include)


def all_checks(folder, qemu_include, built):
    """Yield (what is checked, lines of errors; None if it is skipped)."""
    source = os.path.join(folder, 'another', 'place', 'source')
    second = build_copy(source, qemu_include)
    first = (os.path.join(built, PLUGIN) if built else
             build_copy(os.path.join(folder, 'a'), qemu_include))
    for check in CHECKS:
        yield check.__doc__, list(check(first, second))
    what = 'clang builds everything without a warning'
    if shutil.which('clang'):
        yield what, with_clang(folder, source, qemu_include)
    else:
        yield what, None


@contextlib.contextmanager
def build_folder():
    """Return an empty folder, always the same one; one user at a time."""
    folder = cache_folder('check-plugin')
    with open(folder + '.lock', 'w', encoding='ascii') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(folder)
        os.mkdir(folder)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def main(argv):
    ap = argparse.ArgumentParser(
        prog='scripts/check plugin',
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('--tap', action='store_true', help='results as TAP')
    ap.add_argument('--qemu-include', required=True, metavar='FOLDER',
                    help='include folder of the patched QEMU '
                         '(see scripts/setup --paths)')
    ap.add_argument('--build', metavar='FOLDER',
                    help='a finished build of this tree, with gcc')
    args = ap.parse_args(argv)
    bad = n = 0
    with build_folder() as folder:
        for what, lines in all_checks(folder, args.qemu_include,
                                      args.build):
            n += 1
            skip = ' # SKIP no clang' if lines is None else ''
            bad += bool(lines)
            if args.tap:
                print(f"{'not ok' if lines else 'ok'} {n} - {what}{skip}")
            for line in lines or ():
                print('# ' + line if args.tap else line)
    if args.tap:
        print(f'1..{n}')
    return 1 if bad else 0
