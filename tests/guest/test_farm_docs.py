#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The commands of docs/farm.md, and those of docs/integrations.md that call
ka-farm, run as they stand there, by a shell. VMs are those of lib/fake_farm.py.

Folders of the pages are below a temporary one here, and the words that stand
for a bug are the hash of one.
Oracle: what the page says of the results.
"""
import json
import os
import re
import subprocess

import yaml

from lib import fake_farm, page_blocks
from lib.own_folder import OwnFolder
from lib.tap import Tap
from scripts.lib.farm import plan
from scripts.lib.prepared import ROOT

tap = Tap()
own = OwnFolder('ka-test-docs.')
top, path, write = own.top, own.path, own.write
FAKE = fake_farm.make(path('fake'))
BUG = 'a' * 32          # the hash of the double free
# Stands for the build of a kernel: its bugs are those of the file "state".
MAKE = """#!/bin/sh
mkdir -p arch/x86/boot
: >arch/x86/boot/bzImage
for i in 0 1 2 3 4 5 6 7 8 9; do
    cp {fake}/$(cat state).$i {fake}/bzImage.$i
done
"""
# A short plan with the jobs that the page names.
PLAN = """
[axes]
kernel = ["6.12"]
seed = "6-9"
[[job]]
name = "boot"
[[job]]
name = "driver"
"""


def in_place(text):
    return text.replace('/srv/', path('srv') + '/') \
        .replace('debs/', path('debs') + '/') \
        .replace('TITLE', BUG).replace('leak in foo_probe', BUG)


def run(text, cwd, **env):
    """Run commands of a page, until one fails; return what they printed."""
    done = subprocess.run(
        ['sh', '-e', '-c', text], cwd=cwd, check=False, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, timeout=300,
        env={**os.environ, 'KA_FARM_SWEEP': FAKE,
             'PATH': path('bin') + ':' + os.environ['PATH'], **env})
    assert done.returncode == 0, f'{text}\n{done.stdout}'
    return done.stdout


def programs():
    """Put ka-farm and make into the PATH, as an installation does."""
    os.mkdir(path('bin'))
    for name, text in (
            ('make', MAKE.format(fake=path('fake'))),
            ('ka-farm', f'#!/bin/sh\nexec {ROOT}/scripts/farm "$@"\n')):
        os.chmod(write('bin/' + name, text), 0o755)


def bugs_from(digits, kernel, found):
    for digit in digits:
        fake_farm.write(path('fake'), kernel, digit,
                        fake_farm.report(kernel, digit, found=found))


def new_folder(name, text=PLAN):
    os.makedirs(path(name))
    write(f'{name}/night.toml', text)
    return path(name)


def check_plan():
    """The plan of the page, with files where it has some."""
    text, = page_blocks.under('farm', 'A plan')
    made = plan.Plan(text, top)
    assert made.limits.vms == 2 and made.limits.attempts == 2
    assert {line.job for line in made.lines} == {'boot', 'driver'}
    # boot: 3 kernels, 20 seeds, smp of 1 and 4; driver: 1 kernel.
    assert len(made.lines) == 3 * 20 * 2 + 20 * 2, len(made.lines)
    selected = re.search(r'`--only ([^`]+seed=1-9[^`]*)`', page_text('farm'))[1]
    # The page's own pattern: kernels 6.1 and 6.12, nine seeds, jobs boot*.
    assert len(plan.select(made.lines, [selected])) == 2 * 9 * 2


def page_text(name):
    with open(os.path.join(ROOT, 'docs', name + '.md'), encoding='utf-8') as f:
        return f.read()


def first_commands():
    text = page_blocks.under('farm', 'Many VMs: ka-farm')[0]
    cwd = new_folder('first')
    os.makedirs(path('srv', 'www'))
    said = run(in_place(text), cwd)
    assert '8 VMs' in said and 'double-free in close_it' in said, said
    assert os.path.exists(path('srv', 'night', 'plan.jsonl'))
    assert os.path.exists(path('srv', 'www', 'ka', 'index.html'))
    database = path('first', 'runs.db')
    line = re.search(r'^`(ka-farm bug DB TITLE NAME)`', page_text('farm'), re.M)
    run(line[1].replace('DB', database).replace('TITLE', BUG), cwd)


def bisect_commands():
    cwd = new_folder('bisect')
    text = next(t for t in page_blocks.under('farm', 'Bisection')
                if 'ka-farm bisect' in t)
    bugs_from(range(10), '6.1', [])
    bugs_from(range(10), '6.12', [fake_farm.DOUBLE])
    bugs_from(range(10), '6.18', [fake_farm.DOUBLE])
    os.mkdir(path('debs'))
    for version, found in (('6.9-1', []), ('6.10-1', [fake_farm.DOUBLE])):
        fake_farm.make_package(own, version)
        bugs_from(range(10), f'vmlinuz-{version}', found)
    by_package, by_name = in_place(text).strip().splitlines()
    said = run(by_package, cwd)
    assert re.search(r'first with the bug: \S*6\.10-1$', said, re.M), said
    os.rename(path('bisect', 'bisect'), path('bisect', 'before'))
    said = run(by_name, cwd)
    assert 'first with the bug: 6.12\n' in said, said


def git(cwd, *words):
    return subprocess.run(
        ['git', '-c', 'user.name=n', '-c', 'user.email=e@x', *words], cwd=cwd,
        check=True, text=True, capture_output=True).stdout.strip()


def git_bisect():
    """Eight commits; the bug is in each from the fifth on."""
    cwd = new_folder('linux')
    text = next(t for t in page_blocks.under('farm', 'Bisection')
                if 'git bisect run' in t)
    bugs_from(range(10), 'good', [])
    bugs_from(range(10), 'bad', [fake_farm.DOUBLE])
    git(cwd, 'init', '-q')
    for n in range(8):
        write('linux/state', 'good' if n < 4 else 'bad')
        write('linux/n', str(n))
        git(cwd, 'add', 'state', 'n')
        git(cwd, 'commit', '-q', '-m', str(n))
    git(cwd, 'bisect', 'start', 'HEAD', 'HEAD~7')
    said = run(in_place(text), cwd)
    assert 'is the first bad commit' in said, said
    assert git(cwd, 'log', '-1', '--format=%s', 'refs/bisect/bad') == '4', said


def github_jobs():
    text = page_blocks.under('integrations', 'A matrix of jobs')[0]
    jobs = yaml.safe_load(text)['jobs']
    cwd = new_folder('github')
    index = jobs['vms']['strategy']['matrix']['index']
    for run_number, some in (9, index[:1]), (10, index):
        for i in some:
            job = new_folder(f'github/job-{run_number}-{i}')
            run(runs_of(jobs['vms'], run_number, i), job)
            # What upload-artifact and download-artifact do.
            os.rename(os.path.join(job, 'night'),
                      os.path.join(cwd, f'night-{i}'))
        run(runs_of(jobs['report'], run_number), cwd,
            GITHUB_STEP_SUMMARY=path('github', 'summary'))
        for i in some:
            os.rename(os.path.join(cwd, f'night-{i}'),
                      path('github', f'old-{run_number}-{i}'))
    with open(path('github', 'summary'), encoding='utf-8') as f:
        said = f.read()
    assert 'batch 000010, compared with 1 before (last: 000009)' in said, said
    for job in jobs.values():
        assert 'runs-on' in job, 'GitHub refuses a job without runs-on'
    keep, = (s for s in jobs['vms']['steps'] if 'uses' in s)
    assert keep['if'] == 'always()', 'a worker that fails loses its results'


def runs_of(job, number, index=''):
    """Return what GitHub runs of a job."""
    text = '\n'.join(s['run'] for s in job['steps'] if 'run' in s)
    return text.replace('${{ github.run_number }}', str(number)) \
        .replace('${{ matrix.index }}', str(index))


def kubernetes_job():
    text, = page_blocks.under('integrations', 'Kubernetes')
    spec = yaml.safe_load(text)['spec']
    container, = spec['template']['spec']['containers']
    place, = container['volumeMounts']
    cwd = new_folder('kubernetes')
    run(f"ka-farm plan night.toml --dir {path('night')}", cwd)
    words = [w.replace(place['mountPath'], path('night'))
             for w in container['command']]
    run(' '.join(words), cwd, JOB_COMPLETION_INDEX='3')
    said = run(f"ka-farm status --dir {path('night')}", cwd)
    # A hundred workers, eight lines: this one has the fourth.
    assert '7 missing' in said, said
    assert spec['completions'] == 100 and words[-1] == '100'


def kernelci_report():
    text, = page_blocks.under('integrations', 'KernelCI')
    run(text, path('first'))
    with open(path('first', 'night.json'), encoding='utf-8') as f:
        made = json.load(f)
    assert {t['path'] for t in made['tests']} == {'ka.errors'}
    assert all(i['id'].startswith('ka:') for i in made['issues'])


programs()
with tap.test('the plan of farm.md, and its pattern of --only'):
    check_plan()
with tap.test('the first commands of farm.md, and ka-farm bug'):
    first_commands()
with tap.test('farm.md: bisect by packages and by kernels'):
    bisect_commands()
with tap.test('farm.md: git bisect run'):
    git_bisect()
with tap.test('integrations.md: jobs of GitHub'):
    github_jobs()
with tap.test('integrations.md: a job of Kubernetes'):
    kubernetes_job()
with tap.test('integrations.md: a report for KernelCI'):
    kernelci_report()
tap.done()
