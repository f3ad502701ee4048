#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The heap map and the leaks of ka report: their numbers, and in headless
Chromium what clicks, keys and hovering do; hostile names are text; print.

usage: test_page_map.py KA KA-JOURNAL [FOLDER]
FOLDER gets pictures of the page, for people.
"""
import base64
import json
import os
import sys

import exports
import test_page
import test_page_leaks
import webdriver

P = test_page.P
MAP = 'const m = window.kaPage.map; '
CELLS = ('live', 'pages', 'freed', 'blocks')


def address(cells, i, offset=0):
    return f'0x{(cells["page"][i] << 12) + offset:016x}'


def absolute(column):
    total, out = 0, []
    for n in column:
        total += n
        out.append(total)
    return out


def slabs():
    """A journal of many pages: slabs with holes, pages, areas, an error."""
    lines = ['symbol va=ffffffff81000000 name=_stext']
    lines += [f'symbol va={0xffffffff81000100 + i * 16:x} name=make_{i}'
              for i in range(12)]
    lines += ['symbol va=ffffffff81f00000 name=_etext', 'complete']
    us = 0
    for page in range(300):
        base = 0xffff888000100000 + page * 4096 + page // 40 * 0x100000
        size = 64 << page % 5
        for i in range(0, 4096 // size, 1 + page % 4):
            us += 997
            lines.append(
                f'alloc va={base + i * size:x} size={size - 4:x} '
                f'actual={size:x} us={us} cache=kmalloc-{size} '
                f'stack={0xffffffff81000101 + (page + i) % 12 * 16:x}')
    for i in range(3):
        va = f'{0xffff888000100000 + i * 4096:x}'
        lines += [f'free va={va} us={us + i} stack=ffffffff81000101',
                  f'free va={va} us={us + i + 1} stack=ffffffff81000111']
    lines += ['alloc va=ffffc90000001000 size=20000 us=5 layer=vmalloc '
              'stack=ffffffff81000101',
              'alloc va=ffffe8ffffc01000 size=40 us=6 layer=percpu '
              'stack=ffffffff81000101',
              'alloc va=ffff888000900000 size=40000 us=7 layer=pages '
              'stack=ffffffff81000121']
    return P.journal('\n'.join(lines) + '\n')


# ---- without a browser ------------------------------------------------------

def the_map_is_ka_map_and_ka_top():
    for journal in [*map(P.case, exports.cases()), slabs()]:
        data = test_page.report(journal).data
        everything, _ = P.top(journal)
        got = data['map']
        cells, rows = got['cells'], got['list']
        assert got['live'] == everything['live'], (journal, got['live'])
        assert got['blocks'] == everything['blocks'], journal
        assert sum(cells['live']) + sum(cells['pages']) == got['live']
        assert sum(cells['blocks']) == got['blocks']
        _, out, _ = P.run('-f', journal, 'map', '-s', '-j')
        want = list(map(json.loads, out.splitlines()))
        cells['page'] = absolute(cells['page'])
        expected = [o for o in want if o['type'] == 'map_cell']
        assert [address(cells, i) for i in range(len(cells['page']))] == \
            [o['va'] for o in expected], journal
        for key in CELLS:
            assert cells[key] == [o[key] for o in expected], (journal, key)
        for i, o in zip(cells['cache'], expected):
            assert data['strings'][i] == o['cache'] or \
                not o['cache'].isascii() or not o['cache'].isprintable(), o
        expected = [o for o in want if o['type'] == 'map_block']
        assert [address(cells, c, o) for c, o in
                zip(absolute(rows['cell']), rows['offset'])] == \
            [o['va'] for o in expected], journal


def listed_blocks_are_those_of_ka():
    journal = slabs()
    rows = test_page.report(journal).data['map']['list']
    _, out, _ = P.run('-f', journal, '-j', '-n', '0')
    want = [o for o in map(json.loads, out.splitlines())
            if o.get('type') == 'block']
    assert len(want) == len(rows['cell']) > 3000, len(want)
    assert rows['asked'] == [o['requested'] for o in want]
    assert rows['size'] == [o['actual'] for o in want]
    assert rows['us'] == [o['alloc_us'] for o in want]
    assert ['ARF'[s] for s in rows['state']] == [o['state'] for o in want]


def a_large_heap_is_bounded():
    journal = P.journal('many n=200000 va=ffff888000000000 step=2000 '
                        'size=40\n')
    data = test_page.report(journal).data
    got = data['map']
    assert len(got['cells']['page']) <= 32768, len(got['cells']['page'])
    assert len(got['list']['cell']) <= 20000
    assert sum(got['cells']['live']) == 200000 * 64 == got['live']
    size = len(json.dumps(got))
    assert size < 3 << 20, size
    return f' ({size >> 10} KiB)'


# ---- in Chromium ------------------------------------------------------------

def place(cell, part=0.5):
    """A place in a cell, from the corner of the canvas."""
    return B.js(MAP + 'const p = cellPlace(m.layout, arguments[0]), '
                's = m.layout.size * arguments[1]; return [p.x + s, p.y + s];',
                cell, part)


def hovering_says_the_cell():
    path = P.page(slabs())
    B.load_anew(path)
    cells = B.js(MAP + 'return [m.map.n, m.map.cells.page[5]]')
    B.hover_at('#map', *place(5))
    want = f'{cells[1] << 12:016x}'
    assert B.text('#map-status').startswith(want), B.text('#map-status')
    assert 'live block' in B.text('#map-status'), B.text('#map-status')
    assert f'{cells[0]:,} squares' in B.text('#map-size'), B.text('#map-size')
    B.check_silent(path)


def a_click_zooms_until_blocks_are_seen():
    path = P.page(slabs())
    B.load_anew(path)
    for _ in range(3):
        B.click_at('#map', *place(1))
    size, lo, hi = B.js(MAP + 'return [m.layout.size, m.lo, m.hi]')
    assert size >= 24 and lo <= 1 < hi and hi - lo == 16, (size, lo, hi)
    B.hover_at('#map', *place(1, 0.02))
    status = B.text('#map-status')
    assert 'ffff888000101000-' in status and 'reserved' in status, status
    assert 'freed block' in status and 'has an error' in status, status
    B.type('#map', '\ue00c')        # Escape
    assert B.js(MAP + 'return [m.lo, m.hi === m.map.n]') == [0, True]
    B.check_silent(path)


def keys_walk_and_zoom():
    path = P.page(slabs())
    B.load_anew(path)
    B.type('#map', '\ue014\ue014')  # right, twice
    assert B.js(MAP + 'return m.cell') == 2
    B.type('#map', '\ue015')        # down
    columns = B.js(MAP + 'return m.layout.parts[0].columns')
    assert B.js(MAP + 'return m.cell') == 2 + columns
    B.type('#map', '\ue007')        # Enter
    lo, hi = B.js(MAP + 'return [m.lo, m.hi]')
    assert lo <= 2 + columns < hi and hi - lo < 100, (lo, hi)
    B.type('#map', '\ue00f')        # Page Down
    assert B.js(MAP + 'return m.lo') > lo
    B.check_silent(path)


def colours_have_their_legend():
    path = P.page(slabs())
    B.load_anew(path)
    full = B.js(MAP + 'return m.map.cells.pages.lastIndexOf(4096)')
    for mode in 'cache', 'caller', 'age', 'use':
        B.js('const s = document.getElementById("map-color");'
             's.value = arguments[0];'
             's.dispatchEvent(new Event("change"))', mode)
        legend = B.text('#map-legend')
        want = {'cache': 'kmalloc-64 ', 'caller': 'make_1 ', 'age': ' s',
                'use': '75 %'}[mode]
        assert want in legend, (mode, legend)
        for dark in False, True:
            B.dark(dark)
            got, color = B.js(MAP + '''
                m.draw();
                const i = arguments[0], p = cellPlace(m.layout, i),
                    k = window.devicePixelRatio, s = m.layout.size;
                const c = m.canvas.getContext("2d");
                const got = c.getImageData((p.x + s / 2) * k,
                                           (p.y + s - 3) * k, 1, 1).data;
                const one = document.createElement("canvas").getContext("2d");
                one.fillStyle = m.color(
                    m.map.cells[m.mode === "caller" ? "caller" : "cache"][i],
                    m.map.cells.oldest[i], 1);
                one.fillRect(0, 0, 1, 1);
                return [[...got], [...one.getImageData(0, 0, 1, 1).data]];''',
                              full)
            assert all(abs(a - b) < 4 for a, b in zip(got, color)), \
                (mode, dark, got, color)


def leaks_have_their_stacks():
    qemu = test_page_leaks.Scanned(P, P.case('032-top'))
    path = P.path('.html')
    status, _, err = P.run('-q', qemu.path, 'report', '-o', path)
    assert status == 0, err
    B.load_anew(path)
    part = B.text('#leak-part')
    for word in ('3 leaked blocks', '3 blocks, 168 B requested',
                 '4 more that only these hold', '</script><img src=x>',
                 ' refs 0xffff888000020180', 'fold ' + '8' * 32):
        assert word in part, (word, part)
    assert not B.js('return document.querySelectorAll("img").length')
    B.check_silent(path)
    path = P.page(test_page_leaks.modules())
    B.load_anew(path)
    part = B.text('#leak-part')
    assert 'module ext4' in part and 'a journal does not have' in part, part
    B.check_silent(path)


NAMES = ('<img/src=x/onerror=alert(1)>', 'a\nb\rc', '"\'`', 'n' * 4096,
         'a\0b', '\xff\xfe\xc3\x28', '\u2028x', '</script><b>',
         '<!-- <script>', '\x1b[31m', '__proto__', '&lt;b&gt;', '\\u003cb')


def hostile(names):
    """A journal with these names of tasks, modules, caches and functions."""
    lines = ['symbol va=ffffffff81000000 name=_stext',
             'symbol va=ffffffff81f00000 name=_etext', 'kernel', 'complete']
    for i, name in enumerate(names):
        va = 0xffffffffc0000000 + i * 0x10000
        block = f'{0xffff888000001000 + i * 4096:x}'
        lines += [
            f'module va={va + 0x8000:x} name={name} base={va:x} size=4000',
            f'modsym va={va:x} name={name}', f'load va={va + 0x8000:x}',
            f'alloc va={block} size=10 us={i * 9 + 1} pid=1 comm={name} '
            f'cache={name} stack={va + 16:x},ffffffff81000010',
            f'alloc va={block[:-3]}100 size=10 us={i * 9 + 2} pid=1 '
            f'comm={name} cache={name} stack={va + 16:x}',
            f'free va={block} us={i * 9 + 3} stack={va + 16:x} comm={name}',
            f'free va={block} us={i * 9 + 4} stack={va + 32:x} comm={name}',
            f'unload va={va + 0x8000:x}']
    return P.journal('\n'.join(lines) + '\n')


class Hostile(exports.Qemu):
    """A VM whose answers have NAMES in the places of the names NaMe0_,
    NaMe1_ ... of its journal. Those of functions and modules are so, too, which
    ka itself refuses to take from a guest."""

    def answer(self, command):
        text = super().answer(command)
        for i, name in enumerate(NAMES):
            text = text.replace(f'NaMe{i}_', json.dumps(name)[1:-1])
        return text


def hostile_names_are_text():
    markers = [f'NaMe{i}_' for i in range(len(NAMES))]
    path = P.path('.html')
    status, _, err = P.run('-q', Hostile(P, hostile(markers)).path, 'report',
                           '-o', path)
    assert status == 0, err
    check_hostile(path)
    shown = B.text('#page')
    for name in 'a\\x0ab\\x0dc', '&lt;b&gt;', '\\u003cb', 'n' * 300:
        assert name in shown, name


def hostile_names_of_a_journal_are_text():
    plain = [n for n in NAMES if n.isprintable() and n.isascii() and
             ' ' not in n and len(n) < 400]
    check_hostile(P.page(hostile(plain)))


def check_hostile(path):
    B.load_anew(path)
    for mode in 'cache', 'caller':
        B.js('const s = document.getElementById("map-color");'
             's.value = arguments[0];'
             's.dispatchEvent(new Event("change"))', mode)
    for table in range(5):
        B.js('const by = document.getElementById("by");'
             'by.selectedIndex = arguments[0];'
             'by.dispatchEvent(new Event("change"))', table)
    B.hover_at('#map', *place(0))
    B.type('#flame', '\ue015\ue015')
    B.type('#search', 'img')
    shown = B.text('#page')
    assert '<img/src=x' in shown and '</script><b>' in shown, shown[:2000]
    assert '\u2028' not in shown and '\x1b' not in shown
    for tag, n in (('script', 2), ('img', 0), ('b', 0), ('iframe', 0)):
        got = B.js('return document.querySelectorAll(arguments[0]).length',
                   tag)
        assert got == n, (tag, got)
    wide, inner = B.js('return [document.documentElement.scrollWidth, '
                       'window.innerWidth]')
    assert wide <= inner, (wide, inner)
    B.check_silent(path)


def it_looks_well_at_two_widths():
    path = P.page(slabs())
    B.load_anew(path)
    for width in 480, 1280:
        B.resize(width, 900)
        wide, inner = B.js('window.kaPage.map.draw(); return '
                           '[document.documentElement.scrollWidth, '
                           'window.innerWidth]')
        assert wide <= inner, (wide, inner)
        for dark in False, True:
            B.dark(dark)
            if PICTURES:
                name = f"map-{width}-{'dark' if dark else 'light'}.png"
                B.picture(os.path.join(PICTURES, name), width)
    B.check_silent(path)


def it_prints_in_light_colours():
    path = P.page(slabs())
    B.load_anew(path)
    B.dark(True)
    B.devtools('Emulation.setEmulatedMedia', media='print', features=[
        {'name': 'prefers-color-scheme', 'value': 'dark'}])
    back, shown = B.js('return [getComputedStyle(document.body)'
                       '.backgroundColor, [...document.querySelectorAll('
                       '".controls, nav")].filter(e => e.offsetHeight)'
                       '.length]')
    B.devtools('Emulation.setEmulatedMedia', media='')
    B.dark(True)
    B.js('window.drawn = []; for (const e of ["beforeprint", "afterprint"])'
         'window.addEventListener(e, () => window.drawn.push('
         '[isDark(), window.kaPage.map.dark, window.kaPage.flame.dark]))')
    assert back == 'rgb(255, 255, 255)' and shown == 0, (back, shown)
    pdf = B.devtools('Page.printToPDF', printBackground=False)['data']
    assert len(pdf) > 10000, len(pdf)
    assert B.js('return window.drawn') == [[False] * 3, [True] * 3], \
        B.js('return window.drawn')
    if PICTURES:
        with open(os.path.join(PICTURES, 'map.pdf'), 'wb') as f:
            f.write(base64.b64decode(pdf))
    B.check_silent(path)


PICTURES = sys.argv[3] if len(sys.argv) > 3 else None
NUMBERS = [the_map_is_ka_map_and_ka_top, listed_blocks_are_those_of_ka,
           a_large_heap_is_bounded]
BROWSER = [hovering_says_the_cell, a_click_zooms_until_blocks_are_seen,
           keys_walk_and_zoom, colours_have_their_legend,
           leaks_have_their_stacks, hostile_names_are_text,
           hostile_names_of_a_journal_are_text, it_looks_well_at_two_widths,
           it_prints_in_light_colours]
reason = webdriver.why_not()
if reason:
    print(f'# not run in a browser: {reason}')
    sys.exit(exports.run_tests(NUMBERS))
with webdriver.Browser() as B:
    status = exports.run_tests(NUMBERS + BROWSER)
sys.exit(status)
