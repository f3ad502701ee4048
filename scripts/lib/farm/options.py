# SPDX-License-Identifier: GPL-2.0-or-later
"""The options of scripts/sweep in a plan. A mistyped one would make each VM of
the night fail, so they are checked when the plan is made, by the parser of
sweep itself."""
import contextlib
import functools
import io
import os

from ..findings import command
from . import FarmError

# Options that ka-farm gives -> what a plan writes instead.
OWN = {'kernel': 'kernel', 'initrd': 'initrd', 'share': 'share', 'smp': 'smp',
       'mem': 'mem', 'timeout': 'timeout', 'append': 'append', 'run': 'run',
       'expect': 'expect', 'journal': 'journal = true', 'json': None,
       'top': None, 'console': None}
READ = 'suppress', 'baseline', 'leak_rules', 'vmlinux', 'modules'
WRITTEN = 'write_baseline', 'junit', 'ktap', 'sarif', 'html', 'kasan_text'


def name(key):
    return '--' + key.replace('_', '-')


@functools.lru_cache(maxsize=1000)
def read(words):
    """Return the options of some words. What sweep would refuse is refused."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            return command.parse_args(list(words))[0]
    except SystemExit as e:
        lines = said.getvalue().splitlines() if e.code else []
        why = lines[-1].partition('error: ')[2] if lines else \
            'they only print a help'
        raise FarmError(why) from e


def check(line, what):
    """Raise FarmError if sweep, or ka-farm, cannot use the options of a line of
    a plan."""
    what = f'{what}: options'
    if '--' in line.options:
        raise FarmError(f"{what}: '--': write arguments of QEMU into qemu")
    try:
        args = read(line.options)
        read((*line.options, *(['--run', line.run] if line.run else [])))
    except FarmError as e:
        raise FarmError(f'{what}: {e}') from e
    for key, instead in OWN.items():
        if getattr(args, key) != getattr(read(()), key):
            raise FarmError(f'{what}: {name(key)} is given by ka-farm' + (
                f': write {instead} into the job' if instead else ''))
    for key in (*READ, *WRITTEN):
        path = getattr(args, key)
        if path and not os.path.isabs(path) and path != 'auto':
            raise FarmError(f"{what}: {name(key)} '{path}' is no absolute "
                            'path: workers run in other folders')


def files(line):
    """Return [(option, file that it reads)] of a line."""
    args = read(line.options)
    return [(name(key), getattr(args, key)) for key in READ
            if getattr(args, key) not in (None, 'auto')]
