# SPDX-License-Identifier: GPL-2.0-or-later
"""What the kinds of findings mean, from the tables of the library, and of the
reports of kernels."""
import functools
import os
import re

from . import health_kinds
from ..prepared import ROOT

API = os.path.join(ROOT, 'kalloc-tracer', 'api')
TABLES = ('errors.def', 'slab-findings.def', 'slab-problems.def')
ROW = re.compile(r'^KT_\w+\(\w+, "([\w-]+)",((?:\s*"[^"]*")+)\)', re.M)
# Those that no table of the library has.
OWN = {
    'leak': 'a block is not freed, and nothing that is in use refers to it',
    'growth': 'more bytes are live than the limit allows, since a mark of the '
              'run',
    'scenario': 'the script that the guest was to run has failed',
    'expect': 'the console has not shown a text that must be there at the end',
}


@functools.lru_cache(maxsize=None)
def meanings():
    """{kind: what it means, in one line}."""
    found = {**OWN, **health_kinds.MEANINGS}
    for table in TABLES:
        with open(os.path.join(API, table), encoding='utf-8') as f:
            for kind, text in ROW.findall(f.read()):
                found.setdefault(kind, ''.join(re.findall(r'"([^"]*)"', text)))
    return found


def meaning(kind):
    return meanings().get(kind, kind)
