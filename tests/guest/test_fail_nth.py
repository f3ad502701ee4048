#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The points of ka fault are those of the kernel: the same ones, with the same
stacks, in the same order.

Oracle: fail-nth of a kernel with FAULT_INJECTION. For six system calls it fails
the first allocation, then the second, and so on, and prints the stack of each.
Rules with --do log list the calls that ka would have made to fail. The kernel
has more points in one call of an allocator, such as those of the pages of a new
slab: these are one point of ka. It says nothing of those with __GFP_NOWARN. A
call can have a point that it had not before, such as a node of a tree, once in
64 calls of fork(): that must be a point of ka in the same call.

usage: test_fail_nth.py [--kernel K]... [--call NAME]...
"""
import argparse
import os
import re
import shutil
import tempfile
from collections import defaultdict, namedtuple

from lib import ftrace, ksyms, oracle
from lib.tap import Tap
from scripts.lib.guest import Guest

KERNEL = 'allocinfo-6.12'
CALLS = 'pipe', 'epoll', 'memfd', 'mkdir', 'open', 'fork'
POINTS = 'kmalloc', 'pages', 'vmalloc'
NOWARN = 0x2000         # __GFP_NOWARN
MARK = re.compile(r'\] ka-failnth: (\w+) (\d+)$')
# A line of a stack; "?" before a frame: the kernel does not trust it.
FRAME = re.compile(r'\]  ([\w.]+\+0x[0-9a-f]+)/0x[0-9a-f]+$')

# function: of the outermost allocator; frames: its callers, as name+0xoffset
Point = namedtuple('Point', 'function frames flags')


# --- both sides ---------------------------------------------------------------

def same_name(frame, symbols):
    """Return a frame of the kernel with the name that offset() gives to it: a
    function can have more names."""
    name, _, offset = frame.partition('+')
    va = symbols.address(name)
    return symbols.offset(va + int(offset, 16)) if va else frame


def kernel_stacks(text, symbols):
    """Return {call: {N: [frames]}} of the guest's log: what failed, each time.
    An empty one: the kernel did not say."""
    found, at = defaultdict(lambda: defaultdict(list)), None
    for line in text.splitlines():
        mark, frame = MARK.search(line), FRAME.search(line)
        if mark:
            at = found[mark[1]][int(mark[2])]
            at.append([])
        elif frame and at:
            at[-1].append(same_name(frame[1], symbols))
    return found


def kernel_numbers(text):
    """Return {call: {N: [left]}} of what the program printed."""
    found = defaultdict(lambda: defaultdict(list))
    for line in text.splitlines():
        call, n, left, _ = line.split()
        found[call][int(n)].append(int(left))
    return found


def in_call(frames):
    return any(f.startswith('do_syscall_64+') for f in frames)


def our_points(rows, call, symbols):
    """Return {N: [Points]} of the calls in which the kernel failed allocation
    N, nothing for 0. A child that a call makes has the same name; page faults
    of the program are none of the call."""
    found, pid = defaultdict(list), None
    for r in rows:
        name, _, n = str(r.get('comm')).partition('.')
        pid = pid or (name == f'kn-{call}' and r['pid'])
        if name != f'kn-{call}' or r['pid'] != pid:
            continue
        point = Point(r['function'],
                      [symbols.offset(int(f, 16)) for f in
                       re.findall(r'[0-9a-f]{16}', str(r['frames']))],
                      int(str(r['flags']), 16))
        if in_call(point.frames):
            found[int(n)].append(point)
    return found


# --- comparing ----------------------------------------------------------------

def is_inside(frames, point):
    """Return whether the kernel failed something in the allocator's call that
    is the point."""
    n = len(frames) - len(point.frames)
    return n > 0 and frames[n:] == point.frames and \
        frames[n - 1].split('+')[0] == point.function


class Walk:
    """Goes through the points of ka as the kernel names them."""

    def __init__(self, points):
        self.points, self.at = points, -1
        self.more = self.silent = self.now = 0

    def after(self):
        return self.points[self.at + 1] if self.at + 1 < len(self.points) \
            else None

    def failed(self, stacks, now):
        """The kernel failed its next allocation. STACKS: where, each time; an
        empty one is a failure that it did not print. NOW: the points that ka
        had in these calls. Return false if ka has no such point."""
        after = self.after()
        if after and any(is_inside(s, after) for s in stacks):
            self.at += 1
        elif [] in stacks:
            self.silent += 1
            if after and after.flags & NOWARN:
                self.at += 1
        elif all(any(is_inside(s, p) for p in self.points[:self.at + 1])
                 for s in stacks):
            self.more += 1
        elif all(any(is_inside(s, p) for p in now) for s in stacks):
            self.now += 1
        else:
            return False
        return True


def lasting(ours):
    """Return the points of the first call that a later one has, too."""
    later = {(p.function, *p.frames) for n in ours if n for p in ours[n]}
    return [p for p in ours[0] if (p.function, *p.frames) in later]


def compare(tap, label, ours, numbers, stacks):
    points = lasting(ours)
    failed = [n for n in sorted(numbers) if n and 0 in numbers[n]]
    walk, wrong = Walk(points), []
    for n in failed:
        made = [s for s, left in zip(stacks[n], numbers[n])
                if left == 0 and (not s or in_call(s))]
        if made and not walk.failed(made, ours[n]):
            after = walk.after()
            wrong += [f'{n}: {" ".join(s)}' for s in made]
            wrong.append(f'ka, {walk.at + 1}: {after}')
            break
    tap.note(f'{label}: {len(failed)} points of the kernel, {len(points)} of '
             f'ka; {walk.more} are inside of one, {walk.silent} are not '
             f'printed, {walk.now} were not in the first call, '
             f'{len(ours[0]) - len(points)} only there')
    tap.figures('fail_nth', points=len(points), same=walk.at + 1)
    tap.ok(points and failed and not wrong,
           f'{label}: each point of the kernel is one of ka, with its stack, '
           'in its place', '\n'.join(wrong))
    tap.ok(walk.at + 1 == len(points),
           f'{label}: each point of ka is one of the kernel',
           '\n'.join(map(str, points[walk.at + 1:][:5])))


def boot(kernel):
    """Return the guest's files, and the rows of ka fault log."""
    with tempfile.TemporaryDirectory(prefix='ka-fail-nth.') as tmp:
        share = oracle.make_share(os.path.join(tmp, 'share'), ['fail-nth.sh'],
                                  kernel)
        shutil.copy(oracle.build_tool('ka_failnth', kernel),
                    os.path.join(share, 'ka-failnth'))
        script = os.path.join(tmp, 'script')
        with open(script, 'w', encoding='ascii') as f:
            for point in POINTS:
                f.write(f'fault add {point} --task kn-* --do log\n')
        with Guest(kernel=kernel, run='fail-nth', share=share, kaslr=False,
                   out=os.path.join(tmp, 'out'), timeout=900, name='fail-nth',
                   cmdline='no_hash_pointers log_buf_len=8M quiet '
                           'printk.devkmsg=on',
                   plugin_opts=f'script={script}') as g:
            assert g.wait_done() == 0, g.console[-2000:]
            files = ftrace.read_out(g.collect())
            return files, g.rows('ka fault log -n 0')


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument('--kernel', action='append', metavar='K')
    ap.add_argument('--call', action='append', choices=CALLS)
    args, tap = ap.parse_args(), Tap()
    for kernel in args.kernel or [KERNEL]:
        with tap.test(f'{kernel}: runs and is read'):
            files, rows = boot(kernel)
            symbols = ksyms.Symbols(files['proc.kallsyms'])
            numbers = kernel_numbers(files['calls'].decode())
            stacks = kernel_stacks(files['dmesg'].decode(errors='replace'),
                                   symbols)
            for call in args.call or CALLS:
                compare(tap, f'{kernel}, {call}',
                        our_points(rows, call, symbols), numbers[call],
                        stacks[call])
    tap.done()


if __name__ == '__main__':
    main()
