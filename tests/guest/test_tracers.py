#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Our backtraces are right while a tracer of the guest replaces return
addresses: function_graph, kretprobes, fprobe, or BPF trampolines.

Oracle: the kernel's own backtrace of each event, which knows the tracer. Ours
is equal, or it is cut at a replaced address and says so. No frame is the
tracer's code in place of the true caller, and no caller is a BPF trampoline. No
event is missing. Where the kernel's own backtrace shows the replaced addresses
(riscv64), the calls that it shows in a run without a tracer are the oracle.

usage: test_tracers.py [--short] [--case NAME]... [--kernel K]... [--smp N]...
                       [--size N]
"""
import re
from collections import Counter

from lib import ksyms, oracle, programs
from lib.tap import Tap
from scripts.lib.prepared import kernel_arch, kernel_file

EQUAL_AT_LEAST = 0.999
# In the case "hidden" ka has no types, so it does not know the records of
# function_graph: stacks are cut.
CASES = 'graph', 'kretprobe', 'fprobe', 'bpf', 'hidden'
# What the kernel needs for a case; its other cases need nothing more than the
# oracles do.
NEEDS = {'fprobe': 'CONFIG_FPROBE_EVENTS'}
# riscv64 allows no other probe at an entry that ftrace can patch. Its own walk
# asks for the place where function_graph does not write the address
# (walk_stackframe() in arch/riscv/kernel/stacktrace.c of 6.12).
RISCV64_NEEDS = {**NEEDS, 'kretprobe': 'CONFIG_KPROBES_ON_FTRACE'}
# A caller of an allocator that only runs while function_graph does.
OWN_CALLER = 'ftrace_graph_init_task+'
# The addresses that tracers write over return addresses.
TRACERS = ('return_to_handler', 'arch_rethook_trampoline',
           '__kretprobe_trampoline', 'kretprobe_trampoline')


# Not bpf_trampoline_update() and others, which make trampolines.
TRAMPOLINE = re.compile(r'bpf_trampoline_\d')
# A trampoline is called by one of the first instructions of a function.
ENTRY_BYTES = 16


def is_at_entry(va, symbols):
    start, _ = symbols.range(symbols.name(va - 1)) or (0, 0)
    return 0 < va - start <= ENTRY_BYTES


def theirs_of(event, symbols, hooks):
    """Return the kernel's frames as ours should be. A BPF trampoline calls the
    traced function itself: both are between the function, or the allocator that
    it jumps to, and its caller."""
    frames = list(oracle.kernel_frames(event, symbols, hooks))
    while len(frames) > 2 and \
            TRAMPOLINE.match(symbols.name(frames[0])) and \
            is_at_entry(frames[1], symbols):
        frames = frames[2:]
        while len(frames) > 1 and hooks.is_wrapper(symbols.name(frames[0])):
            frames.pop(0)
    return tuple(frames)


def with_true_site(event, symbols, hooks):
    """Return the event with the call site that it has without a tracer: the
    guest's tracepoint reads it from the stack."""
    name = symbols.name(event.site)
    if event.stack and (name in TRACERS or TRAMPOLINE.match(name)):
        theirs = theirs_of(event, symbols, hooks)
        return event._replace(site=theirs[0]) if theirs else event
    return event


def goes_on(ours, theirs, replaced):
    """Return whether ours has the kernel's frames and those behind. The
    kernel's walk ends at an address of REPLACED if an interrupt came at the
    first instruction of function_graph's code, or at a kretprobe of 5.10; ours
    has the true return address there."""
    return len(ours) >= len(theirs) and theirs and \
        ours[:len(theirs) - 1] == theirs[:-1] and theirs[-1] in replaced


class Calls:
    """The calls in the kernel's own backtraces of a run without a tracer, as
    (called function, return address). They have the same names in all runs."""

    def __init__(self, run):
        hooks = ksyms.HookTable()
        stacks = {(e.name, theirs_of(e, run.symbols, hooks))
                  for e in run.guest if e.stack}
        self.known = {call for name, frames in stacks
                      for call in self._of(name, frames, run.symbols)}

    @staticmethod
    def _of(name, frames, symbols):
        """Yield the calls of a backtrace of the tracepoint NAME."""
        called = [name, *(symbols.name(f - 1) for f in frames)]
        yield from zip(called, map(symbols.offset, frames))

    def fit(self, name, ours, theirs, replaced, symbols, cut):
        """Return whether OURS has the frames of THEIRS and known calls where
        THEIRS has an address of REPLACED. The first of these may be inside the
        allocator. CUT: ours may have only the first of them."""
        calls = list(self._of(name, ours, symbols))

        def is_known(call):
            return call in self.known or call[1].startswith(OWN_CALLER)

        def are_ours(theirs):
            alike = all(our == their or their in replaced and is_known(call)
                        for our, their, call in zip(ours, theirs, calls))
            return alike and (
                len(ours) == len(theirs) or cut and len(ours) < len(theirs) or
                len(ours) > len(theirs) and
                oracle.own_walk_ends(theirs, symbols, 'riscv64'))

        while not are_ours(theirs):
            if not (theirs and theirs[0] in replaced and is_known(calls[0])):
                return False
            theirs = theirs[1:]
        return True


