# SPDX-License-Identifier: GPL-2.0-or-later
"""Run clang-tidy, with the checks of .clang-tidy, over the C sources.

usage: scripts/check tidy [--tap] [--changed] [FOLDER|FILE.c]...

Without an argument: guest-symbols, kalloc-tracer and monitor-cmds. clang-tidy
is installed first if it is missing. A file in which it found nothing is not
examined again while the file, what it includes, .clang-tidy and clang-tidy
itself stay as they are; the cache keeps an empty mark named by their hash.
With --changed a file is also left out if it was clean before and only its
includes changed since.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys

from .prepared import ROOT, SETUP, cache_folder, paths

FOLDERS = 'guest-symbols', 'kalloc-tracer', 'monitor-cmds'
FINDING = re.compile(r'(error|warning):')
# clang-tidy counts warnings that .clang-tidy switches off.
NOISE = re.compile(r'\d+ warnings? (generated|treated)')


def run(*command, env=None):
    done = subprocess.run(command, check=False, text=True,
                          env={**os.environ, **(env or {})},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        sys.exit(f"{' '.join(command)}:\n{done.stdout[-4000:]}")


def compile_commands():
    """Configure a build with clang; return the folder of its compile commands.

    There is one for each work tree and QEMU: the patched QEMU has the header
    that the plugin includes.
    """
    include = os.path.join(os.path.dirname(paths()['qemu']), 'include')
    key = hashlib.sha256(f'{ROOT}\n{include}\n'.encode()).hexdigest()[:16]
    build = os.path.join(cache_folder('build'), 'tidy-' + key)
    if not os.path.exists(os.path.join(build, 'build.ninja')):
        run('meson', 'setup', build, ROOT, '-Dqemu_include=' + include,
            env={'CC': 'clang'})
    run('ninja', '-C', build, 'build.ninja')
    return build


def compiled_sources(build):
    """How each C file that the build compiles is compiled: path -> row."""
    with open(os.path.join(build, 'compile_commands.json'),
              encoding='utf-8') as f:
        return {os.path.realpath(os.path.join(c['directory'], c['file'])): c
                for c in json.load(f)}


class CleanFiles:
    """Marks of files in which clang-tidy found nothing, by what it read."""

    def __init__(self):
        self.folder = cache_folder('tidy')
        os.makedirs(self.folder, exist_ok=True)
        version = subprocess.run(['clang-tidy', '--version'], check=False,
                                 capture_output=True).stdout
        with open(os.path.join(ROOT, '.clang-tidy'), 'rb') as f:
            self.common = version + f.read()

    def mark(self, row):
        """The path of the mark; None if the file does not compile."""
        words = shlex.split(row['command'])
        words = words[words.index('clang'):] if 'clang' in words else words
        # Comments stay: NOLINT is one.
        i = words.index('-o')
        command = [w for w in words[:i] + words[i + 2:] if w != '-c']
        done = subprocess.run([*command, '-E', '-CC'], cwd=row['directory'],
                              check=False, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL)
        if done.returncode:
            return None
        return self.path_of(done.stdout)

    def text_mark(self, path):
        """The path of the mark by the text of the file alone."""
        with open(path, 'rb') as f:
            return self.path_of(b'text of one file\n' + f.read())

    def path_of(self, data):
        key = hashlib.sha256(self.common + data).hexdigest()[:32]
        return os.path.join(self.folder, key)


def tidy(build, path):
    """The lines that clang-tidy prints for one file."""
    done = subprocess.run(['clang-tidy', '--quiet', '-p', build, path],
                          check=False, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    lines = [s for s in done.stdout.splitlines() if not NOISE.match(s)]
    if done.returncode:
        lines.append(f'error: clang-tidy ended with status {done.returncode}')
    return lines


def is_marked(mark):
    if mark and os.path.exists(mark):
        os.utime(mark)
        return True
    return False


def tidy_once(build, clean, changed, path, row):
    """The lines for one file, none if it was found clean before."""
    text_mark = clean.text_mark(path)
    if changed and is_marked(text_mark):
        return []
    mark = clean.mark(row)
    lines = [] if is_marked(mark) else tidy(build, path)
    if mark and not any(FINDING.search(line) for line in lines):
        for name in mark, text_mark:
            with open(name, 'w', encoding='utf-8'):
                pass
    return lines


def tidy_all(build, clean, changed, where):
    """The lines for all sources at or below a path."""
    inside = sorted((p, row) for p, row in compiled_sources(build).items()
                    if p == where or p.startswith(where + os.sep))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return [line for lines in
                pool.map(lambda i: tidy_once(build, clean, changed, *i),
                         inside)
                for line in lines]


def arguments(argv):
    ap = argparse.ArgumentParser(
        prog='scripts/check tidy', description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('--tap', action='store_true',
                    help='results as TAP, one test for each argument')
    ap.add_argument('--changed', action='store_true',
                    help='leave out files that were clean before and whose '
                         'own text did not change')
    ap.add_argument('path', nargs='*', help='folder or C file')
    args = ap.parse_args(argv)
    for path in args.path:
        if not os.path.exists(path):
            ap.error(f'{path}: no such file or folder')
    args.path = [os.path.realpath(p) for p in args.path] or \
        [os.path.join(ROOT, name) for name in FOLDERS]
    return args


def main(argv):
    args, failed = arguments(argv), False
    subprocess.run([SETUP, '--only', 'clang-tidy'], stdout=sys.stderr,
                   check=True)
    build, clean = compile_commands(), CleanFiles()
    for n, path in enumerate(args.path, 1):
        lines = tidy_all(build, clean, args.changed, path)
        bad = any(FINDING.search(line) for line in lines)
        failed = failed or bad
        if args.tap:
            print(f"{'not ok' if bad else 'ok'} {n} - clang-tidy finds "
                  f'nothing in {os.path.relpath(path, ROOT)}')
        for line in lines if bad else ():
            print('# ' + line if args.tap else line)
    if args.tap:
        print(f'1..{len(args.path)}')
    return 1 if failed else 0
