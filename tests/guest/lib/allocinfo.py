# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel's sums for each line that allocates, and the same sums of the
tracer's events.

/proc/allocinfo has one row for each place of the macro alloc_hooks(): file,
line, module, function. An event of ours has return addresses. The debug
information of vmlinux says which lines these are, inlined functions included;
the first line that has a row, from the inside out, is the place that counts:
a function whose name ends with _noprof counts for its caller.
"""
import os
import re
import subprocess
from collections import Counter, defaultdict, namedtuple

from scripts.lib.prepared import kernel_file

from . import journal

PAGE = 4096
# Lowest address of kernel space, and the frames that are tried.
KERNEL, DEPTH = 1 << 63, 12
ROW = re.compile(r'^ *(-?\d+) +(\d+) (\S+):(\d+) (?:\[(\S+)\] )?func:(\S+)',
                 re.M)
# Flags of events: the address may be live; it is removed from what is live.
IF_NEW, TAKE = 1, 2

# Caches whose objects are not counted (SLAB_NO_OBJ_EXT, mm/slub.c). The last
# ones have tables of tags of other kmalloc() caches.
NOT_COUNTED = re.compile(r'kmem_cache|kmem_cache_node|kmalloc-no-objext-\d+k?')
# Percpu memory is a multiple of this (PCPU_MIN_ALLOC_SIZE). The first chunk has
# no table of tags (pcpu_alloc_first_chunk()); on x86-64 its addresses begin at
# 0, those of the others are far from there.
PERCPU_UNIT, FIRST_CHUNK = 4, 1 << 32
# This function allocates the tags of pages, section by section, from address 0
# on. Pages that were allocated before those of their section have none.
PAGE_TAGS, SECTION = 'page_ext_init', 128 << 20
DIRECT_MAP = 0xffff888000000000         # without KASLR, four levels
# The allocator of as many pages as a size needs: each counts by itself
# (split_page()).
EXACT = 'alloc_pages_exact'

Amount = namedtuple('Amount', 'bytes calls')
Window = namedtuple('Window', 'low high')


def read_rows(text):
    """Return {place: Amount} of /proc/allocinfo, and {place: function}. A place
    is (file, line), or (module, '') for all of a module."""
    sums, names = defaultdict(lambda: Amount(0, 0)), {}
    for size, calls, path, line, module, name in ROW.findall(text):
        place = (module, '') if module else \
            (os.path.normpath(path), int(line))
        was = sums[place]
        sums[place] = Amount(was.bytes + int(size), was.calls + int(calls))
        names[place] = name
    return dict(sums), names


class Lines:
    """Places of return addresses of the kernel proper, by its vmlinux."""

    def __init__(self, kernel, addresses):
        self.chain = {}
        ask = sorted({a - 1 for a in addresses if a > KERNEL})
        text = subprocess.run(
            ['addr2line', '-a', '-i', '-e', kernel_file(kernel, 'vmlinux')],
            input='\n'.join(f'{a:#x}' for a in ask), text=True, check=True,
            capture_output=True).stdout
        for line in text.splitlines():
            if line.startswith('0x'):
                at = self.chain.setdefault(int(line, 16) + 1, [])
                continue
            path, _, number = line.partition(' ')[0].rpartition(':')
            path = re.sub(r'^.*/kernel-sources/[^/]+/', '', path)
            if number.isdigit():
                at.append((os.path.normpath(path), int(number)))


class Sites:
    """Places of backtraces."""

    def __init__(self, rows, lines, symbols):
        self.rows, self.lines, self.symbols = rows, lines, symbols
        self.known = {}

    def _module(self, va):
        i = self.symbols.index(va)
        return self.symbols.rows[i][3] if i >= 0 else ''

    def _find(self, frames):
        for va in frames[:DEPTH]:
            module = self._module(va)
            if module:
                return module, ''
            for place in self.lines.chain.get(va, ()):
                if place in self.rows:
                    return place
        return None

    def of(self, frames):
        if frames not in self.known:
            self.known[frames] = self._find(frames)
        return self.known[frames]


class Sums:
    """Live bytes and calls of each place, event by event.

    pages    the page allocator is traced: pages count, and not what lies in
             them, such as large kmalloc()
    left_out {reason: Counter of places}: live blocks that the kernel does not
             count, or that are not known to us
    """

    def __init__(self, sites, sizes, pages):
        self.sites, self.sizes, self.pages = sites, sizes, pages
        self.live, self.page = {}, {}
        self.bytes, self.calls = Counter(), Counter()
        self.left_out = defaultdict(Counter)
        self.by_layer = defaultdict(set)
        self.sections = 0
        self.touched = set()

    def _calls(self, e, name):
        return any(self.sites.symbols.name(f).startswith(name)
                   for f in e.frames)

    def _pieces(self, e):
        if e.layer != 'pages' or not (e.hook.startswith(EXACT) or
                                      self._calls(e, EXACT)):
            return [e]
        return [e._replace(va=e.va + at, req=PAGE, act=PAGE)
                for at in range(0, e.act or e.req, PAGE)]

    def _amount(self, e):
        """Return what the kernel counts, (None, why) if it does not."""
        if e.layer in ('kmalloc', 'cache'):
            if NOT_COUNTED.fullmatch(e.cache or ''):
                return None, 'cache without tags'
            return Amount(max(e.act, self.sizes.get(e.cache, 0)), 1), ''
        if e.layer == 'percpu':
            if e.va < FIRST_CHUNK:
                return None, 'first chunk of percpu memory'
            return Amount(-(-e.req // PERCPU_UNIT) * PERCPU_UNIT, 1), ''
        if e.layer == 'pages':
            if e.va - DIRECT_MAP >= self.sections * SECTION:
                return None, 'pages before there were tags'
            return Amount(e.act or e.req, 1), ''
        if self.pages:
            return None, 'their pages count'
        if e.layer == 'large':
            return Amount(e.act, 1), ''
        if 'vmalloc' in e.hook:
            return Amount(-(-e.req // PAGE) * PAGE, 0), ''
        return None, 'addresses only'

    def _add(self, place, amount, sign):
        self.bytes[place] += sign * amount.bytes
        self.calls[place] += sign * amount.calls
        self.touched.add(place)

    def alloc(self, e):
        of_pages = e.layer == 'pages'
        key = of_pages, e.va
        if e.flags & IF_NEW and (key in self.live or e.va in self.page):
            return
        if e.flags & TAKE or key in self.live:
            self.free(of_pages, e.va, e.act or e.req)
        amount, why = self._amount(e)
        place = self.sites.of(e.frames)
        if amount and not place:
            amount, why = None, 'no row'
        if amount:
            self.by_layer[e.layer].add(place)
            self._add(place, amount, 1)
        else:
            place = place or self.sites.symbols.offset(
                e.frames[0] if e.frames else 0)
            self.left_out[why][place] += 1
        self.live[key] = [place, amount, why, amount.bytes if amount else
                          e.act or e.req]
        if of_pages:
            for va in range(e.va, e.va + (e.act or e.req), PAGE):
                self.page[va] = e.va

    def _drop(self, key, size):
        """Free SIZE bytes of the block."""
        block = self.live[key]
        place, amount, why, rest = block
        block[3] = rest - size
        last = block[3] <= 0
        if last:
            del self.live[key]
        if amount:
            self._add(place, Amount(size, amount.calls if last else 0), -1)
        elif last:
            self.left_out[why][place] -= 1

    def free(self, of_pages, va, size):
        if not of_pages:
            if (False, va) in self.live:
                self._drop((False, va), self.live[False, va][3])
            return
        for at in range(va, va + max(size, PAGE), PAGE):
            first = self.page.pop(at, None)
            if first is not None:
                self._drop((True, first), PAGE)

    def apply(self, e):
        self.touched = set()
        if e.kind == 'alloc':
            for piece in self._pieces(e):
                self.alloc(piece)
            self.sections += e.layer == 'pages' and self._calls(e, PAGE_TAGS)
        elif e.kind == 'free':
            self.free(e.family == 'pages', e.va, e.act or e.req)
        return self.touched


def read_journal(path):
    """Return the events, and {cache: bytes of an object's slot}."""
    with journal.Journal(path) as log:
        events = list(log.events())
        sizes = {c.name: c.size for c in log.caches.values() if c}
    return events, sizes


def replay(events, sums, reader):
    """Apply the events up to the last one of the task READER. Return {place:
    (Window of bytes, Window of calls)} of the time from its first one, and the
    places that changed in that time."""
    mine = [i for i, e in enumerate(events) if e.comm == reader]
    assert mine, f'{reader} has no event in the journal'
    low, high, changed = {}, {}, set()
    for i, event in enumerate(events[:mine[-1] + 1]):
        if i == mine[0]:
            for place in sums.bytes:
                low[place] = high[place] = (sums.bytes[place],
                                            sums.calls[place])
        for place in sums.apply(event):
            if i < mine[0]:
                continue
            now = sums.bytes[place], sums.calls[place]
            low[place] = tuple(map(min, low.get(place, (0, 0)), now))
            high[place] = tuple(map(max, high.get(place, (0, 0)), now))
            changed.add(place)
    return {p: tuple(Window(*w) for w in zip(low[p], high[p]))
            for p in low}, changed
