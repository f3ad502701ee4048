# SPDX-License-Identifier: GPL-2.0-or-later
"""The report of a sweep: text, JSON, JUnit XML. It has no time or address
that differs from one sweep to the next, except the times of JUnit."""
import collections
import json
import os
import platform

from ..files import write_whole
from ..findings import junit
from ..findings.finding import now
from .verdict import MEANING, ORDER, is_finding, judge_control

SCHEMA = 1
CHANCE = {
    'likely': 'likely: the call may not wait, or asks for much',
    'cgroup': 'under a memory limit: a control group pays for it',
    'rare': 'rare: the kernel lets such a small request wait, and it seldom '
            'fails without a memory limit or a fatal signal',
    '-': 'not known: the call does not allocate',
}

# A result that was judged. fault: row of `ka fault log`, or None.
Row = collections.namedtuple('Row', 'stack n rule verdict flaky fault')

# rows: sorted, worst first; record; excluded: {stackid: reason}; problem: why
# the sweep is not complete, or None.
Report = collections.namedtuple('Report', 'rows record excluded command '
                                          'problem')


def make_row(result, verdict, flaky):
    faults = [f for run in result['runs'] for f in run['faults']]
    return Row(result['stack'], result['n'], result['rule'], verdict, flaky,
               faults[0] if faults else None)


def sort_rows(rows):
    return sorted(rows, key=lambda r: (list(ORDER).index(r.verdict.name),
                                       r.stack['stackid'], str(r.n)))


def findings(report):
    return [r for r in report.rows if is_finding(r.verdict)]


def is_untested(row):
    return row.verdict.name in ('not-reached', 'died')


def untested(report):
    return [r for r in report.rows if is_untested(r)]


# --- text --------------------------------------------------------------------

def frames(label, names):
    if isinstance(names, str):
        names = names.split()
    lines = [f'  {label}:']
    return lines + ['      ' + n for n in names or ['not known']]


def what_failed(row):
    calls = 'each call of this stack' if row.n == 'all' else \
        f'call {row.n} of this stack'
    fault = row.fault or row.stack
    value = f"returned {row.fault['value']}" if row.fault else 'failed'
    text = f"{fault['function']}() {value}, {calls}"
    if fault['size']:
        text += f"; size {fault['size']}, flags {fault['flags']}"
    return text


def finding_lines(row, command):
    """Return the lines of a finding. The first words are always the same: who
    reads it out of its place must know that the kernel did not fail by
    itself."""
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
    return lines


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
    return lines


def text_report(report):
    lines = []
    for row in findings(report):
        lines += [*finding_lines(row, report.command), '']
    for row in untested(report):
        lines.append(f"not tested: {row.stack['stackid']} n={row.n}: "
                     f'{row.verdict.name}: {MEANING[row.verdict.name]}')
    lines += skipped_lines(report) + control_lines(report)
    if report.problem:
        lines.append(f'not complete: {report.problem}')
    n = len(findings(report))
    lines.append(f"{len(report.record['stacks'])} stacks, "
                 f"{len(report.rows)} faults: {n} finding{'s' * (n != 1)}"
                 + (f' ({counts(report)})' if report.rows else ''))
    return '\n'.join(lines) + '\n'


# --- JSON --------------------------------------------------------------------

def json_row(row, command):
    v = row.verdict
    return {
        'stackid': row.stack['stackid'], 'n': row.n, 'verdict': v.name,
        'finding': is_finding(v), 'flaky': row.flaky, 'symptom': v.symptom,
        'symptom_stack': list(v.stack), 'more': list(v.more),
        'point': row.stack['point'], 'function': row.stack['function'],
        'size': row.stack['size'], 'flags': row.stack['flags'],
        'chance': row.stack['chance'],
        'fault_stack': row.stack['frames'].split(), 'rule': row.rule,
        'text': '\n'.join(finding_lines(row, command))
                if is_finding(v) else MEANING[v.name],
    }


def json_report(report):
    return json.dumps({
        'schema': SCHEMA, 'problem': report.problem,
        'stacks': len(report.record['stacks']),
        'unstable': [r['stackid'] for r in report.record['unstable']],
        'excluded': report.excluded,
        'findings': len(findings(report)),
        'results': [json_row(r, report.command) for r in report.rows],
    }, indent=1) + '\n'


# --- JUnit -------------------------------------------------------------------

def junit_case(row, command):
    v = row.verdict
    case = junit.Case(f"{row.stack['function']} {row.stack['stackid']} "
                      f'n={row.n}')
    if is_finding(v):
        lines = finding_lines(row, command)
        case.result, case.kind = 'failure', v.name
        case.message, case.text = lines[0], '\n'.join(lines)
    elif is_untested(row):
        case.result, case.message = 'error', f'{v.name}: {MEANING[v.name]}'
    return case


def junit_report(report, seconds):
    cases = [junit_case(row, report.command) for row in report.rows]
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
