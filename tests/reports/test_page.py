#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""ka report: the numbers of the page are those of ka top and ka error, names
stay text, and the page asks for nothing.

usage: test_page.py KA KA-JOURNAL
"""
import base64
import hashlib
import html.parser
import json
import os
import re
import subprocess
import sys
import zlib

import exports

P = exports.Program(*sys.argv[1:3])
VALUES = ('live', 'blocks', 'reserved', 'allocs')
SUMS = ('live', 'blocks', 'slack', 'allocs', 'asked', 'frees', 'freed',
        'live_asked', 'reserved', 'freed_reserved')
FIELDS = (*SUMS, 'peak', 'cross', 'life', 'oldest')
ROWS = 500          # of a table
TABLES = ('caller', 'cache', 'task', 'module', 'size')


class Page(html.parser.HTMLParser):
    """The elements of a page, its scripts and styles."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.texts = [], {'script': [], 'style': []}
        self.policy, self.open = '', None
        self.feed(text)
        packed = base64.b64decode(self.texts['script'][0], validate=True)
        self.data = json.loads(zlib.decompress(packed))

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.elements.append((tag, attrs))
        self.open = tag
        if tag in self.texts:
            self.texts[tag].append('')
        if attrs.get('http-equiv') == 'Content-Security-Policy':
            self.policy = attrs['content']

    def handle_endtag(self, tag):
        self.open = None

    def handle_data(self, data):
        if self.open in self.texts:
            self.texts[self.open][-1] += data


def report(journal, before=()):
    path = P.path('.html')
    status, out, err = P.run('-f', journal, *before, 'report', '-o', path)
    assert status == 0 and not out, err
    with open(path, encoding='ascii') as f:
        return Page(f.read())


def tree_stacks(data, name):
    """{names from the root: values of stacks that end there} of a tree."""
    tree, path, own = data[name], [], {}
    for i, depth in enumerate(tree['depth']):
        assert not tree['cut'][i] and depth <= len(path), (name, i)
        path[depth:] = [data['strings'][tree['name'][i]]]
        values = [tree[v][i] for v in VALUES]
        own[tuple(path[1:])] = values
        above = own.get(tuple(path[1:-1]))
        if depth:
            own[tuple(path[1:-1])] = [a - b for a, b in zip(above, values)]
    return {stack: values for stack, values in own.items() if any(values)}


def expected_stacks(rows, inverted):
    sums = {}
    for row in rows:
        names = exports.stack_names(row)
        stack = tuple(names if inverted else reversed(names))
        old = sums.get(stack, [0] * len(VALUES))
        sums[stack] = [a + row[v] for a, v in zip(old, VALUES)]
    return sums


def the_trees_are_ka_top():
    for name in exports.cases():
        journal = P.case(name)
        everything, rows = P.top(journal)
        data = report(journal).data
        assert {k: data['total'][k] for k in FIELDS} == \
            {k: everything[k] for k in FIELDS}, name
        for tree, inverted in (('down', False), ('up', True)):
            assert tree_stacks(data, tree) == \
                expected_stacks(rows, inverted), (name, tree)
            assert [data[tree][v][0] for v in VALUES] == \
                [everything[v] for v in VALUES], (name, tree)


def row_name(row, by):
    if by == 'task' and row['pid'] is not None:
        return f"{row['comm']} (pid {row['pid']})"
    if by == 'cache' and row['cache'] is None:
        return f"[{row['layer']}]" if row['layer'] else '[unknown]'
    name = row.get(f'{by}_symbol') or row.get(by)
    return '[unknown]' if name is None else str(name)


