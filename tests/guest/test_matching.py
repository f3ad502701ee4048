#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The matching of the event oracle finds errors: a missing event, a wrong
size, a wrong order, an event too many. And it finds the window of a storm in
the journal, before and after a load. Oracle: made-up traces; no guest is
needed.
"""
from lib import oracle, windows
from lib.ftrace import Event as Guest
from lib.journal import Event as Ours
from lib.tap import Tap

FUNCTIONS = {0x1000: '_stext', 0x2000: '__kmalloc', 0x3000: 'caller',
             0x4000: 'krealloc', 0x5000: oracle.SWITCHING,
             0x6000: 'trace_event_raw_event_kmalloc', 0x7000: 'other',
             0x8000: 'ka_stress_mark'}
BASE = 0xffff888000000000


class Symbols:
    @staticmethod
    def name(va):
        return FUNCTIONS.get(va & ~0xfff, '?')


class Hooks:
    @staticmethod
    def is_hook(name):
        return name in ('__kmalloc', 'krealloc')

    @staticmethod
    def is_wrapper(name):
        return name == 'krealloc'


class Pair:
    """A writer of the logs of both sides for the same events."""

    def __init__(self):
        self.guest, self.ours, self.switching = [], [], None
        for i in range(oracle.RUN):
            self.alloc(BASE + 64 * i)

    def alloc(self, va, req=60, site=0x3010, guest=True, ours=True,
              frames=None, sizes=None):
        if guest:
            self.guest.append(Guest(len(self.guest), 0, 'kmalloc', va, req,
                                    64, site, None, 1, None))
        if ours:
            req, act = sizes or (req, 64)
            self._ours('alloc', va, req, act, 'kmalloc', '', frames or (site,))

    def free(self, va, guest=True, ours=True):
        if guest:
            self.guest.append(Guest(len(self.guest), 0, 'kfree', va, 0, 0,
                                    0x3020, None, 1, None))
        if ours:
            self._ours('free', va, 0, 0, '', 'kfree', (0x3020,))

    def _ours(self, kind, va, req, act, layer, family, frames):
        self.ours.append(Ours(len(self.ours) + 1, 0, 0, kind, va, req, act,
                              frames, 'end', 1, 'init', None, 0,
                              '__kmalloc' if layer else 'kfree', layer,
                              family))

    def now(self):
        """Return a time of the guest's clock between two of its events."""
        return len(self.guest) - 0.5

    def match(self, **options):
        return oracle.Matching(self.guest, self.ours, Symbols, Hooks,
                               self.switching, **options)


X, Y = BASE + 0x100000, BASE + 0x200000
tap = Tap()

with tap.test('the same events match'):
    p = Pair()
    for _ in range(3):
        p.alloc(X)
        p.free(X)
    m = p.match()
    assert not m.missing and not m.unexplained
    assert len(m.pairs) == oracle.RUN + 6

with tap.test('an event that only the guest has is missing'):
    p = Pair()
    p.alloc(X, ours=False)
    p.alloc(Y)
    m = p.match()
    assert [e.va for e in m.missing] == [X] and not m.unexplained

with tap.test('an event that only we have is unexplained'):
    p = Pair()
    p.alloc(X, guest=False)
    p.alloc(Y)
    m = p.match()
    assert [e.va for e in m.unexplained] == [X] and not m.missing

with tap.test('a wrong size is both'):
    p = Pair()
    p.alloc(X, req=40, ours=False)
    p.alloc(X, req=41, guest=False)
    p.alloc(Y)
    m = p.match()
    assert len(m.missing) == 1 and len(m.unexplained) == 1

with tap.test('an unknown size is accepted of a kernel without types only'):
    p = Pair()
    p.alloc(X, sizes=(60, 0))
    p.alloc(Y, sizes=(0, 0))
    p.alloc(BASE)
    m = p.match(types=False)
    assert not m.missing and not m.unexplained and m.unsized == 2
    assert len(p.match().missing) == 2

with tap.test('what is known of a size is not wrong'):
    p = Pair()
    p.alloc(X, sizes=(61, 0))
    p.alloc(Y, sizes=(0, 72))
    p.alloc(BASE, sizes=(60, 72))
    assert len(p.match(types=False).missing) == 3

