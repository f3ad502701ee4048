# SPDX-License-Identifier: GPL-2.0-or-later
"""Run each suite in a fresh Debian system of its own, one after the other. So
what a suite needs is what set-up and the suite's rows install.

The systems are folders (scripts/lib/root). The tests are those of this tree's
commit. What the cache has under a key is shared: QEMU, kernels, firmware.
Packages are installed anew. What was made under a new key is kept.
"""
import argparse
import fcntl
import glob
import json
import os
import shutil
import subprocess
import sys
import time

from . import ROOT, cache_folder

SYSTEM = os.path.join(ROOT, 'scripts', 'lib', 'root')
TREE = '/the-tree'      # in the system; no installed path has such a part
SHARED = ('apt*', 'busybox*', 'efi', 'grub', 'initramfs/*', 'kernels/*/*',
          'opensbi', 'qemu/*', 'qemu-source/*')
KEPT = 'qemu/*', 'kernels/*/*'
COUNTS = 'passed', 'failed', 'skipped'


def read_arguments(suites):
    ap = argparse.ArgumentParser(
        prog='scripts/test --bare', description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('--bare', action='store_true', help=argparse.SUPPRESS)
    ap.add_argument('--release', action='append', choices=('12', '13'),
                    help='of Debian; default: both, 12 first')
    ap.add_argument('--again', action='store_true',
                    help='run also what this commit has passed already')
    for level in '--full', '--short', '--long':
        ap.add_argument(level, dest='level', action='store_const', const=level,
                        help='as scripts/test (default: --full)')
    ap.add_argument('suite', nargs='*', metavar='SUITE',
                    help='default: all')
    args = ap.parse_args()
    for word in args.suite:
        if word.partition(':')[0] not in suites:
            ap.error(f"no suite '{word}'; there are: {' '.join(suites)}")
    args.suite, args.level = args.suite or suites, args.level or '--full'
    args.release = args.release or ['12', '13']
    if os.getuid():
        ap.error('root is needed')
    return args


def git(*words):
    return subprocess.run(['git', '-C', ROOT, *words], check=True, text=True,
                          stdout=subprocess.PIPE).stdout.strip()


class Systems:
    """A pristine system of each release, of which each suite gets a copy."""

    def __init__(self, folder):
        self.folder, self.made = folder, {}
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)

    def copy(self, release):
        if release not in self.made:
            path = os.path.join(self.folder, release)
            subprocess.run([SYSTEM, 'make', release, path], check=True,
                           stdout=subprocess.DEVNULL)
            self.made[release] = path
        path = os.path.join(self.folder, 'now')
        shutil.rmtree(path, ignore_errors=True)
        subprocess.run(['cp', '-a', '--reflink=auto', self.made[release],
                        path], check=True)
        return path

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)


def share(cache, system):
    """Give the system the artefacts of the cache, by hard links: none is ever
    written to after it was made. apt changes its own files, so it gets
    copies."""
    for pattern in SHARED:
        for path in glob.glob(os.path.join(cache, pattern)):
            to = system + path
            os.makedirs(os.path.dirname(to), exist_ok=True)
            link = [] if pattern.startswith('apt') else ['--link']
            subprocess.run(['cp', '-a', *link, path, to], check=True)


def keep(cache, system):
    """Move artefacts that the cache does not have out of the system."""
    new = [path for pattern in KEPT
           for path in glob.glob(system + os.path.join(cache, pattern))
           if not os.path.lexists(path.removeprefix(system))]
    if not new:
        return      # a set-up may hold the lock long
    with open(os.path.join(cache, 'lock'), 'a', encoding='ascii') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for path in new:
            to = path.removeprefix(system)
            if not os.path.lexists(to):
                os.makedirs(os.path.dirname(to), exist_ok=True)
                os.rename(path, to)


