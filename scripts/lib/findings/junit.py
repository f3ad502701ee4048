# SPDX-License-Identifier: GPL-2.0-or-later
"""JUnit XML: a test case for each group of findings."""
import xml.etree.ElementTree as ET

from . import Refused, clean

COUNTS = (('tests', 'testcase'), ('failures', 'failure'), ('errors', 'error'),
          ('skipped', 'skipped'))


def add(parent, tag, text=None, **attributes):
    e = ET.SubElement(parent, tag, {k: clean.line(str(v))
                                    for k, v in attributes.items()})
    if text is not None:
        e.text = clean.text(text)
    return e


def add_properties(parent, facts):
    properties = add(parent, 'properties')
    for name, value in facts.items():
        add(properties, 'property', name=name, value=value)


def facts_of(group):
    f = group.first
    facts = {'fold': f.fold, 'exact': f.exact, 'weak': int(f.weak),
             'findings': len(group.findings),
             'blocks': sum(m.blocks for m in group.findings)}
    return {**facts, **({'alt': '; '.join(f.alt)} if f.alt else {})}


def add_group(suite, group):
    case = add(suite, 'testcase', name=group.name, classname='ka.sweep',
               time='0.000')
    add_properties(case, facts_of(group))
    if group.hidden:
        add(case, 'skipped', message=group.hidden)
    else:
        add(case, 'failure', group.first.text, type=group.first.kind,
            message=group.name)
    add(case, 'system-out', group.text)


def add_sweep(suite, report, seconds):
    """A case for a run that found nothing, or that is not complete."""
    if report.problem:
        case = add(suite, 'testcase', name='sweep', classname='ka.sweep',
                   time=seconds)
        add(case, 'error', report.problem, message=report.problem)
    elif not report.findings:
        add(suite, 'testcase', name='no allocation errors',
            classname='ka.sweep', time=seconds)


def render(report):
    seconds = f'{report.seconds:.3f}'
    suites = ET.Element('testsuites')
    suite = add(suites, 'testsuite', name='ka sweep', time=seconds,
                hostname=report.host or 'localhost',
                timestamp=report.started.strftime('%Y-%m-%dT%H:%M:%S'))
    add_properties(suite, report.facts)
    for group in report.groups:
        add_group(suite, group)
    add_sweep(suite, report, seconds)
    if report.warnings:
        add(suite, 'system-out', ''.join(f'warning: {line}\n'
                                         for line in report.warnings))
    for key, tag in COUNTS:
        suite.set(key, str(len(list(suite.iter(tag)))))
    ET.indent(suites)
    return ET.tostring(suites, encoding='unicode', xml_declaration=True) + '\n'


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
