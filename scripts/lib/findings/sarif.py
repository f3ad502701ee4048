# SPDX-License-Identifier: GPL-2.0-or-later
"""SARIF 2.1.0, as GitHub's code scanning takes it: a result for each group of
findings.

A result is at the line of source of its function, if the kernel's debug
information is known. A result without the location of a file makes GitHub
refuse all results. So any other is at the first line of one file that the user
names. The functions are logical locations.
"""
import gzip
import json
import re
import urllib.parse

from . import Refused, clean
from .kinds import meaning

SCHEMA = 'https://json.schemastore.org/sarif-2.1.0.json'
HOME = 'https://www.kernel.org/doc/html/latest/dev-tools/index.html'
FILE = 'ka-suppressions.txt'

# What GitHub takes.
MOST_BYTES = 10 << 20           # compressed
MOST_RESULTS = 5000             # of 25000, the rest is not shown
MOST_STEPS = 1000               # locations of a result's story
MOST_MESSAGE = 8192


def file_uri(path):
    """Return the path of a file in the repository as a URI. Raise ValueError
    if it leads out of the repository."""
    parts = path.split('/')
    if not path or path.startswith('/') or '..' in parts or '\\' in path or \
            not path.isprintable() or re.match(r'[A-Za-z][\w+.-]*:', path):
        raise ValueError(f"'{path}' is no path of a file in the repository")
    return urllib.parse.quote('/'.join(p for p in parts if p not in ('', '.')))


def source_of(frame):
    """(URI, line) of a frame's source, or None: it is not known, or it is not
    in the repository."""
    file, _, line = ((frame and frame.source) or '').rpartition(':')
    try:
        return file_uri(file), int(line)
    except ValueError:
        return None


def place(uri, frame=None):
    """A location: the line of source of a frame, or the first line of the file;
    and the function of the frame."""
    uri, line = source_of(frame) or (uri, 1)
    where = {'physicalLocation': {
        'artifactLocation': {'uri': uri},
        'region': {'startLine': line, 'startColumn': 1, 'endLine': line,
                   'endColumn': 2}}}
    if frame:
        where['logicalLocations'] = [{
            'fullyQualifiedName': clean.line(frame.name), 'kind': 'function'}]
    return where


def story(uri, finding):
    """Allocation, free and error: their frames, the outermost of each first,
    so that the last location is the error."""
    steps = []
    for what, frames in finding.stacks:
        for frame in reversed(frames):
            text = f'{what}: {clean.line(frame.text)}'
            steps.append({'location': {**place(uri, frame),
                                       'message': {'text': text}}})
    return [{'threadFlows': [{'locations': steps[-MOST_STEPS:]}]}] \
        if steps else []


def result(uri, group, rules):
    f = group.first
    text = f'{group.name}\n\n{group.text}'
    made = {
        'ruleId': f.kind, 'ruleIndex': rules.index(f.kind),
        'level': 'warning' if f.kind == 'leak' else 'error',
        'message': {'text': clean.text(text, MOST_MESSAGE)},
        'locations': [place(uri, f.place)],
        'partialFingerprints': {'primaryLocationLineHash': f.fold + ':1',
                                'kaFold/v1': f.fold, 'kaExact/v1': f.exact},
        'occurrenceCount': max(1, sum(m.blocks for m in group.findings)),
        'properties': {'title': clean.line(f.title), 'weak': f.weak,
                       'alt': [clean.line(a) for a in f.alt]},
    }
    flows = story(uri, f)
    if flows:
        made['codeFlows'] = flows
    if group.hidden:
        made['suppressions'] = [{'kind': 'external',
                                 'justification': clean.line(group.hidden)}]
    return made


def rule(kind):
    text = clean.line(meaning(kind))
    return {'id': kind,
            'shortDescription': {'text': kind},
            'fullDescription': {'text': text},
            'help': {'text': f'{kind}: {text}. See docs/errors.md of ka.'},
            'properties': {'tags': ['memory', 'kernel']}}


def notes(report, left_out):
    texts = [('error', report.why)] if report.problem else []
    texts += [('warning', w) for w in report.warnings]
    if left_out:
        texts.append(('warning', f'{left_out} more findings are left out: '
                                 f'at most {MOST_RESULTS} are shown'))
    return [{'level': level,
             'message': {'text': clean.text(text, MOST_MESSAGE)}}
            for level, text in texts]


