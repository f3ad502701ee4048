#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The reports of scripts/sweep, without a guest: findings with harmless and
with hostile names go through each format. Oracle: readers that are not ours:
prove for KTAP, junitparser for JUnit XML, the schema of SARIF, and the rules of
GitHub in our words. A reader that is not installed is skipped.

usage: test_findings.py [--short]       short: without Microsoft's multitool
"""
import glob
import importlib.util
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET

from lib.own_folder import OwnFolder
from lib.tap import Tap
from scripts import ka
from scripts.lib import findings
from scripts.lib.prepared import paths
from scripts.lib.findings import (
    baseline, finding, growth, junit, kasan, kinds, ktap, plain, sarif)

tap = Tap()
own = OwnFolder('ka-findings.')
work, write = own.top, own.write

HOSTILE = {
    'markup': '<script>alert(1)</script>&amp;]]><x y="',
    'newline': 'a\nok 9 forged\n<testcase name="forged"/>\r\nok 10 x',
    'quote': '"\'`\\", "ruleId": "forged"',
    'long': 'x' * 4096,
    'NUL': 'a\0b\x01\x1b[31mred\x7f',
    'no UTF-8': b'\xff\xfe\x80a'.decode('utf-8', 'surrogateescape'),
    'latin-1': b'\xff\xfe\x80a'.decode('latin-1'),
    'half a pair': 'a\ud800b\uffff\ufffe',
    'direction': 'a\u202eb\u2066c',
    'path': '../../../../etc/passwd',
    'URI': 'file:///etc/passwd#x?y',
    'TAP': 'x # SKIP not me\n1..0 # SKIP\nBail out!',
    'empty': '',
    'emoji': '\U0001f600 \u00e9',
}


def error_row(name='close_it', fold='a1' * 16, kind='double-free', **more):
    return {'type': 'error', 'error': kind, 'va': '0xffff888000001000',
            'title': f'{kind} in {name}', 'alt': ['bad-free of c from make_it'],
            'fold': fold, 'exact': 'b2' * 16, 'weak': 0,
            'alloc_symbols': ['make_it+0x10[m]', 'init+0x5[m]'],
            'free_symbols': ['drop_it+0x1'],
            'error_stack_symbols': ['kvfree+0x3', f'{name}.isra.0+0x1c[m]',
                                    'sys_close+0x8'], **more}


def error(text='error[double-free kvfree+0x3]@5us', hidden=None, **more):
    made = finding.from_error(error_row(**more), text)
    made.hidden = hidden
    return made


def report(*found, **more):
    return finding.Report(findings=list(found), host='host', facts={
        'kernel': '6.12.117', 'arch': 'x86_64', 'ka': '0.1.0'}, **more)


def hostile(name):
    """A report with a name at each place that a guest can write to."""
    fold = itertools.count(1)
    rows = [error_row(name, f'{next(fold):032x}', alt=[name], alloc_symbols=[
                name, f'{name}+0x1[{name}]'], comm=name),
            error_row('f', f'{next(fold):032x}', error_stack_symbols=[name])]
    found = [finding.from_error(row, f'A f {name}') for row in rows]
    found.append(finding.from_slab({'kind': 'cycle', 'object': '0x1',
                                    'cache': name}, [], name))
    found.append(error(fold='c' * 32, hidden='suppressed by: ' + name))
    made = report(*found, problem=name or 'p', warnings=[name])
    made.facts = {'kernel': name, 'arch': name, 'journal': name}
    return made


def render(module, made):
    text = module.render(made)
    module.check(text)
    text.encode('utf-8')
    return text


def has(module):
    return importlib.util.find_spec(module)


# --- findings ----------------------------------------------------------------

with tap.test('findings with the same hash are one group, others are not'):
    a, b, c = (error(fold=x * 32) for x in 'aab')
    groups = finding.group([a, b, c])
    assert [len(g.findings) for g in groups] == [2, 1]
    assert [g.name for g in groups] == ['double-free in close_it (aaaaaaaa)',
                                        'double-free in close_it (bbbbbbbb)']
    assert finding.group([a])[0].name == 'double-free in close_it'

with tap.test('groups have names of their own, however long their titles are'):
    found = [error(name='x' * 4096 + end, fold=end * 32) for end in 'ab']
    assert len({g.name for g in finding.group(found)}) == 2
    for module in junit, ktap, sarif:
        module.check(module.render(report(*found)))

with tap.test('a group is hidden only if all of it is'):
    shown, hid = error(), error(hidden='known')
    assert not finding.group([hid, shown])[0].hidden
    assert finding.group([hid, shown])[0].first is shown
    assert finding.group([hid])[0].hidden == 'known'

with tap.test('the place of a finding is the function of its title'):
    assert error().place.name == 'm:close_it.isra.0'
    assert error(name='sys_x').place.function == 'sys_x.isra.0'
    bare = finding.from_error({'error': 'overlap', 'va': '0x1'}, '')
    assert bare.place is None and bare.title == 'overlap in ?' and bare.fold

with tap.test('each kind has a meaning'):
    for kind in 'double-free', 'use-after-free', 'cycle', 'early-free', 'leak':
        assert len(kinds.meaning(kind)) > 20, kind
    assert kinds.meaning('new-kind') == 'new-kind'

# --- growth ------------------------------------------------------------------

class Answers(ka.Monitor):
    """A guest that answers commands as ka does."""

    def __init__(self, answers):
        super().__init__(self.answer)
        self.answers, self.asked = answers, []

    def answer(self, line):
        self.asked.append(line)
        rows = next(r for start, r in self.answers.items()
                    if line.startswith(start))
        return ''.join(json.dumps(row) + '\n' for row in rows)


def diff_all(live):
    return {'type': 'diff_all', 'live': live}


def cache(name, live):
    return {'type': 'diff', 'cache': name, 'live': live,
            **({} if name else {'layer': 'vmalloc'})}


def grown(size, *rows, total=None):
    """The findings of a limit since 'go', if these rows are what grew."""
    total = sum(r['live'] for r in rows) if total is None else total
    stack = {'type': 'diff', 'stack': ['0x1'], 'live': 7,
             'stack_symbols': ['f+0x1[m]', 'g+0x2']}
    guest = Answers({'ka mark': [{'type': 'mark'}],
                     'ka diff sweep-1 --by cache': [diff_all(total), *rows],
                     'ka diff sweep-1 --by stack': [diff_all(total), stack]})
    limits = [growth.read_limit('go', size)]
    growth.set_marks(guest, limits, 'ready', True)
    assert not guest.asked, guest.asked
    for console in 'ready go', 'ready go on':
        growth.set_marks(guest, limits, console, True)
    assert guest.asked == ['ka mark sweep-1 -j'], guest.asked
    found = growth.findings(guest, limits)
    assert not list(growth.why_not_known(limits))
    return found


with tap.test('growth: each cache that is over the limit is a finding'):
    a, b = grown('1K', cache('dentry', 5000), cache('inode', 1024),
                 cache(None, 1025), cache('c', -9000))
    assert (a.title, b.title) == ('growth of dentry', 'growth of [vmalloc]')
    assert '5000 bytes' in a.text and 'f+0x1[m] g+0x2' in a.text, a.text
    assert a.kind == 'growth' and a.place is None and a.fold != b.fold
    again, = grown('4K', cache('dentry', 5000))
    assert again.fold == a.fold
    assert not grown('1K', cache('dentry', 1024))
    assert not grown('1K', {'none': 'nothing was allocated'}, total=0)

with tap.test('growth: copies of a cache are added up, and so are all caches'):
    a, = grown('1K', cache('kmalloc-rnd-01-64', 600),
               cache('kmalloc-rnd-15-64', 600))
    assert a.title == 'growth of kmalloc-64', a
    a, = grown('1K', cache('a', 600), cache('b', 600))
    assert a.title == 'growth of all memory' and '1200 bytes' in a.text, a

with tap.test('growth: pages of other allocators are no growth'):
    a, = grown('1K', cache(None, 4096),
               {**cache(None, 4096), 'layer': 'pages', 'backing': 'yes'},
               total=4096)
    assert a.title == 'growth of [vmalloc]', a

with tap.test('growth: what is not known is said'):
    guest = Answers({'ka mark': [{'fail': 'too many marks'}],
                     'ka diff': [{'fail': 'no such mark'}]})
    limits = [growth.read_limit(text, '1') for text in ('a', 'b', 'c')]
    growth.set_marks(guest, limits[:1], 'a', True)
    growth.set_marks(guest, limits[1:2], 'b', False)
    assert growth.findings(guest, limits) == []
    why = list(growth.why_not_known(limits))
    assert len(why) == 3 and 'too many marks' in why[0], why
    assert 'had ended' in why[1] and 'never came' in why[2], why
    limit = growth.Limit('a', 1, 'sweep-1')
    assert growth.findings(guest, [limit]) == [] and 'no such' in limit.why

with tap.test('growth: sizes'):
    for text, size in ('0', 0), ('7', 7), ('2K', 2048), ('3M', 3 << 20), (
            '1G', 1 << 30):
        assert growth.read_limit('x', text).size == size, text
    for text in '', '-1', '1T', 'K', '1.5M', '1KK', '1 K', '1\n', '\u0661':
        try:
            growth.read_limit('x', text)
        except ValueError:
            continue
        raise AssertionError(text)

with tap.test('growth: every format has it, hostile names or not'):
    for what, name in {'plain': 'dentry', **HOSTILE}.items():
        made = report(*grown('1K', cache(name, 5000)))
        root = ET.fromstring(render(junit, made).encode())
        assert root[0].get('failures') == '1', what
        assert 'not ok 1 growth of' in render(ktap, made), what
        result, = json.loads(render(sarif, made))['runs'][0]['results']
        assert result['ruleId'] == 'growth', what
        known = baseline.Baseline(baseline.render(made))
        assert all(map(known.why_known, made.findings)), what

# --- JUnit -------------------------------------------------------------------

with tap.test('JUnit: a case for each group, with properties and the text'):
    root = ET.fromstring(render(junit, report(
        error('one', fold='a' * 32), error('two', fold='a' * 32),
        error(fold='b' * 32, name='g', hidden='suppressed by: x'),
        problem='no end', warnings=['w'])).encode())
    suite = root[0]
    assert [c.get('name') for c in suite.iter('testcase')] == [
        'double-free in close_it', 'double-free in g', 'sweep']
    assert {k: suite.get(k) for k in ('tests', 'failures', 'errors', 'skipped')
            } == {'tests': '3', 'failures': '1', 'errors': '1', 'skipped': '1'}
    case = suite.find('testcase')
    assert case.find('system-out').text == 'one\ntwo'
    assert case.find('failure').get('message') == 'double-free in close_it'
    facts = {p.get('name'): p.get('value')
             for p in suite.find('properties')}
    assert facts['kernel'] == '6.12.117' and suite.get('timestamp')
    assert suite.find('system-out').text == 'warning: w\n'

with tap.test('JUnit: a clean run, and one that is not complete'):
    case, = ET.fromstring(render(junit, report()).encode()).iter('testcase')
    assert case.get('name') == 'no allocation errors' and len(case) == 0
    suite = ET.fromstring(render(junit, report(problem='p')).encode())[0]
    assert suite.get('errors') == '1' and suite.get('tests') == '1'


def read_by_junitparser(path):
    from junitparser import JUnitXml    # pylint: disable=C0415,E0401
    return list(JUnitXml.fromfile(path))[0]


if has('junitparser'):
    with tap.test('JUnit: junitparser reads it, hostile names or not'):
        suite = read_by_junitparser(write('j.xml', render(junit, report(
            error()))))
        case, = suite
        assert suite.failures == 1 and suite.hostname == 'host'
        assert case.name == 'double-free in close_it', case.name
        assert case.system_out.startswith('error[double-free')
        for what, name in HOSTILE.items():
            suite = read_by_junitparser(
                write('j.xml', render(junit, hostile(name))))
            assert (suite.tests, suite.failures) == (5, 3), what
            assert len(list(suite)) == 5, what
else:
    tap.skip('JUnit: junitparser', 'python3-junitparser is not installed')

# --- KTAP --------------------------------------------------------------------

with tap.test('KTAP: the lines'):
    text = render(ktap, report(
        error('one\ntwo'), error(fold='b' * 32, name='g',
                                 hidden='suppressed by: x # y')))
    assert text.splitlines()[-5:] == [
        '# one', '# two', 'not ok 1 double-free in close_it',
        '# error[double-free kvfree+0x3]@5us',
        'ok 2 double-free in g # SKIP suppressed by: x \\x23 y'], text
    assert text.startswith('KTAP version 1\n1..2\n')
    assert render(ktap, report()).endswith('ok 1 no allocation errors\n')
    assert render(ktap, report(problem='why')).endswith(
        '# why\nnot ok 1 sweep\n')


def prove(path):
    """Return (status, the last line) of prove, which reads TAP of a file."""
    done = subprocess.run(['prove', '--exec', 'cat', '-v', path], text=True,
                          capture_output=True, check=False)
    return done.returncode, done.stdout, done.stdout.splitlines()[-1]


if shutil.which('prove'):
    with tap.test('KTAP: prove reads it, hostile names or not'):
        status, out, last = prove(write('k.t', render(ktap, report())))
        assert status == 0 and last == 'Result: PASS', out
        status, out, last = prove(write('k.t', render(ktap, report(error()))))
        assert status == 1 and 'Failed 1/1 subtests' in out, out
        for what, name in HOSTILE.items():
            _, out, _ = prove(write('k.t', render(ktap, hostile(name))))
            assert 'Failed 4/5 subtests' in out, (what, out)
            assert 'Parse errors' not in out and 'Bad plan' not in out, what
else:
    tap.skip('KTAP: prove', 'perl is not installed')

# --- KASAN and kmemleak -------------------------------------------------------

KASAN = '[    1.000000] ' + '=' * 66


def errors_as_kasan(*titles):
    return ''.join(f'{KASAN}\n[    1.000000] BUG: KASAN: {title} in f+0x0/0x9\n'
                   f'{KASAN}\n' for title in titles)


with tap.test('KASAN: each error has its text, hidden ones are left out'):
    vm = ka.Monitor(lambda line: 'not all are known: ...\n' +
                    errors_as_kasan('double-free', 'invalid-free'))
    found = [error(), error(fold='b' * 32, hidden='known')]
    kasan.add_errors(vm, found)
    assert render(kasan, report(*found)) == errors_as_kasan('double-free')
    kasan.add_errors(vm, found[:1])
    assert found[0].kasan.count('BUG') == 1, found[0]
    bare = error('one\ntwo')
    kasan.add_errors(vm, [bare])
    assert render(kasan, report(bare)) == \
        'BUG: ka: double-free in close_it\n  one\n  two\n'
    assert render(kasan, report()) == ''

LEAKED = """\
unreferenced object 0xffff888000000{} (size 8):
  comm "sh", pid 1, jiffies - (age 1.000s)
  hex dump (first 8 bytes):
    5b 3c 3e 5d 00 00 00 00                          [<>]....
  backtrace (crc 0):
    [<ffffffff8100000{}>] f+0x1/0x2
