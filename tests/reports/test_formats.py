#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The formats of scripts/sweep cannot differ: reports of every kind go through
each renderer and are read back. All have the same findings, the same problem
and the exit status that belongs to them, and the page says that nothing was
found only if that is so.

usage: test_formats.py KA KA-JOURNAL
"""
import json
import os
import sys

import exports
import formats

sys.path[:0] = [exports.ROOT, os.path.join(exports.ROOT, 'tests', 'guest')]

from lib.sick import SICK       # noqa: E402
from scripts.lib.findings import (  # noqa: E402
    baseline, finding, junit, kasan, ktap, page, plain, sarif, terminal)
from scripts.lib.findings.finding import Finding, hash_words    # noqa: E402
from scripts.lib.findings import scenario   # noqa: E402

P = exports.Program(*sys.argv[1:3])
RENDERERS = {'junit': junit, 'ktap': ktap, 'sarif': sarif, 'json': plain,
             'kasan_text': kasan}
HANG = 'vcpu0: end\n  f+0x1\n  g+0x2\nthe end of the console:\n  [ 1.0] x'


def made(kind, place='in close_it', more='', hidden=None):
    """A finding; MORE makes another one with the same title."""
    title = f'{kind} {place}'
    return Finding(kind=kind, title=title, hidden=hidden, text=f'{kind}[f+0x1]'
                   f'\n    {more or "A"}', fold=hash_words(title, more),
                   exact='b' * 32, row={'alloc_symbols': ['f+0x1[m]']})


def oops_as_kasan():
    one = made('use-after-free')
    one.kasan = '[    1.000000] BUG: KASAN: slab-use-after-free in f+0x1/0x2'
    return one


# What a run can have found -> its report.
REPORTS = {
    'clean': {},
    'an error': {'findings': [made('double-free')]},
    'an access, as KASAN prints it': {'findings': [oops_as_kasan()]},
    'seven leaks': {'findings': [made('leak', f'in f{i}') for i in range(7)]},
    'the same error twice': {'findings': [made('double-free')] * 2},
    'two errors with one title': {
        'findings': [made('invalid-free'), made('invalid-free', more='B')]},
    'growth': {'findings': [made('growth', 'of dentry')]},
    'a failing script': {'findings': [scenario.failure(
        1, "insmod: can't insert '/share/x.ko': Invalid argument\n")]},
    'an oops': {'findings': [made('oops', 'in do_it')]},
    'suppressed': {'findings': [made('leak', hidden='suppressed by: leak')]},
    'known': {'findings': [made('leak', hidden='known: leak in close_it')]},
    'one fails, one is known': {
        'findings': [made('leak', hidden='known: x'), made('double-free')]},
    'one of a group is suppressed': {
        'findings': [made('leak', hidden='suppressed by: leak f'),
                     made('leak')]},
    'not complete': {'problem': "the marker 'X' never came"},
    'it hung': {'problem': 'no end after 9 s: user space was running',
                'detail': HANG},
    'it hung, with an error': {'problem': 'no end after 9 s', 'detail': HANG,
                               'findings': [made('double-free')]},
    'not complete, all known': {'problem': 'the guest panicked',
                                'findings': [made('leak', hidden='known: x')]},
    **{f'sick: {s.name}': {'findings': [Finding(
        kind=s.kind, title=s.title, fold=hash_words(s.title), text=s.title)]}
       for s in SICK if s.title},
    'warnings': {'warnings': ['gaps 1: events were dropped'],
                 'problem': 'why'},
}


def journal():
    return P.journal('alloc va=ffff888000001000 size=10 us=1\n')


def html_of(report, source):
    path = P.path('.html')
    page.write(P.ka, ('-f', source), path, plain.render(report))
    with open(path, encoding='ascii') as f:
        return f.read()


def texts_of(report, source):
    texts = {name: r.render(report) for name, r in RENDERERS.items()}
    for name, r in RENDERERS.items():
        r.check(texts[name])
    texts['html'] = html_of(report, source) if report.swept else \
        page.without_vm(report)
    return texts


def printed(report):
    problem = terminal.problem(report)
    return terminal.render(report, []), f'sweep: {problem}\n' if problem else ''


def all_formats_say_the_same():
    source = journal()
    for what, values in REPORTS.items():
        for swept in 'swept at end: 7 events, 1 live blocks', '':
            if not swept and not values.get('problem'):
                continue
            report = finding.Report(swept=swept, host='h', facts={
                'kernel': '6.12', 'events': 7}, **values)
            try:
                formats.check(texts_of(report, source), report.status,
                              *printed(report))
            except AssertionError as e:
                raise AssertionError(what, swept) from e


def a_report_that_was_not_written_is_2():
    report = finding.Report(findings=[made('leak')], unwritten=['x: full'])
    assert report.status == 2 and report.verdict == 'found'


def what_was_written_is_known():
    for what, values in REPORTS.items():
        report = finding.Report(**values)
        known = baseline.Baseline(baseline.render(report))
        assert all(map(known.why_known, report.findings)), what


def a_page_without_a_job_claims_nothing():
    path = P.path('.html')
    status, _, err = P.run('-f', journal(), 'report', '-o', path)
    assert status == 0, err
    with open(path, encoding='ascii') as f:
        text = f.read()
    assert 'No errors were found' not in text
    assert formats.page_data(text)['job'] is None


def hostile_text_stays_text():
    evil = '</script><img src=x onerror=alert(1)><!--\u202e\n\x01]]>'
    report = finding.Report(
        swept='s', problem=evil, detail=evil, findings=[
            Finding(kind='leak', title=evil, text=evil, fold='a' * 8),
            Finding(kind='leak', title='x', text='\n' * 9999, fold='b' * 8)])
    text = html_of(report, journal())
    clean = html_of(finding.Report(swept='s'), journal())
    assert text.isascii() and '<img' not in text
    for tag in '<script', '</script', '<!--':
        assert text.count(tag) == clean.count(tag), tag
    job = formats.page_data(text)['job']
    assert job['failing'] == 2 and len(job['cards']) == 2, job
    assert '<img' not in page.without_vm(report)


def many_findings_are_counted():
    report = finding.Report(swept='s', findings=[
        made('leak', f'in f{i}', hidden='known: x' if i % 2 else None)
        for i in range(1400)])
    text = html_of(report, journal())
    job = formats.page_data(text)['job']
    assert job['failing'] == job['hidden'] == 700, job['summary']
    assert len(job['cards']) == 500 and job['more'] == 900
    strings = formats.page_data(text)['strings']
    assert not any(strings[c['hidden']] for c in job['cards'])


GOOD = plain.render(finding.Report(findings=[made('leak')]))
BAD = {
    'nothing': b'', 'no JSON': b'{', 'a list': b'[]', 'bytes': b'\xff\0\xfe',
    'cut': GOOD.encode()[:-20], 'schema': GOOD.replace('"schema": 1',
                                                       '"schema": 2').encode(),
    'verdict': GOOD.replace('"found"', '"clean"').encode(),
    'no verdict': GOOD.replace('"verdict"', '"v"').encode(),
    'no name': GOOD.replace('"name"', '"n"').encode(),
    'no list': GOOD.replace('"findings"', '"f"').encode(),
    'deep': b'{"a":' + b'[' * 100000,
}


def a_bad_file_is_one_line():
    source, path = journal(), P.path('.json')
    for what, data in BAD.items():
        with open(path, 'wb') as f:
            f.write(data)
        refused(source, path, what)
    refused(source, path + '.none', 'missing')
    refused(source, os.path.dirname(path), 'a folder')
    refused(source, '/dev/zero', 'a device')


def refused(source, path, what):
    page_file = P.path('.html')
    status, out, err = P.run('-f', source, 'report', '--findings', path, '-o',
                             page_file)
    err = err if isinstance(err, str) else err.decode()
    assert status == 2 and not out, (what, status)
    assert err.count('\n') == 1 and err.startswith('ka: report: ' + path), \
        (what, err)
    assert not os.path.exists(page_file), what


def a_good_file_is_taken():
    path = P.path('.json')
    with open(path, 'w', encoding='utf-8') as f:
        f.write(GOOD)
    page_file = P.path('.html')
    status, _, err = P.run('-f', journal(), 'report', '--findings', path, '-o',
                           page_file)
    assert status == 0, err
    assert json.loads(GOOD)['findings'][0]['name'] == 'leak in close_it'


if __name__ == '__main__':
    sys.exit(exports.run_tests([
        all_formats_say_the_same, a_report_that_was_not_written_is_2,
        what_was_written_is_known, a_page_without_a_job_claims_nothing,
        hostile_text_stays_text, many_findings_are_counted,
        a_bad_file_is_one_line, a_good_file_is_taken]))
