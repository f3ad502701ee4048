# SPDX-License-Identifier: GPL-2.0-or-later
"""Check who includes whom.

Each folder sees its own headers and the public headers of the folders below
it; QEMU's header is seen by the files of the plugin alone.
usage: scripts/check layers [--tap] [--root FOLDER]
"""
import argparse
import os
import re

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), '..', '..'))

# folder -> public headers of other folders that it may include
LAYERS = {
    'guest-symbols': set(),
    'kalloc-tracer': {'guest-symbols/gs.h', 'guest-symbols/base/stream.h',
                      'guest-symbols/base/printable.h'},
    'monitor-cmds': {'guest-symbols/gs.h', 'kalloc-tracer/kt.h'},
}

# The plugin itself: not in the libraries, it may see QEMU, and plugin.c,
# where all is put together, every public header.
PLUGIN = {'kalloc-tracer/' + name for name in (
    'capture.c', 'capture.h', 'capture-parts.h', 'capture-state.c',
    'capture-vm.c', 'plugin.c', 'qemu-api.h', 'record.c', 'record-lost.c',
    'record-pages.c', 'record-parts.h', 'record-sizes.c', 'record.h',
    'vcpu.c', 'vcpu.h', 'vm-state.c', 'vm-state.h')}
QEMU_HEADERS = {'qemu-plugin.h', 'qemu-api.h', 'capture.h', 'record.h',
                'vcpu.h'}
COMPOSITION = 'kalloc-tracer/plugin/plugin.c'

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def sources(root):
    for folder in LAYERS:
        top = os.path.join(root, folder)
        for name in sorted(os.listdir(top)):
            if name.endswith(('.c', '.h')):
                yield folder, name


def includes(path):
    with open(path, encoding='utf-8') as f:
        for number, line in enumerate(f, 1):
            m = INCLUDE.match(line)
            if m:
                yield number, m.group(1), m.group(2)


def complaint(root, folder, name, kind, header):
    """What is wrong with this include, None when nothing is."""
    where = f'{folder}/{name}'
    base = os.path.basename(header)
    if base in QEMU_HEADERS:
        return None if where in PLUGIN else \
            f'{base} is for the plugin alone ({", ".join(sorted(PLUGIN))})'
    if kind == '<':
        return None
    if not os.path.exists(os.path.join(root, header)):
        return f'{header}: headers are named by their path from the top'
    if header.startswith(folder + '/') or header in LAYERS[folder] or \
            where == COMPOSITION and base == 'mc.h':
        return None
    return f'{folder} may not include {header}; it may: ' + \
        (', '.join(sorted(LAYERS[folder])) or 'nothing of other folders')


def main(argv):
    ap = argparse.ArgumentParser(
        prog='scripts/check layers',
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('--tap', action='store_true', help='results as TAP')
    ap.add_argument('--root', default=ROOT, help='another tree')
    args = ap.parse_args(argv)
    bad = {folder: [] for folder in LAYERS}
    for folder, name in sources(args.root):
        path = os.path.join(args.root, folder, name)
        for number, kind, header in includes(path):
            text = complaint(args.root, folder, name, kind, header)
            if text:
                bad[folder].append(f'{folder}/{name}:{number}: {text}')
    for i, (folder, lines) in enumerate(bad.items(), 1):
        if args.tap:
            print(f"{'not ok' if lines else 'ok'} {i} - "
                  f'{folder} includes only what lies below it')
        for line in lines:
            print('# ' + line if args.tap else line)
    if args.tap:
        print(f'1..{len(bad)}')
    return 1 if any(bad.values()) else 0
