#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Interrupts that allocate: wherever one arrives, its stack is whole.

A module allocates in timer interrupts of all CPUs, ten thousand times a second,
while threads and processes begin and end. So interrupts arrive in the first and
the last instructions of a task, too. Each stack must end where a CPU or a task
begins, or where an exception came from user mode.

usage: test_interrupts.py [--short] [--kernel K]... [--smp N]... [--threads N]
"""
import json
import os
import re
import subprocess
import tempfile
from collections import Counter

from lib import oracle, programs
from lib.tap import Tap
from scripts.lib.guest import Guest
from scripts.lib.prepared import kernel_arch, paths

SITE = 'ka_ticks_site[ka_ticks]'
ZERO = ('errors.recorded', 'events.unknown_block', 'stack.end_bad_frame',
        'stack.end_depth', 'stack.replaced')
# The last frame of a whole stack. On arm64 kthread() may have made no record
# yet: its caller is in a register, where the kernel does not look either.
ENDS = {
    'x86_64': r'(common|secondary)_startup_64\w*|ret_from_fork\w*|asm_\w+|'
              r'entry_\w+',
    'aarch64': r'__(primary|secondary)_switched|ret_from_fork|el0\w+|'
               r'asm_exit_to_user_mode|ret_to_user|kthread',
    'riscv64': r'start_kernel|smp_callin|ret_from_fork\w*|handle_exception|'
               r'ret_from_exception',
}
# The kernel's unwind table says of this code that nobody can unwind it
# (UNWIND_HINT_UNDEFINED in retpoline.S).
NOT_IN_TABLE = re.compile(r'__x86_(indirect|return)_thunk\w*')


def ticks(journal):
    """Yield (stop, names of the stack) of each event of the module."""
    program = os.path.join(paths()['build'], 'monitor-cmds', 'ka')
    with subprocess.Popen([program, '-f', journal, 'events', '-j', '-s', '-n',
                           '0'], stdout=subprocess.PIPE, text=True) as ka:
        for line in ka.stdout:
            if 'ka_ticks_site' not in line:
                continue
            event = json.loads(line)
            stack = [re.sub(r'\+0x[0-9a-f]+', '', f)
                     for f in event['stack_symbols']]
            if stack[0] == SITE:
                yield event['stop'], stack
    assert ka.returncode == 0, ka.returncode


def check_stacks(kernel, journal):
    """Return the number of stacks by their last frames."""
    ends, unknown = Counter(), Counter()
    for stop, stack in ticks(journal):
        if stop in ('end', 'user'):
            ends[stack[-1]] += 1
        elif not NOT_IN_TABLE.fullmatch(stack[-1]):
            unknown[stop, ' '.join(stack[-6:])] += 1
    assert not unknown, unknown.most_common(5)
    good = ENDS[kernel_arch(kernel)]
    assert all(re.fullmatch(good, end) for end in ends), ends
    assert any(end.startswith('ret_from_fork') for end in ends), ends
    return ends


def run(tap, kernel, smp, label, n, folder):
    share = os.path.join(folder, kernel)
    journal = os.path.join(folder, 'journal')
    oracle.make_share(share, ['ticks.sh'], kernel, modules=True)
    with Guest(kernel=kernel, smp=smp, share=share, run='ticks', n=n,
               timeout=600, end='shell', journal=journal,
               name=f'ticks-{kernel}-{smp}') as g:
        with tap.test(f'{label}: {n} threads begin while interrupts allocate'):
            assert g.wait_done() == 0
            stat = g.stat()
        with tap.test(f'{label}: nothing is unknown'):
            found = {key: stat[key] for key in ZERO if stat.get(key)}
            assert not found, found
    with tap.test(f'{label}: the stacks of interrupts are whole'):
        ends = check_stacks(kernel, journal)
        tap.note(f'{label}: {dict(ends)}')
    os.unlink(journal)


def main():
    ap = programs.arguments(__doc__, short='6.12 only, 4 vCPUs, 500 threads')
    ap.add_argument('--threads', type=int, help='how many threads begin')
    args, tap = programs.parse(ap, short_smps=(4,)), Tap()
    n = args.threads or (500 if args.short else 5000)
    with tempfile.TemporaryDirectory(prefix='ka-ticks.') as tmp:
        programs.run_over(
            tap, args.kernel, args.smp,
            lambda *words: run(*words, n=n, folder=tmp), test=None)
    tap.done()


if __name__ == '__main__':
    main()
