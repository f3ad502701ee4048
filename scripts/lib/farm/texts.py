# SPDX-License-Identifier: GPL-2.0-or-later
"""The report of a batch as text, which says the same as the pages."""

import json
import shlex

from . import FarmError, plan, sweeps

# The states of a bug -> the heading of its section.
SECTIONS = (('new', 'new in this batch'),
            ('first', 'on kernels that did not run before'),
            ('gone', 'gone'),
            ('maybe', 'not seen, but too few runs to say that it is gone'),
            ('flaky', 'flaky: in some runs only'),
            ('known', 'known'))
MOST_GROWTH = 20
PLACE_FRAMES = 3        # that tell leaks of one title apart
VERDICTS = 'clean', 'found', 'broken'


def where(row, state):
    """The kernels of a bug in this state, with its runs of all."""
    return ', '.join(f'{k} {row.rates[k][0]}/{row.rates[k][1]}'
                     for k, s in row.states.items() if s == state)


def repeat(line):
    """Return the command that runs a line again. line: its JSON."""
    try:
        made = plan.from_dict(json.loads(line), 'line')
    except (FarmError, ValueError):
        return '(not known: the result is of an older ka-farm)'
    return shlex.join(sweeps.repeat_command(made))


def place(view, bug):
    """Where the block of a leak was allocated, if other bugs have its
    title."""
    if bug.title not in bug.shared:
        return ''
    lines = view.sample(bug)[0].split('\n')
    frames = [x.strip() for x in lines if x.startswith('    ')]
    return ' (' + ' '.join(frames[:PLACE_FRAMES]) + ')' if frames else ''


def bug_lines(view):
    for state, heading in SECTIONS:
        rows = view.shown(state)
        if rows:
            yield f'{heading}:'
        for row in rows:
            weak = ' (weak)' if row.bug.weak else ''
            yield f'  {row.bug.name}  {row.bug.title}{weak}' + \
                f'{place(view, row.bug)}: {where(row, state)}'
        if rows:
            yield ''


def run_lines(view):
    for kernel, row in view.count().items():
        yield f'{kernel}: ' + ', '.join(
            f'{row[v]} {v}' for v in VERDICTS if v in row)
    if view.missing():
        yield f'{view.missing()} VMs have no result'
    for run in view.broken():
        yield f'broken: {run.key} {run.job} {run.kernel} seed {run.seed}: ' + \
            run.reason


def growth_lines(view, frames):
    rows = view.growth()
    if not rows:
        return
    yield f'live bytes that grew since {view.before[-1]}, by stack ' \
        '(medians of all seeds):'
    for grew, was, now, kernel, job, fold in rows[:MOST_GROWTH]:
        names = frames.get(fold, '').split('\n')
        yield f'  +{grew} ({was} -> {now}) {kernel} {job}: ' + \
            ' '.join(names[:4])
    if len(rows) > MOST_GROWTH:
        yield f'  and {len(rows) - MOST_GROWTH} more, together ' \
            f'{sum(r[0] for r in rows[MOST_GROWTH:])} bytes'
    yield ''


def trend_lines(view):
    yield 'batches:'
    for kernel, points in view.trend().items():
        for batch, runs, broken, found, bugs, live in points:
            if runs:
                yield f'  {kernel} {batch}: {runs} runs, {broken} broken, ' \
                    f'{found} with findings, {bugs} bugs, ' + \
                    (f'{live} live bytes' if live is not None else
                     'live bytes are not known')


def frames_of(view):
    return dict(view.store.rows('SELECT fold, frames FROM stack'))


def render(view):
    """Return the text of a report."""
    before = view.before[-1] if view.before else 'nothing'
    lines = [f'batch {view.batch}, compared with {len(view.before)} before '
             f'(last: {before})', *run_lines(view), '', *bug_lines(view),
             *growth_lines(view, frames_of(view)), *trend_lines(view)]
    return '\n'.join(lines) + '\n'
