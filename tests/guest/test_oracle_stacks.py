#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The stack oracle: our backtraces are right.

Oracle: the kernel's own backtrace of each event, without its tracing functions
and the wrappers of the hook table. It must be equal, frame for frame. Those
that differ are listed by reason. In a kernel without an unwinder, each of our
backtraces has one frame, which the kernel's list of guesses contains, and says
that the rest is not known. On both kernels, on 1 and 4 vCPUs.

usage: test_oracle_stacks.py [--short] [--kernel K]... [--smp N]... [--size N]
"""
import re
from collections import Counter

from lib import ksyms, oracle, programs
from lib.tap import Tap
from scripts.lib.prepared import kernel_arch

EQUAL_AT_LEAST = 0.999


def compare(run, arch, types):
    """Return (compared, equal, {reason: n}, {reason: an example})."""
    hooks = ksyms.HookTable()
    match = oracle.Matching(run.guest, run.ours, run.symbols, hooks,
                            run.switched, types=types)
    reasons, example = Counter(), {}
    compared = 0
    for event, our in match.pairs:
        if event.stack is None:
            continue
        compared += 1
        theirs = oracle.kernel_frames(event, run.symbols, hooks)
        if theirs != our.frames and not oracle.as_far_as_it_goes(
                theirs, our.frames, run.symbols, arch):
            why = oracle.stack_difference(our.frames, theirs, run.symbols)
            reasons[why] += 1
            example.setdefault(why, (our, theirs))
    return compared, compared - sum(reasons.values()), reasons, example


def check_unknown(tap, run, label):
    """Check the backtraces of a kernel without an unwinder."""
    hooks = ksyms.HookTable()
    match = oracle.Matching(run.guest, run.ours, run.symbols, hooks,
                            run.switched, types=False)
    pairs = [(e, our) for e, our in match.pairs if e.stack is not None]
    wrong = [our for e, our in pairs
             if len(our.frames) != 1 or our.frames[0] not in e.stack]
    tap.figures('stacks', unknown=len(pairs) - len(wrong))
    tap.ok(pairs and not wrong,
           f'{label}: each backtrace is one frame, the caller',
           f'{len(wrong)} of {len(pairs)}:\n' + '\n'.join(
               oracle.describe(our, run.symbols) for our in wrong[:10]))
    walked = re.findall(r'stack\.(?:end_marker|end_user) +([1-9].*)', run.stat)
    tap.ok(not walked, f'{label}: no backtrace claims to be whole',
           str(walked))


def check(tap, run, kernel, label):
    if not oracle.has_unwinder(run.stat):
        check_unknown(tap, run, label)
        return
    compared, equal, reasons, example = compare(
        run, kernel_arch(kernel), oracle.has_types(kernel))
    share = equal / compared if compared else 0
    tap.note(f'{label}: {compared} compared, {equal} equal '
             f'({100 * share:.4f} %)')
    tap.figures('stacks', compared=compared, equal=equal)
    for why, count in reasons.most_common(30):
        tap.note(f'{count:8} {why}')
    found = ''
    for why, _ in reasons.most_common(5):
        our, theirs = example[why]
        found += f'{why}\n'
        for who, frames in (('ours', our.frames), ("kernel's", theirs)):
            found += f'  {who}: ' + ' '.join(
                run.symbols.offset(f) for f in frames) + '\n'
    tap.ok(share >= EQUAL_AT_LEAST,
           f'{label}: {100 * EQUAL_AT_LEAST} % of the backtraces are equal',
           found)


def main():
    ap = programs.arguments(
        __doc__, short='6.12 on 1 vCPU only, a small workload')
    ap.add_argument('--size', type=int, help='rounds of the workload')
    args, tap = programs.parse(ap), Tap()
    size = args.size or (2 if args.short else 6)

    def one(tap, kernel, smp, label):
        run = oracle.traced_run(kernel, smp, size, stacks=True,
                                buffer='256M' if smp == 1 else '128M')
        check(tap, run, kernel, label)

    programs.run_over(tap, args.kernel, args.smp, one)
    tap.done()


if __name__ == '__main__':
    main()
