#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""With pages=on sums count a byte once, although large kmalloc(), vmalloc(),
slabs and percpu memory are made of pages that are blocks, too.

Oracle: the module ka_flood, whose 50 MiB are counted once in `ka diff`, in all
and by caller, whichever allocator it uses; and /proc/meminfo: what is in use in
the guest is more than what all live blocks have, and the pages of other layers
are as many more as the kernel counts for slabs, areas and percpu memory. It
counts large blocks as slabs.

usage: test_sums.py [--short] [--kernel K]...
"""
import re
import tempfile

from lib import oracle, programs
from lib.tap import Tap
from scripts.lib.guest import Guest

MIB = 1 << 20
RAM = 512 * MIB
RUN = '/sys/module/ka_flood/parameters/run'
TAKEN = 50 * MIB
# What the guest allocates and frees meanwhile, of TAKEN.
NOISE = 4 * MIB
# The same of pages that the kernel counts, between two answers.
PAGES_NOISE = MIB
# A chunk of percpu memory has tables, which are areas of vmalloc(): with memory
# cgroups they are twice as large as the chunk (obj_cgroups, mm/percpu.c).
TABLES = 'pcpu_create_chunk', 'pcpu_alloc_chunk'
# What the module takes: name, its parameters, bytes of a block.
WAYS = (('large kmalloc()', '', 256 * 1024),
        ('vmalloc()', 'areas=1', 256 * 1024),
        ('slabs', '', 1024),
        ('percpu memory', 'percpu=1', 16 * 1024))


def meminfo(g):
    """Return {name: bytes} of /proc/meminfo, with what each CPU counted."""
    text = g.shell('cat /proc/sys/vm/stat_refresh; cat /proc/meminfo')
    return {name: 1024 * int(kib) for name, kib in
            re.findall(r'(\w+): +(\d+) kB', text)}


def flood(g, what):
    """Let the module work, and return (all, {caller: row}) of ka diff."""
    g.hmp_qmp('ka mark before')
    g.shell(f'echo "{what}" >{RUN}')
    rows = g.rows('ka diff before -s -n 0')
    return rows[0], {r.get('caller_symbol'): r for r in rows[1:]}


def is_of(caller, functions):
    return any(f in str(caller) for f in functions)


def held(callers, functions):
    return sum(row['live'] for name, row in callers.items()
               if is_of(name, functions))


def check_diff(tap, answer, want, label):
    whole, callers = answer
    mine = held(callers, ('flood_take',))
    tables = held(callers, TABLES)
    tap.ok(mine == want, f'{label}: the rows of its callers are its own sum',
           f'{mine}, not {want}')
    tap.ok(abs(whole['live'] - tables - want) < NOISE,
           f'{label}: row "all", too',
           f'{whole["live"]}, not about {want} + {tables}')
    others = [name for name, row in callers.items() if abs(row['live']) > NOISE
              and not is_of(name, ('flood_take', *TABLES))]
    tap.ok(not others, f'{label}: no other caller has these bytes',
           str(others))


def check_all(tap, g, label):
    """All live blocks are less than what is in use, which has the kernel's
    image and tables, too. Return the bytes of pages of other layers, and those
    that the kernel counts."""
    info, top = meminfo(g), g.rows('ka top -n 0')[0]
    used = RAM - info['MemFree']
    caches = g.rows('ka top --by cache -n 0')[1:]
    backing = sum(r['live'] for r in caches if r.get('backing') == 'yes')
    tap.note(f'{label}: in use {used / MIB:.1f} MiB; live blocks '
             f'{top["live"] / MIB:.1f} MiB, and {backing / MIB:.1f} MiB of '
             'pages of other layers')
    tap.ok(0 < top['live'] <= used, f'{label}: all live blocks are not more '
           'than what is in use', f'{top["live"]} of {used}')
    tap.ok(abs(backing - top['backing']) < NOISE,
           f'{label}: pages of other layers have a row', str(top))
    tap.ok(top['backing_unknown'] == 0, f'{label}: all backtraces are judged',
           str(top))
    return backing, sum(info[name]
                        for name in ('Slab', 'VmallocUsed', 'Percpu'))


def check_way(tap, g, label, size):
    before, counted_before = check_all(tap, g, f'{label}, before')
    check_diff(tap, flood(g, f'keep {TAKEN // size}'), TAKEN,
               f'{label}, allocated')
    after, counted = check_all(tap, g, f'{label}, allocated')
    tap.note(f'{label}: pages of other layers {(after - before) / MIB:+.2f} '
             f'MiB, by the kernel {(counted - counted_before) / MIB:+.2f} MiB')
    tap.ok(after - before > TAKEN - NOISE and
           abs(after - before - (counted - counted_before)) < PAGES_NOISE,
           f'{label}: pages of other layers are those that the kernel counts',
           f'{before}, {after}; {counted_before}, {counted}')
    check_diff(tap, flood(g, 'free'), -TAKEN, f'{label}, freed')


def run(tap, kernel):
    with tempfile.TemporaryDirectory(prefix='ka-sums.') as tmp:
        share = oracle.make_share(tmp, [], kernel, modules=True)
        with Guest(kernel=kernel, share=share, end='shell', mem='512M',
                   plugin_opts='pages=on', timeout=300, name='sums') as g:
            for way, options, size in WAYS:
                g.shell(f'insmod /share/ka_flood.ko size={size} bits=2 '
                        f'{options}')
                check_way(tap, g, f'{kernel}, {way}', size)
                g.shell('rmmod ka_flood')
            text = g.hmp_qmp('ka check')
            tap.ok(text.startswith('ok'), f'{kernel}: ka check', text)
            assert not g.stat().get('errors.recorded'), g.hmp_qmp('ka error')


def main():
    args = programs.parse(programs.arguments(__doc__, short='6.12 only',
                                             smp=False))
    tap = Tap()
    for kernel in args.kernel:
        with tap.test(f'{kernel}: runs and is read'):
            run(tap, kernel)
    tap.done()


if __name__ == '__main__':
    main()
