#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The timeline of the page of ka report: sums of any interval are those of ka
diff, counters are those of ka export chrome; in Chromium, a drag and keys
select the interval that the flame graph and the tables show.

usage: test_page_time.py KA KA-JOURNAL [FOLDER]
"""
import itertools
import json
import os
import random
import sys

import exports
import webdriver
from test_page import P, Page, report, row_name

STEPS, CELLS = 256, 300000
FLOWS = ('allocs', 'reserved', 'frees', 'freed_reserved')
NAMES = ('__start', 'beta', 'gamma', 'delta', 'omega')


def wave(n, seed=7):
    """A script of n events over some time, of several stacks, caches, tasks
    and a module that is unloaded."""
    rand, live = random.Random(seed), []
    lines = ['symbol va=ffffffff81000000 name=_stext']
    lines += [f'symbol va={0xffffffff81001000 + i * 4096:x} name={name}'
              for i, name in enumerate(NAMES)]
    lines += ['symbol va=ffffffff81f00000 name=_etext',
              'symbol va=ffffffff82001000 name=_end type=B', 'complete',
              'kernel', 'module va=ffffffffc0100000 name=ext4 '
              'base=ffffffffc0000000 size=4000',
              'modsym va=ffffffffc0000000 name=ext4_alloc',
              'load va=ffffffffc0100000']
    for i in range(n):
        us = 100 + i * i // 50
        if i == n // 2:
            lines += ['unload va=ffffffffc0100000', 'mark name=half']
        if live and (rand.random() < 0.5 or len(live) > 60):
            va = live.pop(rand.randrange(len(live)))
            lines.append(f'free va={va:x} us={us}')
            continue
        va = 0xffff888000000000 + i * 65536
        live.append(va)
        pcs = [0xffffffff81001010 + rand.randrange(5) * 4096
               for _ in range(rand.randrange(4))]
        if i < n // 2 and i % 5 == 0:
            pcs.insert(0, 0xffffffffc0000010)
        stack = ','.join(f'{pc:x}' for pc in pcs)
        lines.append(f'alloc va={va:x} us={us} size={8 << i % 7:x} '
                     f'cache=c{rand.randrange(4)} pid={1 + i % 3} comm=t' +
                     (f' stack={stack}' if stack else ''))
    return '\n'.join(lines) + '\n'


def running(column):
    return list(itertools.accumulate(column))


def interval(cells, first, last):
    """{row: {key: sum}} of the steps from first to last, live at the end."""
    rows = {}
    for i, (row, step) in enumerate(zip(running(cells['row']),
                                        running(cells['step']))):
        sums = rows.setdefault(row, dict.fromkeys((*FLOWS, 'live', 'blocks'),
                                                  0))
        value = {k: cells[k][i] for k in FLOWS}
        if step <= last:
            sums['live'] += value['reserved'] - value['freed_reserved']
            sums['blocks'] += value['allocs'] - value['frees']
        if first <= step <= last:
            for key in FLOWS:
                sums[key] += value[key]
    return {row: sums for row, sums in rows.items() if any(sums.values())}


def add(to, name, values):
    old = to.setdefault(name, dict.fromkeys(values, 0))
    for key, value in values.items():
        old[key] += value


def page_rows(data, number, first, last):
    """{name: sums} of a table of the page."""
    table, got = data['tables'][number], {}
    cells = data['time']['steps']['tables'][number]
    for row, sums in interval(cells, first, last).items():
        add(got, data['strings'][table['name'][row]], sums)
    return got


def page_stacks(data, tree, first, last):
    """{names from the root: sums} of the stacks of a tree."""
    steps, nodes = data['time']['steps'], data[tree]
    path, paths, got = [], [], {}
    for depth, name, cut in zip(nodes['depth'], nodes['name'], nodes['cut']):
        assert not cut
        path[depth:] = [data['strings'][name]]
        paths.append(tuple(path[1:]))
    for row, sums in interval(steps['stacks'], first, last).items():
        add(got, paths[steps[tree][row]], sums)
    return got


def ka_rows(journal, by, begin, end):
    """The rows of ka diff from before begin to end, and from 0 to end."""
    rows = []
    for since in begin - 1, 0:
        _, out, _ = P.run('-f', journal, 'diff', f'@{since}', f'@{end}',
                          '--by', by, '-s', '-j', '-n', '0')
        rows.append([r for r in map(json.loads, out.splitlines())
                     if 'allocs' in r][1:])
    return rows


def ka_sums(journal, by, begin, end, name_of):
    """{name: sums} as the page should have them."""
    diff, whole = ka_rows(journal, by, begin, end)
    want = {}
    for row in diff:
        add(want, name_of(row), {k: row[k] for k in FLOWS} |
            {'live': 0, 'blocks': 0})
    for row in whole:
        add(want, name_of(row), dict.fromkeys(FLOWS, 0) |
            {'live': row['live'], 'blocks': row['blocks']})
    return {name: sums for name, sums in want.items() if any(sums.values())}


def check_interval(journal, data, first, last):
    steps = data['time']['steps']
    begin = steps['origin'] + (first - 1) * steps['width']
    end = min(steps['origin'] + last * steps['width'] - 1,
              data['time']['end'])
    for number, table in enumerate(data['tables']):
        want = ka_sums(journal, table['by'], begin, end,
                       lambda row, by=table['by']: row_name(row, by))
        if not table['name']:
            continue        # by module without symbols
        got = page_rows(data, number, first, last)
        if table['by'] == 'module':
            # a module has no name before it is loaded
            assert sum(s['allocs'] for s in got.values()) == \
                sum(s['allocs'] for s in want.values())
            continue
        assert got == want, (table['by'], first, last, got, want)
    for tree, step in ('down', -1), ('up', 1):
        want = ka_sums(journal, 'stack', begin, end,
                       lambda row: tuple(exports.stack_names(row)[::step]))
        got = page_stacks(data, tree, first, last)
        assert got == want, (tree, first, last, got, want)


def any_interval_is_ka_diff():
    rand, n = random.Random(3), 0
    journals = [P.journal(wave(900)), *map(P.case, exports.cases())]
    for journal in journals:
        data = report(journal).data
        steps = data['time']['steps']
        assert steps['n'] <= STEPS, steps['n']
        if not steps['n'] or not steps['origin']:
            continue
        for _ in range(4 if journal == journals[0] else 1):
            first, last = sorted(rand.choices(range(1, steps['n'] + 1), k=2))
            check_interval(journal, data, first, last)
            n += 1
    assert n > 6, n


def everything_is_the_page():
    for journal in P.journal(wave(400)), P.case('032-top'):
        data = report(journal).data
        rows = interval(data['time']['steps']['stacks'], 0, STEPS)
        for key in ('live', 'blocks', *FLOWS):
            assert sum(r[key] for r in rows.values()) == data['total'][key], \
                key
        for number, table in enumerate(data['tables']):
            cells = interval(data['time']['steps']['tables'][number], 0, STEPS)
            for row, sums in cells.items():
                for key in ('live', *FLOWS):
                    assert sums[key] == table[key][row], (table['by'], row)


def at_a_time_and_behind_a_reset():
    journal = P.journal(wave(300))
    before = ('--at', '700')
    data = report(journal, before).data
    assert data['time']['end'] <= 700
    rows = interval(data['time']['steps']['stacks'], 0, STEPS)
    assert sum(r['live'] for r in rows.values()) == data['total']['live']
    script = ('complete\nalloc va=ffff888000001000 size=1000 us=1\n{}\n'
              'alloc va=ffff888000002000 size=20 us=1002\n'
              'free va=ffff888000002000 us=3000\n')
    for word in 'reset', 'clear':
        data = report(P.journal(script.format(word))).data
        steps = data['time']['steps']
        assert steps['origin'] in (1, 1002), steps
        got = interval(steps['stacks'], 1, steps['n'])
        assert [(r['allocs'], r['frees']) for r in got.values()] == [(1, 1)]


def counters_are_those_of_export_chrome():
    for journal in P.journal(wave(900)), P.case('033-mark-and-diff'):
        data = report(journal).data
        events = json.loads(P.export(journal, 'chrome'))['traceEvents']
        want = {}
        for e in events:
            if e['ph'] == 'C':
                want.setdefault(e['name'], []).append(
                    (e['ts'], e['args']['live']))
        want['everything'] = want.pop('live bytes')
        got = {data['strings'][c['name']]: list(zip(
            running(c['us']), running(c['value'])))
               for c in data['time']['counters']}
        assert got == want, journal
        instants = data['time']['instants']
        names = sorted((us, data['strings'][n]) for us, n in zip(
            running(instants['us']), instants['name']))
        assert names == sorted((e['ts'], e['name']) for e in events
                               if e['ph'] == 'i'), names
        modules = data['time']['modules']
        assert [data['strings'][n] for n in modules['name']] == \
            [e['name'] for e in events if e['ph'] == 'X']


def many_sums_are_fewer_steps():
    lines = ['complete']
    lines += [f'alloc va={0xffff888000000000 + i * 4096:x} size=40 us={i + 1} '
              f'cache=c{i % 450} pid={i % 450} comm=t stack='
              f'{0xffffffff81000010 + i % 450 * 64:x}'
              for i in range(120000)]
    data = report(P.journal('\n'.join(lines) + '\n')).data
    steps = data['time']['steps']
    cells = len(steps['stacks']['row']) + sum(len(t['row'])
                                              for t in steps['tables'])
    assert 8 < steps['n'] <= STEPS // 2 and cells <= CELLS, (steps['n'], cells)
    return f" ({steps['n']} steps, {cells} sums)"


def a_vm_has_no_timeline():
    journal = P.case('032-top')
    path = P.path('.html')
    status, _, err = P.run('-q', exports.Qemu(P, journal).path, 'report', '-o',
                           path)
    assert status == 0, err
    with open(path, encoding='ascii') as f:
        assert Page(f.read()).data['time'] is None


# ---- in Chromium -----------------------------------------------------------

FIGURES = '''
    const {data, flame, tables} = window.kaPage;
    const foot = document.querySelectorAll("#rows tfoot td");
    return [flame.trees.down.live[0], flame.trees.down.allocs[0],
            tables.total.live, tables.total.allocs,
            foot[1].textContent, window.kaPage.timeline.selected];'''


def load(journal):
    path = P.path('.html')
    status, _, err = P.run('-f', journal, 'report', '-o', path)
    assert status == 0, err
    B.console()         # what the page before printed, and requested
    B.requests()
    B.load(path)
    return path


def drag(from_x, to_x):
    left, top = B.js('const e = document.getElementById("time");'
                     'e.scrollIntoView({block: "center"});'
                     'const r = e.getBoundingClientRect();'
                     'return [r.left, r.top];')
    moves = [{'type': 'pointerMove', 'duration': 0, 'origin': 'viewport',
              'x': round(left + x), 'y': round(top + 60)}
             for x in (from_x, to_x)]
    B.post('actions', {'actions': [{
        'type': 'pointer', 'id': 'mouse', 'actions': [
            moves[0], {'type': 'pointerDown', 'button': 0}, moves[1],
            {'type': 'pointerUp', 'button': 0}]}]})


def check_figures(journal):
    """What the page shows is what ka says of the selected steps."""
    live, allocs, *shown, selected = B.js(FIGURES)
    begin, end = B.js('const t = window.kaPage.timeline;'
                      'return stepTimes(t.time.steps, ...t.selected, '
                      't.time.end);')
    diff, whole = ka_rows(journal, 'cache', begin, end)
    want = sum(r['live'] for r in whole), sum(r['allocs'] for r in diff)
    assert (live, allocs) == want == (shown[0], shown[1]), (want, shown)
    assert shown[2] == f'{want[0]:,}', shown
    assert f'{begin:,} to {end:,} us' in B.js(
        'return document.getElementById("interval").textContent')
    return selected


def a_drag_selects_and_a_click_ends():
    journal = P.journal(wave(900))
    load(journal)
    whole = B.js(FIGURES)
    drag(300, 500)
    first, last = check_figures(journal)
    assert 1 < first < last < STEPS, (first, last)
    drag(400, 400)
    assert B.js(FIGURES) == whole and whole[-1] is None, whole
    assert not B.console()


def keys_select():
    journal = P.journal(wave(900))
    path = load(journal)
    B.type('#time', '\ue014\ue014\ue014')           # right
    assert check_figures(journal) == [3, 3]
    B.type('#time', '\ue008\ue014\ue014\ue008')     # shift
    assert check_figures(journal) == [3, 5]
    B.js('window.kaPage.flame.find(compileSearch("beta"))')
    B.type('#time', '\ue00c')
    assert B.js(FIGURES)[-1] is None
    if PICTURES:
        B.screenshot(os.path.join(PICTURES, 'time.png'))
    assert not B.console()
    others = [u for u in B.requests() if u != 'file://' + path]
    assert not others, others


def a_pixel_has_the_colour_of_its_cache():
    load(P.journal(wave(900)))
    for dark in False, True:
        B.dark(dark)
        got, want = B.js('''
            const t = window.kaPage.timeline, c = t.canvas;
            t.draw();
            const k = window.devicePixelRatio || 1, x = LEFT + 300;
            const value = counterAt(t.series[0], t.usAt(x + 1));
            const got = c.getContext("2d").getImageData(
                x * k, t.yOf(value / 2) * k, 1, 1).data;
            const one = document.createElement("canvas").getContext("2d");
            one.fillStyle = t.color(0, arguments[0]);
            one.fillRect(0, 0, 1, 1);
            return [[...got], [...one.getImageData(0, 0, 1, 1).data]];''',
                          dark)
        assert all(abs(a - b) < 4 for a, b in zip(got, want)), (got, want)


def names_of_the_timeline_are_text():
    load(P.journal(exports.hostile_script()))
    assert B.js('return document.querySelectorAll("script").length') == 2
    key = B.js('return document.getElementById("time-key").textContent')
    assert '<script>' in key, key
    lines = B.console()
    assert not lines, lines


def main():
    tests = [
        any_interval_is_ka_diff, everything_is_the_page,
        at_a_time_and_behind_a_reset, counters_are_those_of_export_chrome,
        many_sums_are_fewer_steps, a_vm_has_no_timeline]
    if webdriver.why_not():
        print('# not in a browser: ' + webdriver.why_not())
        return exports.run_tests(tests)
    with webdriver.Browser() as browser:
        globals()['B'] = browser
        return exports.run_tests(tests + [
            a_drag_selects_and_a_click_ends, keys_select,
            a_pixel_has_the_colour_of_its_cache,
            names_of_the_timeline_are_text])


B = None
PICTURES = sys.argv[3] if len(sys.argv) > 3 else None
if __name__ == '__main__':
    sys.exit(main())