def sums(log):
    """Return the counts of a run's last line; None if it has none."""
    with open(log, 'rb') as f:
        lines = f.read().decode('utf-8', 'replace').splitlines()
    words = lines[-1].replace(',', '').split() if lines else []
    if len(words) == 6 and tuple(words[1::2]) == COUNTS:
        return dict(zip(COUNTS, map(int, words[::2])))
    return None


def run_in(system, word, level, log):
    """Run a suite in the system; return its exit status."""
    cache = os.path.abspath(cache_folder())
    ccache = os.path.join(cache, 'ccache')
    os.makedirs(ccache, exist_ok=True)
    share(cache, system)
    subprocess.run(['git', 'clone', '-q', '--depth', '1', 'file://' + ROOT,
                    system + TREE], check=True)
    with open(log, 'wb') as out:
        status = subprocess.run(
            [SYSTEM, 'run', '--bind', ccache, system, 'env',
             'KA_CACHE=' + cache, 'CCACHE_DIR=' + ccache,
             os.path.join(TREE, 'scripts', 'test'), level, word],
            check=False, stdin=subprocess.DEVNULL, stdout=out,
            stderr=subprocess.STDOUT).returncode
    keep(cache, system)
    for path in glob.glob(system + os.path.join(cache, 'results', '*')):
        shutil.move(path, log.removesuffix('.log') + '.results')
    return status


class Report:
    """What was run, in files of a folder: NAME.json, NAME.log, and a summary of
    the releases @of."""

    def __init__(self, folder, of, commit):
        self.folder, self.of, self.commit = folder, of, commit
        self.rows = []

    def path(self, name, ending):
        return os.path.join(self.folder, name.replace(':', '-') + ending)

    def known(self, name):
        """Return the row of this commit if it passed, else None."""
        try:
            with open(self.path(name, '.json'), encoding='utf-8') as f:
                row = json.load(f)
        except (OSError, ValueError):
            return None
        good = row['commit'] == self.commit and row['result'] == 'passed'
        return row if good else None

    def add(self, name, row):
        self.rows.append((name, row))
        with open(self.path(name, '.json'), 'w', encoding='utf-8') as f:
            json.dump(row, f)
        with open(self.path(f'summary-{self.of}', '.txt'), 'w',
                  encoding='utf-8') as f:
            f.writelines(line(*r) + '\n' for r in self.rows)
        print(line(name, row), flush=True)

    def end(self):
        failed = sum(row['result'] != 'passed' for _, row in self.rows)
        print(f'# logs: {self.folder}')
        print(f'{len(self.rows) - failed} passed, {failed} failed, 0 skipped')
        return not failed


def line(name, row):
    counts = ', '.join(f'{n} {word}' for word, n in
                       (row['counts'] or {}).items()) or 'no counts'
    return (f'{row["result"]:7} {name:34} {row["seconds"] / 60:6.1f} min  '
            f'{counts}')


def run_one(systems, release, word, level, log):
    begin, system = time.monotonic(), systems.copy(release)
    status = run_in(system, word, level, log)
    counts = sums(log)
    return {'result': 'failed' if status or not counts else 'passed',
            'counts': counts, 'seconds': round(time.monotonic() - begin)}


def main(suites):
    """Run what the arguments say, one suite after the other. Two releases can
    be run beside each other by two commands."""
    args = read_arguments(suites)
    if git('status', '--porcelain'):
        print('# changes that are not committed are not tested')
    commit = git('rev-parse', 'HEAD')
    folder = os.path.join(os.path.abspath(cache_folder()), 'bare')
    of = '-'.join(args.release)
    report = Report(folder, of, commit)
    systems = Systems(os.path.join(folder, f'systems-{of}'))
    try:
        for release in args.release:
            for word in args.suite:
                name = f'debian-{release}{args.level}-{word}'
                row = None if args.again else report.known(name)
                if not row:
                    row = run_one(systems, release, word, args.level,
                                  report.path(name, '.log'))
                report.add(name, {**row, 'commit': commit})
    finally:
        systems.remove()
    sys.exit(0 if report.end() else 1)
