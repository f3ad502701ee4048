# SPDX-License-Identifier: GPL-2.0-or-later
"""Callers of arm64 that may be in the link register only.

A function that has made no frame record yet, or makes none, has its return
address in the link register: if it is the first frame, or was interrupted, the
code says where its caller is. Such a caller is right if the instruction before
its pc calls that function:

    found = Links('kernel.elf')
    found.add(symbols, pcs, names)          # frames of ka, names of gdb
    found.check(read_words)                 # the VM stands
"""
import re
import subprocess

# Entries of exceptions that came from the kernel, and the way back.
ENTRY = re.compile(r'(el1h_64_(sync|irq|fiq|error)|ret_to_kernel)\+')
NOT_CALLED = re.compile(ENTRY.pattern + r'|(vectors|el0t_\w+_(sync|irq|fiq|'
                        r'error)|ret_to_user|ret_from_fork)\+')
MASK = (1 << 64) - 1


def target_of(word, pc):
    """Return where b or bl at PC goes."""
    return (pc + (((word & 0x3ffffff) ^ 0x2000000) - 0x2000000) * 4) & MASK


class Links:
    """@callers: {(return address, function that was called): a stack of ka}"""

    def __init__(self, path):
        self.names, self.sizes = {}, {}
        self.callers = {}
        text = subprocess.run(['nm', '-S', path], check=True, text=True,
                              stdout=subprocess.PIPE).stdout
        for line in text.splitlines():
            va, *size, _, name = line.split()
            va = int(va, 16)
            self.names.setdefault(va, set()).add(name)
            if size:
                self.sizes[va] = int(size[0], 16)

    # --- the stacks ----------------------------------------------------------

    def add(self, symbols, pcs, names):
        """Keep the callers of functions that a vCPU stands in, or that were
        interrupted, to check them. Entries of exceptions are not called."""
        for i in range(1, len(pcs)):
            is_exact = i == 1 or ENTRY.match(symbols[i - 2])
            if is_exact and not NOT_CALLED.match(symbols[i - 1]):
                self.callers[pcs[i], names[i - 1]] = symbols

    def _short_names(self, va):
        """gdb cuts off what compilers append to names."""
        return {name.split('.')[0] for name in self.names.get(va, ())}

    def said(self):
        return f'{len(self.callers)} callers of leaves'

    # --- the code ------------------------------------------------------------

    def check(self, read_words):
        """READ_WORDS(va, n) returns words of code."""
        for (pc, callee), symbols in self.callers.items():
            word, = read_words(pc - 4, 1)
            if word & 0xfffffc1f == 0xd63f0000:         # blr
                continue
            assert word >> 26 == 0x25, (hex(pc), hex(word), symbols)
            target = target_of(word, pc - 4)
            assert self._leads_to(read_words, target, callee, 3), \
                (hex(pc), self.names.get(target), symbols)

    def _leads_to(self, read_words, va, callee, depth):
        """Return true if CALLEE is at VA, or tail calls lead there."""
        if callee.split('.')[0] in self._short_names(va):
            return True
        if not depth or not self.sizes.get(va):
            return False
        words = read_words(va, self.sizes[va] // 4)
        jumps = {target_of(w, va + 4 * i) for i, w in enumerate(words)
                 if w >> 26 == 5}
        return any(self._leads_to(read_words, to, callee, depth - 1)
                   for to in jumps if not va <= to < va + self.sizes[va])
