# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions of a test module, as the guest printed them on its console."""

import bisect
import re


class ModuleFunctions:
    """The functions of a module, from lines of /proc/kallsyms that end in
    [MODULE]."""

    def __init__(self, console, module):
        rows = re.findall(r'^([0-9a-f]{16}) [tT] ([\w.]+)\s+\[' + module +
                          r'\]', console, re.M)
        # gcc splits functions: f.cold is part of f. Labels of the assembler,
        # which riscv modules keep, begin with a dot.
        self.rows = sorted((int(va, 16), name.split('.')[0])
                           for va, name in rows if name[0] != '.')
        self.starts = [va for va, _ in self.rows]

    def name(self, pc):
        """Return the function that contains @pc, None outside of the module."""
        i = bisect.bisect_right(self.starts, pc) - 1
        # No function of these modules is larger.
        if i < 0 or pc - self.starts[i] > 8192:
            return None
        return self.rows[i][1]
