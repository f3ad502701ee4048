# SPDX-License-Identifier: GPL-2.0-or-later
"""The report of a sweep: text, JSON, JUnit XML. It has no time or address
that differs from one sweep to the next, except the times of JUnit."""
import collections
import json
import os
import platform

from ..files import write_whole
from ..findings import clean, junit
from ..findings.finding import now
from .groups import make_groups
from .scenario import ALL
from .verdict import MEANING, ORDER, is_finding, judge_control

SCHEMA = 2
CHANCE = {
    'likely': 'likely: the call may not wait, or asks for much',
    'cgroup': 'under a memory limit: a control group pays for it',
    'rare': 'rare: the kernel lets such a small request wait, and it seldom '
            'fails without a memory limit or a fatal signal',
    '-': 'not known: the call does not allocate',
}

# A result that was judged. fault: row of `ka fault log`, or None.
Row = collections.namedtuple('Row', 'stack n rule verdict flaky fault')

# rows: sorted, worst first; groups: of those that are findings; record;
# excluded: {stackid: reason}; problem: why the sweep is not complete, or None.
Report = collections.namedtuple('Report', 'rows groups record excluded command '
                                          'problem')


def make_row(result, verdict, flaky):
    faults = [f for run in result['runs'] for f in run['faults']]
    return Row(result['stack'], result['n'], result['rule'], verdict, flaky,
               faults[0] if faults else None)


def severity(row):
    return list(ORDER).index(row.verdict.name)


def make_report(rows, record, excluded, command, problem):
    rows = sorted(rows, key=lambda r: (severity(r), r.stack['stackid'],
                                       str(r.n)))
    groups = make_groups([r for r in rows if is_finding(r.verdict)], severity)
    return Report(rows, groups, record, excluded, command, problem)


def is_untested(row):
    return row.verdict.name in ('not-reached', 'died')


def untested(report):
    return [r for r in report.rows if is_untested(r)]


def verdict_of(group):
    """Return the worst verdict of its faults."""
    return min(group.rows, key=severity).verdict.name


def not_tried(report):
    """Return [(stack, [numbers of calls that failed])] of the stacks of which
    some calls were not made to fail."""
    tried = {}
    for row in report.rows:
        tried.setdefault(row.stack['stackid'], (row.stack, []))[1].append(row.n)
    return [(stack, sorted(n for n in numbers if n != ALL))
            for stack, numbers in tried.values() if ALL not in numbers and
            len(set(numbers)) < stack['selected']]


# --- text --------------------------------------------------------------------

def frames(label, names):
    if isinstance(names, str):
        names = names.split()
    lines = [f'  {label}:']
    return lines + ['      ' + n for n in names or ['not known']]


def what_failed(row):
    calls = 'each call of this stack' if row.n == ALL else \
        f'call {row.n} of this stack'
    fault = row.fault or row.stack
    value = f"returned {row.fault['value']}" if row.fault else 'failed'
    text = f"{fault['function']}() {value}, {calls}"
    if fault['size']:
        text += f"; size {fault['size']}, flags {fault['flags']}"
    return text


def row_lines(row, command):
    """Return the lines of a fault that leads to a finding. The first words are
    always the same: who reads it out of its place must know that the kernel did
    not fail by itself."""
    v = row.verdict
    lines = [f'a fault was injected, and {MEANING[v.name]}: {v.symptom}',
             f'  verdict:     {v.name}' + (
                 ' (flaky: its repeat had another result)' if row.flaky
                 else ''),
             f'  fault:       {what_failed(row)}',
             f"  in practice: {CHANCE[row.stack['chance']]}"]
    lines += frames("the fault's stack", row.stack['frames'])
    lines += frames("the symptom's stack", v.stack)
    lines += [f'  {m}' for m in v.more]
    lines += [f'  rule:        {row.rule}',
              f'  to see it:   {command.options} --n {row.n} '
              f"--only {row.stack['stackid']} --keep{command.qemu}"]
    recorded = command.recorded.get((row.stack['stackid'], row.n))
    if recorded:
        lines.append(f'  go there:    {recorded}')
    return [clean.line(line, clean.MOST_TEXT) for line in lines]


def place(stack):
    """Return where the calls of a stack are made: in a module, if one is on
    the stack."""
    names = stack['frames'].split()
    return next((n for n in names if n.endswith(']')), (names or ['?'])[0])


def other_line(row):
    return f"  as well:     {row.stack['stackid']} n={row.n}: " \
        f"{row.verdict.name}{' (flaky)' if row.flaky else ''}; " \
        f"{row.stack['function']}() below {place(row.stack)}"


def group_lines(group, command):
    """Return the report of a bug: one of its faults in full, and the others."""
    first, *others = group.rows
    lines = row_lines(first, command)
    lines.insert(1, f'  bug:         {group.name}')
    n = len(group.rows)
    lines.insert(2, f'  faults:      {n}' + (
        ', of which one is shown in full' if others else ''))
    return lines + [other_line(row) for row in others]


def plural(number, noun):
    return f"{number} {noun}{'s' * (number != 1)}"


def counts(report):
    found = collections.Counter(r.verdict.name for r in report.rows)
    return ', '.join(f'{found[name]} {name}' for name in ORDER if found[name])


