# SPDX-License-Identifier: GPL-2.0-or-later
"""Check what a machine can check of the style: line length, tabs, licence
lines, banned functions, lengths of files and functions, shell scripts.
Prints the figures of sizes.

usage: scripts/check style [--tap] [--sizes] [--pick [SEED]]
"""
import argparse
import os
import random
import re
import shutil
import statistics
import subprocess

from . import links

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), '..', '..'))

MAX_COLUMNS = 80
MAX_FUNCTION = 80       # lines
MAX_FILE = 600
MAX_MEDIAN = 11
MAX_P90 = 30
MAX_PUBLIC = 220        # lines of a public header
PICKED_FUNCTIONS, PICKED_FILES = 30, 10

C_FOLDERS = ('guest-symbols', 'kalloc-tracer', 'monitor-cmds', 'tests')
LIBRARY = C_FOLDERS[:3]
LICENCE = 'SPDX-License-Identifier: GPL-2.0-or-later'
# Files that are data, not source.
NO_LICENCE = re.compile(r'(^|/)(COPYING|series|corpus/|golden/|data/|cases?/|'
                        r'debian/(?!rules$))|'
                        r'\.(patch|md|json|txt|expected|map|gitignore)$|'
                        r'^tests/replay/|^\.gitignore$|^\.gitattributes$')
LONG_LINES = re.compile(r'\.(c|h|py|sh|build)$|^scripts/[^/]+$')

BANNED = {
    'strcpy': 'g_strlcpy', 'strcat': 'g_strlcat', 'strncpy': 'g_strlcpy',
    'strncat': 'g_strlcat', 'sprintf': 'snprintf or GString',
    'vsprintf': 'vsnprintf or GString', 'gets': 'fgets', 'strtok': 'strsep',
    'alloca': 'the heap', 'atoi': 'g_ascii_strtoull', 'atol':
    'g_ascii_strtoull', 'tmpnam': 'g_mkstemp', 'mktemp': 'g_mkstemp',
    'system': 'g_spawn', 'popen': 'g_spawn', 'scanf': 'a parser',
    'sscanf': 'a parser',
}
BANNED_CALL = re.compile(r'(?<![\w>.])(' + '|'.join(BANNED) + r')\s*\(')
PUBLIC = re.compile(r'^[^/]+/(\w+\.h|api/[^/]+\.h)$')
GOTO = re.compile(r'\bgoto\b')
MAKEFILE = re.compile(r'(^|/)debian/rules$')     # its lines begin with tabs
MARKS = re.compile(r'\b(TODO|FIXME|XXX)\b')


def tracked():
    out = subprocess.run(
        ['git', '-C', ROOT, '-c', 'safe.directory=*', 'ls-files'],
        check=True, capture_output=True, text=True).stdout
    return [p for p in out.splitlines() if os.path.isfile(full(p))]


def full(path):
    return os.path.join(ROOT, path)


def lines_of(path):
    with open(full(path), encoding='utf-8', errors='replace') as f:
        return f.read().split('\n')


def is_c(path):
    return path.startswith(C_FOLDERS) and path.endswith(('.c', '.h', '.def'))


def is_script(path):
    return path.startswith('scripts/') or path == '.ci/run' or \
        path.startswith('tests/guest/') and path.endswith(('.py', '.sh'))


def strip_c(text):
    """Return C without comments and strings, with the same line numbers."""
    def blank(m):
        word = m.group(0)
        return '\n' * word.count('\n') if word.startswith('/') else '""'
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'
                  r"'(?:\\.|[^'\\\n])*'", blank, text, flags=re.S)


# --- checks: each yields lines that report errors ----------------------------

def check_columns(files):
    """lines are at most 80 columns, except rows of tables (.def)"""
    for path in files:
        if not LONG_LINES.search(path):
            continue
        for i, line in enumerate(lines_of(path), 1):
            if len(line) > MAX_COLUMNS:
                yield f'{path}:{i}: {len(line)} columns'


