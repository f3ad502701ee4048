# SPDX-License-Identifier: GPL-2.0-or-later
"""Reports of KASAN: read them from the kernel's log."""
import re
from collections import namedtuple

# FUNCTION accessed SIZE bytes at AT ('r' or 'w'). OFFSET is that of the first
# bad byte in the block, which begins at BLOCK and has BYTES: those that were
# ASKED for, or those of the slot (of a freed block, and of each block on 6.1);
# ALLOC and FREE are lists of functions, the innermost first. What a report
# lacks is None, or [].
Report = namedtuple('Report', 'kind function rw size at task pid trace block '
                    'cache bytes asked offset alloc free')

BUG = re.compile(r'BUG: KASAN: (\S+) in (?:([^\s+]+)\+0x|(0x\w+))')
ACCESS = re.compile(r'(Read|Write) of size (\d+) at addr (\w+) by task '
                    r'(.*)/(\d+)$', re.M)
LINE = re.compile(r'^={20,}$', re.M)
TIME = re.compile(r'^(?:<\d+>)?\[ *\d+\.\d+\](?:\[ *[TC]\d+\])? ?', re.M)
FRAME = re.compile(r'^ ?(?:\[<\w+>\] )?(?:\? )?(?:([^\s+]+)\+0x\w+/0x\w+|'
                   r'0x(\w+))', re.M)
OBJECT = re.compile(r'belongs to the object at (\w+)\s+'
                    r'which belongs to the cache (\S+) of size (\d+)')
PLACE = re.compile(r'is located (\d+) bytes (to the left|to the right|inside) '
                   r'of\s+(allocated |freed )?(\d+)-byte region \[(\w+),')
STACK = {'alloc': r'Allocated by task \d+:\n', 'free': r'Freed by task \d+:\n'}


def without_times(text):
    """Return a log without the times that begin its lines."""
    return TIME.sub('', text.replace('\r', ''))


def frames(text, heading):
    """Return the functions behind a heading, up to an empty line. Those that
    the unwinder is not certain of are left out."""
    found = re.search(heading, text)
    if not found:
        return []
    lines = text[found.end():].split('\n\n', 1)[0].splitlines()
    return [m[1] or m[2] for line in lines if ' ? ' not in line
            for m in [FRAME.match(line)] if m]


def offset_of(place):
    n, side, size = int(place[1]), place[2], int(place[4])
    return {'inside': n, 'to the right': size + n, 'to the left': -n}[side]


def parse(text):
    """Return the report of TEXT, which has one; None if it has none."""
    bug, access = BUG.search(text), ACCESS.search(text)
    if not bug or not access:
        return None
    thing, place = OBJECT.search(text), PLACE.search(text)
    return Report(
        kind=bug[1], function=bug[2] or bug[3], rw=access[1][0].lower(),
        size=int(access[2]), at=int(access[3], 16), task=access[4],
        pid=int(access[5]), trace=frames(text, 'Call [Tt]race:\n'),
        block=int(thing[1], 16) if thing else None,
        cache=thing[2] if thing else None,
        bytes=int(place[4]) if place else None,
        asked=bool(place and place[3] == 'allocated '),
        offset=offset_of(place) if place else None,
        alloc=frames(text, STACK['alloc']), free=frames(text, STACK['free']))


def reports(log):
    """Return all reports of a log, in their order."""
    found = (parse(part) for part in LINE.split(without_times(log)))
    return [r for r in found if r]