def category(facts):
    """ka/KERNEL/ARCH/sweep. What a guest chose must not add a part."""
    parts = [re.sub(r'[^\w.+-]', '_', str(facts.get(k) or 'unknown'))[:64]
             for k in ('kernel', 'arch')]
    return '/'.join(['ka', *parts, 'sweep'])


def document(report, uri, stories=True):
    # Those that fail the build come first: the last ones are left out.
    groups = sorted(report.groups, key=lambda g: bool(g.hidden))
    kept = groups[:MOST_RESULTS]
    rules = sorted({g.first.kind for g in kept})
    results = [result(uri, g, rules) for g in kept]
    if not stories:
        for r in results:
            r.pop('codeFlows', None)
    return {'$schema': SCHEMA, 'version': '2.1.0', 'runs': [{
        'tool': {'driver': {
            'name': 'ka', 'informationUri': HOME,
            **({'semanticVersion': report.facts['ka']}
               if report.facts.get('ka') else {}),
            'rules': [rule(kind) for kind in rules]}},
        'automationDetails': {'id': category(report.facts)},
        'invocations': [{
            'executionSuccessful': not report.problem,
            'startTimeUtc': report.started.strftime('%Y-%m-%dT%H:%M:%SZ'),
            'toolExecutionNotifications': notes(report,
                                                len(groups) - len(kept))}],
        'properties': {clean.line(k): clean.line(str(v))
                       for k, v in report.facts.items()},
        'results': results}]}


def packed(text):
    return len(gzip.compress(text.encode(), 6))


def render(report, uri=FILE):
    """Return the text. Of a report that is too large the stories are left
    out."""
    text = json.dumps(document(report, uri), indent=1) + '\n'
    if packed(text) > MOST_BYTES:
        text = json.dumps(document(report, uri, stories=False)) + '\n'
    return text


# --- the rules of GitHub -----------------------------------------------------

def want(good, what):
    if not good:
        raise Refused('SARIF: ' + what)


def check_place(location, what):
    where = location.get('physicalLocation') or {}
    uri = (where.get('artifactLocation') or {}).get('uri')
    region = where.get('region') or {}
    want(uri and not re.match(r'/|[A-Za-z][\w+.-]*:', uri) and
         '..' not in uri.split('/'), f'{what} has no file')
    want(all(isinstance(region.get(k), int) and region[k] > 0 for k in
             ('startLine', 'startColumn', 'endLine', 'endColumn')),
         f'{what} has no place in the file')


def check_result(result, rules):
    want(result['message']['text'], 'a result has no message')
    want(rules[result['ruleIndex']]['id'] == result['ruleId'],
         'a result has a wrong rule')
    want(len(result['locations']) == 1, 'a result has not one location')
    check_place(result['locations'][0], 'a result')
    want(re.fullmatch(r'[0-9a-f]+:1',
                      result['partialFingerprints']['primaryLocationLineHash']),
         'a result has no fingerprint')
    for flow in result.get('codeFlows', []):
        steps = flow['threadFlows'][0]['locations']
        want(0 < len(steps) <= MOST_STEPS, 'a story has too many steps')
        for step in steps:
            check_place(step['location'], 'a step')
            want(step['location']['message']['text'], 'a step has no text')


def check_rule(rule):
    want(rule['id'], 'a rule has no name')
    for key in 'shortDescription', 'fullDescription', 'help':
        want(rule[key]['text'], f'a rule has no {key}')
    want(len(rule['properties']['tags']) <= 20, 'a rule has too many tags')


def check_run(run):
    driver = run['tool']['driver']
    want(driver['name'], 'no name of the tool')
    want(re.fullmatch(r'ka(/[\w.+-]+){3}', run['automationDetails']['id']),
         'no category')
    want(len(run['results']) <= MOST_RESULTS, 'too many results')
    for r in driver['rules']:
        check_rule(r)
    for r in run['results']:
        check_result(r, driver['rules'])


def check(text):
    """What GitHub would refuse, or silently cut."""
    try:
        doc = json.loads(text)
        want(doc['version'] == '2.1.0' and doc['$schema'], 'no version')
        want(packed(text) <= MOST_BYTES, 'too large')
        run, = doc['runs']
        check_run(run)
    except (AttributeError, LookupError, TypeError) as e:
        raise Refused(f'SARIF: {e!r} is missing') from e
