#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The page of a bug and of a broken run of ka-farm: whole texts, what was kept,
and the command that repeats the run. A stand-in for scripts/sweep writes the
report and a journal, and notes its words. Oracles: what it wrote; the words of
the command of the page, as a shell has them.
"""
import functools
import html.parser
import json
import os
import random
import subprocess
import urllib.parse

from lib import commands, fake_farm
from lib.own_folder import OwnFolder
from lib.tap import Tap
from scripts.lib.farm import results, store
from scripts.lib.farm.folder import Folder

tap = Tap()
own = OwnFolder('ka-test-pages.')
top, path, write = own.top, own.path, own.write
farm = functools.partial(commands.said, 'farm', cwd=top)
# Notes its words in "words.SEED", and does what "do.SEED" says.
SWEEP = """#!/usr/bin/python3
import json, os, runpy, sys
words = sys.argv[1:]
seed = words[words.index('--append') + 1].split()[0][len('ka.seed='):]
with open(os.path.join({folder!r}, 'words.' + seed), 'w') as f:
    json.dump(words, f)
do = runpy.run_path(os.path.join({folder!r}, 'do.py'))['do']
sys.exit(do(seed, dict(zip(words, words[1:]))))
"""
DO = """
import json, os, sys
def do(seed, options):
    print('the console of seed', seed)
    if '--journal' in options:
        with open(options['--journal'], 'wb') as f:
            f.write(os.urandom(100000))
    with open(os.path.join({folder!r}, 'report.' + seed)) as f:
        report = json.load(f)
    if report is None:
        sys.exit('sweep: the disk is full')
    if '--json' in options:
        with open(options['--json'], 'w') as f:
            json.dump(report, f)
    return 2 if report.get('status') == 2 else bool(report['findings'])
