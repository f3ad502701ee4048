#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The page of ka report in headless Chromium, for people who use a screen
reader, a keyboard or large letters.

Oracle: axe-core, a package of npm (scripts/setup --only readers), with all of
its rules: it must find no violation in a clean run, a run with errors, a sweep
with findings and a comparison, each in a wide and a narrow window, in light
and in dark colours.

usage: test_page_axe.py KA KA-JOURNAL
"""
import os
import sys

import exports
import readers
import webdriver

sys.path.insert(0, exports.ROOT)

from scripts.lib.findings import finding, page, plain   # noqa: E402

AXE = os.path.join(readers.READERS, 'node_modules', 'axe-core', 'axe.min.js')
WIDTHS = 1280, 420
OPEN = ';document.querySelectorAll("details").forEach(d => { d.open = true; });'
# What is wrong, as lines: the rule, the element, and what axe says of it.
RUN = '''
    return axe.run(document).then(found => found.violations.flatMap(
        v => v.nodes.map(n => [v.id, n.target.join(" "),
                               n.failureSummary].join(": "))));'''
CLEAN = 'complete\nalloc va=ffff888000001000 size=10 us=1\n'


def log(levels):
    return ''.join(f'log seq={i} ns={i * 1000000} us={i * 1000} '
                   f'level={level} pid=1 text=line{i}\n'
                   for i, level in enumerate(levels))


def of_a_sweep():
    path = P.path('.html')
    page.write(P.ka, ('-f', P.case('032-top')), path, plain.render(
        finding.Report(swept='s', problem='no end', detail='vcpu0 1 frames',
                       findings=[finding.Finding('leak', 'leak in f',
                                                 fold='a' * 8, text='a\nb')])))
    return path


def of_a_comparison():
    path = P.path('.html')
    status, _, err = P.run('-f', P.case('032-top'), 'report', '--base',
                           P.case('057-many-callers'), '-o', path)
    assert status == 0, err
    return path


def check(path):
    B.load_anew(path)
    B.js(SOURCE + OPEN)
    for width in WIDTHS:
        B.devtools('Emulation.setDeviceMetricsOverride', width=width,
                   height=800, deviceScaleFactor=1, mobile=False)
        assert B.js('return window.innerWidth') == width
        for dark in False, True:
            B.dark(dark)
            found = B.js(RUN)
            assert not found, (width, 'dark' if dark else 'light', found)


def a_clean_run():
    check(P.page(P.journal(CLEAN + log([6] * 16))))


def a_run_with_errors():
    check(P.page(P.case('089-format-kasan')))
    check(P.page(P.case('110-former-owner')))


def a_log_with_urgent_lines():
    check(P.page(P.journal(CLEAN + log([*range(8)] * 2))))


def what_modules_left():
    check(P.page(P.case('030-module-leaks')))


def a_sweep_with_findings():
    check(of_a_sweep())


def a_comparison():
    check(of_a_comparison())


def what_is_wrong_is_found():
    path = P.path('.html')
    with open(path, 'w', encoding='ascii') as f:
        f.write('<!DOCTYPE html><img src="data:,">'
                '<p style="color: #ccc">some words')
    B.post('url', {'url': 'file://' + path})
    B.js(SOURCE)
    rules = {line.split(':')[0] for line in B.js(RUN)}
    assert rules >= {'image-alt', 'color-contrast', 'html-has-lang'}, rules


P = exports.Program(*sys.argv[1:3])
reason = webdriver.why_not() if readers.has_npm('axe-core') else \
    'no axe-core: scripts/setup --only readers'
if reason:
    print('1..0 # SKIP ' + reason)
    sys.exit(0)
with open(AXE, encoding='utf-8') as file:
    SOURCE = file.read()
with webdriver.Browser() as B:
    status = exports.run_tests([
        a_clean_run, a_run_with_errors, a_log_with_urgent_lines,
        what_modules_left, a_sweep_with_findings, a_comparison,
        what_is_wrong_is_found])
sys.exit(status)
