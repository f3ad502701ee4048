# SPDX-License-Identifier: GPL-2.0-or-later
"""Callers that only a debugger finds on arm64, by its link register.

ka walks by frame records, as the kernel does. A function that has made no
record yet, or makes none, has its return address in the link register only: if
it is the first frame, or was interrupted, then its caller is not in ka's stack.
Call frame information says where the address is. Such a caller is right if the
instruction before its pc calls that function:

    found = Links('kernel.elf')
    found.remove(symbols, pcs, frames)      # the caller is not in frames then
    found.check(read_words)                 # the VM stands
"""
import re
import subprocess

# Entries of exceptions that came from the kernel, and the way back.
ENTRY = re.compile(r'(el1h_64_(sync|irq|fiq|error)|ret_to_kernel)\+')
MASK = (1 << 64) - 1


def target_of(word, pc):
    """Return where b or bl at PC goes."""
    return (pc + (((word & 0x3ffffff) ^ 0x2000000) - 0x2000000) * 4) & MASK


class Links:
    """@callers: {(return address, function that was called): a stack of ka};
    @interrupted: frames whose pc an entry has in a register only."""

    def __init__(self, path):
        self.names, self.sizes = {}, {}
        self.callers, self.interrupted = {}, []
        text = subprocess.run(['nm', '-S', path], check=True, text=True,
                              stdout=subprocess.PIPE).stdout
        for line in text.splitlines():
            va, *size, _, name = line.split()
            va = int(va, 16)
            self.names.setdefault(va, set()).add(name)
            if size:
                self.sizes[va] = int(size[0], 16)

    # --- the stacks ----------------------------------------------------------

    def remove(self, symbols, pcs, theirs, elr=None):
        """Remove from THEIRS, frames [pc, name], what ka cannot find: SYMBOLS
        and PCS are ka's frames. ELR is the register of that name."""
        def is_more(i):
            after = pcs[i] if i < len(pcs) else None
            more = theirs[i + 1][0] if i + 1 < len(theirs) else None
            return i < len(theirs) and theirs[i][0] != after == more

        if ENTRY.match(symbols[0]) and len(theirs) > 1 and \
                [f[0] for f in theirs[1:2]] != pcs[1:2]:
            self.interrupted.append(theirs.pop(1))
            assert elr in (None, self.interrupted[-1][0]), (hex(elr), symbols)
            self._remove_caller(theirs, pcs, self.interrupted[-1][1], symbols)
        for i in range(1, len(pcs) + 1):
            is_exact = i == 1 or ENTRY.match(symbols[i - 2])
            if is_exact and is_more(i):
                self._add(theirs.pop(i)[0], theirs[i - 1][1], symbols)

    def _remove_caller(self, theirs, pcs, name, symbols):
        """The function that was interrupted is not in ka's stack either."""
        if len(theirs) > 2 and theirs[1][0] != pcs[1] == theirs[2][0]:
            self._add(theirs.pop(1)[0], name, symbols)

    def _add(self, pc, callee, symbols):
        self.callers[pc, callee] = symbols

    def name_starts(self, ours, theirs):
        """A kernel before 6.13 does not mark the record of an exception. If the
        interrupted instruction is a function's first one, ka takes its pc for a
        return address, and names the function before. Take the other name."""
        names = ours['stack_symbols']
        for i, (pc, name) in list(enumerate(theirs))[1:len(names)]:
            if ENTRY.match(names[i - 1]) and pc == int(ours['stack'][i], 16) \
                    and name in self._short_names(pc):
                names[i] = name

    def _short_names(self, va):
        """gdb cuts off what compilers append to names."""
        return {name.split('.')[0] for name in self.names.get(va, ())}

    def said(self):
        return f'{len(self.callers)} callers in link registers, ' \
               f'{len(self.interrupted)} interrupted pcs in registers'

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
