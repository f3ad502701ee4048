# SPDX-License-Identifier: GPL-2.0-or-later
"""JUnit XML: a test case for each group of findings. Other programs give their
own cases to render_suite()."""
import dataclasses
import datetime
import xml.etree.ElementTree as ET

from . import Refused, clean

COUNTS = (('tests', 'testcase'), ('failures', 'failure'), ('errors', 'error'),
          ('skipped', 'skipped'))


@dataclasses.dataclass
class Case:
    """A test case; its name is that of no other case of the suite.

    result   failure, error or skipped; '' if it passed
    message  why, in one line
    text     the same in full, or None
    kind     of a failure
    output   what else is to be read, or None
    source   file:line, or None
    """
    name: str
    result: str = ''
    message: str = ''
    text: str = None
    kind: str = None
    facts: dict = dataclasses.field(default_factory=dict)
    seconds: str = '0.000'
    output: str = None
    source: str = None


@dataclasses.dataclass
class Suite:
    """The cases of a run. classname: the same for all of them."""
    name: str
    classname: str
    cases: list
    started: datetime.datetime
    seconds: float = 0
    host: str = ''
    facts: dict = dataclasses.field(default_factory=dict)
    output: str = None


# --- XML ---------------------------------------------------------------------

def add(parent, tag, text=None, **attributes):
    e = ET.SubElement(parent, tag, {k: clean.line(str(v))
                                    for k, v in attributes.items()
                                    if v is not None})
    if text is not None:
        e.text = clean.text(text)
    return e


def add_properties(parent, facts):
    if facts:
        properties = add(parent, 'properties')
        for name, value in facts.items():
            add(properties, 'property', name=name, value=value)


def add_case(parent, classname, case):
    file, _, line = (case.source or '').rpartition(':')
    e = add(parent, 'testcase', name=case.name, classname=classname,
            time=case.seconds, file=file or None, line=line or None)
    add_properties(e, case.facts)
    if case.result:
        add(e, case.result, case.text, type=case.kind, message=case.message)
    if case.output is not None:
        add(e, 'system-out', case.output)


def render_suite(suite):
    root = ET.Element('testsuites')
    e = add(root, 'testsuite', name=suite.name, time=f'{suite.seconds:.3f}',
            hostname=suite.host or 'localhost',
            timestamp=suite.started.strftime('%Y-%m-%dT%H:%M:%S'))
    add_properties(e, suite.facts)
    for case in suite.cases:
        add_case(e, suite.classname, case)
    if suite.output:
        add(e, 'system-out', suite.output)
    for key, tag in COUNTS:
        e.set(key, str(len(list(e.iter(tag)))))
    ET.indent(root)
    return ET.tostring(root, encoding='unicode', xml_declaration=True) + '\n'


# --- findings ----------------------------------------------------------------

def facts_of(group):
    f = group.first
    facts = {'fold': f.fold, 'exact': f.exact, 'weak': int(f.weak),
             'findings': len(group.findings),
             'blocks': sum(m.blocks for m in group.findings)}
    return {**facts, **({'alt': '; '.join(f.alt)} if f.alt else {})}


def group_case(group):
    place = group.first.place
    case = Case(group.name, facts=facts_of(group), output=group.text,
                source=place.source if place else None)
    if group.hidden:
        case.result, case.message = 'skipped', group.hidden
    else:
        case.result, case.message = 'failure', group.name
        case.text, case.kind = group.first.text, group.first.kind
    return case


def run_cases(report):
    """The case of a run that found nothing, or that is not complete."""
    seconds = f'{report.seconds:.3f}'
    if report.problem:
        return [Case('sweep', 'error', report.problem, report.why,
                     seconds=seconds)]
    return [] if report.findings else [Case('no allocation errors',
                                            seconds=seconds)]


def render(report):
    return render_suite(Suite(
        'ka sweep', 'ka.sweep',
        [*map(group_case, report.groups), *run_cases(report)], report.started,
        report.seconds, report.host, report.facts,
        ''.join(f'warning: {line}\n' for line in report.warnings)))


def check(text):
    """It can be parsed, and the counts are those of its cases, each of which
    has a name of its own."""
    try:
        suite, = ET.fromstring(text.encode('utf-8'))
    except (ET.ParseError, ValueError) as e:
        raise Refused(f'JUnit: {e}') from e
    names = [c.get('name') for c in suite.iter('testcase')]
    if len(set(names)) != len(names) or not all(names):
        raise Refused('JUnit: a name of a case is missing or there twice')
    for key, tag in COUNTS:
        if int(suite.get(key)) != len(list(suite.iter(tag))):
            raise Refused(f'JUnit: {key} is wrong')
