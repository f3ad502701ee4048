#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The page of ka report in headless Chromium: no error, no request; clicks,
keys and the search do what they should; hostile names are text.

usage: test_page_browser.py KA KA-JOURNAL [FOLDER]
FOLDER gets pictures of the page, for people.
"""
import os
import re
import subprocess
import sys

import exports
import webdriver

sys.path.insert(0, exports.ROOT)

from scripts.lib.findings import finding, page, plain   # noqa: E402

ROW = 18            # pixels of a frame
FLAME = 'const f = window.kaPage.flame; '


def every_page_is_silent():
    for journal in map(P.case, exports.cases()):
        path = P.page(journal)
        B.load_anew(path)
        assert B.js('return !document.getElementById("page").hidden')
        B.check_silent(path)


def the_numbers_are_those_of_ka_top():
    everything, _ = P.top(TOP)
    B.load_anew(P.page(TOP))
    for field in 'blocks', 'allocs':
        label = {'blocks': 'live blocks', 'allocs': 'allocations'}[field]
        got = B.js('for (const d of document.querySelectorAll("dt")) {'
                   'if (d.textContent === arguments[0])'
                   ' return d.nextSibling.textContent; }', label)
        assert got == f'{everything[field]:,}', (label, got)
    cells = B.js('return [...document.querySelectorAll("tfoot td")]'
                 '.map(c => c.textContent)')
    assert cells[1] == f"{everything['live']:,}", cells
    assert f"({everything['live']:,})" in B.text('#status'), B.text('#status')


def a_click_zooms_and_the_sum_stays():
    path = P.page(TOP)
    B.load_anew(path)
    rect = B.js(FLAME + 'const r = f.rects.find(r => f.tree.depth[r.node] === '
                '2 && r.width > 20); return [r.node, r.x + r.width / 2, '
                'f.tree.live[r.node], f.tree.live[0]];')
    node, x, live, everything = rect
    B.click_at('#flame', x, 2 * ROW + ROW / 2)
    zoom, width, canvas, now = B.js(
        FLAME + 'return [f.zoom, f.rects.find(r => r.node === f.zoom).width, '
        'f.canvas.clientWidth, f.tree.live[f.zoom]];')
    assert (zoom, now) == (node, live) and abs(width - canvas) < 1, rect
    assert f'({live:,})' in B.text('#status'), B.text('#status')
    B.type('#flame', '\ue00c')      # Escape
    assert B.js(FLAME + 'return [f.zoom, f.tree.live[f.zoom]]') == \
        [0, everything]
    B.check_silent(path)


def the_search_counts():
    _, rows = P.top(TOP)
    B.load_anew(P.page(TOP))
    B.type('#search', '^(beta|mod_init)')
    want = sum(r['live'] for r in rows if any(
        re.match('beta|mod_init', n) for n in exports.stack_names(r)))
    nodes, total = B.js(FLAME + 'return [f.found.nodes, f.found.sum]')
    assert total == want > 0 and nodes > 0, (total, want)
    assert f'{nodes} frames' in B.text('#found'), B.text('#found')
    B.type('#search', '(')
    assert B.text('#found') == 'no expression', B.text('#found')


def keys_invert_and_walk():
    path = P.page(TOP)
    B.load_anew(path)
    B.type('#flame', 'i')
    assert B.js(FLAME + 'return f.tree === f.trees.up')
    B.type('#flame', '\ue015')      # down
    node, parent = B.js(FLAME + 'return [f.node, f.tree.parent[f.node]]')
    assert node > 0 and parent == 0, node
    B.type('#flame', '\ue007')      # Enter
    assert B.js(FLAME + 'return f.zoom') == node
    B.check_silent(path)


def tables_are_sorted_and_filtered():
    B.load_anew(P.page(TOP))
    column = ('return [...document.querySelectorAll("#rows tbody tr")]'
              '.map(r => r.cells[arguments[0]].textContent)')
    B.js('document.querySelectorAll("#rows th button")[5].click()')
    numbers = [int(n.replace(',', '')) for n in B.js(column, 5)]
    assert numbers == sorted(numbers, reverse=True) and len(numbers) > 2
    B.type('#filter', 'mod_')
    names = B.js(column, 0)
    assert names and all('mod_' in n for n in names), names


def errors_have_their_stacks_and_commands():
    journal = P.case('089-format-kasan')
    listed = subprocess.run([P.ka, '-f', journal, 'error', '-n', '0', '-j'],
                            check=True, stdout=subprocess.PIPE).stdout
    B.load_anew(P.page(journal))
    cards = B.js('return [...document.querySelectorAll("article")]'
                 '.map(a => a.textContent)')
    assert len(cards) == listed.count(b'"type":"error"')
    assert 'double-free in ext4_put' in cards[0], cards
    assert 'open_it+0x10' in cards[0] and 'close_it+0x10' in cards[0]
    assert ' error 0xffff888000001000 -l' in cards[0], cards[0]


def findings_come_first_with_links():
    B.load_anew(P.page(P.case('089-format-kasan')))
    for width in 1280, 420:
        B.resize(width, 800)
        state, bottom, high, head = B.js(
            'const v = document.getElementById("verdict");'
            'return [v.className, v.getBoundingClientRect().bottom,'
            'window.innerHeight, v.firstChild.textContent]')
        assert state == 'bad' and bottom < high, (state, bottom, high)
        assert head == '6 errors', head
    place = ('return [location.hash, document.activeElement.id || '
             'document.activeElement.getAttribute("href"), '
             'document.activeElement.getBoundingClientRect().top]')
    B.type('#verdict li a', '\ue007')        # Enter
    for name in 'error-0', 'error-0-block', 'error-0-stack':
        if name != 'error-0':
            B.type(f'#error-0 .places a[href="#{name}"]', '\ue007')
        at, focus, top = B.js(place)
        assert (at, focus) == ('#' + name, name) and -2 < top < 800, top
    for name in 'error-0-block', 'error-0':
        B.post('back')
        assert B.js(place)[1] == name, B.js(place)
    B.post('back')
    at, focus, top = B.js(place)
    assert (at, focus) == ('', '#error-0') and -2 < top < 800, (at, focus)


def a_clean_run_says_so():
    alloc = 'complete\nalloc va=ffff888000001000 size=10 us=1\n'
    B.load_anew(P.page(P.journal(alloc)))
    state = B.js('return document.getElementById("verdict").className')
    assert state == 'clean' and 'Nothing was found' in B.text('#verdict'), \
        (state, B.text('#verdict'))
    assert 'Not checked: leaks' in B.text('#verdict'), B.text('#verdict')
    B.load_anew(P.page(P.journal(alloc + 'log seq=0 level=1 text=BUG:\n')))
    assert '1 urgent line' in B.text('#verdict.bad'), B.text('#verdict')
    B.load_anew(P.page(P.journal(
        alloc + 'log seq=0 level=4 text=a\\x20WARNING:\n'
        'log seq=1 level=4 text=WARNING:\\x20CPU:\\x200\n')))
    assert '1 report in the kernel' in B.text('#verdict.bad'), \
        B.text('#verdict')
    assert "errors in the kernel's log" in B.text('#verdict') and \
        '0 errors' not in B.text('#verdict'), B.text('#verdict')
    B.load_anew(P.page(P.journal(alloc + 'gap\n')))
    state = B.js('return document.getElementById("verdict").className')
    assert state == 'unsure', state


def the_log_is_a_table():
    path = P.page(P.journal(''.join(
        f'log seq={i} ns={i * 1000000} us={i * 1000} level={3 + i % 4} pid=1 '
        f'text=line{i}\n' for i in range(20000))))
    B.load_anew(path)
    rows = ('return [...document.querySelectorAll("#log tbody tr")]'
            '.map(r => [r.className, ...[...r.cells].map(c => c.textContent)])')
    lines = B.js(rows)
    assert len(lines) == 500 and lines[:2] == [
        ['marked', '0.000000', '3', 'line0'],
        ['', '0.001000', '4', 'line1']], lines[:2]
    assert B.text('#log-count') == '1 to 500 of 20,000 lines'
    B.js('document.getElementById("log-on").click()')
    assert B.js(rows)[0][3] == 'line500', B.js(rows)[0]
    ms = B.js('const t = performance.now(), f = '
              'document.getElementById("log-filter"); f.value = "9999$";'
              'f.dispatchEvent(new Event("input"));'
              'return performance.now() - t')
    assert ms < 1000 and [r[3] for r in B.js(rows)] == [
        'line9999', 'line19999'], ms
    B.js('document.querySelector("#log th button").click()')
    assert B.js(rows)[0][3] == 'line19999', B.js(rows)
    B.check_silent(path)


def page_of_job(**values):
    path = P.path('.html')
    page.write(P.ka, ('-f', TOP), path,
               plain.render(finding.Report(swept='s', **values)))
    return path


def the_findings_of_a_job_come_first():
    B.load_anew(P.page(TOP))
    assert B.js('return document.getElementById("job-part").hidden')
    path = page_of_job(
        problem='no end', detail='vcpu0 1 frames, end\n  f+0x1', findings=[
            finding.Finding('leak', 'leak in <b>', fold='a' * 8, text='a\nb'),
            finding.Finding('leak', 'leak in g', fold='b' * 8, hidden='known')])
    B.load_anew(path)
    assert not B.js('return document.getElementById("job-part").hidden')
    assert B.text('#job-summary') == '1 finding, and 1 suppressed or known. ' \
        'The run is not complete: no end', B.text('#job-summary')
    assert B.text('#verdict h2').startswith('1 finding, leak: 1'), \
        B.text('#verdict h2')
    assert B.text('#job pre') == 'vcpu0 1 frames, end\n  f+0x1'
    names = B.js('return [...document.querySelectorAll("#job h3")]'
                 '.map(h => h.textContent)')
    assert names == ['leak in <b>', 'leak in g'], names
    B.check_silent(path)
    B.load_anew(page_of_job())
    assert B.text('#job-summary') == 'No errors were found.'
    assert B.text('#verdict h2') == 'Nothing was found'
    assert B.text('#error-count') != 'No errors were found.'


def pixels_have_the_colour_of_their_frame():
    B.load_anew(P.page(TOP))
    for dark in False, True:
        B.dark(dark)
        got, want = B.js(FLAME + '''
            f.draw();
            const c = f.canvas.getContext("2d");
            const r = f.rects.find(r => f.tree.depth[r.node] === 1 &&
                                   r.width > 20);
            const k = window.devicePixelRatio || 1;
            const got = c.getImageData((r.x + r.width - 4) * k,
                                       (18 + 3) * k, 1, 1).data;
            const one = document.createElement("canvas").getContext("2d");
            one.fillStyle = frameColor(nodeName(f.tree, f.strings, r.node),
                                       arguments[0]);
            one.fillRect(0, 0, 1, 1);
            return [[...got], [...one.getImageData(0, 0, 1, 1).data]];''',
                          dark)
        assert all(abs(a - b) < 4 for a, b in zip(got, want)), (got, want)


def it_may_be_resized():
    path = P.page(TOP)
    B.load_anew(path)
    for width in 500, 1400:
        B.resize(width, 900)
        inner, canvas, page = B.js(
            FLAME + 'f.draw(); return [window.innerWidth, '
            'f.rects[0].width, document.documentElement.scrollWidth]')
        assert canvas <= inner and page <= inner, (inner, canvas, page)
        for dark in False, True:
            B.dark(dark)
            if PICTURES:
                name = f"{width}-{'dark' if dark else 'light'}.png"
                B.screenshot(os.path.join(PICTURES, name))
    B.check_silent(path)


def hostile_names_are_text():
    path = P.page(P.journal(exports.hostile_script()))
    B.load_anew(path)
    assert B.js('return document.querySelectorAll("script").length') == 2
    names = B.js('const by = document.getElementById("by");'
                 'by.selectedIndex = 1;'
                 'by.dispatchEvent(new Event("change"));'
                 'return [...document.querySelectorAll("#rows tbody tr")]'
                 '.map(r => r.cells[0].textContent)')
    assert any('<script>' in n for n in names), names
    B.check_silent(path)


def deep_stacks_scroll():
    lines = ['symbol va=ffffffff81000000 name=_stext']
    lines += [f'symbol va={0xffffffff81000100 + i * 16:x} name=f{i}'
              for i in range(40)]
    lines.append('symbol va=ffffffff81f00000 name=_etext')
    pcs = ','.join(f'{0xffffffff81000101 + i * 16:x}' for i in range(40))
    lines.append(f'alloc va=ffff888000001000 size=40 us=1 stack={pcs}')
    path = P.page(P.journal('\n'.join(lines) + '\n'))
    B.load_anew(path)
    levels, height = B.js(FLAME + 'return [f.tree.levels, '
                          'f.canvas.clientHeight]')
    assert levels > 31 and height == 30 * ROW, (levels, height)
    B.type('#flame', '\ue00f')      # Page Down
    most = min(10, levels - 30)
    assert B.js(FLAME + 'return f.top') == most
    B.type('#flame', '\ue015' * (levels - 1))
    node, top, depth = B.js(FLAME + 'return [f.node, f.top, '
                            'f.tree.depth[f.node]]')
    assert depth == levels - 1 and top <= depth < top + 30, (node, top)
    B.check_silent(path)


def a_request_would_be_seen():
    path = P.path('.html')
    with open(path, 'w', encoding='ascii') as f:
        f.write('<!DOCTYPE html><img src="http://127.0.0.1:9/x">')
    B.load_anew(path)
    assert 'http://127.0.0.1:9/x' in B.requests()
    assert B.console()


def the_policy_stops_a_script_that_got_in():
    path = P.page(TOP)
    with open(path, encoding='ascii') as f:
        page = f.read()
    with open(path, 'w', encoding='ascii') as f:
        f.write(page.replace('</main>', '</main><script>window.bad = 1'
                             '</script><img src="http://127.0.0.1:9/x">'))
    B.load_anew(path)
    assert B.js('return window.bad === undefined')
    assert B.console()


P = exports.Program(*sys.argv[1:3])
TOP = P.case('032-top')
PICTURES = sys.argv[3] if len(sys.argv) > 3 else None
reason = webdriver.why_not()
if reason:
    print('1..0 # SKIP ' + reason)
    sys.exit(0)
with webdriver.Browser() as B:
    status = exports.run_tests([
        every_page_is_silent, the_numbers_are_those_of_ka_top,
        a_click_zooms_and_the_sum_stays, the_search_counts,
        keys_invert_and_walk, tables_are_sorted_and_filtered,
        errors_have_their_stacks_and_commands,
        findings_come_first_with_links, a_clean_run_says_so,
        the_log_is_a_table,
        the_findings_of_a_job_come_first,
        pixels_have_the_colour_of_their_frame, it_may_be_resized,
        hostile_names_are_text, deep_stacks_scroll,
        a_request_would_be_seen, the_policy_stops_a_script_that_got_in])
sys.exit(status)