"""


def leak(va, title='leak in f', **more):
    return finding.from_leak({'leak': 'lost', 'va': va, 'title': title,
                              **more}, 'A ' + va)


with tap.test('kmemleak: a leak has all blocks of its stack'):
    texts = [LEAKED.format(va, pc) for va, pc in (
        ('100', 'a'), ('200', 'b'), ('300', 'a'))]
    vm = ka.Monitor(lambda line: ''.join(texts))
    found = [leak('0xffff888000000300'), leak('0xffff888000000200'),
             leak('0xffff888000000999')]
    kasan.add_leaks(vm, found)
    bug = 'BUG: memory leak\n'
    assert found[0].kasan == bug + (texts[0] + texts[2])[:-1], found[0]
    assert found[1].kasan == bug + texts[1][:-1] and not found[2].kasan
    assert render(kasan, report(*found)).endswith(
        'BUG: ka: leak in f\n  A 0xffff888000000999\n')

with tap.test('KASAN: hostile names are no lines of their own'):
    for what, name in HOSTILE.items():
        made = hostile(name)
        text = render(kasan, made)
        bugs = [line for line in text.splitlines()
                if line.startswith('BUG: ')]
        assert len(bugs) == 3, (what, text)

# --- SARIF -------------------------------------------------------------------

def sarif_run(made):
    return json.loads(render(sarif, made))['runs'][0]


with tap.test('SARIF: a result for each group, with a place and a story'):
    run = sarif_run(report(error(), error(fold='b' * 32, name='g',
                                          hidden='known: b')))
    first, second = run['results']
    assert first['ruleId'] == 'double-free' and first['level'] == 'error'
    assert first['partialFingerprints']['primaryLocationLineHash'] == \
        'a1' * 16 + ':1'
    place = first['locations'][0]
    assert place['logicalLocations'][0]['fullyQualifiedName'] == \
        'm:close_it.isra.0'
    assert place['physicalLocation']['artifactLocation']['uri'] == sarif.FILE
    steps = [s['location']['message']['text'] for s in
             first['codeFlows'][0]['threadFlows'][0]['locations']]
    assert steps == ['allocated: init+0x5[m]', 'allocated: make_it+0x10[m]',
                     'freed: drop_it+0x1', 'found: sys_close+0x8',
                     'found: close_it.isra.0+0x1c[m]', 'found: kvfree+0x3']
    assert second['suppressions'][0]['justification'] == 'known: b'
    assert run['automationDetails']['id'] == 'ka/6.12.117/x86_64/sweep'
    assert run['invocations'][0]['executionSuccessful']

with tap.test('SARIF: a run that is not complete says so'):
    run = sarif_run(report(problem='why', warnings=['w']))
    made = run['invocations'][0]
    assert not made['executionSuccessful'] and not run['results']
    assert [n['message']['text'] for n in
            made['toolExecutionNotifications']] == ['why', 'w']

with tap.test('SARIF: what is too much for GitHub is left out, and counted'):
    many = report(*(error(fold=f'{i:032x}', hidden='known' if i < 10 else None)
                    for i in range(sarif.MOST_RESULTS + 7)))
    run = sarif_run(many)
    assert len(run['results']) == sarif.MOST_RESULTS
    left, = run['invocations'][0]['toolExecutionNotifications']
    assert left['message']['text'].startswith('7 more findings'), left
    assert sum('suppressions' in r for r in run['results']) == 3
    deep = error(error_stack_symbols=[f'f{i}+0x1' for i in range(3000)])
    flow = sarif_run(report(deep))['results'][0]['codeFlows'][0]
    assert len(flow['threadFlows'][0]['locations']) == sarif.MOST_STEPS

with tap.test('SARIF: the file of the places is in the repository'):
    assert sarif.file_uri('ci/./known errors.txt') == 'ci/known%20errors.txt'
    for path in ('', '/etc/passwd', '../x', 'a/../../x', 'file:x', 'a\nb',
                 'a\\b'):
        try:
            sarif.file_uri(path)
        except ValueError:
            continue
        raise AssertionError(path)

with tap.test('SARIF: hostile names stay in their values'):
    for what, name in HOSTILE.items():
        run = sarif_run(hostile(name))
        assert [r['ruleId'] for r in run['results']] == [
            'double-free', 'double-free', 'cycle', 'double-free'], what
        uris = {r['locations'][0]['physicalLocation']['artifactLocation']['uri']
                for r in run['results']}
        assert uris == {sarif.FILE}, what
        assert run['automationDetails']['id'].count('/') == 3, what

schema = os.path.join(os.environ.get('KA_READERS', ''), 'node_modules',
                      '@microsoft', 'jest-sarif', 'lib', 'schemas',
                      'sarif-2.1.0-rtm.5.json')
if os.path.exists(schema) and has('jsonschema'):
    with tap.test('SARIF: it is valid by the schema'):
        import jsonschema   # pylint: disable=import-error
        with open(schema, encoding='utf-8') as f:
            validator = jsonschema.Draft7Validator(json.load(f))
        for made in (report(), report(error()), report(problem='x'),
                     *map(hostile, HOSTILE.values())):
            validator.validate(json.loads(render(sarif, made)))
else:
    tap.skip('SARIF: its schema', 'there is no schema in KA_READERS, or '
             'python3-jsonschema is not installed')

def read_by_multitool(program, *texts):
    """Return what the multitool prints of SARIF files, without its advice."""
    paths = [write(f'{i}.sarif', text) for i, text in enumerate(texts)]
    done = subprocess.run(
        [program, 'validate', *paths], check=False, text=True, timeout=300,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**os.environ, 'DOTNET_SYSTEM_GLOBALIZATION_INVARIANT': '1'})
    assert f'{len(paths)} files scanned' in done.stdout, done.stdout
    return done.returncode, [line for line in done.stdout.splitlines()
                             if re.search(r'\b(error|warning) ', line)]


programs = [] if '--short' in sys.argv else glob.glob(os.path.join(
    paths()['multitool'], 'node_modules', '@microsoft', '*', 'Sarif.Multitool'))
if programs:
    with tap.test("SARIF: Microsoft's multitool has no complaint"):
        reports = [report(error()), report(problem='x', warnings=['w']),
                   *map(hostile, HOSTILE.values())]
        for made in reports:
            made.facts['ka'] = '0.1.0'
        status, lines = read_by_multitool(
            programs[0], *(render(sarif, made) for made in reports))
        assert status == 0 and not lines, lines
else:
    tap.skip("SARIF: Microsoft's multitool", 'scripts/setup --only multitool')

# --- what is not written -----------------------------------------------------

def refused(module, text):
    try:
        module.check(text)
    except findings.Refused:
        return True
    return False


with tap.test('a report that breaks a rule of its format is refused'):
    good = {m: m.render(report(error())) for m in (junit, ktap, sarif)}
    for module, text in good.items():
        assert not refused(module, text), module
    assert refused(junit, good[junit].replace('</failure>', ''))
    assert refused(junit, good[junit].replace('failures="1"', 'failures="2"'))
    assert refused(ktap, good[ktap].replace('1..1', '1..2'))
    assert refused(ktap, good[ktap].replace('# error', 'error'))
    for change in (('"uri"', '"uri2"'), (sarif.FILE, '/etc/passwd'),
                   ('primaryLocationLineHash', 'other'),
                   ('"startLine": 1', '"startLine": 0'),
                   ('"2.1.0"', '"2.0.0"'),
                   ('"text": "double-free"', '"text": ""')):
        assert refused(sarif, good[sarif].replace(*change)), change

# --- baseline ----------------------------------------------------------------

with tap.test('a baseline knows what it was written from, and nothing else'):
    old = error(name='f', fold='a' * 32)
    text = baseline.render(report(old))
    known = baseline.Baseline(text)
    assert known.why_known(old)
    new = error(name='f', fold='b' * 32)
    assert not known.why_known(new)
    new.weak = True
    assert known.why_known(new)
    assert not known.why_known(error(name='g', fold='b' * 32))
    known = baseline.Baseline('# c\n\n* double-free in g\n')
    assert known.why_known(error(name='g', fold='b' * 32))

with tap.test('JSON: what the report has, with each hostile name as it is'):
    for name in HOSTILE.values():
        text = plain.render(hostile(name))
        plain.check(text)
        made = json.loads(text)
        assert made['facts']['kernel'] == name and made['warnings'] == [name]
        assert made['findings'][0]['alt'] == [name]
        assert made['findings'][-1]['hidden'] == 'suppressed by: ' + name
    made = json.loads(plain.render(report(error(), top=[{'live': 1}])))
    assert made['problem'] is None and made['top'] == [{'live': 1}]
    assert made['findings'][0]['title'] == 'double-free in close_it'
    assert refused(plain, '[]') and refused(plain, '{"schema": 2}')

with tap.test('a baseline with a wrong line is refused, a hostile one is not'):
    try:
        baseline.Baseline('# a\nno hash\n')
        raise AssertionError('accepted')
    except ValueError as e:
        assert 'line 2' in str(e), e
    for name in HOSTILE.values():
        made = hostile(name)
        again = baseline.Baseline(baseline.render(made))
        assert all(map(again.why_known, made.findings)), name

tap.done()
