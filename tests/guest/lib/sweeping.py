# SPDX-License-Identifier: GPL-2.0-or-later
"""Sweeps that write all formats, which must say the same."""
import os
import sys
from typing import NamedTuple

from lib import commands
from scripts.lib.prepared import ROOT

sys.path.insert(0, os.path.join(ROOT, 'tests', 'reports'))

import formats      # pylint: disable=wrong-import-position

OPTIONS = {'junit': '--junit', 'ktap': '--ktap', 'sarif': '--sarif',
           'json': '--json', 'kasan_text': '--kasan-text', 'html': '--html'}


class Swept(NamedTuple):
    """What a sweep has said. said: what all formats have, see formats.py."""
    status: int
    text: str
    said: formats.Said
    files: dict


def sweep(folder, *words, timeout=240):
    """Run a sweep that writes all formats into a folder. Raise AssertionError
    unless they agree with its exit status and with each other."""
    paths = {name: os.path.join(folder, name) for name in OPTIONS}
    files = [w for name, path in paths.items() for w in (OPTIONS[name], path)]
    done = commands.run('sweep', '--timeout', str(timeout), *files, *words,
                        status=None, timeout=timeout + 300)
    texts = {}
    for name, path in paths.items():
        with open(path, encoding='utf-8') as f:
            texts[name] = f.read()
    said = formats.check(texts, done.returncode, done.stdout, done.stderr)
    return Swept(done.returncode, done.stdout + done.stderr, said, texts)