def check_blanks(files):
    """no tabs and no blanks at the end of lines"""
    for path in files:
        if not (is_c(path) or is_script(path)) or MAKEFILE.search(path):
            continue
        for i, line in enumerate(lines_of(path), 1):
            if '\t' in line:
                yield f'{path}:{i}: tab'
            if line != line.rstrip():
                yield f'{path}:{i}: blanks at the end'


def check_licence(files):
    """each source names its licence in its first lines"""
    for path in files:
        if NO_LICENCE.search(path):
            continue
        if not any(LICENCE in line for line in lines_of(path)[:3]):
            yield f'{path}: no line "{LICENCE}"'


def check_banned(files):
    """no banned functions"""
    for path in files:
        if not is_c(path):
            continue
        text = strip_c('\n'.join(lines_of(path)))
        for i, line in enumerate(text.split('\n'), 1):
            for m in BANNED_CALL.finditer(line):
                yield f'{path}:{i}: {m.group(1)}: use {BANNED[m.group(1)]}'


def check_marks(files):
    """no mark says that work is open"""
    for path in files:
        if not (is_c(path) or is_script(path)) or \
                path == 'scripts/lib/check_style.py':
            continue
        for i, line in enumerate(lines_of(path), 1):
            if MARKS.search(line):
                yield f'{path}:{i}: {line.strip()}'


def check_file_length(files):
    """sources are at most 600 lines outside tests/, and C files in tests/"""
    for path in files:
        source = is_c(path) or path.endswith('.py') or is_script(path)
        if not source or path.startswith('tests/') and not is_c(path):
            continue
        n = len(lines_of(path)) - 1
        if n > MAX_FILE:
            yield f'{path}: {n} lines'


def check_public_headers(files):
    """public headers are at most 220 lines"""
    for path in files:
        n = len(lines_of(path)) - 1
        if path.startswith(LIBRARY) and PUBLIC.match(path) and n > MAX_PUBLIC:
            yield f'{path}: {n} lines'


def check_api_pages(files):
    """each public header is in the README of its room"""
    for path in (p for p in files if PUBLIC.match(p)):
        folder, name = os.path.split(path)
        page = os.path.join(folder, 'README.md')
        if page in files and f'`{name}`' not in '\n'.join(lines_of(page)):
            yield f'{page}: nothing about {name}'


def check_goto(files):
    """no goto in the libraries"""
    for path in files:
        if not (path.startswith(LIBRARY) and is_c(path)):
            continue
        text = strip_c('\n'.join(lines_of(path)))
        for i, line in enumerate(text.split('\n'), 1):
            if GOTO.search(line):
                yield f'{path}:{i}: goto'


def functions(path):
    """Yield (name, first line, lines) of each function of a C file."""
    begin, name = None, None
    text = strip_c('\n'.join(lines_of(path))).split('\n')
    for i, line in enumerate(text, 1):
        m = re.match(r'[A-Za-z_][\w\s*]*?\b(\w+)\s*\(', line)
        if m and not line.rstrip().endswith(';'):
            name, start = m.group(1), i
        if line == '{' and name:
            begin = start
        elif line == '}' and begin:
            yield name, begin, i - begin + 1
            begin = name = None


def function_lengths(files):
    return [(n, f'{path}:{line}: {name}') for path in files
            if is_c(path) and path.endswith('.c')
            for name, line, n in functions(path)]


