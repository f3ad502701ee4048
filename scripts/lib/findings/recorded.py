# SPDX-License-Identifier: GPL-2.0-or-later
"""A sweep that is recorded: each finding says how to go to its moment."""
import os
import shlex

from .. import recording
from ..prepared import command


def options(args):
    """Return the options of ka-run."""
    return ['--record', args.record] if args.record else []


def place(finding):
    """Return where ka goto finds the moment of a finding. What has none was
    found at the end."""
    row = finding.row
    if row.get('error_id'):
        return f"error {row['error_id']}"
    if finding.kind == 'leak':
        return f"{row['va']} alloc"
    if row.get('us') is not None:
        return f"{row['us']}us"
    return 'end'


def add_places(args, found):
    """Add the command that goes there to the text of findings."""
    if not args.record:
        return
    folder = shlex.quote(os.path.realpath(args.record))
    for f in found:
        words = shlex.quote(place(f))
        f.text += f'\n    go there: {command("ka-run")} --replay {folder} ' \
                  f'--goto {words}'


def journal(args):
    """Return the journal of the run, or None if there is none."""
    path = args.journal or \
        (args.record and os.path.join(args.record, recording.JOURNAL))
    return path if path and os.path.exists(path) else None


def why_no_end(args):
    """Return why the recording of a VM that has ended lacks its end: a list of
    one line, or an empty one."""
    if not args.record:
        return []
    try:
        return [] if recording.has_end(args.record) else [
            f'{args.record}: the recording was cut off: it has no end']
    except recording.BadRecording as e:
        return [f'{args.record}: {e}']
