#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""ka-farm without VMs and without an engine: plans, results, the database, its
questions, reports and bisection. Runs are those of lib/fake_farm.py, so what
must come out is known. Oracle for the pages: Python's own parser of HTML; for
the database: sqlite3's `.dump` of the same results collected in other ways.
"""
import functools
import html.parser
import json
import os
import shutil
import sqlite3

from lib import commands, fake_farm
from lib.own_folder import OwnFolder
from lib.tap import Tap
from scripts.lib.farm import (FarmError, bisect, bugs, kcidb, pages, plan,
                              questions, results, store, sweeps, texts, work)
from scripts.lib.farm.folder import Folder

tap = Tap()
own = OwnFolder('ka-test-farm.')
top, path, write = own.top, own.path, own.write
FAKE = fake_farm.make(os.path.join(top, 'fake'))
farm = functools.partial(commands.said, 'farm')
PLAN = """
batch = "n1"
[axes]
kernel = ["6.12", "6.1"]
seed = "0-9"
[[job]]
name = "boot"
append = "ka.run=x ka.n={seed} ka.end=poweroff"
"""


def refused(function, *args, word=''):
    try:
        function(*args)
    except FarmError as e:
        assert word in str(e), f'{word!r} is not in {str(e)!r}'
        return
    raise AssertionError(f'{args!r:.200} was taken')


def run(name, batch='n1', text=PLAN, fake=FAKE):
    """Run a plan with fake VMs in this process; return the folder."""
    folder = Folder(path(name))
    made = plan.Plan(text, top, batch)
    folder.write_plan(made.lines, made.limits)
    work.Worker(folder, made.limits, fake, lambda _: None).work(made.lines)
    return folder


def collect(db, *folders):
    """Collect folders; return the lines that were said."""
    said = []
    with store.writer(path(db)) as made:
        for folder in folders:
            store.collect(made, folder, said.append)
    return said


def dump(db, leave_out='timing'):
    with sqlite3.connect(path(db)) as made:
        return [line for line in made.iterdump()
                if f'INTO "{leave_out}"' not in line]


def view(db, *args):
    return questions.View(store.Store(path(db)), *args)


# --- plans -------------------------------------------------------------------

with tap.test('the same plan has the same lines and keys; texts are replaced'):
    one, two = (plan.Plan(PLAN, '/x') for _ in range(2))
    assert [x.key for x in one.lines] == [x.key for x in two.lines]
    assert len({x.key for x in one.lines}) == len(one.lines) == 20
    assert one.lines[3].append == 'ka.run=x ka.n=3 ka.end=poweroff'
    other = plan.Plan(PLAN, '/x', 'n2')
    assert not {x.key for x in one.lines} & {x.key for x in other.lines}
    again, limits = plan.parse(plan.render(one.lines, one.limits))
    assert again == one.lines and limits == one.limits

with tap.test('--only cuts a plan, --dry-run writes nothing'):
    assert len(plan.select(one.lines, ['kernel=6.12', 'seed=1,2'])) == 2
    assert len(plan.select(one.lines, ['job=b*', 'seed=9'])) == 2
    assert len(plan.select(one.lines, ['kernel=6.12,job=boot*'])) == 10
    got = plan.select(one.lines, ['kernel=6.1,6.12,job=b*,seed=1-3,7'])
    assert len(got) == 8 and {x.seed for x in got} == {1, 2, 3, 7}
    assert not plan.accepts('6.1-6.12', '6.5')
    for only, word in (('name=x', "'name' is no key of a line; keys are "),
                       ('6.12', 'is not KEY=VALUE'), ('', 'is not KEY=VALUE'),
                       ('kernel=6.12,jobs=boot', "'jobs' is no key"),
                       ('kernel=6.12,kernel=6.1', 'there twice'),
                       ('kernel=6.12,6.13', 'kernel=6.13: no line has it; '
                        'kernel of the lines: 6.1 6.12'),
                       ('job=', "job=: no line has it"),
                       ('kernel=6.12,seed=77', 'seed=77: no line has it; seed '
                        'of the lines: 0 1 2 3 4 5 6 7 8 9')):
        refused(plan.select, one.lines, [only], word=word)
    refused(plan.select, one.lines, ['seed=1', 'seed=2'],
            word='no line has all of it')
    write('p.toml', PLAN)
    text = farm('plan', path('p.toml'), '--dry-run', '--dir', path('none'))
    assert text.count(' boot 6.1') == 20 and text.endswith('20 VMs\n'), text
    assert not os.path.exists(path('none'))

with tap.test('paths of a plan are relative to it; a job has its own axes'):
    job = PLAN + 'kernel = ["./vmlinuz-{smp}"]\nshare = "s/{kernel}"\n' \
        'smp = [1, 4]\n'
    made = plan.Plan(job, '/plans').lines
    assert len(made) == 20 and made[0].kernel == '/plans/vmlinuz-{smp}'
    assert plan.Plan(PLAN + 'share = "s/{kernel}"\n', '/p').lines[0].share \
        == '/p/s/6.12'

with tap.test('a wrong plan is refused by one line that says where'):
    for text, word in (
            ('x', 'plan: '), ('a = 1', "no key 'a'"), ('', 'no [[job]]'),
            (PLAN + 'colour = 1', "no key 'colour'"),
            (PLAN + 'smp = "x"', "'x' is not N"),
            (PLAN + 'smp = [0]', 'smp is not 1'),
            (PLAN + 'smp = "1-4,2"', 'smp: 2 is there twice'),
            (PLAN + 'seed = "1-99999999"', 'not N or N-M'),
            (PLAN + 'smp = [true]', 'True is no int'),
            (PLAN + 'timeout = "1"', 'no int'),
            (PLAN + 'options = "--leaks"', 'not a list'),
            (PLAN + 'mem = ["1T"]', 'no size'),
            (PLAN.replace('"boot"', '"a b"'), 'no name'),
            (PLAN.replace('kernel', 'smp', 1), 'no kernel'),
            (PLAN + '[[job]]\nname="boot"\nappend="ka.run=x ka.n={seed} '
             'ka.end=poweroff"\n', 'twice'),
            (PLAN + '[limits]\nvms = -1\n', 'vms is not')):
        refused(plan.Plan, text, '/', word=word)
    for text in '', '[]\n', '{"ka_farm_plan": 2}\n', '[' * 100000:
        refused(plan.parse, text, word='plan.jsonl')

with tap.test('a worker knows from its engine who it is'):
    for names, want in (({'SLURM_ARRAY_TASK_ID': '3',
                          'SLURM_ARRAY_TASK_COUNT': '7'}, (3, 7)),
                        ({'JOB_COMPLETION_INDEX': '0'}, (0, 9)),
                        ({'BUILDKITE_PARALLEL_JOB': '1',
                          'BUILDKITE_PARALLEL_JOB_COUNT': '2'}, (1, 2)),
                        ({'CI_NODE_INDEX': '1', 'CI_NODE_TOTAL': '2'}, (0, 2)),
                        ({'KA_FARM_INDEX': '4', 'KA_FARM_OF': '5'}, (4, 5))):
        os.environ.update(names)
        of = 9 if len(names) == 1 else None
        assert work.who(None, of) == want, names
        for name in names:
            os.environ[name] = 'x'
        refused(work.who, None, of, word='no number')
        for name in names:
            del os.environ[name]
    refused(work.who, None, 3, word='which worker')
    refused(work.who, 3, 3, word='0 to 2')

# --- results -----------------------------------------------------------------

n1 = run('n1')

with tap.test('each line has a result; a VM without an end is run twice'):
    attempts = n1.attempts()
    assert sorted(attempts.values()) == [1] * 18 + [2] * 2
    assert 'missing' not in farm('status', '--dir', n1.path)
    before = sorted(os.listdir(n1.results))
    farm('work', '--index', '0', '--of', '1', '--dir', n1.path,
         env={**os.environ, 'KA_FARM_SWEEP': '/bin/false'})
    assert sorted(os.listdir(n1.results)) == before

with tap.test('a result has what the sweep wrote; equal stacks are one'):
    line = next(x for x in plan.Plan(PLAN, top).lines if x.seed == 8)
    r = results.read(n1.file('results', n1.result_name(line.key, 1)),
                     line.key, 1)
    assert r['verdict'] == 'found' and len(r['findings']) == 2
    assert r['facts']['kernel'] == '6.12.1-test'
    assert r['stat'] == {'events.checked': 1008}
    stack, = r['accounts']
    assert stack['frames'] == ['kmalloc', 'm:setup'] or \
        stack['frames'] == ['kmalloc', 'setup'], stack
    assert r['others']['live'] + sum(a['live'] for a in r['accounts']) == 10000
    kept = n1.file('kept', r['artefacts'][0]['name'])
    with open(kept, 'rb') as f:
        assert results.unpack(f.read()) == b'console of 6.12, seed 8\n'

GOOD = r


def changed(**more):
    return {**GOOD, **more}


def with_finding(**more):
    return changed(findings=[{**GOOD['findings'][0], **more}])


def deep(n):
    return b'[' * n + b']' * n


HOSTILE = {
    'unknown schema': changed(schema=3),
    'a key more': changed(more=1),
    'a key less': {k: v for k, v in GOOD.items() if k != 'facts'},
    'another line': changed(line={**GOOD['line'], 'seed': 7}),
    'a wrong line': changed(line={**GOOD['line'], 'batch': '../x'}),
    'another attempt': changed(attempt=3),
    'no verdict': changed(verdict='good'),
    'a list as a verdict': changed(verdict=[]),
    'too many findings': changed(findings=GOOD['findings'] * 1001),
    'a long title': with_finding(title='x' * 5000),
    'a newline in a title': with_finding(title='a\nb'),
    'half a pair': with_finding(title='a\ud800b'),
    'a NUL': with_finding(kind='a\0b'),
    'a fold that is no hash': with_finding(fold='../../etc'),
    'a long text': with_finding(text='x' * 100000),
    'a huge number': with_finding(blocks=1 << 80),
    'a negative number': with_finding(blocks=-1),
    'a float as a number': with_finding(blocks=1.5),
    'true as a number': changed(attempt=True),
    'a counter that is a text': changed(stat={'a': 'b'}),
    'too many counters': changed(stat={str(n): n for n in range(2000)}),
    'a list as facts': changed(facts=[]),
    'findings that are no objects': changed(findings=[1, None, 'x']),
    'null': None, 'a list': [], 'a text': 'x',
}
RAW = {
    'no JSON': b'{', 'no UTF-8': b'"\xff"', 'nothing': b'',
    'deep JSON': deep(200000), 'NaN': b'NaN', 'a long number': b'1' * 100000,
    'a bomb': b' ' * (64 << 20),
}


def hostile_files(folder):
    """Write files that are no results of these keys; return their names."""
    names = []

    def put(data):
        name = folder.result_name(f'{len(names):032x}', 1)
        folder.write(os.path.join('results', name), data)
        names.append(name)

    for made in HOSTILE.values():
        if made and isinstance(made, dict) and 'key' in made:
            made = {**made, 'key': f'{len(names):032x}'}
        put(results.pack(json.dumps(made).encode()))
    for data in RAW.values():
        put(results.pack(data))
    whole = results.pack(json.dumps(GOOD).encode())
    for data in (b'', whole[:-1], whole[:len(whole) // 2], whole[:3],
                 whole + b'x', whole + whole, b'x' * (2 << 20),
                 whole[:40] + bytes([whole[40] ^ 1]) + whole[41:], whole):
        put(data)
    for make in (os.mkfifo, os.mkdir, lambda at: os.symlink('/dev/zero', at),
                 lambda at: os.symlink(folder.file('plan.jsonl'), at)):
        name = folder.result_name(f'{len(names):032x}', 1)
        make(folder.file('results', name))
        names.append(name)
    for name in 'x', 'a\nb', 'KEY.1.json.zst', '\x1b[31m':
        with open(folder.file('results', name), 'wb'):
            pass
        names.append(name)
    return names


with tap.test('hostile and torn files are named and skipped'):
    collect('good.db', n1)
    bad = Folder(path('bad'))
    shutil.copytree(n1.path, bad.path)
    names = hostile_files(bad)
    said = collect('bad.db', bad)
    assert len(said) == len(names), f'{len(said)} of {len(names)}: {said}'
    for name in names:
        assert any(s.startswith(f'{name!a}: skipped: ') for s in said), name
    assert dump('good.db') == dump('bad.db')
    text = farm('collect', path('bad2.db'), '--dir', bad.path, status=1)
    assert '22 results collected' in text and '\x1b' not in text, text

with tap.test('each value that a result may not have is refused'):
    for what, made in HOSTILE.items():
        if what not in ('another attempt',):
            try:
                results.check(json.loads(json.dumps(made)))
            except results.BadResult:
                continue
            raise AssertionError(what)

with tap.test('zstd the program reads and writes the same as the module'):
    have, results.zstandard = results.zstandard, None
    packed = results.pack(b'x' * 1000)
    assert results.unpack(packed) == b'x' * 1000
    for data in (packed[:-1], b'', packed + b'x', results.pack(
            b' ' * (64 << 20))):
        refused(results.unpack, data)
    results.zstandard = have
    if have:
        assert results.unpack(packed) == b'x' * 1000

with tap.test('what a sweep writes that no reader knows becomes a result'):
    for made in ({}, [], 1, None, {'findings': [{}]}, {'findings': 1},
                 {'findings': [], 'problem': 5}, {'top': [{}]}):
        where = write('json', json.dumps(made))
        got = sweeps.read(where, 'why')
        assert got['verdict'] == 'broken' and got['reason'], made
    got = sweeps.read(write('json', ''), 'why not')
    assert got['reason'] == 'why not'
    evil = fake_farm.finding('\x1b[31m<b>', '\ud800\nx' * 999, 'zz')
    got = sweeps.parts({'findings': [evil], 'stat': {'a\nb': 1}, 'facts': {
        'kernel': '\0'}, 'top': [], 'warnings': ['a\nb']})
    results.check({**GOOD, **got})

with tap.test('too many findings are cut, and the rest is counted'):
    made = results.cut({**GOOD, 'left_out': {},
                        'findings': GOOD['findings'] * 600})
    assert len(made['findings']) == 1000
    assert made['left_out'] == {'findings': 200}

# --- the database ------------------------------------------------------------

with tap.test('collecting twice, in parts or in another order: the same'):
    before = dump('good.db', '')
    collect('good.db', n1, n1)
    assert dump('good.db', '') == before
    half = Folder(path('half'))
    shutil.copytree(n1.path, half.path)
    for name in sorted(os.listdir(half.results))[::2]:
        os.unlink(half.file('results', name))
    collect('half.db', half, n1)
    assert dump('half.db', '') == before
    again = run('again')
    collect('again.db', again)
    assert dump('again.db') == dump('good.db')

with tap.test('a torn result is run again'):
    shutil.copytree(n1.path, path('torn'))
    torn = Folder(path('torn'))
    name = sorted(os.listdir(torn.results))[0]
    os.truncate(torn.file('results', name), 50)
    assert '1 unreadable' in farm('status', '--dir', torn.path)
    farm('work', '--index', '0', '--of', '1', '--dir', torn.path,
         '--sweep', FAKE)
    assert collect('torn.db', torn) == []
    assert dump('torn.db') == dump('good.db')

with tap.test('a database of another version, or none, is not touched'):
    write('other.db', 'x' * 10000)
    refused(collect, 'other.db', n1, word='not a database')
    sqlite3.connect(path('later.db')).execute('PRAGMA user_version = 9')
    refused(collect, 'later.db', n1, word='version 9')
    refused(store.Store, path('none.db'), word='none.db')

# --- questions ---------------------------------------------------------------

SOME = PLAN.replace('0-9', '0-8')


def other_fake(name, change):
    """A fake whose reports of some digits are others."""
    program = fake_farm.make(path(name))
    for kernel in '6.1', '6.12':
        for digit in range(10):
            fake_farm.write(path(name), kernel, digit, fake_farm.report(
                kernel, digit, **change(kernel, digit)))
    return program


NEW = fake_farm.finding('overlap', 'new_it', 'd')
quiet = other_fake('fake-quiet', lambda kernel, digit: {'found': []})
always = other_fake('fake-always', lambda kernel, digit: {
    'found': [NEW] if kernel == '6.12' else
    [fake_farm.DOUBLE] if digit == 1 else [], 'grown': 1 << 20})
collect('nights.db', run('q1', 'q1', SOME, quiet), run('q2', 'q2', SOME),
        run('q3', 'q3', SOME, always))

with tap.test('bugs: by hash and by title; two findings of one title are one'):
    second = view('nights.db', 'q2')
    seen = {row.bug.title: row for row in second.rows}
    assert set(seen) == {'double-free in close_it', 'leak in probe_it',
                         'overlap in new_it'}
    double = seen['double-free in close_it']
    assert double.bug.folds == {'a' * 32, 'b' * 32}
    assert double.rates == {'6.1': (2, 9), '6.12': (2, 9)}

with tap.test('new, flaky, gone and maybe, by kernel'):
    assert double.states == {'6.1': 'new', '6.12': 'new'}
    last = view('nights.db')
    states = {r.bug.title: r.states for r in last.rows}
    assert last.batch == 'q3' and last.before == ['q1', 'q2']
    assert states['overlap in new_it'] == {'6.1': '', '6.12': 'new'}
    assert states['double-free in close_it'] == {'6.1': 'flaky',
                                                 '6.12': 'maybe'}
    first = view('nights.db', 'q1')
    assert not first.shown('new', 'first', 'known', 'flaky')
    cell = questions.Cell
    assert questions.state({'j': cell(0, 30)}, {'j': cell(2, 9)}, True) == \
        'gone'
    assert questions.state({'j': cell(3, 3)}, {'j': cell(2, 2)}, True) == \
        'known'
    assert questions.state({'j': cell(3, 3)}, {}, False) == 'first'
    assert questions.state({'j': cell(0, 0)}, {'j': cell(1, 1)}, True) == \
        'maybe'

with tap.test('live bytes that grew, and what grew little'):
    rows = last.growth()
    assert {r[0] for r in rows} == {2 << 20, -(1 << 20)} or \
        {r[0] for r in rows} == {2 << 20}, rows
    assert not second.growth()
    trend = last.trend()['6.12']
    assert [p[0] for p in trend] == ['q1', 'q2', 'q3']
    assert [p[4] for p in trend] == [0, 2, 1], trend
    assert trend[2][5] == 10000 + (1 << 20), trend

with tap.test('people join and split bugs; collecting again keeps that'):
    for title in 'leak in probe_it', 'double-free in close_it':
        farm('bug', path('nights.db'), title, 'the one')
    assert len(bugs.find(store.Store(path('nights.db')))) == 2
    farm('bug', path('nights.db'), 'leak in probe_it', 'another')
    collect('nights.db', Folder(path('q2')))
    assert len(bugs.find(store.Store(path('nights.db')))) == 3
    for title in 'leak in probe_it', 'double-free in close_it':
        farm('bug', path('nights.db'), title)

# --- reports -----------------------------------------------------------------


class Reader(html.parser.HTMLParser):
    """The elements and attributes of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text, self.links = set(), '', []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        for key, value in attrs:
            assert not key.startswith('on') and key != 'src', key
            if key == 'href':
                self.links.append(value)

    def handle_data(self, data):
        self.text += data


