#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What users of ka-farm meet: files that are missing, runs that are broken,
names that do not exist. Each has one line that says what is wrong. VMs are
those of lib/fake_farm.py."""
import functools
import os

from lib import commands, fake_farm
from lib.own_folder import OwnFolder
from lib.tap import Tap
from scripts.lib.farm import bisect, plan, sweeps, work
from scripts.lib.farm.folder import Folder

tap = Tap()
own = OwnFolder('ka-test-use.')
top, path, write = own.top, own.path, own.write
FAKE = fake_farm.make(os.path.join(top, 'fake'))
farm = functools.partial(commands.said, 'farm', cwd=top)
PLAN = """
batch = "n1"
[axes]
kernel = ["old", "./no/bzImage"]
seed = "8-9"
smp = [1, 4]
[[job]]
name = "boot"
append = "ka.n={seed}"
share = "share/{kernel}"
"""


with tap.test('plan names what is not on this machine'):
    text = farm('plan', write('p.toml', PLAN), '--dir', path('d'))
    for name, why in (
            ('kernel old', 'no kernel of that name is prepared'),
            (f"kernel {path('no/bzImage')}", 'there is no such file'),
            (f"share {path('share/old')}", 'there is no such file')):
        assert f'ka-farm: warning: {name}: {why} on this machine (4 VMs)\n' \
            in text, text
    write('odd.toml', PLAN.replace('{seed}', '{sed} {2}'))
    said = farm('plan', path('odd.toml'), '--dry-run')
    assert 'append: {sed} is not replaced, it is none of {kernel}' in said
    assert said.count('not replaced') == 1, said
    os.makedirs(path('share/old'))
    assert 'share/old' not in farm('plan', path('p.toml'), '--dry-run')

with tap.test('status -v names VMs that are missing, broken or unreadable'):
    farm('plan', path('p.toml'), '--only', 'kernel=old', '--dir', path('d'))
    text = farm('status', '-v', '--dir', path('d'))
    assert text.startswith('4 VMs: 4 missing\n') and all(
        f'boot old seed={seed} smp={smp} mem=1G\n' in text
        for seed in (8, 9) for smp in (1, 4)), text
    farm('work', '--index', '0', '--of', '1', '--dir', path('d'), '--sweep',
         FAKE)
    text = farm('status', '-v', '--dir', path('d'))
    assert text.startswith('4 VMs: 2 broken, 2 found\n'), text
    assert 'boot old seed=9 smp=4 mem=1G: the guest panicked: ' in text, text

with tap.test('folders and databases that do not exist are named'):
    for words, text in (
            (('report', 'no.db'), 'no.db: no such file; ka-farm collect makes'),
            (('bug', 'no.db', 'x', 'y'), 'no.db: no such file'),
            (('collect', 'x.db', '--dir', 'no'), 'ka-farm plan makes this'),
            (('status', '--dir', 'no'), 'ka-farm plan writes it')):
        said = farm(*words, status=2)
        assert text in said and said.count('\n') == 1, said
    assert not os.path.exists(path('no.db'))
    assert not os.path.exists(path('x.db'))

with tap.test('a decision about a title that no finding has: a warning'):
    farm('collect', path('x.db'), '--dir', path('d'))
    said = farm('bug', path('x.db'), 'leak in x', 'one')
    assert "has the title, hash or name 'leak in x' yet" in said, said
    assert farm('bug', path('x.db'), 'leak in probe_it', 'one') == ''

with tap.test('bisect: each kernel has its share, and each line its seed'):
    lines = bisect.lines_of(path('p.toml'), 'boot')('new', 3)
    assert [(x.kernel, x.share, x.append, x.smp) for x in lines] == [
        ('new', path('share/new'), f'ka.n={seed}', 1) for seed in (1, 2, 3)]

with tap.test('bisect says why a kernel cannot be judged'):
    text = farm('bisect', path('p.toml'), '--bug', 'x', '--kernel', 'none',
                '--kernel', 'new', '--sweep', FAKE, status=2)
    assert 'none: 2 runs do not decide: ' in text, text
    assert 'the first kernel must be without the bug' in text, text

with tap.test('bisect names other findings: the title may be mistyped'):
    text = farm('bisect', path('p.toml'), '--bug', 'leek', '--seeds', '8',
                '--kernel', 'old', '--kernel', 'new', '--sweep', FAKE,
                status=2)
    assert "new: 8 runs without the bug, but with 'double-free in close_it'," \
        " 'leak in probe_it'\n" in text, text

with tap.test('names of batches, jobs, kernels and limits that do not exist: '
              'one line says what there is'):
    folder = path('d')
    two = path('b2.toml')
    write('b2.toml', PLAN.replace('"n1"', '"n2"'))
    farm('plan', two, '--only', 'kernel=old', '--dir', folder)
    farm('work', '--index', '0', '--of', '1', '--dir', folder, '--sweep', FAKE)
    farm('collect', path('x.db'), '--dir', folder)
    for words, text in (
            (('report', 'x.db', '--batch', 'n9'), "no batch 'n9'; the last "
             'ones: n1 n2'),
            (('report', 'x.db', '--batch', ''), "no batch ''"),
            (('report', 'x.db', '--since', 'n0'), "no batch 'n0'"),
            (('report', 'x.db', '--batch', 'n1', '--since', 'n2'),
             "batch 'n2' is not before 'n1'"),
            (('plan', two, '--batch', 'a b', '--dry-run'),
             "batch 'a b' is no name: at most 64 letters"),
            (('plan', two, '--batch', '', '--dry-run'), "batch '' is no name"),
            (('plan', two, '--only', 'job=boot*,kernel=odl', '--dry-run'),
             'kernel=odl: no line has it; kernel of the lines: '),
            (('bisect', two, '--bug', 'x', '--job', 'b*', '--kernel', 'old',
              '--kernel', 'new'), "no job 'b*' in the plan; there are: boot"),
            (('bisect', two, '--bug', 'x', '--kernel', 'no-such',
              '--kernel', 'old'), 'kernel no-such: no kernel of that name'),
            (('step', two, '--bug', 'x', '--kernel', './no-such', '--name',
              'c'), 'there is no such file'),
            (('step', two, '--bug', 'x', '--kernel', 'old', '--name', 'c',
              '--sweep', FAKE, '--seeds', '0'), '--seeds 0 is not 1 or more'),
            (('work', '--index', '0', '--of', '0', '--dir', folder),
             '--of 0 is not 1 or more')):
        said = farm(*words, status=2)
        assert text in said, (text, said)
        assert len(said.splitlines()) == 1 + said.count(': warning: '), said
    for text, word in (('minutes = 0', 'minutes is not 1 to'),
                       ('attempts = 0', 'attempts is not 1 to'),
                       ('hours = 1', "no key 'hours'; there are: vms")):
        write('bad.toml', PLAN + f'[limits]\n{text}\n')
        said = farm('plan', path('bad.toml'), '--dry-run', status=2)
        assert word in said and said.count('\n') == 1, said

with tap.test('options of sweep that do not exist, or that ka-farm gives, are '
              'refused'):
    for job, text in (
            ('options = ["--laeks"]', 'unrecognized arguments: --laeks'),
            ('options = ["--marker", ""]', '--marker: '),
            ('options = ["--max-growth", "x", "9z"]', '--max-growth: '),
            ('options = ["--json", "/x"]', '--json is given by ka-farm'),
            ('options = ["--jour", "/x"]', 'write journal = true into'),
            ('options = ["--timeout", "9"]', 'write timeout into the job'),
            ('options = ["--suppress", "x"]', "--suppress 'x' is no absolute"),
            ('options = ["--", "-s"]', 'write arguments of QEMU into qemu'),
            ('options = ["--help"]', 'they only print a help'),
            ('run = "x.sh"\noptions = ["--marker", "x"]', '--run and --marker')
            ):
        write('bad.toml', PLAN + job + '\n')
        said = farm('plan', path('bad.toml'), '--dry-run', status=2)
        assert "job 'boot': options: " in said and text in said and \
            said.count('\n') == 1, said
    write('good.toml', PLAN + 'run = "x.sh"\nexpect = ["all done"]\n'
          'options = ["--leaks", "--suppress", "/no/{kernel}"]\n')
    said = farm('plan', path('good.toml'), '--only', 'kernel=old', '--dir',
                path('good'))
    for text in f"run {path('x.sh')}: there", '--suppress /no/old: there is':
        assert text in said, said
    made = Folder(path('good')).plan()[0][0]
    assert made.run == path('x.sh') and made.expect == ('all done',)
    words = sweeps.repeat_command(made)
    assert words[words.index('--run') + 1] == path('x.sh')
    assert words[words.index('--expect') + 1] == 'all done'

with tap.test('report --since goes back as far as it says'):
    since = Folder(path('since'))
    since.make()
    lines = [x for n in range(3, 20) for x in plan.select(plan.Plan(
        PLAN, top, f'n{n:03}').lines, ['kernel=old,seed=8,smp=1'])]
    work.Worker(since, plan.Limits(), FAKE, lambda _: None).work(lines)
    farm('collect', path('since.db'), '--dir', path('since'))
    assert 'compared with 14 before' in farm('report', path('since.db'))
    text = farm('report', path('since.db'), '--since', 'n003')
    assert 'compared with 16 before' in text, text

tap.done()
