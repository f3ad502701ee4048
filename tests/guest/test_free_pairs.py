#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A block of each allocator is given to each freeing function. What ka reports
is what docs/errors.md says, and afterwards the block is live for ka if and only
if the kernel kept it.

Oracle: the module ka_pairs, which allocates memory of the same kind until it
gets the block's address again, or reads the page tables. If the kernel dies in
the call, it has kept the block. --table prints what each kernel did, for
docs/errors.md.

usage: test_free_pairs.py [--short] [--kernel K]... [--block B]... [--free F]...
                 [--table]
"""
import json
import os
import re
import tempfile

from lib import oracle, programs
from lib.tap import Tap
from scripts.lib.guest import Guest
from scripts.lib.snapshot_disk import drive, make_disk

BLOCKS = ('kmalloc', 'cache', 'large', 'vmalloc', 'percpu', 'pages',
          'compound', 'vmap')
# The function gets the second page of such a block.
INSIDE = ('large-inside', 'vmalloc-inside')
INSIDE_FREES = ('kfree', 'kvfree', 'vfree')
FREES = ('kfree', 'kvfree', 'kmem_cache_free', 'kmem_cache_free-other',
         'vfree', 'vunmap', 'free_percpu', 'free_pages', 'kfree_rcu')
SLAB = ('kmalloc', 'cache', 'large')
PAGES = ('pages', 'compound')
# With vmap() nobody owns memory: its area is no block.
NO_BLOCK = 'vmap'
RIGHT = {
    'kfree': SLAB, 'kvfree': SLAB + ('vmalloc',), 'kfree_rcu': SLAB +
    ('vmalloc',), 'kmem_cache_free': ('cache',), 'vfree': ('vmalloc',),
    'vunmap': ('vmap',), 'free_percpu': ('percpu',), 'free_pages': PAGES,
}
# The kernel dies before it enters the page allocator.
UNSEEN = {('free_pages', b) for b in ('vmalloc', 'percpu', 'vmap')}
# The kernel's worker makes another address of this one, or is not reached.
# Without gfp flags (5.10) the area may be one of vmap(), which owns its pages.
LOOSE = {('kfree_rcu', 'percpu'), ('vunmap', 'vmalloc')}
# What the module prints: the block is kept, freed, or freed in part.
DID = ('kept', 'freed', 'part')
SHORT_BLOCKS = ('kmalloc', 'large', 'vmalloc', 'pages') + INSIDE
SHORT_FREES = ('kfree', 'kmem_cache_free-other', 'vfree', 'free_pages')


def expected(free, block):
    """Return the kind of the error, or None."""
    if block in INSIDE:
        return 'interior-free'
    if block in RIGHT.get(free, ()) or (free, block) in UNSEEN:
        return None
    if free.startswith('kmem_cache_free') and block in ('kmalloc', 'cache'):
        return 'wrong-cache'
    if block == NO_BLOCK:
        return 'invalid-free'
    if block in PAGES and free not in ('kfree', 'kvfree', 'kfree_rcu',
                                       'vfree'):
        return None if free == 'vunmap' else 'invalid-free'
    return 'wrong-family'


class Pairs:
    """A guest that is booted once, and loaded again before each pair."""

    def __init__(self, kernel, share, folder):
        disk = make_disk(os.path.join(folder, f'disk-{kernel}'))
        self.guest = Guest(
            kernel=kernel, share=share, end='shell', mem='512M', timeout=300,
            cmdline='no_hash_pointers', name=f'pairs-{kernel}',
            plugin_opts='pages=on', qemu=drive(disk))
        self.guest.shell('true')
        self.monitor('savevm booted')

    def monitor(self, line):
        text = self.guest.hmp_qmp(line).strip()
        assert not text, f'{line}: {text}'

    def rows(self, line):
        return [json.loads(text) for text in
                self.guest.hmp_qmp(line).splitlines()]

    def run(self, free, block):
        self.monitor('loadvm booted')
        before = len(self.guest.console)
        self.guest.shell(f'sh /share/pairs.sh {free} {block}')
        return self.guest.console[before:]

    def errors(self):
        return [r for r in self.rows('ka error -n 0 -j -v')
                if r.get('type') == 'error']

    def around(self, va):
        return self.rows(f'ka show {va:x} -n 1 -j')

    def is_live(self, va):
        """Is there a live block at VA, allocated by the first site?"""
        return any(r.get('state') == 'A' and int(r['va'], 16) == va
                   for r in self.around(va))


def what_happened(console, free, block):
    """Return (address, the block's, what the kernel did)."""
    truth = re.search(rf'ka_pairs: {free} {block} va=(\w+) block=(\w+)',
                      console)
    assert truth, 'the module did not say what it did'
    freed = re.search(r'ka_pairs: freed=(\d)', console)
    did = DID[int(freed.group(1))] if freed else 'dies'
    return int(truth.group(1), 16), int(truth.group(2), 16), did


def check(pairs, free, block):
    """Return what the kernel did."""
    va, start, did = what_happened(pairs.run(free, block), free, block)
    errors = pairs.errors()
    text = '\n'.join(json.dumps(e) for e in errors)
    kind = expected(free, block)
    got = [e['error'] for e in errors]
    if free == 'free_pages' and did == 'kept' and not got:
        kind = None     # a reference was dropped, and others are left
    assert (free, block) in LOOSE or got == ([kind] if kind else []), \
        f'{did}; reported: {got}\n{text}'
    assert (free, block) in LOOSE or \
        all(int(e['error_va'], 16) == va for e in errors), \
        f'not at {va:#x}\n{text}'
    if block.startswith('vmalloc') and did == 'freed':
        assert not pairs.is_live(start), 'freed, but live'
    if block != NO_BLOCK and did in ('kept', 'dies'):
        # If another block was freed, the oracle has allocated it again; were it
        # live for ka, that would be an error.
        assert pairs.is_live(start), \
            f'{did}, but not live: {pairs.around(start)}\n' + \
            pairs.guest.console[-1500:]
    return did


def run_kernel(tap, args, kernel, share, folder):
    done = {}
    pairs = Pairs(kernel, share, folder)
    with pairs.guest:
        for free in args.free:
            for block in args.block:
                if block in INSIDE and free not in INSIDE_FREES:
                    continue
                with tap.test(f'{kernel}: {free} of {block}'):
                    done[free, block] = check(pairs, free, block)
    return done


def print_table(tap, args, done):
    for free in args.free:
        cells = ['/'.join(done[k].get((free, b), '?') for k in args.kernel)
                 for b in args.block]
        tap.note(f'| {free} | ' + ' | '.join(cells) + ' |')


def main():
    ap = programs.arguments(__doc__, short='6.12 only, the commonest pairs')
    ap.add_argument('--block', action='append', choices=BLOCKS + INSIDE)
    ap.add_argument('--free', action='append', choices=FREES)
    ap.add_argument('--table', action='store_true',
                    help='print what the kernels did')
    args = programs.parse(ap)
    args.block = args.block or (SHORT_BLOCKS if args.short else
                                BLOCKS + INSIDE)
    args.free = args.free or (SHORT_FREES if args.short else FREES)
    tap = Tap()
    done = {}
    with tempfile.TemporaryDirectory(prefix='ka-pairs.') as tmp:
        for kernel in args.kernel:
            share = oracle.make_share(os.path.join(tmp, kernel), ['pairs.sh'],
                                      kernel, modules=True)
            done[kernel] = run_kernel(tap, args, kernel, share, tmp)
    if args.table:
        print_table(tap, args, done)
    tap.done()


if __name__ == '__main__':
    main()