TAGS = set('html head meta title style body h1 h2 p a table tr th td pre svg '
           'polyline'.split())


def read_pages(folder):
    made = {}
    for at, _, names in os.walk(folder):
        for name in names:
            name = os.path.relpath(os.path.join(at, name), folder)
            with open(os.path.join(folder, name), encoding='utf-8') as f:
                made[name] = f.read()
    return made


with tap.test('pages and text say the same; links lead to pages'):
    text = farm('report', path('nights.db'), '--out', path('pages'))
    made = read_pages(path('pages'))
    assert made['report.txt'] == text
    index = Reader(made['index.html'])
    assert index.tags <= TAGS, index.tags - TAGS
    for title in 'overlap in new_it', 'double-free in close_it':
        assert title in index.text and title in text
    assert index.links and all(link in made for link in index.links)
    assert 'new in this batch:\n' in text and '6.12 9/9' in text, text
    assert 'an example' in made[index.links[0]].lower()

with tap.test('hostile names stay names in pages, in text and in KCIDB'):
    evil = '</pre></td><script>alert(1)</script><img src=x onerror=y>"\'&'
    names = other_fake('fake-evil', lambda kernel, digit: {'found': [
        {**fake_farm.finding(evil, '../..' + evil + '\n\u202ex', 'e'),
         'text': evil * 3}]} if digit < 2 else {'found': []})
    collect('evil.db', run('evil', 'e1', PLAN.replace('0-9', '0-3'), names))
    shown = view('evil.db')
    pages.write(shown, path('evil-pages'))
    made = read_pages(path('evil-pages'))
    assert sorted(n for n in made if not n.startswith('runs/')) == [
        'bug-eeeeeeee.html', 'index.html', 'report.txt']
    for name in 'index.html', 'bug-eeeeeeee.html':
        assert Reader(made[name]).tags <= TAGS, name
        assert '<script>' in Reader(made[name]).text
    assert all(c.isprintable() or c == '\n' for c in texts.render(shown))
    json.dumps(kcidb.document(shown))

