# SPDX-License-Identifier: GPL-2.0-or-later
"""Check who includes whom.

The order of the rooms is the table rooms.txt. A room includes headers of its
own and of the rooms before it. Of other libraries it includes what ABROAD
names. QEMU's header is for the rooms that talk to QEMU alone. Prints the table
with the number of includes against it.
usage: scripts/check layers [--tap] [--root FOLDER]
"""
import argparse
import os
import re

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), '..', '..'))
TABLE = os.path.join('scripts', 'lib', 'rooms.txt')

# library -> headers of other libraries that it may include
ABROAD = {
    'guest-symbols': (),
    'kalloc-tracer': ('guest-symbols/gs.h', 'guest-symbols/api/',
                      'guest-symbols/base/bytes.h',
                      'guest-symbols/base/name-hash.h',
                      'guest-symbols/base/printable.h',
                      'guest-symbols/base/sorted.h',
                      'guest-symbols/base/source-name.h',
                      'guest-symbols/base/stream.h',
                      'guest-symbols/base/suggest.h'),
    'monitor-cmds': ('guest-symbols/gs.h', 'kalloc-tracer/kt.h'),
}
# The files where the plugin is put together may see every public header.
COMPOSITION = {('kalloc-tracer/plugin/plugin.c', 'monitor-cmds/mc.h'),
               ('kalloc-tracer/plugin/script-jobs.h', 'monitor-cmds/mc.h')}
# Public headers of a library: every room of it may include them.
UMBRELLAS = {'guest-symbols/gs.h', 'kalloc-tracer/kt.h', 'monitor-cmds/mc.h'}
QEMU_HEADER = 'qemu-plugin.h'
QEMU_ROOMS = {'kalloc-tracer/capture', 'kalloc-tracer/plugin'}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


class Rooms:
    """The table: library -> room -> level; a later level includes earlier."""

    def __init__(self, path):
        self.level = {}
        with open(path, encoding='utf-8') as f:
            for line in f:
                library, colon, names = line.partition(':')
                if line.startswith('#') or not colon:
                    continue
                rooms = self.level.setdefault(library, {})
                level = 1 + max(rooms.values(), default=0)
                rooms.update((name, level) for name in names.split())

    def lines(self):
        """(library, the rooms of one level), in include order."""
        for library, rooms in self.level.items():
            for level in sorted(set(rooms.values())):
                yield library, [r for r, n in rooms.items() if n == level]


def place(path):
    """The library and the room of a file or header."""
    library, _, rest = path.partition('/')
    return library, rest.rpartition('/')[0].split('/')[0]


def sources(root, library):
    for folder, folders, names in os.walk(os.path.join(root, library)):
        folders.sort()
        for name in sorted(names):
            if name.endswith(('.c', '.h')):
                yield os.path.relpath(os.path.join(folder, name), root)


def includes(path):
    with open(path, encoding='utf-8') as f:
        for number, line in enumerate(f, 1):
            m = INCLUDE.match(line)
            if m:
                yield number, m.group(1), m.group(2)


def from_abroad(where, library, header):
    """What is wrong with an include of another library's header."""
    allowed = ABROAD[library]
    if header in allowed or (where, header) in COMPOSITION or \
            any(header.startswith(a) for a in allowed if a.endswith('/')):
        return None
    return f'{library} may not include {header}; it may: ' + \
        (', '.join(allowed) or 'nothing of other libraries')


def complaint(rooms, root, where, kind, header):
    """What is wrong with this include, None when nothing is."""
    library, room = place(where)
    if os.path.basename(header) == QEMU_HEADER:
        return None if f'{library}/{room}' in QEMU_ROOMS else \
            f'{header} is for {" and ".join(sorted(QEMU_ROOMS))} alone'
    if kind == '<':
        return None
    if not os.path.exists(os.path.join(root, header)):
        return f'{header}: name a header by its path from the top'
    if not header.startswith(library + '/'):
        return from_abroad(where, library, header)
    there = place(header)[1]
    levels = rooms.level[library]
    if there == room or header in UMBRELLAS:
        return None
    if not room:
        return None if there == 'api' else \
            f'a public header includes nothing but api/: {header}'
    if levels[there] < levels[room]:
        return None
    return f'{room} comes before {there} in {TABLE}: {header}'


def examine(rooms, root):
    """library -> complaints."""
    bad = {library: [] for library in rooms.level}
    for library in rooms.level:
        for where in sources(root, library):
            room = place(where)[1]
            if room and room not in rooms.level[library]:
                bad[library].append(f'{where}: {room} is not in {TABLE}')
                continue
            for number, kind, header in includes(os.path.join(root, where)):
                text = complaint(rooms, root, where, kind, header)
                if text:
                    bad[library].append(f'{where}:{number}: {text}')
    return bad


def print_table(rooms, bad):
    against = [line for lines in bad.values() for line in lines]
    print('# rooms in include order; includes against it')
    for library, names in rooms.lines():
        n = sum(place(line)[0] == library and
                place(line.split(':')[0])[1] in names for line in against)
        print(f'# {library:14} {" | ".join(names):20} {n:4}')
    print(f'# {len(against)} includes against the order')


def main(argv):
    ap = argparse.ArgumentParser(
        prog='scripts/check layers', description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('--tap', action='store_true', help='results as TAP')
    ap.add_argument('--root', default=ROOT, help='another tree')
    args = ap.parse_args(argv)
    rooms = Rooms(os.path.join(args.root, TABLE))
    bad = examine(rooms, args.root)
    for i, (library, lines) in enumerate(bad.items(), 1):
        if args.tap:
            print(f"{'not ok' if lines else 'ok'} {i} - "
                  f'{library}: a room includes only rooms before it')
        for line in lines:
            print('# ' + line if args.tap else line)
    print_table(rooms, bad)
    if args.tap:
        print(f'1..{len(bad)}')
    return 1 if any(bad.values()) else 0
