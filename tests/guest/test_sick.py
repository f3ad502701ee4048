#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""scripts/sweep says what a kernel reports of itself: guests that the module
ka_sick makes sick, each in its way, have the finding that lib/sick.py has for
it, with the same title and hash in each format, and no other one; guests that
are well have none. Oracles: what the guest was told to do; and syzkaller's
package report, which must give the same titles to the same console, if
scripts/setup --only syzkaller was run.

usage: test_sick.py [--short] [--kernel K]... [--only well|sick]
    short: four ways, and one guest that is well, on 6.12. Long: all ways, on
    6.12, 6.1, arm64-6.12 and a kernel that checks its locks; and twenty guests
    that are well
"""
import json
import os
import re
import shutil
import subprocess
import tempfile
import xml.etree.ElementTree as ET

from lib import commands, oracle, programs, sick
from lib.tap import Tap
from scripts.lib.prepared import ROOT, paths

KERNELS = '6.12', '6.1', 'arm64-6.12', 'lockdep-6.12'
WELL_KERNELS = '6.12', '6.1', '5.10', '6.18', '7.3'
WORKLOADS = 'ka.run=work ka.n=2', 'ka.run=sums ka.n=1:5'
QUICK = ('WARN', 'refcount', 'oops', 'panic')
FORMATS = 'junit', 'ktap', 'sarif', 'json', 'kasan-text'


class Run:
    """A sweep that has ended: its status, console and reports."""

    def __init__(self, folder, kernel, guests):
        os.makedirs(folder)
        self.folder = folder
        share = os.path.join(folder, 'share')
        os.mkdir(share)
        shutil.copy(os.path.join(oracle.build_modules(kernel), 'ka_sick.ko'),
                    share)
        with open(os.path.join(share, 'sick.sh'), 'w', encoding='ascii') as f:
            f.write('insmod /share/ka_sick.ko\n' +
                    ''.join(g.script for g in guests) + 'exit 0\n')
        words = ' '.join(['ka.run=sick', 'ka.end=poweroff',
                          *dict.fromkeys(g.words for g in guests)])
        done = subprocess.run(
            [os.path.join(ROOT, 'scripts', 'sweep'), '--kernel', kernel,
             '--share', share, '--append', words, '--timeout', '400',
             '--console', *(o for g in guests for o in g.options),
             *(word for name in FORMATS
               for word in ('--' + name, self.path(name)))],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, check=False, timeout=600)
        self.status = done.returncode
        self.text = done.stdout.decode('utf-8', 'replace').replace('\r', '')
        self.said = done.stderr.decode('utf-8', 'replace')
        self.findings = json.loads(self.read('json'))['findings']

    def path(self, name):
        return os.path.join(self.folder, name)

    def read(self, name):
        with open(self.path(name), encoding='utf-8') as f:
            return f.read()

    @property
    def titles(self):
        return [f['title'] for f in self.findings]

    def in_formats(self):
        """Return {format: [(title, fold)]}: what each format has."""
        cases = ET.fromstring(self.read('junit'))[0].iter('testcase')
        facts = [{p.get('name'): p.get('value') for p in c.iter('property')} |
                 {'name': c.get('name')} for c in cases
                 if c.find('failure') is not None]
        results = json.loads(self.read('sarif'))['runs'][0]['results']
        return {
            'json': [(f['title'], f['fold']) for f in self.findings],
            'junit': [(f['name'], f['fold']) for f in facts],
            'sarif': [(r['properties']['title'],
                       r['partialFingerprints']['kaFold/v1'])
                      for r in results],
        }


def syzkaller_titles(console):
    """Return the titles that syzkaller gives to the reports in a console, or
    None if it is not built."""
    program = os.path.join(paths()['syzkaller'], 'report')
    if not os.path.exists(program):
        return None
    done = subprocess.run([program], input=console, text=True, check=True,
                          capture_output=True, encoding='utf-8')
    return [r['title'] for r in json.loads(done.stdout)]


def check(tap, kernel, run, guests):
    wanted = sorted({(g.kind, g.title) for g in guests} |
                    {pair for g in guests for pair in g.arm64_then})
    found = sorted((f['kind'], f['title']) for f in run.findings)
    tap.ok(found == wanted, f'{kernel}: the findings are as wanted: ' +
           ', '.join(g.name for g in guests),
           f'{found}\n{wanted}\n{run.said}\n{run.text[-3000:]}')
    tap.ok(run.status == max(g.status for g in guests),
           f'{kernel}: the status of sweep', f'{run.status} {run.said}')
    formats = run.in_formats()
    same = {name: sorted(pairs) for name, pairs in formats.items()}
    tap.ok(len({str(pairs) for pairs in same.values()}) == 1,
           f'{kernel}: the formats have the same titles and hashes', same)
    ktap = re.findall(r'^not ok \d+ (.*)', run.read('ktap'), re.M)
    tap.ok(set(run.titles) <= set(ktap), f'{kernel}: KTAP has the titles', ktap)
    theirs = syzkaller_titles(run.text.partition('\nkernel[')[0])
    if theirs is None:
        tap.skip(f'{kernel}: syzkaller has these titles',
                 'scripts/setup --only syzkaller was not run')
        return
    missing = [g.title for g in guests
               if g.syzkaller is True and g.title not in theirs]
    tap.ok(not missing, f'{kernel}: syzkaller has these titles for the console',
           f'{missing} not in {theirs}')
    printed = syzkaller_titles(run.read('kasan-text'))
    missing = [g.title for g in guests
               if g.syzkaller is True and g.title not in printed]
    tap.ok(not missing, f'{kernel}: and for what --kasan-text wrote',
           f'{missing} not in {printed}')


def boots(kernel, short):
    """Yield the guests of each boot: those that can go on together."""
    guests = [g for g in sick.on(kernel) if g.name in QUICK or not short]
    together = [g for g in guests if not g.alone and g.words == sick.CALM and
                not g.options]
    if together:
        yield together
    yield from ([g] for g in guests if g not in together)


def is_prepared(tap, kernel):
    if paths().get('kernel-' + kernel):
        return True
    tap.skip(f'{kernel}: guests', f'scripts/setup --kernel {kernel} was not '
             'run')
    return False


def test_sick(tap, tmp, kernel, short):
    for number, guests in enumerate(boots(kernel, short)):
        with tap.test(f'{kernel}: {guests[0].name}: sweep ends'):
            run = Run(os.path.join(tmp, f'{kernel}-{number}'), kernel, guests)
            check(tap, kernel, run, guests)


def test_well(tap, kernel, workload, *options):
    """A guest that works, and powers off."""
    name = ' '.join([kernel, workload, *options])
    with tap.test(f'{name}: a guest that is well has no finding'):
        said = commands.said('sweep', '--kernel', kernel, '--append',
                             workload + ' ka.end=poweroff', *options,
                             timeout=900)
        assert 'kernel[' not in said, said[-3000:]


def test_well_ones(tap, kernel, short):
    for workload in WORKLOADS[:1 if short else None]:
        test_well(tap, kernel, workload)
        if not short:
            test_well(tap, kernel, workload, '--access')


def main():
    ap = programs.arguments(__doc__, short=', '.join(QUICK), smp=False)
    ap.add_argument('--only', choices=('well', 'sick'))
    args, tap = programs.parse(ap, kernels=None), Tap()
    kernels = () if args.only == 'well' else args.kernel or KERNELS
    well = () if args.only == 'sick' else args.kernel or WELL_KERNELS
    with tempfile.TemporaryDirectory(prefix='ka-sick.') as tmp:
        for kernel in kernels:
            if is_prepared(tap, kernel):
                test_sick(tap, tmp, kernel, args.short)
    for kernel in well:
        if is_prepared(tap, kernel):
            test_well_ones(tap, kernel, args.short)
    tap.done()


if __name__ == '__main__':
    main()
