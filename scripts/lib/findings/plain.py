# SPDX-License-Identifier: GPL-2.0-or-later
"""All of a report as one JSON object, for programs: docs/ci.md has its keys.
Texts are as the guest chose them; who shows them must escape them."""
import json

from . import Refused

SCHEMA = 1


def finding(f, name):
    return {'name': name, 'kind': f.kind, 'title': f.title,
            'alt': list(f.alt), 'fold': f.fold, 'exact': f.exact,
            'weak': f.weak, 'blocks': f.blocks, 'hidden': f.hidden,
            'text': f.text,
            'stacks': [{'what': what, 'frames': [frame.text for frame in
                                                 frames]}
                       for what, frames in f.stacks]}


def findings(report):
    """Return the findings in the order of the report, with the names of their
    groups."""
    names = {id(f): g.name for g in report.groups for f in g.findings}
    return [finding(f, names[id(f)]) for f in report.findings]


def render(report):
    return json.dumps({
        'schema': SCHEMA, 'verdict': report.verdict,
        'problem': report.problem or None, 'detail': report.detail,
        'warnings': report.warnings, 'facts': report.facts,
        'started': report.started.strftime('%Y-%m-%dT%H:%M:%SZ'),
        'seconds': round(report.seconds, 3), 'host': report.host,
        'findings': findings(report),
        'stat': report.stat, 'top': report.top}, indent=1) + '\n'


def check(text):
    try:
        if json.loads(text)['schema'] != SCHEMA:
            raise ValueError('its schema is another one')
    except (LookupError, TypeError, ValueError) as e:
        raise Refused(f'JSON: {e}') from e