with tap.test('a red zone before an object is a power of two'):
    p = Pair()
    for i, act in enumerate((56, 48, 32, 64)):
        p.alloc(X + 64 * i, sizes=(60, act))
    assert not p.match(red_zones=True).missing
    assert len(p.match().missing) == 3
    for i, act in enumerate((60, 40, 72)):
        p.alloc(Y + 64 * i, sizes=(60, act))
    p.alloc(BASE)
    assert len(p.match(red_zones=True).missing) == 3

with tap.test('a wrong order at one address is found'):
    p = Pair()
    p.alloc(X)
    p.free(X, ours=False)
    p.alloc(X, req=50)
    p.free(X, guest=False)
    p.alloc(Y)
    m = p.match()
    assert len(m.missing) == 1 and len(m.unexplained) == 1

with tap.test('order between addresses does not matter'):
    p = Pair()
    p.alloc(X, ours=False)
    p.alloc(Y)
    p.alloc(X, guest=False)
    p.alloc(BASE)
    m = p.match()
    assert not m.missing and not m.unexplained

with tap.test('what is before and after the trace is explained'):
    p = Pair()
    p.ours.insert(0, p.ours[0]._replace(va=X))
    p.alloc(Y, guest=False)
    m = p.match()
    assert not m.missing and not m.unexplained
    assert m.extra['before tracing began'] == 1
    assert m.extra['after tracing ended'] == 1

with tap.test('a guest trace that ours does not begin is refused'):
    p = Pair()
    p.ours = p.ours[1:]
    try:
        p.match()
    except AssertionError:
        pass
    else:
        raise RuntimeError('it was matched')

with tap.test('a large block that the kernel traces twice counts once'):
    p = Pair()
    p.alloc(X, site=0x2010, ours=False)
    p.alloc(X)
    m = p.match()
    assert not m.missing and not m.unexplained
    assert m.skipped['large kmalloc: traced twice'] == 1

with tap.test('the same twice from a caller is no such thing'):
    p = Pair()
    p.alloc(X, ours=False)
    p.alloc(X)
    assert len(p.match().missing) == 1

with tap.test('a pause of the guest is explained, what follows is not'):
    p = Pair()
    begin = p.now()
    p.alloc(X, guest=False)
    p.free(X)
    p.alloc(Y, guest=False)
    p.free(Y, guest=False)
    p.alloc(Y + 64)
    p.switching = begin, p.now()
    p.free(Y + 64)
    p.alloc(X + 64, guest=False)
    p.alloc(Y + 128)
    m = p.match()
    assert m.extra['while the guest switched its tracing'] == 3
    assert [e.va for e in m.unexplained] == [X + 64]

with tap.test('what was before the pause is not explained by it'):
    p = Pair()
    p.alloc(X, guest=False)
    p.alloc(Y)
    begin = p.now()
    p.free(Y, guest=False)
    p.switching = begin, p.now()
    p.alloc(Y + 64)
    m = p.match()
    assert m.extra['while the guest switched its tracing'] == 1
    assert [e.va for e in m.unexplained] == [X]

with tap.test('an event after the pause is none of those in the pause'):
    p = Pair()
    p.alloc(X)
    begin = p.now()
    p.free(X, guest=False)
    p.alloc(X, req=40, guest=False)
    p.switching = begin, p.now()
    for i in range(oracle.RUN):
        p.alloc(Y + 64 * i)
    p.free(X)
    m = p.match()
    assert not m.missing and not m.unexplained
    assert m.extra['while the guest switched its tracing'] == 2

with tap.test('a tracepoint pauses once'):
    p = Pair()
    begin = p.now()
    p.alloc(X, guest=False)
    p.alloc(Y)
    p.alloc(Y + 64, guest=False)
    p.switching = begin, p.now()
    p.alloc(Y + 128)
    m = p.match()
    assert m.extra['while the guest switched its tracing'] == 1
    assert [e.va for e in m.unexplained] == [Y + 64]

