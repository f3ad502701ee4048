# SPDX-License-Identifier: GPL-2.0-or-later
"""Which leaks are one bug. The title of a leak names the function that
allocated, and many leaks can have one title:

    init()                     frames              title
      a = get(10);             get+0x8 init+0x10   leak in get
      b = get(20);             get+0x8 init+0x20   leak in get

Leaks of one title that a job has on one kernel in one batch (a unit) are of one
build. There each stack is a call of its own, which the hash exact names, and
each call is a bug.

In other units the calls of a title are matched with the known ones: first those
with the same hash exact, which are the same; then those with the same hash
fold, that is, the same functions; the rest in the order of their offsets. What
then is left is new.

Of a weak leak only the part of the stack is sure that ends with the function of
the title (near). It is the same as a leak of its unit that begins so.
"""
import dataclasses
import itertools

from ..findings.finding import FRAME, hash_words, read_frame

KIND = 'leak'
ALLOCATED = 'allocated'
MOST_FRAMES = 16        # frames whose offsets give calls their order


@dataclasses.dataclass(frozen=True, order=True)
class Call:
    """A stack of leaks of one title, as the table finding has it.

    order  the offsets of its frames: calls are sorted by it
    name   which call it is: exact, or near if it is weak
    place  its functions: fold, or a hash of what is near if it is weak
    near   hash of the frames up to the function of the title
    """
    order: str
    name: str
    place: str
    near: str
    weak: int


# --- the stack of a finding --------------------------------------------------

def own_frame(frames, title):
    """Return the number of the frame that the title names."""
    want = title.rpartition(' in ')[2]
    for number, text in enumerate(frames):
        name = read_frame(text).function.split('.')[0]
        if name.removesuffix('_noprof') == want:
            return number
    return 0


def offset(frame):
    """Return the offset of a frame as text that sorts as the number does."""
    m = FRAME.match(frame)
    return (m and m['offset'] or '').rjust(8, '0')[-8:]


def read_call(finding, name_of):
    """Return the call of a finding of a result; all of it is empty if it is no
    leak. name_of: a frame's text -> the name of its function, the same in other
    builds."""
    if finding['kind'] != KIND:
        return Call('', '', '', '', 0)
    frames = next((s['frames'] for s in finding['stacks']
                   if s['what'] == ALLOCATED), [])
    if not frames:
        return Call('', finding['exact'], finding['fold'], '', 0)
    own = own_frame(frames, finding['title'])
    order = ' '.join(map(offset, [*frames[own:], *frames[:own]][:MOST_FRAMES]))
    near = hash_words('near', *frames[:own + 1])
    if not finding['weak']:
        return Call(order, finding['exact'], finding['fold'], near, 0)
    place = hash_words('near', *map(name_of, frames[:own + 1]))
    return Call(order, near, place, near, 1)


# --- which is which ----------------------------------------------------------

class Known:
    """The calls of a title in the units before, and the numbers of their
    bugs."""

    def __init__(self):
        self.names, self.places = {}, {}

    def add(self, call, number):
        self.names.setdefault(call.name, number)
        self.places.setdefault(call.place, {})[number] = True

    def numbers(self, calls):
        """Return {call: number} of the calls of a unit, which are sorted."""
        found, free = {}, set(calls)
        for candidates in (lambda c: [self.names.get(c.name)],
                           lambda c: self.places.get(c.place, ()),
                           lambda c: itertools.count()):
            for call in calls:
                number = next((n for n in candidates(call)
                               if n is not None and n not in found.values()),
                              None) if call in free else None
                if number is not None:
                    found[call] = number
                    free.discard(call)
        return found


def number_unit(known, calls):
    """Return {call: number} of one unit."""
    strong = {c.near: c for c in sorted(calls, reverse=True) if not c.weak}
    alike = {c for c in calls if c.weak and c.near in strong}
    found = known.numbers(sorted(calls - alike))
    found.update({c: found[strong[c.near]] for c in alike})
    return found


def number_all(rows):
    """rows: (title, unit, call) of all leaks. Return {(title, unit, call):
    number of the bug among those of its title}."""
    titles, found = {}, {}
    for title, unit, call in rows:
        titles.setdefault(title, {}).setdefault(unit, set()).add(call)
    for title, units in titles.items():
        known = Known()
        for unit in sorted(units):
            numbers = number_unit(known, units[unit])
            for call, number in sorted(numbers.items()):
                known.add(call, number)
                found[title, unit, call] = number
    return found
