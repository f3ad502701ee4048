# SPDX-License-Identifier: GPL-2.0-or-later
"""Lines of source for the stacks of findings, by the program ka."""
import json
import subprocess

SECONDS = 600


def read_lines(program, vmlinux, modules, text):
    """Return (the text with lines of source, what the program said)."""
    files = (['--vmlinux', vmlinux] if vmlinux else []) + \
        (['--modules', modules] if modules else [])
    try:
        done = subprocess.run([program, *files, 'lines'], input=text,
                              capture_output=True, text=True, check=False,
                              timeout=SECONDS)
    except (OSError, subprocess.TimeoutExpired) as e:
        return '', [str(e)]
    return done.stdout, done.stderr.splitlines()


def add(vm, findings, program, vmlinux, modules):
    """Add lines to the rows of the findings of a VM or journal (scripts/ka.py).
    Return what is missing, as lines for the user."""
    rows = [f.row for f in findings if any(k.endswith('_at') for k in f.row)]
    if not rows:
        return []
    text = vm.text('stat', '-j') + vm.text('base', '-v', '-j') + \
        ''.join(json.dumps(row) + '\n' for row in rows)
    out, said = read_lines(program, vmlinux, modules, text)
    try:
        made = [json.loads(line) for line in out.splitlines()[-len(rows):]]
    except ValueError as e:
        return [f'lines of source: {e}']
    if len(made) == len(rows):
        for row, new in zip(rows, made):
            row.update(new)
    return ['lines of source: ' + line.removeprefix('ka: ') for line in said]
