#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""ka report: findings are those of scripts/sweep, leaks those of ka leak.

usage: test_page_leaks.py KA KA-JOURNAL
"""
import json
import os
import sys

import exports
import test_page

sys.path.insert(0, exports.ROOT)

from scripts.lib.findings import finding    # noqa: E402

P = test_page.P
SUMS = ('blocks', 'bytes', 'withdrawn', 'bad_frees', 'unloaded_us')


def rows_of(journal, *words):
    """The objects that a command of ka prints."""
    _, out, err = P.run('-f', journal, *words)
    assert not err or 'leak' in words, err
    return [json.loads(line) for line in out.splitlines()]


def one_title_two_hashes():
    """Events: three double frees in one function, two of them by one path."""
    lines = ['symbol va=ffffffff81000000 name=_stext',
             'symbol va=ffffffff81000100 name=bad_free',
             'symbol va=ffffffff81000200 name=caller_a',
             'symbol va=ffffffff81000300 name=caller_b',
             'symbol va=ffffffff81f00000 name=_etext']
    for i, path in enumerate((2, 2, 3)):
        va = f'{0xffff888000001000 + i * 64:x}'
        stack = f'ffffffff81000110,ffffffff81000{path}10'
        lines += [f'alloc va={va} size=40 us={i * 10 + 1} stack={stack}',
                  f'free va={va} us={i * 10 + 2} stack={stack}',
                  f'free va={va} us={i * 10 + 3} stack={stack}']
    return '\n'.join(lines) + '\n'


def findings_are_those_of_sweep():
    most = 0
    journals = [P.case(n) for n in exports.cases()]
    for journal in [*journals, P.journal(one_title_two_hashes())]:
        data = test_page.report(journal).data
        rows = [r for r in rows_of(journal, 'error', '-s', '-v', '-j', '-n',
                                   '0') if r.get('type') == 'error']
        groups = finding.group([
            finding.Finding(kind=r['error'], title=r['title'], text='',
                            fold=r['fold']) for r in rows])
        text = data['strings'].__getitem__
        assert [(text(f['name']), text(f['fold']), f['errors'])
                for f in data['findings']] == \
            [(g.name, g.first.fold, len(g.findings)) for g in groups]
        for card, number in zip(data['cards'], data['finding_of']):
            assert card['fold'] == data['findings'][number]['fold']
        most = max(most, len(groups))
    assert most >= 2 and len(rows) == 3, (most, len(rows))
    assert all(' (' in g.name for g in groups), groups


def the_facts_of_an_access_are_those_of_ka_error():
    journal = P.case('090-format-kasan-accesses')
    data = test_page.report(journal).data
    rows = [r for r in rows_of(journal, 'error', '-s', '-v', '-j', '-n', '0')
            if r.get('type') == 'error']
    accesses = 0
    for card, row in zip(data['cards'], rows, strict=True):
        what = data['strings'][card['what']]
        if 'error_access' in row:
            word = {'r': 'read', 'w': 'write'}[row['error_access']]
            assert f"{word} of {row['error_access_size']} bytes" in what, what
            assert f"count: {row['error_count']}" in what, what
            assert f"last at {row['error_last_us']}us" in what, what
            accesses += 1
        if row.get('error_offset'):
            assert row['error_offset'] in what, what
        if row.get('neighbour_va'):
            assert row['neighbour_va'] in what, what
    assert accesses >= 2, rows


def modules():
    """A journal of modules that leave blocks behind."""
    with open(os.path.join(exports.CASES, '030-module-leaks', 'events'),
              encoding='utf-8') as f:
        script = f.read()
    return P.journal(script.replace('\ncomplete\n', '\nkernel\ncomplete\n'))


def what_modules_left_is_ka_leak_module():
    journal = modules()
    data = test_page.report(journal).data
    text = data['strings'].__getitem__
    rows = rows_of(journal, 'leak', 'module', '-s', '-v', '-j', '-n', '0')
    heads = [r for r in rows if r['type'] == 'module']
    leaks = data['leaks']
    assert len(heads) >= 2, rows
    assert [text(m['name']) for m in leaks['modules']] == \
        [h['name'] for h in heads]
    for got, want in zip(leaks['modules'], heads):
        assert [got[k] for k in SUMS] == [want[k] for k in SUMS], got
        assert 'leaked' not in got, got
    blocks = [r for r in rows if r['type'] == 'block']
    assert len(blocks) == len(leaks['groups']) >= 3, leaks['groups']
    for got, want in zip(leaks['groups'], blocks):
        assert text(got['address']) == want['va'] and got['module'] == 1
        assert list(map(text, got['frames'])) == want['alloc_symbols']
        assert got['blocks'] == want.get('same_stack', 0) + 1
        assert 'not known' in text(got['state']), text(got['state'])


def golden(kind):
    """The last object of this kind that a scan of the golden case printed."""
    with open(os.path.join(exports.CASES, '037-leak-scan', 'expected'),
              encoding='utf-8') as f:
        return json.loads([line for line in f
                           if f'"type":"{kind}"' in line][-1])


LEAK = {**golden('block'), 'va': '0xffff888000020180',
        'alloc_symbols': ['</script><img src=x>+0x10'],
        'same_stack': 2, 'held': 4, 'same_bytes': 168,
        'title': 'leak in </script>', 'fold': '8' * 32,
        'cache': '\u2028"\n', 'comm': '\0'}
SUM = {**golden('list'), 'leaks': 3, 'leaked_bytes': 168, 'scan_us': 900,
       'text': '3 leaked blocks'}


class Scanned(exports.Qemu):
    """A VM in which a scan was made."""

    def answer(self, command):
        if command.startswith('leak list'):
            return json.dumps(LEAK) + '\n' + json.dumps(SUM) + '\n'
        return super().answer(command)


def report_of_vm(qemu):
    path = P.path('.html')
    status, _, err = P.run('-q', qemu.path, 'report', '-o', path)
    assert status == 0, err
    with open(path, encoding='ascii') as f:
        return test_page.Page(f.read())


def leaks_of_a_scan():
    qemu = Scanned(P, P.case('032-top'))
    data = report_of_vm(qemu).data
    text = data['strings'].__getitem__
    leaks = data['leaks']
    assert leaks['scanned'] and text(leaks['scan']) == SUM['text'], leaks
    assert [leaks[k] for k in ('leaks', 'stacks', 'bytes', 'us')] == \
        [3, 1, 168, 900], leaks
    group, = leaks['groups']
    assert [group[k] for k in ('blocks', 'bytes', 'held', 'module')] == \
        [3, 168, 4, 0], group
    assert text(group['title']) == LEAK['title']
    assert text(group['state']) == 'leaked: nothing refers to it'
    assert not any('leak scan' in c for c in qemu.commands), qemu.commands


def without_a_scan_it_is_said():
    journal = P.case('032-top')
    for data in (test_page.report(journal).data,
                 report_of_vm(exports.Qemu(P, journal)).data):
        leaks = data['leaks']
        assert not leaks['scanned'] and not leaks['groups'], leaks
        assert 'ka leak scan' in data['strings'][leaks['scan']], leaks


if __name__ == '__main__':
    sys.exit(exports.run_tests([
        findings_are_those_of_sweep,
        the_facts_of_an_access_are_those_of_ka_error,
        what_modules_left_is_ka_leak_module, leaks_of_a_scan,
        without_a_scan_it_is_said]))