def check_function_length(files):
    """functions are at most 80 lines; in the libraries half of them at most
    11, and nine of ten at most 30"""
    lengths = function_lengths(files)
    for n, what in lengths:
        if n > MAX_FUNCTION:
            yield f'{what}: {n} lines'
    sizes = sorted(n for n, what in lengths if what.startswith(LIBRARY))
    if len(sizes) < 10:
        return
    if statistics.median(sizes) > MAX_MEDIAN:
        yield f'median {statistics.median(sizes)} lines'
    if sizes[len(sizes) * 9 // 10] > MAX_P90:
        yield f'90th percentile {sizes[len(sizes) * 9 // 10]} lines'


def check_programs(files):
    """files that begin with #! are executable, others are not"""
    for path in files:
        with open(full(path), 'rb') as f:
            starts = f.read(2) == b'#!'
        if starts != os.access(full(path), os.X_OK):
            yield f'{path}: ' + ('not executable' if starts else
                                 'executable, without #!')


def check_shell(files):
    """shellcheck finds nothing"""
    if not shutil.which('shellcheck'):
        yield from ()
        return
    scripts = [p for p in files if is_script(p) and
               re.match(r'#!.*\b(ba)?sh\b', lines_of(p)[0])]
    done = subprocess.run(['shellcheck', '-x', '-f', 'gcc', *scripts],
                          cwd=ROOT, capture_output=True, text=True,
                          check=False)
    yield from done.stdout.splitlines()


def check_links(files):
    """links of pages lead to files and headings that exist"""
    yield from links.broken(files, lines_of)


CHECKS = [check_columns, check_blanks, check_licence, check_banned,
          check_marks, check_file_length, check_public_headers,
          check_api_pages, check_goto, check_function_length, check_programs,
          check_shell, check_links]


# --- output ------------------------------------------------------------------

def size_row(name, files):
    """The figures of these files: functions and lines."""
    sizes = sorted(n for n, _ in function_lengths(files))
    if not sizes:
        return None
    total = sum(len(lines_of(p)) - 1 for p in files if is_c(p))
    count = sum(1 for p in files if is_c(p))
    return (f'{name:15} {len(sizes):9} {statistics.median(sizes):7.0f} '
            f'{sizes[len(sizes) * 3 // 4]:4} {sizes[len(sizes) * 9 // 10]:4} '
            f'{sizes[-1]:4} {count:7} {total:6}')


def longest(files):
    """The file with the most lines: (lines, path)."""
    return max(((len(lines_of(p)) - 1, p) for p in files), default=(0, '-'))


def figures(files):
    """Lines with the figures of sizes."""
    yield 'folder          functions  median  p75  p90  max   files  lines'
    groups = [(name, [p for p in files if p.startswith(name + '/')])
              for name in C_FOLDERS]
    groups.insert(3, ('libraries', [p for p in files
                                    if p.startswith(LIBRARY)]))
    yield from filter(None, (size_row(*group) for group in groups))
    library = [p for p in files if p.startswith(LIBRARY) and is_c(p)]
    yield 'longest file of the libraries: {} lines, {}'.format(
        *longest(library))
    yield 'longest public header: {} lines, {}'.format(
        *longest([p for p in library if PUBLIC.match(p)]))
    yield f'goto in the libraries: {sum(1 for _ in check_goto(files))}'


def pick(files, seed):
    """Lines that name functions and files at random, to read their comments:
    can each be explained from its comment alone?"""
    seed = random.randrange(1 << 32) if seed is None else seed
    random.seed(seed)
    library = [p for p in files if p.startswith(LIBRARY)]
    yield f'seed {seed}'
    lengths = sorted(what for _, what in function_lengths(library))
    yield from random.sample(lengths, min(PICKED_FUNCTIONS, len(lengths)))
    sources = sorted(p for p in library if is_c(p))
    yield from random.sample(sources, min(PICKED_FILES, len(sources)))


def main(argv):
    ap = argparse.ArgumentParser(
        prog='scripts/check style',
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('--tap', action='store_true', help='results as TAP')
    ap.add_argument('--sizes', action='store_true',
                    help='print only the figures of sizes')
    ap.add_argument('--pick', nargs='?', type=int, const=None, default=False,
                    metavar='SEED', help='name 30 functions and 10 files at '
                    'random: can each be explained from its comment alone?')
    args = ap.parse_args(argv)
    files = tracked()
    if args.sizes or args.pick is not False:
        print('\n'.join(figures(files) if args.sizes else
                        pick(files, args.pick)))
        return 0
    failed = False
    for i, check in enumerate(CHECKS, 1):
        lines = list(check(files))
        failed = failed or bool(lines)
        if args.tap:
            print(f"{'not ok' if lines else 'ok'} {i} - "
                  + ' '.join(check.__doc__.split()))
        for line in lines:
            print('# ' + line if args.tap else line)
    for line in figures(files):
        print('# ' + line)
    if args.tap:
        print(f'1..{len(CHECKS)}')
    return 1 if failed else 0