with tap.test('KCIDB: ids, states and references'):
    report = kcidb.document(last)
    builds = {b['id'] for b in report['builds']}
    tests = {t['id']: t for t in report['tests']}
    issues = {i['id'] for i in report['issues']}
    assert {b['checkout_id'] for b in report['builds']} == \
        {c['id'] for c in report['checkouts']}
    assert all(t['build_id'] in builds for t in tests.values())
    assert sorted(t['status'] for t in tests.values()) == \
        ['FAIL'] * 10 + ['PASS'] * 8
    for i in report['incidents']:
        assert i['issue_id'] in issues
        assert tests[i['test_id']]['status'] == 'FAIL'
    assert 'null' not in json.dumps(report)

# --- bisection ---------------------------------------------------------------

with tap.test('bisect finds the first kernel with a bug, by title or hash'):
    made = fake_farm.make(path('fake-bisect'))
    kernels = [f'k{n}' for n in range(9)]
    for n, kernel in enumerate(kernels):
        for digit in range(10):
            found = [fake_farm.DOUBLE] if n >= 5 and digit != 1 else \
                [fake_farm.LEAK]
            fake_farm.write(path('fake-bisect'), kernel, digit,
                            fake_farm.report(kernel, digit, found=found))
    write('b.toml', PLAN)
    words = [x for k in kernels for x in ('--kernel', k)]
    for bug in 'double-free in close_it', 'a' * 32:
        text = farm('bisect', path('b.toml'), *words, '--bug', bug,
                    '--rate', '0.8', '--sweep', made, '--dir', path('bis'))
        assert 'last without the bug: k4\nfirst with the bug: k5\n' in text
    text = farm('bisect', path('b.toml'), *words[2:-8], '--bug', bug,
                '--sweep', made, '--dir', path('bis2'), status=2)
    assert 'k4 is good, it should be bad' in text, text
    assert bisect.runs_needed(1) == 1 and bisect.runs_needed(0.5) == 5
    refused(bisect.runs_needed, 0)