"""
PLAN = """
batch = "{}"
[axes]
kernel = ["6.12"]
seed = "1-4"
[[job]]
name = "boot"
append = '''ka.x="a b" $HOME `id` 'q' \\ # ; {{seed}}'''
options = ["--suppress", "/no such/file"]
qemu = ["-device", "edu,x='y'"]
journal = true
[limits]
attempts = 1
"""
DETAIL = 'vcpu0: end\n  cpu_idle_poll+0x1\n  <script>\nvcpu1: end\n  f+0x2'


def finding(title, text, frames):
    return {**fake_farm.finding('double-free', title, 'a'), 'text': text,
            'stacks': [{'what': what, 'frames': frames}
                       for what in ('allocated', 'freed', 'found')]}


FRAMES = [f'a_function_with_a_long_name_{n}+0x{n:x}[a_module]'
          for n in range(64)]
LONG = 'double-free ' + ' '.join(FRAMES * 4) + '\nthe last words'
BUG = finding('close_it', LONG, FRAMES)
QUIET = {**fake_farm.report('6.12', 1, found=[])}
# seed -> what the sweep reports: a bug, an end that nobody asked for, nothing
# and status 2, nothing at all.
REPORTS = {1: {**QUIET, 'findings': [BUG]},
           2: {**QUIET, 'problem': 'the time was over: user space was running',
               'detail': DETAIL},
           3: {**QUIET, 'status': 2}, 4: None}


def night(name, reports, plan=PLAN):
    """Run a night of the reports; return its folder."""
    for seed, made in reports.items():
        write(f'report.{seed}', json.dumps(made))
    farm('plan', write('p.toml', plan.format(name)), '--dir', path(name))
    farm('work', '--index', '0', '--of', '1', '--dir', path(name), '--sweep',
         path('scripts/sweep'))
    return Folder(path(name))


def report(folder, out):
    farm('collect', path(out + '.db'), '--dir', folder.path)
    farm('report', path(out + '.db'), '--out', path(out))
    return {name: Page(path(out, name)) for name in os.listdir(path(out))
            if name.endswith('.html')}


class Page(html.parser.HTMLParser):
    """The text of a page, its links, and the texts of its <pre>."""

    def __init__(self, name):
        super().__init__()
        self.text, self.links, self.pre, self.tag = '', [], [], ''
        with open(name, encoding='utf-8') as f:
            self.feed(f.read())
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tag = tag
        self.links += [value for key, value in attrs if key == 'href']
        if tag == 'pre':
            self.pre.append('')

    def handle_endtag(self, tag):
        self.tag = ''

    def handle_data(self, data):
        self.text += data
        if self.tag == 'pre':
            self.pre[-1] += data


def linked(page, out, end):
    """Return the bytes of the first link with this end."""
    link = next(x for x in page.links if x.endswith(end))
    assert not urllib.parse.urlparse(link).scheme and '..' not in link, link
    with open(path(out, link), 'rb') as f:
        return f.read()


os.mkdir(path('scripts'))
os.chmod(write('scripts/sweep', SWEEP.format(folder=top)), 0o755)
write('do.py', DO.format(folder=top))
n1 = night('n1', REPORTS)
made = report(n1, 'out')
bug = made['bug-aaaaaaaa.html']


def run_page(seed):
    return next(p for name, p in made.items() if name.startswith('run-')
                and f'seed {seed}' in p.text)


with tap.test('the text of a bug is whole, and has each stack, a frame a '
              'line'):
    assert LONG in bug.pre[0] and len(LONG) > 10000
    for what in 'allocated', 'freed', 'found':
        assert f'\n{what}:\n    ' + '\n    '.join(FRAMES) in bug.pre[0], what

with tap.test('its page links to the console, which a browser shows, and to '
              'the journal'):
    assert linked(bug, 'out', '.txt') == b'the console of seed 1\n'
    packed = linked(bug, 'out', '.journal.zst')
    name = next(x for x in bug.links if x.endswith('.journal.zst'))
    with open(n1.file('kept', os.path.basename(name)), 'rb') as f:
        assert packed == f.read() and len(packed) > 90000
    assert 'zstd -d FILE.journal.zst' in bug.text

with tap.test('its page has the command that repeats the run'):
    with open(path('words.1'), encoding='utf-8') as f:
        before = json.load(f)
    for option in '--json', '--top', '--journal':
        at = before.index(option)
        del before[at:at + 2]
    command = next(t for t in bug.pre if t.startswith('scripts/sweep '))
    assert subprocess.run(['sh', '-c', command], cwd=top, check=False,
                          stdout=subprocess.DEVNULL).returncode == 1
    with open(path('words.1'), encoding='utf-8') as f:
        assert json.load(f) == before

with tap.test('a run without an end is broken: its page has the reason, what '
              'the vCPUs did, the console and the command'):
    text = farm('report', path('out.db'))
    assert '6.12: 1 found, 3 broken' in text or '1 found' in text and \
        '3 broken' in text, text
    page = run_page(2)
    assert 'the time was over: user space was running' in page.text
    assert DETAIL in page.pre
    assert linked(page, 'out', '.txt') == b'the console of seed 2\n'
    assert any("'ka.seed=2 ka.x" in t for t in page.pre), page.pre
    index = made['index.html']
    assert {x for x in index.links if x.startswith('run-')} == \
        {n for n in made if n.startswith('run-')}
    assert page.text.count('<script>') == 1

with tap.test('a sweep with status 2, or without a report, is broken'):
    assert 'the sweep ended with status 2: the console of seed 3' in \
        run_page(3).text
    assert 'sweep: the disk is full' in run_page(4).text
    assert 'seed 3: the sweep ended with status 2' in text, text

with tap.test('kept files that are missing, torn, links or no files are '
              'named, and not followed'):
    secret = write('secret', 'a secret')
    logs = sorted(n for n in os.listdir(n1.file('kept')) if '.log.' in n)
    for name, spoil in zip(logs, (
            os.unlink, lambda at: os.truncate(at, 10),
            lambda at: (os.unlink(at), os.symlink(secret, at)),
            lambda at: (os.unlink(at), os.mkfifo(at)))):
        spoil(n1.file('kept', name))
    made = report(n1, 'out')
    said = ' '.join(p.text for p in made.values())
    for name, why in zip(logs, ('No such file', 'not a whole zstd frame',
                                'symbolic link', 'it is no file')):
        assert f"{n1.file('kept', name)} of " in said and why in said, why
    left = os.listdir(path('out/runs'))
    assert not any(n.endswith('.txt') for n in left), left

with tap.test('pages and copies of an older report go; files of others stay'):
    write('out/mine.html', 'mine')
    write('out/runs/mine.txt', 'mine')
    second = night('n2', {n: QUIET for n in REPORTS})
    quiet = {n: QUIET for n in REPORTS}
    made = report(second, 'out')
    assert sorted(made) == ['bug-aaaaaaaa.html', 'index.html', 'mine.html']
    assert len(os.listdir(path('out/runs'))) == 2

with tap.test('the example of a bug is of the last batch that has it'):
    third = night('n3', {**quiet, 2: {**QUIET, 'findings': [
        {**BUG, 'text': 'a new text'}]}})
    bug = report(third, 'out')['bug-aaaaaaaa.html']
    assert bug.pre[0].startswith('a new text')
    assert linked(bug, 'out', '.txt') == b'the console of seed 2\n'

# --- caps --------------------------------------------------------------------

with tap.test('findings whose texts do not fit lose them, the first ones '
              'last; titles and hashes stay'):
    chance = random.Random(1)
    big = [{**BUG, 'title': f'bug {n}', 'text': chance.randbytes(30000).hex()}
           for n in range(300)]
    huge = night('huge', {**quiet, 1: {**QUIET, 'findings': big}})
    found, = [r for key, attempt in huge.names() if (r := results.read(
        huge.file('results', huge.result_name(key, attempt)), key, attempt))
        ['findings']]
    assert [f['title'] for f in found['findings']] == \
        [f'bug {n}' for n in range(300)]
    whole = [f['text'] == b['text'] for f, b in zip(found['findings'], big)]
    kept = whole.index(False)
    assert kept >= 4 and not any(whole[kept:]), kept
    assert found['left_out'] == {'texts': 300 - kept}
    assert found['findings'][-1]['text'] == results.NO_ROOM

with tap.test('a report as large as it can be, of random texts, is a result'):
    def words():
        return ''.join(chr(chance.randrange(0x4e00, 0x9fff))
                       for _ in range(300))
    evil = [{**BUG, 'title': words(), 'alt': [words() for _ in range(16)],
             'fold': f'{n:032x}', 'hidden': words() if n % 2 else None}
            for n in range(1000)]
    night('evil', {**quiet, 1: {**QUIET, 'findings': evil}})
    text = farm('status', '--dir', path('evil'))
    assert text == '4 VMs: 3 clean, 1 found\n', text
    farm('collect', path('evil.db'), '--dir', path('evil'))
    assert store.Store(path('evil.db')).rows('SELECT count(*) FROM finding')

tap.done()