def control_lines(report):
    v = judge_control(report.record['control'])
    if v.name in ('masked', 'clean'):
        return []
    return ['without any fault the scenario shows, too, and this is no '
            f'finding: {v.name}: {v.symptom}']


def skipped_lines(report):
    stacks = report.record['stacks']
    cut = sum(1 for r in stacks if r['cut'])
    lines = [f"unstable, not swept: {r['stackid']} {r['function']} "
             f"[{r['frames']}]" for r in report.record['unstable']]
    lines += [f'excluded: {stack}: {why}'
              for stack, why in sorted(report.excluded.items())]
    if cut:
        lines.append(f'{cut} stacks are cut, and were not swept')
    rest = not_tried(report)
    if rest:
        calls = sum(stack['selected'] - len(n) for stack, n in rest)
        lines.append(f'not tried (--n): {plural(calls, "later call")} of '
                     + plural(len(rest), 'stack'))
    return lines


def total_line(report):
    faults = sum(len(g.rows) for g in report.groups)
    return f"{plural(len(report.record['stacks']), 'stack')}, " \
        f"{plural(len(report.rows), 'fault')}: " \
        f"{plural(len(report.groups), 'finding')}" + \
        (f" of {plural(faults, 'fault')}" if faults else '') + \
        (f' ({counts(report)})' if report.rows else '')


def text_report(report):
    lines = []
    for group in report.groups:
        lines += [*group_lines(group, report.command), '']
    for row in untested(report):
        lines.append(f"not tested: {row.stack['stackid']} n={row.n}: "
                     f'{row.verdict.name}: {MEANING[row.verdict.name]}')
    lines += skipped_lines(report) + control_lines(report)
    if report.problem:
        lines.append(f'not complete: {report.problem}')
    return '\n'.join([*lines, total_line(report)]) + '\n'


# --- JSON --------------------------------------------------------------------

def json_row(row, group, command):
    v = row.verdict
    return {
        'stackid': row.stack['stackid'], 'n': row.n, 'verdict': v.name,
        'finding': is_finding(v), 'group': group and group.name,
        'flaky': row.flaky, 'symptom': v.symptom,
        'symptom_stack': list(v.stack), 'more': list(v.more),
        'point': row.stack['point'], 'function': row.stack['function'],
        'size': row.stack['size'], 'flags': row.stack['flags'],
        'chance': row.stack['chance'],
        'fault_stack': row.stack['frames'].split(), 'rule': row.rule,
        'text': '\n'.join(row_lines(row, command))
                if is_finding(v) else MEANING[v.name],
    }


def json_group(group, command):
    return {
        'name': group.name, 'verdict': verdict_of(group),
        'kind': group.cause.kind, 'title': group.cause.title,
        'alt': list(group.cause.alt), 'fold': group.cause.fold,
        'faults': [{'stackid': r.stack['stackid'], 'n': r.n}
                   for r in group.rows],
        'text': '\n'.join(group_lines(group, command)),
    }


def json_report(report):
    group_of = {id(r): g for g in report.groups for r in g.rows}
    return json.dumps({
        'schema': SCHEMA, 'problem': report.problem,
        'stacks': len(report.record['stacks']),
        'unstable': [r['stackid'] for r in report.record['unstable']],
        'excluded': report.excluded,
        'not_tried': [{'stackid': stack['stackid'],
                       'calls': stack['selected'], 'tried': numbers}
                      for stack, numbers in not_tried(report)],
        'findings': len(report.groups),
        'groups': [json_group(g, report.command) for g in report.groups],
        'results': [json_row(r, group_of.get(id(r)), report.command)
                    for r in report.rows],
    }, indent=1) + '\n'


# --- JUnit -------------------------------------------------------------------

def group_case(group, command):
    lines = group_lines(group, command)
    return junit.Case(group.name, 'failure', lines[0], '\n'.join(lines),
                      verdict_of(group), facts={
                          'fold': group.cause.fold, 'faults': len(group.rows)})


def row_case(row):
    case = junit.Case(f"{row.stack['function']} {row.stack['stackid']} "
                      f'n={row.n}')
    if is_untested(row):
        name = row.verdict.name
        case.result, case.message = 'error', f'{name}: {MEANING[name]}'
    return case


def junit_report(report, seconds):
    """A case for each bug, and one for each fault that led to none."""
    cases = [group_case(g, report.command) for g in report.groups]
    cases += [row_case(r) for r in report.rows if not is_finding(r.verdict)]
    if report.problem or not report.rows:
        why = report.problem or 'no fault was injected'
        cases.append(junit.Case('sweep', 'error', why, why))
    cases += [junit.Case(stack, 'skipped', why)
              for stack, why in sorted(report.excluded.items())]
    text = junit.render_suite(junit.Suite(
        'ka fault sweep', 'ka.fault-sweep', cases, now(), seconds,
        platform.node()))
    junit.check(text)
    return text


def write_report(path, report, seconds):
    """Write the form that the suffix of the file says."""
    suffix = os.path.splitext(path)[1]
    write_whole(path, json_report(report) if suffix == '.json' else
                junit_report(report, seconds) if suffix == '.xml' else
                text_report(report))