def the_tables_are_ka_top():
    for name in exports.cases():
        journal = P.case(name)
        data = report(journal).data
        assert [t['by'] for t in data['tables']] == list(TABLES)
        for table in data['tables']:
            status, out, err = P.run('-f', journal, 'top', '--by', table['by'],
                                     '-s', '-j', '-n', '0')
            rows = [r for r in map(json.loads, out.splitlines())
                    if r.get('type') == 'top']
            if status:
                assert b'needs symbols' in out and any(
                    'needs symbols' in n for n in data['notes']), (name, err)
            kept, left = rows[:ROWS], rows[ROWS:]
            assert [data['strings'][i] for i in table['name']] == \
                [row_name(r, table['by']) for r in kept], (name, table['by'])
            for field in FIELDS:
                assert table[field] == [r[field] for r in kept], (name, field)
            assert table['more'] == len(left), (name, table['more'])
            for field in SUMS if left else ():
                assert table['rest'][field] == sum(r[field] for r in left)


def the_cards_are_ka_error():
    seen = 0
    for name in (*exports.cases(), '110-former-owner'):
        journal = P.case(name)
        data = report(journal).data
        text = data['strings'].__getitem__
        _, out, _ = P.run('-f', journal, 'error', '-s', '-v', '-j', '-n', '0')
        rows = [r for r in map(json.loads, out.splitlines())
                if r.get('type') == 'error']
        assert data['errors'] == len(rows) == len(data['cards']), name
        for card, row in zip(data['cards'], rows):
            assert [text(card[k]) for k in ('title', 'fold', 'exact')] == \
                [row[k] for k in ('title', 'fold', 'exact')], (name, row)
            assert list(map(text, card['alt'])) == row['alt']
            assert text(card['address']) == row['error_va']
            for stack, key in zip(card['stacks'],
                                  ('alloc', 'free', 'error_stack',
                                   'former_alloc', 'former_free')):
                pcs = row.get(key)
                assert (stack is None) == (pcs is None), (name, key)
                if stack:
                    names = row.get(key + '_symbols') or [None] * len(pcs)
                    assert list(map(text, stack['frames'])) == \
                        [n or pc for n, pc in zip(names, pcs)], (name, key)
            seen += 1
    assert seen >= 8, seen


def the_commands_of_a_card_can_be_run():
    journal = P.case('089-format-kasan')
    data = report(journal, before=('--at', '13000000')).data
    assert data['command'] == \
        f'ka -f {os.path.basename(journal)} --at 13000000', data['command']
    for card in data['cards']:
        address = data['strings'][card['address']]
        for words in f'error {address} -l', f'show {address} -l':
            command = data['command'] + ' ' + words
            done = subprocess.run(
                command.replace('ka', P.ka, 1), shell=True, check=False,
                cwd=os.path.dirname(journal), stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True)
            assert done.returncode == 0 and done.stdout, (command, done)


def at_a_time():
    journal = P.case('032-top')
    for us in 250, 900:
        before = ('--at', str(us))
        everything, _ = P.top(journal, before=before)
        data = report(journal, before).data
        assert data['total']['live'] == everything['live'] and \
            data['us'] == everything['us'], (us, data['total'])


def a_vm_is_reported_as_its_journal():
    for name in exports.cases():
        journal = P.case(name)
        qemu = exports.Qemu(P, journal)
        path = P.path('.html')
        status, _, err = P.run('-q', qemu.path, 'report', '-o', path)
        assert status == 0, err
        assert not any('report' in c for c in qemu.commands), qemu.commands
        with open(path, encoding='ascii') as f:
            got = Page(f.read()).data
        want = report(journal).data
        for key in 'down', 'up', 'tables', 'cards', 'total':
            assert got[key] == want[key], (name, key)
        for data in got, want:      # each says why there was no scan
            del data['strings'][data['leaks']['scan']]
        # the timeline of a journal has more
        n = len(got['strings'])
        assert got['strings'] == want['strings'][:n], name
        assert got['command'].startswith('ka -q '), got['command']


def what_is_missing_is_said():
    data = report(P.case('032-top')).data
    assert data['missing'] == 0 and \
        any(n.startswith('complete: ') for n in data['notes']), data['notes']
    late = report(P.journal('alloc va=ffff888000001000 size=10 us=1\ngap\n'))
    assert late.data['missing'] > 0, late.data['notes']
    assert any(n.startswith('missing: ') for n in late.data['notes'])


