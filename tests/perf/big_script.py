#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Write a script of events for ka-journal: many allocations and frees, by
thousands of stacks, in caches, by tasks and modules. For measurements of ka
report and ka export.

usage: big_script.py EVENTS > SCRIPT
"""
import random
import sys

STACKS, CACHES, TASKS, MODULES, FUNCTIONS = 4000, 80, 300, 6, 3000
LIVE = 300000           # blocks at most at one time
BLOCKS = 1 << 20        # places of blocks


def symbols():
    yield 'symbol va=ffffffff81000000 name=_stext'
    for i in range(FUNCTIONS):
        yield f'symbol va={0xffffffff81001000 + i * 256:x} name=function_{i}'
    yield 'symbol va=ffffffff81f00000 name=_etext'
    yield 'symbol va=ffffffff82001000 name=_end type=B'
    yield 'complete'
    yield 'kernel'
    for i in range(MODULES):
        base = 0xffffffffc0000000 + i * 0x100000
        yield (f'module va={base + 0x80000:x} name=module_{i} base={base:x} '
               'size=40000')
        for k in range(40):
            yield f'modsym va={base + k * 256:x} name=module_{i}_{k}'


def stacks(rand):
    """Stacks that share their outer frames."""
    outer = [[0xffffffff81001010 + rand.randrange(FUNCTIONS) * 256
              for _ in range(rand.randrange(4, 10))] for _ in range(60)]
    found = []
    for i in range(STACKS):
        inner = [0xffffffff81001010 + rand.randrange(FUNCTIONS) * 256
                 for _ in range(rand.randrange(2, 8))]
        if i % 4 == 0:
            inner.insert(0, 0xffffffffc0000010 + i % MODULES * 0x100000 +
                         rand.randrange(40) * 256)
        found.append(','.join(f'{pc:x}' for pc in inner + rand.choice(outer)))
    return found


def events(n, rand):
    """Events; most blocks live for a short time, some for ever."""
    paths = stacks(rand)
    tails = [f'size={1 << rand.randrange(4, 12):x} cache=cache-{c % CACHES} '
             f'pid={100 + t} comm=task{t % 40} stack={paths[s]}'
             for s, c, t in ((rand.randrange(STACKS), rand.randrange(CACHES),
                              rand.randrange(TASKS)) for _ in range(40000))]
    live, free = [], list(range(BLOCKS))
    rand.shuffle(free)
    for i in range(n):
        us = 1000 + i * 6
        if i and i % (n // MODULES // 2 or 1) == 0:
            number = i // (n // MODULES // 2 or 1) - 1
            if number < MODULES:
                va = 0xffffffffc0080000 + number * 0x100000
                yield f'load va={va:x}'
                yield f'mark name=mark-{number}'
        want = LIVE * i // n
        if live and (len(live) > LIVE or
                     rand.random() < (0.6 if len(live) > want else 0.4)):
            at = len(live) - 1 - min(len(live) - 1,
                                     int(rand.expovariate(1 / 40)))
            block = live[at]
            live[at] = live[-1]
            live.pop()
            free.append(block)
            yield f'free va={0xffff888000000000 + block * 4096:x} us={us}'
        else:
            block = free.pop()
            live.append(block)
            yield (f'alloc va={0xffff888000000000 + block * 4096:x} us={us} '
                   + tails[int(rand.random() ** 2 * len(tails))])


def main():
    rand = random.Random(1)
    out = sys.stdout
    for line in symbols():
        out.write(line + '\n')
    for line in events(int(sys.argv[1]), rand):
        out.write(line + '\n')


if __name__ == '__main__':
    main()
