# SPDX-License-Identifier: GPL-2.0-or-later
"""The report for people, on a terminal: what fails the build, below its
name."""
from . import clean


def indented(text):
    return ['  ' + clean.line(line, clean.MOST_TEXT)
            for line in text.split('\n') if line.strip()]


def counts(report):
    """Return how many findings there are, as part of a line."""
    hidden = [g.hidden for g in report.groups if g.hidden]
    known = sum(why.startswith('known') for why in hidden)
    n = len(report.failing)
    parts = [f"{n} finding{'s' * (n != 1)}",
             f'{len(hidden) - known} suppressed']
    return ', '.join(parts + ([f'{known} known'] if known else []) +
                     (['not complete'] if report.problem else []))


def render(report, unused):
    """Return the text. UNUSED: suppressions that matched nothing."""
    lines = []
    for group in report.failing:
        lines += [group.name, *indented('\n'.join(
            f.text for f in group.findings if not f.hidden))]
    lines += [f'unused suppression, line {s.number}: {s.text}' for s in unused]
    lines += [f'warning: {clean.line(line)}' for line in report.warnings]
    if report.swept or report.findings:
        lines.append(f"{report.swept or 'not swept'}, {counts(report)}")
    return ''.join(line + '\n' for line in lines)


def problem(report):
    """Return why the run is not complete, and what is known of that."""
    if not report.problem:
        return ''
    return '\n'.join([clean.text(report.problem),
                      *indented(report.detail)])
