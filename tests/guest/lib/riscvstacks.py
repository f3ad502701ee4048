# SPDX-License-Identifier: GPL-2.0-or-later
"""Callers that a debugger finds on riscv64, and ka's walk by frame records does
not. Frames are [pc, name]; the first one is where the vCPU stands.

Where a function has no record, its caller is in ra only: at the first frame,
and in interrupted code. If a vCPU stands in the entry of exceptions, the
interrupted pc is in a register, too. In that entry, in the first instructions
of what it calls, and in the switch of tasks, the frame pointer has another
value, so ka's stack ends or misses frames: then only the end of the debugger's
is checked.

If the first instruction of a function was interrupted, ka takes its pc for a
return address, and prints the name of the function before.
"""
ENTRY = 'handle_exception'
ASM = {ENTRY, 'ret_from_exception', '__switch_to'}
# The functions that all stacks begin in.
OUTERMOST = {ENTRY, 'ret_from_fork', 'start_kernel', 'smp_callin'}


def _more_at(i, ours):
    """Return how many callers may be missing in front of frame I of OURS."""
    if i == 1 and ours[0][1] == ENTRY:
        return 2
    return 1 if i == 1 or ours[i - 2][1] == ENTRY else 0


def _named_as(ours, theirs):
    """Return THEIRS with ka's names of interrupted instructions."""
    names = [None] + [f[1] for f in ours]
    return [mine if before == ENTRY and mine[0] == frame[0] else frame
            for before, mine, frame in zip(names, ours, theirs)] + \
        theirs[len(ours):]


def without_left_out(ours, theirs):
    """Return THEIRS without the callers that ka left out, and their number."""
    left = list(theirs)
    for i in range(1, len(ours) + 1):
        after = ours[i][0] if i < len(ours) else None
        pcs = [f[0] for f in left[i:]] + [None]
        more = next((n for n in range(_more_at(i, ours) + 1)
                     if n < len(pcs) and pcs[n] == after), 0)
        del left[i:i + more]
    if [f[0] for f in left] != [f[0] for f in ours] and \
            (ours[0][1] in ASM or theirs[1:] and theirs[1][1] == ENTRY) and \
            theirs[0] == ours[0] and theirs[-1][1] in OUTERMOST:
        left = ours
    return _named_as(ours, left), max(0, len(theirs) - len(left))
