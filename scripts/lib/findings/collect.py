# SPDX-License-Identifier: GPL-2.0-or-later
"""Ask the ka of a stopped guest what it found."""
import json

from . import CouldNotRun
from .finding import from_error, from_leak, from_slab


def ask(guest, command):
    """Return the JSON objects that a command of ka prints."""
    answer = []
    text = guest.hmp_qmp(command)
    for line in text.splitlines():
        try:
            answer.append(json.loads(line))
        except ValueError as e:
            raise CouldNotRun(f'{command}: {line}') from e
        if 'fail' in answer[-1]:
            raise CouldNotRun(f"{command}: {answer[-1]['fail']}")
    return answer


def errors(guest, stat):
    """Return the errors. Lines about what is not known precede those of errors
    and are skipped."""
    answer = ask(guest, 'ka error -j -s -n 0')
    rows = [e for e in answer if e.get('type') == 'error']
    lines = guest.hmp_qmp('ka error -s -n 0').splitlines() if rows else []
    if len(lines) < len(rows):
        raise CouldNotRun(f'{len(rows)} errors in {len(lines)} lines')
    stat['complete'] = all(a.get('complete') != 'no' for a in answer)
    stat['double_frees'] = all(a.get('double_frees') != 'unknown'
                               for a in answer)
    return [from_error(*pair)
            for pair in zip(rows, lines[len(lines) - len(rows):])]


def slab_check(guest, stat):
    """Return what `ka slab check` found. The stacks of an object are those of
    the blocks that follow it."""
    found = []
    for row in ask(guest, 'ka slab check -j -s -n 0'):
        if row.get('type') == 'finding':
            found.append((row, [], [row['text']]))
        elif row.get('type') == 'block':
            found[-1][1].append(row)
            found[-1][2].append(f"    {row['state']} {row['va']}")
        elif row.get('type') == 'slab_check':
            stat['slab.why'] = row['why']
    return [from_slab(row, blocks, '\n'.join(lines))
            for row, blocks, lines in found]


def top(guest, most):
    """Return the sum of all stacks, and the stacks with most live bytes."""
    return ask(guest, f'ka top --by stack -s -j -n {most}') if most else []


# --- leaks -------------------------------------------------------------------

def leak_text(row, more=''):
    frames = ' '.join(row.get('alloc_symbols') or [])
    same = row.get('same_stack', 0)
    return f"leak[{row['leak']}] {row['va']} ({row['requested']} bytes) " \
           f"alloc[{frames}]" + \
           (f' +{same} more with the same stack' if same else '') + more


def leaks(guest, stat):
    """Return the leaks of a scan: one of each stack."""
    answer = ask(guest, 'ka leak scan -j -s -n 0')
    stat['leak.missing'] = answer[-1].get('missing', 0) if answer else 0
    return [from_leak(row, leak_text(row)) for row in answer if 'leak' in row]


def module_leaks(guest, stat):
    """Return what modules had not freed when they were unloaded, and what
    nothing in use refers to."""
    found, module = [], None
    for row in ask(guest, 'ka leak module -j -s -n 0'):
        if row.get('type') == 'module':
            module = row
            if row['blocks'] and 'leaked' not in row:
                stat['module.why'] = 'it is not known which blocks are in use'
        elif 'leak' in row:
            text = leak_text(row, f" left by module {module['name']}")
            found.append(from_leak(row, text))
    return found


def with_others(first, more):
    """Return both lists; a leak of both counts once."""
    seen = {f.exact for f in first}
    return first + [f for f in more if f.exact not in seen]
