# SPDX-License-Identifier: GPL-2.0-or-later
"""Ask ka what it found. VM is somebody who answers, of scripts/ka.py: a guest
that is stopped (Guest.ka), or its journal."""
from . import CouldNotRun
from .finding import from_error, from_leak, from_slab

ALL = '-s', '-n', '0'       # with names of frames, and every row
FRAMES = *ALL, '--pc'       # and addresses for lines of source, in JSON


def rows(vm, *words):
    """Return the JSON objects of an answer."""
    return [row.raw for row in vm.run(*words).all]


def stat(vm):
    """Return the counters of ka stat."""
    return rows(vm, 'stat')[0]


def errors(vm, state):
    """Return the errors. Lines about what is not known precede those of errors
    and are skipped."""
    answer = rows(vm, 'error', '-v', *FRAMES)
    found = [e for e in answer if e.get('type') == 'error']
    lines = vm.text('error', '-w', '-n', '0').splitlines() if found else []
    if len(lines) < len(found):
        raise CouldNotRun(f'{len(found)} errors in {len(lines)} lines')
    state['complete'] = all(a.get('complete') != 'no' for a in answer)
    state['double_frees'] = all(a.get('double_frees') != 'unknown'
                                for a in answer)
    return [from_error(*pair)
            for pair in zip(found, lines[len(lines) - len(found):])]


def slab_check(vm, state):
    """Return what `ka slab check` found. The stacks of an object are those of
    the blocks that follow it."""
    found = []
    for row in rows(vm, 'slab', 'check', *ALL):
        if row.get('type') == 'finding':
            found.append((row, [], [row['text']]))
        elif row.get('type') == 'block':
            found[-1][1].append(row)
            found[-1][2].append(f"    {row['state']} {row['va']}")
        elif row.get('type') == 'slab_check':
            state['slab.why'] = row['why']
    return [from_slab(row, blocks, '\n'.join(lines))
            for row, blocks, lines in found]


def top(vm, most):
    """Return the sum of all stacks, and the stacks with most live bytes."""
    return rows(vm, 'top', '--by', 'stack', '-s', '-n', most) if most else []


def why_not_checked(vm):
    """Return why accesses are not checked, or None."""
    row, *_ = rows(vm, 'access')
    return None if row['armed'] else row['text'].partition(';')[0]


# --- leaks -------------------------------------------------------------------

def leak_text(row, more=''):
    frames = ' '.join(row.get('alloc_symbols') or [])
    same = row.get('same_stack', 0)
    return f"leak[{row['leak']}] {row['va']} ({row['requested']} bytes) " \
           f"alloc[{frames}]" + \
           (f' +{same} more with the same stack' if same else '') + more


def leaks(vm, state):
    """Return the leaks of a scan: one of each stack."""
    answer = rows(vm, 'leak', 'scan', *FRAMES)
    state['leak.missing'] = answer[-1].get('missing', 0) if answer else 0
    return [from_leak(row, leak_text(row)) for row in answer if 'leak' in row]


def module_leaks(vm, state):
    """Return what modules had not freed when they were unloaded, and what
    nothing in use refers to."""
    found, module = [], None
    for row in rows(vm, 'leak', 'module', *FRAMES):
        if row.get('type') == 'module':
            module = row
            if row['blocks'] and 'leaked' not in row:
                state['module.why'] = 'it is not known which blocks are in use'
        elif 'leak' in row:
            text = leak_text(row, f" left by module {module['name']}")
            found.append(from_leak(row, text))
    return found


def with_others(first, more):
    """Return both lists; a leak of both counts once."""
    seen = {f.exact: f for f in first}
    for f in more:
        if f.exact in seen:
            seen[f.exact].kasan = f.kasan
    return first + [f for f in more if f.exact not in seen]
