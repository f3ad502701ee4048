# SPDX-License-Identifier: GPL-2.0-or-later
"""Findings as the kernel's own checkers print them: errors as KASAN does, leaks
as kmemleak does. What both have no words for is a line BUG, which programs that
read a kernel's console take for the title of a report."""
import re

from . import Refused, clean

RULE = '=' * 66
BLOCK = re.compile(r'^unreferenced object (0x[0-9a-f]+) ')


def split_errors(text):
    """Return the reports of ka error --format kasan: each begins and ends with
    a line of =."""
    found, now = [], None
    for line in text.split('\n'):
        if now is not None:
            now.append(line)
        if line.endswith('] ' + RULE):
            if now is None:
                now = [line]
            else:
                found.append('\n'.join(now))
                now = None
    return found


def add_errors(vm, findings):
    """Give each error its text. FINDINGS: all of ka error."""
    texts = split_errors(vm.text('error', '-s', '-n', '0', '--format',
                                 'kasan')) if findings else []
    if len(texts) == len(findings):
        for finding, text in zip(findings, texts):
            finding.kasan = text


def split_leaks(text):
    """Return (address, text, backtrace) of each block of a list in the form of
    kmemleak."""
    blocks = []
    for line in text.removesuffix('\n').split('\n'):
        start = BLOCK.match(line)
        if start:
            blocks.append((start[1], [line]))
        elif blocks:
            blocks[-1][1].append(line)
    return [(va, '\n'.join(lines),
             tuple(line for line in lines if line.startswith('    [<')))
            for va, lines in blocks]


def add_leaks(vm, findings):
    """Give each leak of the last scan its text: those of all blocks of its
    stack, below the line that syzkaller puts there."""
    blocks = split_leaks(vm.text('leak', 'list', '-n', '0', '--format',
                                 'kmemleak')) if findings else []
    stacks = {int(va, 16): stack for va, _, stack in blocks}
    for finding in findings:
        stack = stacks.get(int(finding.row['va'], 16))
        texts = [text for _, text, s in blocks
                 if stack is not None and s == stack]
        finding.kasan = '\n'.join(['BUG: memory leak', *texts]) if texts else ''


def bug(finding):
    """A finding that neither KASAN nor kmemleak has."""
    lines = finding.text.replace('\n', '\n  ')
    return f'BUG: ka: {clean.line(finding.title)}\n  {lines}'


def render(report):
    """Return the text of the findings that fail the build. A problem is no
    line BUG: the kernel did not report it."""
    texts = [f.kasan or bug(f) for f in report.findings if not f.hidden]
    if report.problem:
        texts.append('ka: the run is not complete: ' +
                     report.why.replace('\n', '\n  '))
    lines = [line for text in texts for line in text.split('\n')]
    return ''.join(clean.line(line) + '\n' for line in lines)


def check(text):
    if not all(line.isprintable() for line in text.split('\n')):
        raise Refused('not only lines of printable characters')
