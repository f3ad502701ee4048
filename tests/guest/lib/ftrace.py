# SPDX-License-Identifier: GPL-2.0-or-later
"""The guest's own trace of its allocators, read from raw ring buffer pages.

The format is that of kernel/trace/ring_buffer.c, unchanged since 4.x. All field
offsets come from the guest's own events/header_page and format files.
"""

import os
import re
import struct
from collections import namedtuple

Event = namedtuple(
    'Event', 'ts cpu name va req act site cache pid stack')

# Before 6.1 the functions with a node argument have separate events with the
# same fields. They are renamed to the name without _node.
TRACED = ('kmalloc', 'kfree', 'kmem_cache_alloc', 'kmem_cache_free',
          'kmalloc_node', 'kmem_cache_alloc_node')
# These events have a page frame and an order, read as a physical address.
TRACED_PAGES = ('mm_page_alloc', 'mm_page_free')
# Events of calls at boot; the function that is called is the site.
TRACED_CALLS = ('initcall_start', 'initcall_finish')
NO_PAGE = (1 << 64) - 1
PADDING, TIME_EXTEND, TIME_STAMP = 29, 30, 31
MISSED = (1 << 31) | (1 << 30)


class FormatError(Exception):
    """The guest's data does not have the format that its kernel documents."""


def read_out(folder):
    """Return the files that the guest sent, as {name: bytes}."""
    files = {}
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), 'rb') as f:
            files[name] = f.read()
    return files


def parse_format(text):
    """Parse the format file of an event; return (id, {field: (offset, size,
    signed)})."""
    event_id = int(re.search(r'^ID: (\d+)', text, re.M).group(1))
    fields = {}
    for m in re.finditer(r'field:([^;]*?)(\w+)(\[[^\]]*\])?;\s*'
                         r'offset:(\d+);\s*size:(\d+);\s*signed:(\d)', text):
        fields[m.group(2)] = (int(m.group(4)), int(m.group(5)),
                              m.group(6) == '1')
    return event_id, fields


def read_stats(text):
    """Parse per_cpu/cpuN/stats; return {name: number}."""
    return {name: int(value) for name, value
            in re.findall(r'^([a-z ]+): (\d+)$', text, re.M)}


def _picker(fields, names):
    """Return a struct.Struct that unpacks the named integer fields together,
    in the order of the names."""
    codes = {1: 'B', 2: 'H', 4: 'I', 8: 'Q'}
    order = sorted(range(len(names)), key=lambda i: fields[names[i]][0])
    fmt, at = '<', 0
    for i in order:
        offset, size, _ = fields[names[i]]
        fmt += 'x' * (offset - at) + codes[size]
        at = offset + size
    index = [order.index(i) for i in range(len(names))]
    return struct.Struct(fmt), index