def the_page_asks_for_nothing():
    page = report(P.journal(exports.hostile_script()))
    for tag, attrs in page.elements:
        assert tag not in ('img', 'link', 'iframe', 'object', 'base'), tag
        assert not {'src', 'srcset', 'style', 'onclick'} & set(attrs), attrs
        assert attrs.get('href', '#').startswith('#'), attrs
    policy = dict(part.strip().split(' ', 1)
                  for part in page.policy.split(';'))
    assert policy['default-src'] == "'none'", policy
    for kind, text in (('style-src', page.texts['style'][0]),
                       ('script-src', page.texts['script'][1])):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest())
        assert policy[kind] == f"'sha256-{digest.decode()}'", kind
    assert len(page.texts['script']) == 2


def hostile_names_stay_text():
    clean = report(P.journal('alloc va=ffff888000001000 size=10 us=1\n'))
    page = report(P.journal(exports.hostile_script()))

    def markup(p):
        return [e for e in p.elements if e[0] not in ('li', 'td', 'tr')]
    assert markup(page) == markup(clean)
    strings = page.data['strings']
    assert '<script>' in strings, strings
    assert all(re.fullmatch(r'[ -~]*', s) for s in strings), strings


def many_stacks_are_cut_and_counted():
    lines = ['symbol va=ffffffff81000000 name=_stext']
    lines += [f'symbol va={0xffffffff81000100 + i * 16:x} name=f{i}'
              for i in range(700)]
    lines.append('symbol va=ffffffff81f00000 name=_etext')
    for i in range(30000):
        pcs = ','.join(f'{0xffffffff81000101 + n % 700 * 16:x}'
                       for n in (i, i // 700 + 3, i * 7 + 1))
        lines.append(f'alloc va={0xffff888000000000 + i * 4096:x} size=40 '
                     f'us={i + 1} stack={pcs}')
    journal = P.journal('\n'.join(lines) + '\n')
    everything, rows = P.top(journal)
    page = report(journal)
    data = page.data
    assert data['stacks_seen'] == len(rows) > 20000, len(rows)
    for name in 'down', 'up':
        tree = data[name]
        assert len(tree['depth']) <= 20000 and sum(tree['cut']) > 0, name
        below = sum(n for n, d in zip(tree['live'], tree['depth']) if d == 1)
        assert below == tree['live'][0] == everything['live'], name
    caller = data['tables'][0]
    assert caller['more'] == 200 and len(caller['name']) == 500
    assert sum(caller['live']) + caller['rest']['live'] == everything['live']
    size = len(json.dumps(data))
    assert size < 6 << 20, size
    return f' ({size >> 10} KiB of data)'


def bad_lines_are_refused():
    journal = P.case('032-top')
    for words in ('x',), ('--by', 'cache'), ('-j',):
        path = P.path()
        status, out, _ = P.run('-f', journal, 'report', '-o', path, *words)
        assert status == 1 and not os.path.exists(path), (words, out)
    status, out, _ = P.run('-f', journal, 'report', '-h')
    assert status == 0 and b'report.md' in out, out
    main, other = os.openpty()
    done = subprocess.run([P.ka, '-f', journal, 'report'], stdout=other,
                          stderr=subprocess.PIPE, check=False, text=True)
    os.close(main)
    os.close(other)
    assert done.returncode == 1 and '-o' in done.stderr, done.stderr
    for bad in '/dev/full', os.path.join(P.work, 'none', 'x'):
        status, _, err = P.run('-f', journal, 'report', '-o', bad)
        assert status == 2 and bad in err, err


if __name__ == '__main__':
    sys.exit(exports.run_tests([
        the_trees_are_ka_top, the_tables_are_ka_top, the_cards_are_ka_error,
        the_commands_of_a_card_can_be_run, at_a_time,
        a_vm_is_reported_as_its_journal, what_is_missing_is_said,
        the_page_asks_for_nothing, hostile_names_stay_text,
        many_stacks_are_cut_and_counted, bad_lines_are_refused]))
