# SPDX-License-Identifier: GPL-2.0-or-later
"""The guest's own /proc/kallsyms, and the names in the hook table.

The running kernel lists these symbols itself, independently of what the tracer
reads from memory or a file. The oracles use them as the truth.
"""

import bisect
import os
import re

from scripts.lib.prepared import ROOT

HOOKS_DEF = os.path.join(ROOT, 'kalloc-tracer', 'hooks', 'hooks.def')


class Symbols:
    """Function and object symbols by address and by name."""

    def __init__(self, text):
        rows = []
        for line in text.decode().splitlines():
            addr, kind, name = line.split(None, 2)
            name, _, module = name.partition('\t')
            rows.append((int(addr, 16), kind, name, module.strip('[]')))
        # Per-cpu symbols are offsets, not addresses.
        rows = [r for r in rows if r[0] >= 1 << 63]
        rows.sort(key=lambda r: r[0])
        if not rows:
            raise ValueError('/proc/kallsyms shows no addresses')
        self.starts = [r[0] for r in rows]
        self.rows = rows
        self.by_name = {}
        for row in rows:
            self.by_name.setdefault(row[2], row[0])
        self._cache = {}

    def index(self, va):
        """Return the row of the symbol that contains @va, or -1."""
        return bisect.bisect_right(self.starts, va) - 1

    def name(self, va):
        """Return the name of the symbol that contains @va, or '?'."""
        name = self._cache.get(va)
        if name is None:
            i = self.index(va)
            name = self.rows[i][2] if i >= 0 else '?'
            # gcc splits functions: f.cold is part of f.
            name = re.sub(r'\.(cold|part|isra|constprop)\b.*', '', name)
            self._cache[va] = name
        return name

    def names(self, va):
        """Return all names of the symbol that contains @va. Aliases have the
        same address."""
        i = bisect.bisect_right(self.starts, va) - 1
        found = set()
        at = self.starts[i] if i >= 0 else None
        while i >= 0 and self.starts[i] == at:
            found.add(self.rows[i][2])
            i -= 1
        return found

    def address(self, name):
        return self.by_name.get(name)

    def range(self, name):
        """Return [first, last] address of the function @name, or None."""
        lo = self.by_name.get(name)
        if lo is None:
            return None
        i = bisect.bisect_right(self.starts, lo)
        hi = self.starts[i] - 1 if i < len(self.starts) else lo + 4095
        return lo, hi

    def offset(self, va):
        """@va as name+0xoff, for messages."""
        i = bisect.bisect_right(self.starts, va) - 1
        if i < 0:
            return f'{va:#x}'
        return f'{self.rows[i][2]}+{va - self.starts[i]:#x}'


class HookTable:
    """Names and roles of kalloc-tracer/hooks/hooks.def."""

    def __init__(self, path=HOOKS_DEF):
        with open(path, encoding='utf-8') as f:
            text = re.sub(r'/\*.*?\*/', '', f.read(), flags=re.S)
        self.roles = {}
        for m in re.finditer(r'KT_HOOK\(\w+,\s*"([^"]+)",\s*(\w+)([^)]*)',
                             text):
            outer = 'KT_HOOK_OUTER' in m.group(3)
            self.roles[m.group(1)] = 'WRAPPER' if outer else m.group(2)

    def is_wrapper(self, name):
        return self.roles.get(name) in ('WRAPPER', 'FREE_OUTER', 'REALLOC')

    def is_page_wrapper(self, name):
        return self.roles.get(name) == 'PAGE_WRAPPER'

    def is_hook(self, name):
        return name in self.roles