class Decoder:
    """A decoder of the pages of every CPU, made from the format files."""

    def __init__(self, files):
        self.kinds = {}
        self.stack_id = None
        for path, data in files.items():
            if not path.endswith('.format'):
                continue
            event_id, fields = parse_format(data.decode())
            name = path.removesuffix('.format')
            if name == 'kernel_stack':
                self.stack_id = event_id
                self.stack_at = fields['caller'][0]
                self.size_at = fields['size'][0]
            elif name in TRACED + TRACED_PAGES + TRACED_CALLS:
                self.kinds[event_id] = self._kind(name, fields)
        if 'events.header_page' not in files:
            raise FormatError('the guest sent no trace')
        header = files['events.header_page'].decode()
        sizes = {m.group(1): (int(m.group(2)), int(m.group(3)))
                 for m in re.finditer(
                     r'field:.*?(\w+);\s*offset:(\d+);\s*size:(\d+)', header)}
        self.commit_at = sizes['commit'][0]
        self.data_at = sizes['data'][0]
        # A page of the ring buffer has the size of a kernel page.
        self.page = self.data_at + sizes['data'][1]

    @staticmethod
    def _kind(name, fields):
        if name in TRACED_PAGES:
            return name, _picker(fields, ['common_pid', 'pfn', 'order']), \
                None, None
        if name in TRACED_CALLS:
            return name, _picker(fields, ['common_pid', 'func']), False, None
        wanted = ['common_pid', 'ptr', 'call_site']
        extra = [f for f in ('bytes_req', 'bytes_alloc') if f in fields]
        loc = fields.get('name')
        return name.removesuffix('_node'), \
            _picker(fields, wanted + extra), bool(extra), loc

    def cpu(self, cpu, data):
        """Return the Events of one CPU's trace_pipe_raw, as a list.

        A stack is a separate entry after its event. An interrupt between the
        two writes its own pairs there. So a stack belongs to the latest event
        without one: events and stacks nest as brackets do.
        """
        events, without = [], []
        for base in range(0, len(data) - self.page + 1, self.page):
            for ts, at, length in self._records(data, base):
                event_id = data[at] | data[at + 1] << 8
                if event_id != self.stack_id:
                    event = self._event(ts, cpu, event_id, data, at)
                    if event:
                        events.append(event)
                        without.append(event)
                elif without:
                    without.pop()[-1] = self._stack(data, at, length)
        return [Event(*e) for e in events]

    def _records(self, data, base):
        ts, = struct.unpack_from('<Q', data, base)
        commit, = struct.unpack_from('<Q', data, base + self.commit_at)
        if commit & MISSED:
            raise FormatError('the ring buffer lost events')
        at = base + self.data_at
        end = at + (commit & 0xfffff)
        unpack = struct.Struct('<I').unpack_from
        while at < end:
            head, = unpack(data, at)
            kind, delta = head & 31, head >> 5
            at += 4
            if kind <= 28:
                ts += delta
                if kind:
                    length = kind * 4
                else:
                    length = (unpack(data, at)[0] - 4 + 3) & ~3
                    at += 4
                yield ts, at, length
                at += length
            elif kind == TIME_EXTEND:
                ts += delta + (unpack(data, at)[0] << 27)
                at += 4
            elif kind == TIME_STAMP:
                ts = delta + (unpack(data, at)[0] << 27)
                at += 4
            elif delta == 0:
                return
            else:
                at += unpack(data, at)[0]

    def _stack(self, data, at, length):
        n, = struct.unpack_from('<I', data, at + self.size_at)
        n = min(n, (length - self.stack_at) // 8)
        return struct.unpack_from(f'<{n}Q', data, at + self.stack_at)

    def _event(self, ts, cpu, event_id, data, at):
        kind = self.kinds.get(event_id)
        if kind is None:
            return None
        name, (layout, index), is_alloc, loc = kind
        raw = layout.unpack_from(data, at)
        if name in TRACED_CALLS:
            pid, func = (raw[i] for i in index)
            return [ts, cpu, name, 0, 0, 0, func, None, pid, None]
        pid, va, site = raw[index[0]], raw[index[1]], raw[index[2]]
        if is_alloc is None:
            size = self.page << site
            va = 0 if va == NO_PAGE else va * self.page
            act = size if name == 'mm_page_alloc' else 0
            return [ts, cpu, name, va, size, act, 0, None, pid, None]
        req, act = (raw[index[3]], raw[index[4]]) if is_alloc else (0, 0)
        cache = None
        if loc:
            where, = struct.unpack_from('<I', data, at + loc[0])
            start = at + (where & 0xffff)
            cache = data[start:start + (where >> 16) - 1].decode('latin-1')
        return [ts, cpu, name, va, req, act, site, cache, pid, None]


def load(files):
    """Return all events of the dump, in the order of the guest's trace clock.

    Raise FormatError if the buffer of a CPU was too small: an oracle must have
    all events.
    """
    decoder = Decoder(files)
    events = []
    for path in sorted(files):
        m = re.fullmatch(r'cpu(\d+)\.(\w+)', path)
        if m and m.group(2) == 'stats':
            stats = read_stats(files[path].decode())
            lost = sum(stats.get(k, 0) for k in
                       ('overrun', 'commit overrun', 'dropped events'))
            if lost:
                raise FormatError(f'{path}: the guest lost {lost} events')
        elif m and m.group(2) == 'trace_pipe_raw':
            events.extend(decoder.cpu(int(m.group(1)), files[path]))
    events.sort(key=lambda e: e.ts)
    return events


def expected_entries(files):
    """Return how many entries the buffers have by the guest's own count. A
    stack is an entry."""
    return sum(read_stats(data.decode())['entries']
               for path, data in files.items() if path.endswith('.stats'))
