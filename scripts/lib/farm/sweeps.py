# SPDX-License-Identifier: GPL-2.0-or-later
"""What scripts/sweep wrote about a VM, as the parts of a result. All texts are
of the guest: they are cleaned and cut here."""
import hashlib
import json
import os
import re

from .. import prepared, statuses
from ..findings import clean
from ..findings.finding import hash_words, read_frame, verdict
from . import plan, results

SWEEP = os.path.join(prepared.ROOT, 'scripts', 'sweep')
TOP = 200           # stacks that are kept
MOST_REPORT = 256 << 20
FACTS = 'kernel', 'arch', 'ka', 'qemu', 'accel'


def command(line, program, *more):
    """Return the command that runs a line, with more options."""
    words = [program, '--kernel', line.kernel, '--smp', str(line.smp),
             '--mem', line.mem, '--timeout', str(line.timeout), '--console',
             '--append', f'ka.seed={line.seed} {line.append}'.strip()]
    for option in plan.PATHS:
        if getattr(line, option):
            words += ['--' + option, getattr(line, option)]
    for text in line.expect:
        words += ['--expect', text]
    return [*words, *more, *line.options,
            *(['--', *line.qemu] if line.qemu else [])]


def run_command(line, program, json_file, journal):
    """Return the command by which a worker runs a line."""
    return command(line, program or SWEEP, '--json', json_file, '--top',
                   str(TOP), *(['--journal', journal] if journal else []))


def repeat_command(line):
    """Return the words by which a person runs a line again."""
    return command(line, prepared.command('sweep'))


# --- parts -------------------------------------------------------------------

def fold_or_hash(text, kind):
    text = str(text)
    return text if results.FOLD.fullmatch(text) else hash_words(kind, text)


def stack(s):
    return {'what': clean.line(str(s['what'])),
            'frames': [clean.line(str(t))
                       for t in s['frames'][:results.MOST['frames']]]}


def finding(f):
    kind = clean.line(str(f['kind']))
    exact = str(f.get('exact') or '')
    return {'kind': kind, 'title': clean.line(str(f['title'])),
            'alt': [clean.line(str(t))
                    for t in f['alt'][:results.MOST['alt']]],
            'fold': fold_or_hash(f['fold'], kind),
            'exact': exact if results.FOLD.fullmatch(exact) else '',
            'weak': bool(f.get('weak')),
            'blocks': min(int(f.get('blocks') or 1), results.BIGGEST),
            'hidden': clean.line(str(f.get('hidden') or '')),
            'text': clean.text(str(f['text']), results.MOST_FINDING),
            'stacks': [stack(s) for s in
                       (f.get('stacks') or [])[:results.MOST['stacks']]]}


def frame_name(text):
    """module:function, without what compilers add to names."""
    name = re.sub(r'(?<=.)\.(isra|constprop|part|cold|llvm)\b.*', '',
                  read_frame(text).name)
    return clean.line(name, 100)


def account(row):
    """The sums of a stack. Its fold has functions, not offsets: it is the
    same in other builds."""
    frames = [frame_name(str(t)) for t in row.get('stack_symbols') or []]
    return {'fold': hash_words('stack', *frames),
            'frames': frames[:results.MOST['frames']],
            'live': row['live'], 'blocks': row['blocks'],
            'allocs': row['allocs']}


def accounts(rows):
    """Return (stacks, the sum of all others). Stacks of the same functions
    are one."""
    found, whole = {}, {'live': 0, 'blocks': 0, 'allocs': 0}
    for row in rows:
        if row.get('type') == 'top_all':
            whole = {k: row[k] for k in whole}
        elif row.get('type') == 'top':
            made = account(row)
            same = found.setdefault(made['fold'], made)
            if same is not made:
                for key in whole:
                    same[key] += made[key]
    rest = {k: whole[k] - sum(a[k] for a in found.values()) for k in whole}
    return list(found.values()), {'fold': hash_words('others'), 'frames': [],
                                  **rest}


def counters(stat):
    """The counters that are not zero."""
    found = {clean.line(k): v for k, v in stat.items()
             if type(v) is int and v and abs(v) < results.BIGGEST}
    return dict(list(found.items())[:results.MOST['stat']])


def parts(report):
    """Return the parts of a result that a report of a sweep has."""
    found = [finding(f) for f in report['findings']]
    stacks, others = accounts(report.get('top') or [])
    facts = report.get('facts') or {}
    failing = [f for f in found if not f['hidden']]
    return {'verdict': verdict(failing, report.get('problem')),
            'reason': clean.line(report.get('problem') or ''),
            'detail': clean.text(report.get('detail') or '',
                                 results.MOST_DETAIL),
            'facts': {k: clean.line(str(facts[k])) for k in FACTS
                      if k in facts},
            'stat': counters(report.get('stat') or {}), 'findings': found,
            'accounts': stacks, 'others': others,
            'warnings': [clean.line(str(w))
                         for w in report.get('warnings') or []]}


def with_status(report, why, status):
    """Return a report of a sweep that ended with a status."""
    if report.get('problem') or status in (statuses.CLEAN, statuses.FOUND):
        return report
    return {**report, 'problem': f'the sweep ended with status {status}: '
                                 f'{why}'}


def broken(reason):
    """The parts of a VM of which there is no report."""
    return parts({'findings': [], 'problem': reason or 'no reason is known'})


def read(path, why, status=0):
    """Return the parts of the report in a file. why: what the sweep said at
    its end, if there is none. status: that of the sweep; the report of one
    that failed after it had written the report is not the whole truth."""
    try:
        with open(path, encoding='utf-8', errors='replace') as f:
            text = f.read(MOST_REPORT + 1)
        if len(text) > MOST_REPORT:
            return broken('the report of the sweep is too large')
        return parts(with_status(json.loads(text), why, status)) if text \
            else broken(why)
    except FileNotFoundError:
        return broken(why)
    except (AttributeError, LookupError, OSError, TypeError, ValueError,
            RecursionError) as e:
        return broken(f'the report of the sweep cannot be read: {e!r}')


def artefact(path):
    """Return what a result says of a file that is kept."""
    with open(path, 'rb') as f:
        return {'name': os.path.basename(path),
                'bytes': os.path.getsize(path),
                'sha256': hashlib.file_digest(f, 'sha256').hexdigest()}