with tap.test('a kernel that cannot be judged is passed by'):
    answers = {'a': 'good', 'b': 'unknown', 'c': 'unknown', 'd': 'bad',
               'e': 'bad'}
    assert bisect.bisect(list('abcde'), answers.get) == ('a', 'd', ['b', 'c'])

with tap.test('step: 1 with the bug, 0 without, 125 if it is not known'):
    args = ['step', path('b.toml'), '--bug', 'double-free in close_it',
            '--sweep', made, '--dir', path('step')]
    farm(*args, '--kernel', 'k5', '--seeds', '2', '--name', 'c5', status=1)
    farm(*args, '--kernel', 'k4', '--seeds', '2', '--name', 'c4')
    farm(*args, '--kernel', 'none', '--seeds', '1', '--name', 'x', status=125)

with tap.test('packages are in the order of their versions'):
    names = [f'linux-image-{v}-amd64_{v}_amd64.deb'
             for v in ('6.12.9-1', '6.12.10-1', '6.12.10~rc1-1', '6.1.1-1')]
    assert [n.split('_')[1] for n in bisect.by_version(names)] == \
        ['6.1.1-1', '6.12.9-1', '6.12.10~rc1-1', '6.12.10-1']


with tap.test('bisect between packages'):
    os.mkdir(path('debs'))
    for version in '6.9-1', '6.10-1', '6.11-1', '6.12-1':
        fake_farm.make_package(own, version)
        found = [] if version in ('6.9-1', '6.10-1') else [fake_farm.DOUBLE]
        for digit in range(10):
            fake_farm.write(path('fake-bisect'), f'vmlinuz-{version}', digit,
                            fake_farm.report(version, digit, found=found))
    text = farm('bisect', path('b.toml'), '--packages', path('debs'),
                '--bug', 'double-free in close_it', '--sweep', made, '--dir',
                path('bis3'))
    good, bad = text.splitlines()[-2:]
    assert good.startswith('last without the bug: ') and \
        good.endswith('vmlinuz-6.10-1'), text
    assert bad.endswith('vmlinuz-6.11-1'), text
    text = farm('bisect', path('b.toml'), '--packages', path('fake'), '--bug',
                'x', '--dir', path('bis3'), status=2)
    assert 'less than two' in text, text

tap.done()