with tap.test('the guest\'s own trace has when it switched its tracing'):
    calls = [p.guest[0]._replace(ts=ts, name=name, site=site)
             for ts, name, site in ((3, 'initcall_start', 0x7000),
                                    (4, 'initcall_finish', 0x7000),
                                    (5, 'initcall_start', 0x5000),
                                    (9, 'initcall_finish', 0x5000))]
    assert oracle.switched(calls, Symbols) == (5, 9)

with tap.test('a call site is a frame, or in a wrapper, or wrong'):
    p = Pair()
    g, o = p.guest[0], p.ours[0]
    o = o._replace(frames=(0x3010, 0x7010))
    for site, found in ((0x3010, 'first frame'), (0x7020, None),
                        (0x7010, 'explicit caller, a later frame'),
                        (0x4010, 'inside a wrapper, not a frame of ours')):
        assert oracle.site_class(g._replace(site=site), o, Symbols,
                                 Hooks) == found, hex(site)

with tap.test("the kernel's frames lose their head, ours are compared whole"):
    g = p.guest[0]._replace(stack=(0x6010, 0x2010, 0x4010, 0x3010, 0x7010))
    assert oracle.kernel_frames(g, Symbols, Hooks) == (0x3010, 0x7010)
    assert 'ends early, before other' in oracle.stack_difference(
        (0x3010,), (0x3010, 0x7010), Symbols)


# --- windows of a storm ------------------------------------------------------

class Log:
    """A journal of windows with loads."""

    def __init__(self):
        self.events, self.saved = [], []

    def add(self, va, kind='alloc', req=60, site=0x3010):
        self.events.append(Ours(len(self.events) + 1, 0, 0, kind, va, req, 64,
                                (site,), 'end', 1, 'init', None, 0,
                                '__kmalloc', 'kmalloc', ''))

    def mark(self, number):
        for _ in range(2):
            self.add(BASE, req=windows.MARK_BYTES + number, site=0x8010)

    def load(self, count):
        self.saved.append(count)
        self.add(0, 'load')

    def windows(self, *numbers):
        """Return the addresses of each window; a negative number is a window
        that is repeated."""
        ours = windows.Ours(self.events, self.saved)
        return [[e.va for e in ours.window(
            windows.Window(abs(n), None, n < 0), Symbols, 2) if e.va != BASE]
            for n in numbers]

    def window(self, number, *vas):
        self.mark(number)
        for va in vas:
            self.add(va)
        self.mark(number + windows.END)


with tap.test('a window is what is between its marks'):
    log = Log()
    log.add(X)
    log.window(1, X + 64, X + 128)
    log.add(Y, 'enabled')
    log.window(2, Y + 64)
    log.add(Y)
    assert log.windows(1, 2) == [[X + 64, X + 128], [Y + 64]]

with tap.test('after a load it is what was before the savevm, and what '
              'follows'):
    log = Log()
    log.add(X)
    log.window(1, X + 64, X + 128, X + 192)
    log.add(X + 256)
    log.load(1 + 2 + 2)         # X, the mark, two of the window
    log.add(Y)
    log.mark(1 + windows.END)
    log.window(2, Y + 64)
    assert log.windows(1, -1, 2) == [[X + 64, X + 128, X + 192],
                                     [X + 64, X + 128, Y], [Y + 64]]

with tap.test('events are counted on from the load, for the next one'):
    log = Log()
    log.window(1, X)
    log.add(X + 64, 'gap')
    log.load(3)                 # the mark and X
    log.add(Y)
    log.mark(1 + windows.END)   # 6 by now
    log.window(2, X, X + 64)
    log.load(6 + 2 + 1)         # the mark and the first X
    log.add(Y + 64)
    log.mark(2 + windows.END)
    assert log.windows(1, -1, 2, -2) == [[X], [X, Y], [X, X + 64],
                                         [X, Y + 64]]

with tap.test('a window that the journal does not end, or has no load of, is '
              'refused'):
    log = Log()
    log.window(1, X)
    for numbers in (1, -1), (2,):
        try:
            log.windows(*numbers)
        except AssertionError:
            pass
        else:
            raise RuntimeError(f'{numbers} was found')
    log.load(3)
    try:
        log.windows(1, -1)
    except AssertionError:
        pass
    else:
        raise RuntimeError('a window without an end was found')

tap.done()
