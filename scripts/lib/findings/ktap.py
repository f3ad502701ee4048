# SPDX-License-Identifier: GPL-2.0-or-later
"""KTAP, the format of kselftest and KUnit, which is also TAP: a test for each
group of findings. The lines of a finding precede its result."""
import re

from . import Refused, clean

RESULT = re.compile(r'(not )?ok (\d+) \S')


def name(text):
    """A # would begin a directive."""
    return clean.line(text).replace('#', '\\x23')


def diagnostics(text):
    return ['# ' + line for line in clean.text(text).split('\n') if line]


def results(report):
    """Yield (good, name, directive, lines) of each test."""
    for group in report.groups:
        hidden = group.hidden
        yield (bool(hidden), name(group.name),
               f' # SKIP {name(hidden)}' if hidden else '',
               diagnostics(group.text))
    if report.problem:
        yield False, 'sweep', '', diagnostics(report.why)
    elif not report.findings:
        yield True, 'no allocation errors', '', []


def render(report):
    rows = list(results(report))
    lines = ['KTAP version 1', f'1..{len(rows)}']
    for what, value in report.facts.items():
        lines += diagnostics(f'{what}: {clean.line(str(value))}')
    for warning in report.warnings:
        lines += diagnostics('warning: ' + clean.line(warning))
    for number, (good, test, directive, more) in enumerate(rows, 1):
        word = 'ok' if good else 'not ok'
        lines += [*more, f'{word} {number} {test}{directive}']
    return '\n'.join(lines) + '\n'


def check(text):
    """Each line is a result, or does not count; the results are as many as
    planned, and numbered."""
    lines = text.split('\n')
    planned = re.fullmatch(r'1\.\.(\d+)', lines[1])
    numbers = []
    for line in lines[2:-1]:
        m = RESULT.match(line)
        if m:
            numbers.append(int(m[2]))
        elif not line.startswith('# '):
            raise Refused(f'KTAP: a line is no result: {line[:40]!r}')
    if not planned or numbers != list(range(1, int(planned[1]) + 1)):
        raise Refused('KTAP: the results are not those of the plan')
    if lines[0] != 'KTAP version 1' or lines[-1] or \
            not all(line.isprintable() for line in lines):
        raise Refused('KTAP: not only lines of printable characters')
