# SPDX-License-Identifier: GPL-2.0-or-later
"""Callers that a debugger finds on riscv64, and ka does not. Frames are [pc,
name]; the first one is where the vCPU stands.

The entry of exceptions has the pc of the interrupted code in the register sepc
first, which QEMU does not show to plugins. If a vCPU stands there, ka leaves
out the interrupted function, and its caller if that is in ra only. Where the
frame pointer has another value, ka's stack ends, or misses more frames: then
only the end of the debugger's is checked.
"""
ENTRIES = 'handle_exception', 'ret_from_exception'
# The functions that all stacks begin in.
OUTERMOST = {*ENTRIES, 'ret_from_fork', 'start_kernel', 'smp_callin'}


def without_left_out(ours, theirs):
    """Return THEIRS without the callers that ka left out, and their number."""
    if ours[0][1] not in ENTRIES or len(theirs) < 2:
        return theirs, 0
    after = ours[1][0] if len(ours) > 1 else None
    pcs = [f[0] for f in theirs[1:]] + [None]
    more = next((n for n in range(3) if n < len(pcs) and pcs[n] == after), 0)
    left = theirs[:1] + theirs[1 + more:]
    if [f[0] for f in left] != [f[0] for f in ours] and \
            theirs[0] == ours[0] and theirs[-1][1] in OUTERMOST:
        left = ours
    return left, max(0, len(theirs) - len(left))
