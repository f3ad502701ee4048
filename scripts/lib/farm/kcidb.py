# SPDX-License-Identifier: GPL-2.0-or-later
"""A batch as a report for KernelCI's KCIDB, version 5.3 of its schema: a build
for each kernel, a test for each run, an issue for each bug, an incident for
each run with a bug. KCIDB refuses null, and keys that it does not know: what it
has no key for is in misc."""
import json
import re

from ..findings import clean

VERSION = {'major': 5, 'minor': 3}
STATUS = {'clean': 'PASS', 'found': 'FAIL', 'broken': 'ERROR'}
MOST_LOG = 16384
PATH = 'ka.errors'


def word(text):
    """Part of an id."""
    return re.sub(r'[^\w.+-]', '_', str(text), flags=re.ASCII)[:100]


def kernels_of(runs):
    """Return {kernel of the plan: (its release, arch)}: a run that did not
    boot does not know them."""
    found = {}
    for run in runs:
        if run.kernel not in found or run.release:
            found[run.kernel] = run.release or run.kernel, run.arch
    return found


def build(origin, batch, kernel, arch):
    made = {'id': f'{origin}:{word(batch)}.{word(kernel)}', 'origin': origin,
            'checkout_id': f'{origin}:{word(kernel)}', 'status': 'PASS'}
    return {**made, 'architecture': arch} if arch else made


def test(origin, build_id, run, texts):
    made = {'id': f'{origin}:{run.key}.{run.attempt}', 'origin': origin,
            'build_id': build_id, 'path': PATH, 'status': STATUS[run.verdict],
            'misc': {'job': run.job, 'seed': run.seed}}
    log = '\n'.join(filter(None, [clean.line(run.reason), *texts]))
    return {**made, 'log_excerpt': log[:MOST_LOG]} if log else made


def incident(origin, issue, run):
    return {'id': f"{issue['id']}.{run.key}.{run.attempt}", 'origin': origin,
            'issue_id': issue['id'], 'issue_version': issue['version'],
            'test_id': f'{origin}:{run.key}.{run.attempt}', 'present': True}


def texts_of(view, runs):
    """Return {key of a run: [text of each finding]}."""
    keys = {r.key for r in runs}
    found = {}
    for key, text in view.store.rows(
            'SELECT f.key, s.text FROM finding AS f JOIN last AS r ON '
            'f.key = r.key AND f.attempt = r.attempt JOIN sample AS s ON '
            "f.fold = s.fold AND f.exact = s.exact WHERE f.hidden = '' "
            'ORDER BY f.key, f.number'):
        if key in keys:
            found.setdefault(key, []).append(text)
    return found


def document(view, origin='ka'):
    runs = [r for r in view.runs.values() if r.batch == view.batch]
    kernels, texts = kernels_of(runs), texts_of(view, runs)
    builds = {k: build(origin, view.batch, k, arch)
              for k, (_, arch) in kernels.items()}
    issues, incidents = [], []
    for row in view.rows:
        mine = [r for r in runs if r.key in row.bug.runs]
        if not mine:
            continue
        issues.append({'id': f'{origin}:{row.bug.name}', 'version': 1,
                       'origin': origin, 'culprit': {'code': True},
                       'comment': clean.line(row.bug.title)})
        incidents += [incident(origin, issues[-1], r) for r in mine]
    whole = {'version': VERSION, 'checkouts': [
        {'id': f'{origin}:{word(k)}', 'origin': origin,
         'comment': f'Linux {release}'}
        for k, (release, _) in kernels.items()],
        'builds': list(builds.values()),
        'tests': [test(origin, builds[r.kernel]['id'], r,
                       texts.get(r.key, [])) for r in runs],
        'issues': issues, 'incidents': incidents}
    return {k: v for k, v in whole.items() if v}


def write(view, path):
    with open(path, 'w', encoding='utf-8') as f:
        json.dump(document(view), f, indent=1)
        f.write('\n')
