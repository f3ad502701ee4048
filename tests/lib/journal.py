#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Reader of the tracer's journal, by way of `ka -f FILE --cells`, which
docs/journal.md describes. The program is that of $KA_PROGRAM, or of the
prepared build.

usage: journal.py FILE      print the events, one a line
"""
import os
import struct
import subprocess
import sys
import tempfile
from collections import namedtuple

CELL = 64
KINDS = {1: 'alloc', 2: 'free', 3: 'resize', 4: 'rcu', 5: 'gap',
         6: 'destroy', 7: 'access',
         0x85: 'reset', 0x86: 'clear', 0x87: 'complete', 0x88: 'enabled',
         0x8a: 'load'}
LAYERS = ('none', 'kmalloc', 'large', 'cache', 'vmalloc', 'percpu', 'pages')
FAMILIES = ('any', 'kfree', 'cache', 'vfree', 'percpu', 'pages', 'kmalloc',
            'zone')
STOPS = ('end', 'user', 'unknown-pc', 'bad-frame', 'depth', 'no-unwinder',
         'replaced')

STACK, TASK, CACHE, HOOK, RESET, CLEAR, COMPLETE, ENABLED, HOLE, LOAD = \
    range(0x81, 0x8b)

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), '..', '..'))

# How an event's bytes are read; a definition's are read again by its kind.
EVENT = struct.Struct('=QQQQQIIIHBBBBB5x')
NAMED = struct.Struct('=II')
CACHE_REST = struct.Struct('=QII')

# req, act: requested and reserved bytes; frames: the backtrace, leaf first;
# stop: why it ends. cache and comm are None where they are not known, layer
# is '' of what is no allocation, family '' of what is no free; flags is a
# number, docs/journal.md names its bits.
Event = namedtuple('Event', 'seq us cpu kind va req act frames stop pid comm '
                            'cache gfp hook layer family flags', defaults=(0,))
Cache = namedtuple('Cache', 'name va object_size size')


class JournalError(Exception):
    """The file is no journal, or not one of this version."""


def _name(table, i):
    return table[i] if i < len(table) else f'?{i}'


def program():
    """Where `ka` is."""
    path = os.environ.get('KA_PROGRAM')
    if not path and os.environ.get('KA_BUILD'):
        path = os.path.join(os.environ['KA_BUILD'], 'monitor-cmds', 'ka')
    if not path:
        out = subprocess.run(
            [os.path.join(ROOT, 'scripts', 'setup'), '--paths'], check=True,
            text=True, capture_output=True).stdout
        build = dict(line.split('=', 1) for line in out.splitlines())['build']
        path = os.path.join(build, 'monitor-cmds', 'ka')
    return path


class Journal:
    """An open journal; iterate over events() once, in their order.

    stacks, tasks, caches and hooks are what was defined so far, by number.
    """

    def __init__(self, path):
        self.path = path
        self.stacks = {0: ((), None)}
        self.tasks = {0: (None, None)}
        self.caches = {0: None}
        self.hooks = {}
        self._file = self._cells_of(path)
        try:
            self._check_header()
        except JournalError:
            self._file.close()
            raise

    @staticmethod
    def _cells_of(path):
        """A file of the journal's cells. What the program says of a journal
        that goes on beyond them is passed on."""
        # pylint: disable-next=consider-using-with
        cells = tempfile.TemporaryFile()
        done = subprocess.run([program(), '-f', path, '--cells'],
                              stdout=cells, stderr=subprocess.PIPE,
                              text=True, check=False)
        if done.returncode:
            cells.close()
            raise JournalError(done.stderr.strip())
        sys.stderr.write(done.stderr)
        cells.seek(0)
        return cells

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()

    def _check_header(self):
        head = self._file.read(CELL)
        if len(head) < CELL or head[:6] != b'KACELL':
            raise JournalError(f'{self.path}: no cells')
        version, header, cell = struct.unpack_from('=HII', head, 6)
        if (version, header, cell) != (1, CELL, CELL):
            raise JournalError(f'{self.path}: version {version} of the '
                               'cells is not known, only 1 is')

    def _cells(self):
        """(buffer, place in it, unpacked) of each cell."""
        rest = b''
        while True:
            data = self._file.read(CELL * 65536)
            if not data:
                return
            data = rest + data
            whole = len(data) // CELL * CELL
            rest = data[whole:]
            at = 0
            for fields in EVENT.iter_unpack(memoryview(data)[:whole]):
                yield data, at, fields
                at += CELL

    def _define(self, kind, data):
        """@data: the definition's cell and those that follow it."""
        number, n = NAMED.unpack_from(data)
        rest = data[CELL:]
        if kind == STACK:
            stop = _name(STOPS, struct.unpack_from('=Q', data, 8)[0])
            self.stacks[number] = (struct.unpack_from(f'={n}Q', rest), stop)
        elif kind == TASK:
            comm = data[8:24].split(b'\0')[0].decode('ascii', 'replace')
            self.tasks[number] = (n, comm)
        elif kind == CACHE:
            name = rest[:n].decode('ascii', 'replace')
            self.caches[number] = Cache(name, *CACHE_REST.unpack_from(data, 8))
        elif kind == HOOK:
            self.hooks[number] = rest[:n].decode('ascii', 'replace')

    def _event(self, f):
        seq, va, req, act, when, stack, task, gfp, cache, kind, hook = f[:11]
        layer, family, flags = f[11:]
        try:
            frames, stop = self.stacks[stack]
            pid, comm = self.tasks[task]
            known = self.caches[cache]
        except KeyError as err:
            raise JournalError(f'{self.path}: event {seq} names what is not '
                               f'defined: {err}') from err
        return Event(seq, when & 0xffffffffffff, when >> 48,
                     KINDS.get(kind, f'?{kind}'), va, req, act, frames, stop,
                     pid, comm, known.name if known else None, gfp,
                     self.hooks.get(hook, '?'),
                     _name(LAYERS, layer) if kind == 1 else '',
                     _name(FAMILIES, family) if kind == 2 else '', flags)

    def events(self):
        """Every event; 'reset', 'clear', 'complete' and 'enabled' among them
        tell what became of the boot, with req as the value of the last two.
        Events that are missing are an error."""
        pending, need, of_kind = b'', 0, 0
        for data, at, fields in self._cells():
            kind = fields[9]
            if need:
                pending += data[at:at + CELL]
                need -= 1
            elif kind < STACK:
                yield self._event(fields)
                continue
            else:
                pending = data[at:at + CELL]
                need, of_kind = fields[10], kind
            if need:
                continue
            if of_kind == HOLE:
                raise JournalError(f'{self.path}: events are missing')
            if RESET <= of_kind <= LOAD:
                yield Event(0, 0, 0, KINDS[of_kind], 0,
                            NAMED.unpack_from(pending)[0], 0, (), None, None,
                            None, None, 0, '', '', '', 0)
            else:
                self._define(of_kind, pending)


def main(argv):
    if len(argv) != 2 or argv[1] in ('-h', '--help'):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    try:
        with Journal(argv[1]) as log:
            for e in log.events():
                print(e.seq, f'{e.us}us', f'cpu{e.cpu}', e.kind, f'{e.va:x}',
                      f'{e.req}/{e.act}', e.layer or e.family or '-',
                      e.cache or '-', e.hook or '-',
                      '-' if e.pid is None else f'{e.comm}:{e.pid}',
                      f'{e.gfp:x}', e.stop or '-',
                      ','.join(f'{pc:x}' for pc in e.frames) or '-')
    except (JournalError, OSError) as err:
        print(err, file=sys.stderr)
        return 1
    except BrokenPipeError:
        pass
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv))
