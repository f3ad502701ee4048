# SPDX-License-Identifier: GPL-2.0-or-later
"""Windows of a storm: some seconds in which the guest traces itself, between
two marks that both sides have. After a loadvm the guest no longer has the
events after the savevm, and its trace continues from the savevm. So our events
of that time are dropped here.
"""
from collections import Counter, namedtuple

from . import ftrace, ksyms, oracle

MARK_BYTES = 3000
END = 500               # mark of window N's end: N + END
# Kinds of journal rows that `ka stat` counts as events.
EVENTS = 'alloc', 'free', 'resize', 'rcu', 'gap', 'destroy', 'access'
# Those of no block: nothing in the guest's trace is like them.
OTHERS = 'destroy', 'access'

# folder: the files that the guest sent; again: a state was loaded that was
# saved in the middle of the window before, which has the same number.
Window = namedtuple('Window', 'number folder again')


class Matching(oracle.Matching):
    """Matching of a window: both sides begin and end with the same marks."""

    @staticmethod
    def _first(guest, traced):
        return 0


def is_mark(event, site, number, symbols, kind):
    return kind and event.req == MARK_BYTES + number and \
        symbols.name(site) == 'ka_stress_mark'


def guest_window(window):
    """Return (events from the first mark to the last one, number of marks at
    the end, symbols)."""
    files = ftrace.read_out(window.folder)
    events = ftrace.load(files)
    expected = ftrace.expected_entries(files)
    assert len(events) == expected, \
        f'{len(events)} entries decoded, the guest counts {expected}'
    symbols = ksyms.Symbols(files['proc.kallsyms'])
    marks = [[i for i, e in enumerate(events)
              if is_mark(e, e.site, n, symbols, e.name == 'kmalloc')]
             for n in (window.number, window.number + END)]
    assert all(marks), f'window {window.number}: the guest has no mark'
    return events[marks[0][0]:marks[1][-1] + 1], len(marks[1]), symbols


class Ours:
    """Our events of each window, in one pass over the journal.

    saved    events.checked at each savevm whose state was loaded, in the order
             of the loads: this many of the events before a load stay
    """

    def __init__(self, events, saved):
        self.events, self.saved = iter(events), iter(saved)
        self.count = 0          # events that happened, as time goes now
        self.loaded = False     # a state was just now
        self.kept, self.before = [], 0

    def _next(self):
        """Return the next event, None at the end or when a state was loaded."""
        self.loaded = False
        for event in self.events:
            self.loaded = event.kind == 'load'
            if self.loaded:
                self.count = next(self.saved)
                return None
            if event.kind in EVENTS:
                self.count += 1
                if event.kind not in OTHERS:
                    return event
        return None

    @staticmethod
    def _is_mark(event, number, symbols):
        return event.kind == 'alloc' and event.frames and \
            is_mark(event, event.frames[0], number, symbols, True)

    def _to_begin(self, number, symbols):
        while (event := self._next()) or self.loaded:
            if event and self._is_mark(event, number, symbols):
                self.kept, self.before = [event], self.count - 1
                return
        raise AssertionError(f'window {number}: no begin in the journal')

    def _to_load(self, number):
        while not self.loaded:
            assert self._next() or self.loaded, \
                f'window {number}: no load in the journal'
        del self.kept[self.count - self.before:]

    def window(self, window, symbols, ends):
        """Return our events of a window, from its first mark to the last of
        ENDS marks in a row."""
        if window.again:
            self._to_load(window.number)
        else:
            self._to_begin(window.number, symbols)
        while ends:
            event = self._next()
            assert event, f'window {window.number}: {ends} marks are not in ' \
                'the journal'
            self.kept.append(event)
            ends -= bool(self._is_mark(event, window.number + END, symbols))
        return self.kept


def compare(tap, journal, windows, saved, label):
    """Compare all windows with the journal. SAVED is as in Ours."""
    hooks = ksyms.HookTable()
    total = Counter()
    bad = []
    log = Ours(oracle.our_events(journal), saved)
    for window in windows:
        guest, ends, symbols = guest_window(window)
        ours = log.window(window, symbols, ends)
        match = Matching(guest, ours, symbols, hooks)
        wrong = [pair for pair in match.pairs
                 if oracle.site_class(*pair, symbols, hooks) is None]
        again = ' again' if window.again else ''
        tap.note(f'window {window.number}{again}: guest {len(guest)}, ours '
                 f'{len(ours)}, matched {len(match.pairs)}, missing '
                 f'{len(match.missing)}, unexplained '
                 f'{len(match.unexplained)}, wrong {len(wrong)}')
        tap.note(f'  not compared: {dict(match.skipped)}')
        total.update(matched=len(match.pairs), missing=len(match.missing),
                     unexplained=len(match.unexplained), wrong=len(wrong))
        for event in (match.missing + match.unexplained)[:10]:
            bad.append(f'window {window.number}: '
                       f'{oracle.describe(event, symbols)}')
        bad += [f'site: {oracle.describe(e, symbols)}' for pair in wrong[:5]
                for e in pair]
    tap.figures('stress', label=label, windows=len(windows),
                loads=len(saved), **total)
    tap.ok(total['matched'] and not bad,
           f'{label}: every event of {len(windows)} windows is matched',
           '\n'.join(bad[:40]))
