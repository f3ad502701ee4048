#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""ka report --base: stacks and tables of two runs are joined by names, and
each side is what ka top says of its run, whatever KASLR did.

usage: test_page_base.py KA KA-JOURNAL [FOLDER]
"""
import json
import os
import sys

import exports
import webdriver
from test_page import P, Page, row_name
from test_page_time import add, wave

VALUES = ('live', 'blocks', 'reserved', 'allocs')
ROWS = 500


def two_runs():
    """Journals of two runs whose kernels are at other addresses. The base has
    a cache and a function of its own."""
    base = wave(500, 8).replace('ffffffff8', 'ffffffff9')
    base += ('alloc va=ffff8880ff000000 us=90000 size=4000 cache=only-base '
             'stack=ffffffff91001010,ffffffff91005010\n')
    return P.journal(wave(700)), P.journal(base)


def report(journal, base, before=()):
    path = P.path('.html')
    status, out, err = P.run('-f', journal, *before, 'report', '--base', base,
                             '-o', path)
    assert status == 0 and not out, err
    with open(path, encoding='ascii') as f:
        return path, Page(f.read()).data


def own_values(data, name):
    """{names from the root: {key: value}} of stacks that end there."""
    tree, path, own = data[name], [], {}
    keys = [p + v for p in ('', 'base_') for v in VALUES]
    for i, depth in enumerate(tree['depth']):
        assert not tree['cut'][i]
        path[depth:] = [data['strings'][tree['name'][i]]]
        values = {k: tree[k][i] for k in keys}
        add(own, tuple(path[1:]), values)
        if depth:
            add(own, tuple(path[1:-1]), {k: -v for k, v in values.items()})
    return {s: v for s, v in own.items() if any(v.values())}


def wanted(rows, prefix, name_of, to):
    other = 'base_' if not prefix else ''
    for row in rows:
        add(to, name_of(row), {prefix + v: row[v] for v in VALUES} |
            {other + v: 0 for v in VALUES})


def stacks_are_joined_by_names():
    run, base = two_runs()
    _, data = report(run, base)
    for tree, step in ('down', -1), ('up', 1):
        want = {}
        for journal, prefix in (run, ''), (base, 'base_'):
            wanted(P.top(journal)[1], prefix,
                   lambda row: tuple(exports.stack_names(row)[::step]), want)
        assert own_values(data, tree) == want, tree
    both = [v for v in want.values() if v['allocs'] and v['base_allocs']]
    assert len(both) > 20, len(both)


def top_rows(journal, by):
    _, out, _ = P.run('-f', journal, 'top', '--by', by, '-s', '-j', '-n', '0')
    return [r for r in map(json.loads, out.splitlines())
            if r.get('type') == 'top']


def check_tables(run, base, data):
    for table in data['base']['tables']:
        by, want = table['by'], {}
        for journal, prefix in (run, ''), (base, 'base_'):
            wanted(top_rows(journal, by), prefix,
                   lambda row, by=by: row_name(row, by), want)
        got = {data['strings'][n]: {p + v: table[p + v][i] for p in
                                    ('', 'base_') for v in VALUES}
               for i, n in enumerate(table['name'])}
        if by == 'caller':
            # the names of callers have offsets; equal ones are one row
            assert len(got) == len(table['name'])
        assert all(want[n] == v for n, v in got.items()), by
        assert table['more'] == max(0, len(want) - ROWS), by
        for key in (p + v for p in ('', 'base_') for v in VALUES):
            assert sum(table[key]) == sum(v[key] for v in want.values()), key
        changes = [abs(a - b) for a, b in zip(table['live'],
                                              table['base_live'])]
        shown = changes[:len(table['name'])]
        assert shown == sorted(shown, reverse=True), by


def tables_are_joined_by_names():
    run, base = two_runs()
    _, data = report(run, base)
    check_tables(run, base, data)
    cache = data['base']['tables'][1]
    only = [data['strings'][n] for n, i in zip(cache['name'], cache['in'])
            if i == 2]
    assert only == ['only-base'], only


def many_rows_are_joined_before_they_are_cut():
    def script(first):
        return ''.join(f'alloc va={0xffff888000000000 + i * 65536:x} '
                       f'us={i + 1} size={64 + i % 7:x} cache=c{first + i}\n'
                       for i in range(900))
    run, base = P.journal(script(0)), P.journal(script(200))
    _, data = report(run, base)
    check_tables(run, base, data)
    cache = data['base']['tables'][1]
    assert cache['more'] == 600, cache['more']


def the_run_itself_is_as_without_a_base():
    run, base = two_runs()
    _, data = report(run, base, ('--at', '2000'))
    path = P.path('.html')
    P.run('-f', run, '--at', '2000', 'report', '-o', path)
    with open(path, encoding='ascii') as f:
        alone = Page(f.read()).data
    assert data['total'] == alone['total']
    assert alone['base'] is None and data['base']['us'] == 90000
    names = [[d['strings'][n] for n in d['tables'][1]['name']]
             for d in (data, alone)]
    assert names[0] == names[1], names
    assert data['base']['time']['end'] == 90000
    assert 'steps' not in data['base']['time']


def what_the_base_lacks_is_said():
    run, _ = two_runs()
    base = P.journal('alloc va=ffff888000001000 size=10 us=1\ngap\n')
    _, data = report(run, base)
    assert data['base']['missing'] > 0 and data['missing'] == 0


def bad_bases_are_refused():
    run, _ = two_runs()
    path = P.path()
    for words in (('--base',), ('--base', 'a', 'b'), ('x', '--base', run)):
        status, _, _ = P.run('-f', run, 'report', *words, '-o', path)
        assert status == 1 and not os.path.exists(path), words
    for base in os.path.join(P.work, 'none'), __file__:
        status, _, err = P.run('-f', run, 'report', '--base', base, '-o', path)
        assert status == 2 and base in err and not os.path.exists(path), err


# ---- in Chromium -----------------------------------------------------------

def the_page_shows_the_difference():
    run, base = two_runs()
    path, data = report(run, base)
    B.load(path)
    now, before = data['total']['live'], data['base']['total']['live']
    facts = B.js('return document.getElementById("base-facts").textContent')
    assert f'({now - before:+,})' in facts, facts
    rows = B.js('const by = document.getElementById("base-by");'
                'by.selectedIndex = 1;'
                'by.dispatchEvent(new Event("change"));'
                'return [...document.querySelectorAll("#base-rows tbody tr")]'
                '.map(r => [...r.cells].map(c => c.textContent))')
    assert 'grew' in B.text('#compared') and \
        os.path.basename(base) in B.text('#compared'), B.text('#compared')
    for column in 2, 4:
        B.js('document.querySelectorAll("#base-rows th button")'
             '[arguments[0]].click()', column)
        values = [int(v.replace(',', '')) for v in B.js(
            'return [...document.querySelectorAll("#base-rows tbody tr")]'
            '.map(r => r.cells[arguments[0]].textContent)', column)]
        assert values == sorted(values, reverse=True), values
        assert B.js('return document.activeElement.parentNode'
                    '.getAttribute("aria-sort")') == 'descending'
    gone = [r for r in rows if r[0] == 'only-base']
    assert gone and gone[0][1:5] == ['gone', '0', '4,096', '-4,096'] or \
        gone[0][1] == 'gone', gone
    B.type('#base-filter', 'only')
    assert B.js('return document.querySelectorAll("#base-rows tbody tr")'
                '.length') == 1
    size = B.js('const c = document.getElementById("base-time");'
                'return [c.clientWidth, c.clientHeight]')
    assert min(size) > 50, size
    if PICTURES:
        B.js('document.getElementById("base-part").scrollIntoView()')
        B.screenshot(os.path.join(PICTURES, 'base.png'))
        B.js('document.getElementById("flame-part").scrollIntoView()')
        B.screenshot(os.path.join(PICTURES, 'base-flame.png'))
    lines = B.console()
    assert not lines, lines


def colours_are_changes():
    path, data = report(*two_runs())
    B.load(path)
    got = B.js('''
        const f = window.kaPage.flame, out = [];
        for (let i = 1; i < f.tree.depth.length; i++) {
            out.push([f.tree.live[i], f.tree.base_live[i],
                      f.colorOf(i, "x")]);
        }
        f.choose("base_live", false);
        return [out, f.rects.map(r => r.width), f.canvas.clientWidth];''')
    for now, before, color in got[0]:
        hue = color[4:].split(',')[0]
        assert hue == ('5' if now > before else '215' if now < before
                       else '0'), (now, before, color)
    # the widths are those of the base now
    assert abs(got[1][0] - got[2]) < 1, got[1][:3]
    shown = B.js('return window.kaPage.flame.tree.base_live[0]')
    assert shown == data['base']['total']['live']
    B.js('window.kaPage.timeline.choose(1, 1)')
    lines = B.console()
    assert not lines, lines


PICTURES = sys.argv[3] if len(sys.argv) > 3 else None
tests = [
    stacks_are_joined_by_names, tables_are_joined_by_names,
    many_rows_are_joined_before_they_are_cut,
    the_run_itself_is_as_without_a_base, what_the_base_lacks_is_said,
    bad_bases_are_refused]
if webdriver.why_not():
    print('# not in a browser: ' + webdriver.why_not())
    sys.exit(exports.run_tests(tests))
with webdriver.Browser() as B:
    status = exports.run_tests(tests + [the_page_shows_the_difference,
                                        colours_are_changes])
sys.exit(status)
