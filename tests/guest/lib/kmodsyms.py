# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions of a test module, which is where the guest printed it to be."""

import bisect
import re
import subprocess


def of_kallsyms(console, module):
    """Return the functions of a module, from lines of /proc/kallsyms that end
    in [MODULE]."""
    return ModuleFunctions(
        (int(va, 16), name) for va, name in re.findall(
            r'^([0-9a-f]{16}) [tT] ([\w.]+)\s+\[' + module + r'\]', console,
            re.M))


def of_file(console, path):
    """Return the functions of a module's file, from lines "ka_section NAME
    ADDRESS". To read all of /proc/kallsyms takes a guest a second and more."""
    text = subprocess.run(['readelf', '-SsW', path], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    places = {name: int(va, 16) for name, va in re.findall(
        r'^ka_section (\S+) 0x([0-9a-f]{16})', console, re.M)}
    starts = {number: places[name] for number, name in re.findall(
        r'^ *\[ *(\d+)\] (\S+)', text, re.M) if name in places}
    return ModuleFunctions(
        (starts[number] + int(at, 16), name) for at, number, name in re.findall(
            r': ([0-9a-f]{16}) .* FUNC .* (\d+) ([\w.]+)$', text, re.M)
        if number in starts)


class ModuleFunctions:
    """The functions of a module, from their addresses and names."""

    def __init__(self, rows):
        # gcc splits functions: f.cold is part of f. Labels of the assembler,
        # which riscv modules keep, begin with a dot.
        self.rows = sorted((va, name.split('.')[0])
                           for va, name in rows if name[0] != '.')
        self.starts = [va for va, _ in self.rows]

    def name(self, pc):
        """Return the function that contains @pc, None outside of the module."""
        i = bisect.bisect_right(self.starts, pc) - 1
        # No function of these modules is larger.
        if i < 0 or pc - self.starts[i] > 8192:
            return None
        return self.rows[i][1]