class Comparison:
    """Counts over all pairs of events; .reasons and .example of those that are
    neither equal nor cut. Of the equal ones, .longer counts those where the
    kernel's own walk ends early, and .known those that are equal by CALLS, if
    given."""

    def __init__(self, run, types, arch, calls=None):
        self.compared = self.equal = self.cut = self.false = 0
        self.longer = self.through = self.known = 0
        self.reasons, self.example = Counter(), {}
        self.arch, self.calls = arch, calls
        hooks = ksyms.HookTable()
        self.replaced = {run.symbols.address(name) for name in TRACERS}
        guest = [with_true_site(e, run.symbols, hooks) for e in run.guest]
        match = oracle.Matching(guest, run.ours, run.symbols, hooks,
                                run.switched, types=types)
        self.missing = match.missing
        self.unexplained = match.unexplained
        for event, our in match.pairs:
            if self._is_false(our.frames, run.symbols):
                self.false += 1
                self.example['a false frame'] = our, event.stack or ()
            if event.stack is not None:
                self._add(our, theirs_of(event, run.symbols, hooks),
                          run.symbols, event.name)

    def _is_false(self, frames, symbols):
        return not self.replaced.isdisjoint(frames) or \
            TRAMPOLINE.match(symbols.name(frames[0]))

    def _fits(self, name, ours, theirs, symbols, cut=False):
        return ours == (theirs[:len(ours)] if cut else theirs) or \
            self.calls and self.calls.fit(name, ours, theirs, self.replaced,
                                          symbols, cut)

    def _add(self, our, theirs, symbols, name):
        self.compared += 1
        self.through += any(TRAMPOLINE.match(symbols.name(f))
                            for f in theirs)
        if our.frames == theirs:
            self.equal += 1
        elif goes_on(our.frames, theirs, self.replaced) or \
                oracle.as_far_as_it_goes(theirs, our.frames, symbols,
                                         self.arch):
            self.equal += 1
            self.longer += 1
        elif self._fits(name, our.frames, theirs, symbols):
            self.equal += 1
            self.known += 1
        elif our.stop == 'replaced' and \
                self._fits(name, our.frames, theirs, symbols, cut=True):
            self.cut += 1
        else:
            why = oracle.stack_difference(our.frames, theirs, symbols)
            self.reasons[why] += 1
            self.example.setdefault(why, (our, theirs))

    def describe(self, symbols):
        """Return the most frequent differences with an example of each."""
        text = ''
        counts = self.reasons.most_common(8) + \
            [('a false frame', self.false)] * bool(self.false)
        for why, count in counts:
            our, theirs = self.example[why]
            text += f'{count:8} {why}\n'
            for who, frames in (('ours', our.frames), ("kernel's", theirs)):
                text += f'  {who}: ' + ' '.join(
                    symbols.offset(f) for f in frames) + '\n'
        return text


def traced_run(kernel, smp, size, tracer, hidden=False):
    return oracle.traced_run(
        kernel, smp, size, stacks=True, load='tracers',
        buffer='256M' if smp == 1 else '128M',
        plugin_opts='without=types' if hidden else None,
        words=f'{oracle.TRACE_WORDS} ka_tracer={tracer}')


def run_case(tap, case, kernel, size, smp, label, calls):
    hidden = case == 'hidden'
    types = oracle.has_types(kernel) and not hidden
    run = traced_run(kernel, smp, size, 'graph' if hidden else case, hidden)
    c = Comparison(run, types, kernel_arch(kernel), calls)
    tap.note(f'{label}, {case}: {c.compared} stacks, {c.equal} equal '
             f"({c.longer} longer than the kernel's, {c.known} by known "
             f'calls), {c.cut} cut with a reason, '
             f'{c.compared - c.equal - c.cut} '
             f'different, false frames {c.false}; {len(c.missing)} events '
             f'missing, {len(c.unexplained)} unexplained')
    tap.figures('tracers', case=case, compared=c.compared, equal=c.equal,
                known=c.known, cut=c.cut, false=c.false)
    tap.note(c.describe(run.symbols))
    assert c.false == 0, 'frames are code of a tracer'
    assert not c.missing and not c.unexplained, '\n'.join(
        f'{what}: {oracle.describe(e, run.symbols)}'
        for what, events in (('missing', c.missing),
                             ('unexplained', c.unexplained))
        for e in events[:20])
    assert c.compared > 10000
    assert c.equal + c.cut >= EQUAL_AT_LEAST * c.compared
    if types:
        assert c.cut <= (1 - EQUAL_AT_LEAST) * c.compared, \
            'stacks are cut although the records are known'
    else:
        assert c.cut, 'no stack met a replaced address'
    assert case != 'bpf' or c.through > 1000, \
        f'only {c.through} stacks lead through a BPF trampoline'


def is_riscv64(kernel):
    return kernel_arch(kernel) == 'riscv64'


def lacks(case, kernel):
    """Return the option that the case needs and the kernel has not."""
    needs = RISCV64_NEEDS if is_riscv64(kernel) else NEEDS
    with open(kernel_file(kernel, 'config'), encoding='utf-8') as f:
        need = needs.get(case)
        return need if need and f'{need}=y\n' not in f.readlines() else None


def main():
    ap = programs.arguments(__doc__, short='6.12 on 1 vCPU, a small workload')
    ap.add_argument('--case', action='append', choices=CASES,
                    help='all if not given')
    ap.add_argument('--size', type=int, help='rounds of the workload')
    args, tap = programs.parse(ap), Tap()
    size = args.size or (1 if args.short else 4)

    def all_cases(tap, kernel, smp, label):
        calls = None
        if is_riscv64(kernel):
            calls = Calls(traced_run(kernel, smp, 2 * size, 'none'))
        for case in args.case or CASES:
            name = f'{label}: stacks are right under {case}'
            need = lacks(case, kernel)
            if need:
                tap.skip(name, f'the kernel has no {need}')
                continue
            with tap.test(name):
                run_case(tap, case, kernel, size, smp, label, calls)

    programs.run_over(tap, args.kernel, args.smp, all_cases, test=None)
    tap.done()


if __name__ == '__main__':
    main()
