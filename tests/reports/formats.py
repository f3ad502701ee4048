# SPDX-License-Identifier: GPL-2.0-or-later
"""What the reports of one run say, each read back from its own format: the
names of the findings that fail the build, and why the run is not complete."""
import base64
import html
import json
import os
import re
import sys
import xml.etree.ElementTree as ET
import zlib
from typing import NamedTuple

sys.path.insert(0, os.path.realpath(
    os.path.join(os.path.dirname(__file__), '..', '..')))

from scripts.lib.findings import health_kinds   # noqa: E402


class Said(NamedTuple):
    """What a format says. names: None if it has only their number."""
    names: list
    problem: str
    number: int


def said(names, problem):
    names = sorted(names)
    return Said(names, problem or '', len(names))


def junit(text):
    cases = list(ET.fromstring(text.encode())[0].iter('testcase'))
    problems = [c.find('error').text for c in cases
                if c.find('error') is not None]
    return said([c.get('name') for c in cases if c.find('failure') is not None],
                ''.join(problems))


# Lines of KTAP about the run, which precede the first result.
OF_RUN = re.compile('# ((kernel|arch|ka|qemu|events|journal|warning): )')


def ktap(text):
    names, problem, before = [], '', []
    for line in text.splitlines():
        if OF_RUN.match(line):
            continue
        if line.startswith('# '):
            before.append(line[2:])
            continue
        m = re.match(r'not ok \d+ (.*)', line)
        if m and m[1] == 'sweep':
            problem = '\n'.join(before)
        elif m:
            names.append(m[1].replace('\\x23', '#'))
        before = []
    return said(names, problem)


def sarif(text):
    run, = json.loads(text)['runs']
    made, = run['invocations']
    errors = [n['message']['text'] for n in made['toolExecutionNotifications']
              if n['level'] == 'error']
    assert made['executionSuccessful'] == (not errors), made
    return said([r['message']['text'].partition('\n')[0]
                 for r in run['results'] if 'suppressions' not in r],
                ''.join(errors))


def plain(text):
    made = json.loads(text)
    names = {f['name'] for f in made['findings'] if not f['hidden']}
    assert made['verdict'] == ('found' if names else 'broken'
                               if made['problem'] else 'clean'), made
    return said(names, '\n'.join(filter(None, (made['problem'],
                                               made['detail']))))


def page_data(text):
    packed = re.search(r'id="data">([^<]*)</script>', text)[1]
    return json.loads(zlib.decompress(base64.b64decode(packed)))


def page(text):
    """The page of ka report, or the plain one of a run without a VM."""
    if 'id="data">' not in text:
        parts = dict(re.findall(r'<h2>(.*)</h2>\n<pre>([^<]*)</pre>', text))
        problem = html.unescape(parts.pop('The run is not complete', ''))
        return said(map(html.unescape, parts), problem)
    data = page_data(text)
    job, strings = data['job'], data['strings']
    lines = [strings[i] for i in (job['problem'], *job['detail'])]
    names = {strings[c['name']] for c in job['cards']
             if not strings[c['hidden']]}
    assert job['failing'] == len(names) or job['more'], job
    # the phrase is also a part of the script only if it was found to be so
    nothing = 'No errors were found.'
    assert (job['summary'] == nothing) == (
        not job['cards'] and not lines[0]), job
    assert (nothing in text) == (job['summary'] == nothing), job['summary']
    return said(names, '\n'.join(filter(None, lines)))


def terminal(out, err):
    """Standard output of sweep, and standard error."""
    names = [line for line in out.splitlines() if not line.startswith(
        ('  ', 'warning: ', 'unused suppression', 'swept at ', 'not swept',
         'the VM was lost'))]
    number = re.search(r', (\d+) findings?, \d+ suppressed', out)
    assert int(number[1]) == len(names) if number else not names, out
    return said(names, '\n'.join(line.strip() for line in
                                 err.removeprefix('sweep: ').splitlines()))


def kasan(text):
    """The words of KASAN and kmemleak have no names, and a line BUG for each
    finding. What the kernel itself has printed may have none."""
    bugs = [line for line in text.splitlines() if line.startswith('BUG: ') or
            '] BUG: ' in line]
    problem = text.partition('ka: the run is not complete: ')[2]
    return Said(None, '\n'.join(line.strip() for line in problem.splitlines()),
                len(bugs))


READERS = {'junit': junit, 'ktap': ktap, 'sarif': sarif, 'json': plain,
           'html': page, 'kasan_text': kasan}


def status_of(what):
    """The exit status of a run whose files could be written."""
    return 1 if what.number else 2 if what.problem else 0


def same_lines(text):
    return [line.strip() for line in text.splitlines() if line.strip()]


def check(texts, status, out, err):
    """Raise AssertionError unless all formats say the same. TEXTS: {option:
    text}; out, err: what sweep printed."""
    want = plain(texts['json'])
    assert status_of(want) == status, (status, want)
    found = {name: READERS[name](text) for name, text in texts.items()}
    found['terminal'] = terminal(out, err)
    kinds = [f['kind'] for f in json.loads(texts['json'])['findings']
             if not f['hidden']]
    own = [k for k in kinds if k not in health_kinds.MEANINGS]
    for name, got in found.items():
        if got.names is None:
            assert len(own) <= got.number, (name, got, kinds)
            assert got.number == len(own) or own != kinds, (name, got, kinds)
        else:
            assert got.names == want.names, (name, got.names, want.names)
        assert same_lines(got.problem) == same_lines(want.problem), \
            (name, got.problem, want.problem)
    return want
