#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The state oracle: our live blocks are those of the kernel.

Oracle: /proc/slabinfo, which has the number of objects of each cache; and a
walk over init_task: each task, mm, files and cred that it reaches must be a
live block of the right cache and size. On both kernels, on 1 and 4 vCPUs.

With slub_debug= an object begins behind a red zone, slots are larger, no caches
are merged and CPUs hold no objects, so each cache must be equal; and no error
is reported.

usage: test_oracle_state.py [--short] [--kernel K]... [--smp N]... [--size N]
                            [--slub-debug FLAGS]...
"""
import json
import os
import tempfile
from collections import Counter, namedtuple

from lib import ftrace, gmem, ksyms, oracle, programs
from lib.btf import Btf
from lib.slabs import group_of, kmalloc_group, read_slabs
from lib.tap import Tap
from scripts.lib.guest import Guest

READER = 'ka-slabinfo'     # the name of ka_slabs.c while it reads
Window = namedtuple('Window', 'low high')
# slub_debug: consistency checks, red zones, poison, and who allocated; they
# change the layout of a slot in different ways. '' is without.
FLAGS = '', 'FZPU', 'Z', 'FP', 'U'
# Objects that no allocator function returned: the first kmem_cache_node, see
# early_kmem_cache_node_alloc() in mm/slub.c.
BOOTSTRAP = {'kmem_cache_node': 1}
# struct -> the caches from which fork.c and cred.c allocate it (cred_jar was
# renamed to cred in 6.7).
CACHE_OF = {'task_struct': ['task_struct'], 'mm_struct': ['mm_struct'],
            'files_struct': ['files_cache'], 'fs_struct': ['fs_cache'],
            'cred': ['cred', 'cred_jar'], 'signal_struct': ['signal_cache'],
            'sighand_struct': ['sighand_cache']}


# --- ours --------------------------------------------------------------------

def replay(events):
    """Count live blocks from the events: return ({group: Window}, {group: n at
    the end}). A Window is the range of the count while slabinfo was read."""
    events = list(events)
    mine = [i for i, e in enumerate(events) if e.comm == READER]
    assert mine, f'{READER} has no event in the journal'
    live, count = {}, Counter()
    low, high = Counter(), Counter()
    for i, event in enumerate(events):
        if i == mine[0]:
            low, high = Counter(count), Counter(count)
        group = None
        if event.kind == 'alloc':
            if event.layer in ('kmalloc', 'cache'):
                group = group_of(event.layer, event.cache, event.act)
                live[event.va] = group
                count[group] += 1
        elif event.kind == 'free':
            group = live.pop(event.va, None)
            if group is not None:
                count[group] -= 1
        if group is not None and mine[0] <= i <= mine[-1]:
            low[group] = min(low[group], count[group])
            high[group] = max(high[group], count[group])
    windows = {g: Window(low[g], high[g]) for g in set(low) | set(high)}
    return windows, +count


def monitor_counts(guest):
    """Return {group: live blocks}, from the list of the monitor."""
    counts = Counter()
    for layer in ('kmalloc', 'cache'):
        text = guest.hmp_qmp(f'ka 0-ffffffffffffffff --layer {layer} '
                             '--state A -n 0 -j -v')
        for line in text.splitlines():
            row = json.loads(line)
            if row.get('type') == 'block':
                counts[group_of(row['layer'], row.get('cache'),
                                row['actual'])] += 1
    return counts


def block_at(guest, va):
    """Return the live block that contains @va as JSON, or None."""
    for line in guest.hmp_qmp(f'ka {va:#x} --state A -j -v').splitlines():
        row = json.loads(line)
        if row.get('type') == 'block':
            return row
    return None


# --- comparing ---------------------------------------------------------------

def compare_slabs(slabs, windows):
    """Return [(group, active, window, slack, good)] of each cache in use."""
    active, slack = Counter(), Counter()
    for name, slab in slabs.items():
        group = kmalloc_group(name, slab)
        active[group] += slab.active - BOOTSTRAP.get(name, 0)
        slack[group] += slab.held
    rows = []
    for group in sorted(set(active) | set(windows), key=str):
        window = windows.get(group, Window(0, 0))
        good = window.low <= active[group] <= window.high + slack[group]
        rows.append((group, active[group], window, slack[group], good))
    return rows


def check_slabs(tap, label, slabs, windows):
    rows = compare_slabs(slabs, windows)
    used = [r for r in rows if r[1] or r[2].high]
    bad = [r for r in used if not r[4]]
    exact = sum(r[2].low <= r[1] <= r[2].high for r in used)
    tap.note(f'{label}: {len(used)} caches in use, {exact} equal, '
             f'{sum(r[1] for r in used)} active objects, '
             f'{sum(r[2].low for r in used)} live blocks, '
             f'CPUs hold up to {sum(r[3] for r in used)} objects')
    tap.figures('state', caches=len(used), agree=len(used) - len(bad))
    tap.ok(used and not bad,
           f'{label}: live blocks agree with /proc/slabinfo',
           '\n'.join(f'{g}: active {a}, ours {w.low}..{w.high}, CPUs hold up '
                     f'to {s}' for g, a, w, s, _ in bad))


def right_block(row, va, struct, btf, slabs, links):
    """Return whether the block at @va is of the cache and size for @struct. If
    caches were merged, their sysfs entries link to the same folder."""
    slab = slabs.get(row['cache'])
    wanted = {links[name] for name in CACHE_OF[struct] if name in links}
    # A task_struct ends with the CPU's state, of any size (fpu_init_task).
    fits = struct == 'task_struct' or row['requested'] >= btf.size(struct)
    return int(row['va'], 16) == va and slab is not None and fits and \
        slab.link in wanted and row['actual'] == slab.objsize


def check_tasks(tap, label, guest, files):
    name = f'{label}: what init_task leads to is live, of the right cache'
    symbols = ksyms.Symbols(files['proc.kallsyms'])
    btf = Btf(files['btf.vmlinux'])
    if symbols.address('init_task') is None:
        tap.skip(name, 'a kernel without KALLSYMS_ALL: where is init_task?')
        return
    tasks = gmem.Tasks(gmem.Memory(guest), btf, symbols.address('init_task'))
    kernel = symbols.address('_text'), symbols.address('_end')
    (slabs, links), wanted = read_slabs(files), {}
    for va, comm, pointers in tasks.walk():
        wanted[va] = ('task_struct', comm)
        for (member, struct), pointer in pointers.items():
            # init_files, init_cred and the like are part of the image.
            if pointer and not kernel[0] <= pointer < kernel[1]:
                wanted[pointer] = (struct, f'{member} of {comm}')
    seen, bad = Counter(), []
    for va, (struct, whose) in wanted.items():
        row = block_at(guest, va)
        seen[struct] += 1
        what = f'{struct} {va:#x} ({whose})'
        if row is None:
            bad.append(f'{what}: no live block')
        elif not right_block(row, va, struct, btf, slabs, links):
            bad.append(f'{what}: {row}')
    tap.note(f'{label}: ' + ', '.join(f'{n} {s}' for s, n in seen.items()))
    tap.figures('state', objects=len(wanted), right=len(wanted) - len(bad))
    tap.ok(seen['task_struct'] > 10 and seen['mm_struct'] and not bad,
           name, '\n'.join(bad[:20]))


def check_errors(tap, label, guest):
    text = guest.hmp_qmp('ka error -s -n 0')
    tap.ok(text.startswith('no errors;'), f'{label}: no error is reported',
           text[:2000])


def state(tap, kernel, smp, size, flags, label):
    with tempfile.TemporaryDirectory(prefix='ka-state.') as tmp:
        share = oracle.make_share(os.path.join(tmp, 'share'),
                                  ['oracle-state.sh'], kernel)
        log = os.path.join(tmp, 'journal')
        with Guest(
                kernel=kernel, smp=smp, run='oracle-state', n=size,
                share=share, out=os.path.join(tmp, 'out'), journal=log,
                cmdline='no_hash_pointers' +
                        (f' slub_debug={flags}' if flags else ''),
                mem='1G', timeout=900,
                name=f'state-{kernel}-{smp}{flags}') as g:
            assert g.wait_done() == 0, 'the workload failed'
            g.qmp('stop')
            files = ftrace.read_out(g.collect())
            listed = monitor_counts(g)
            check_errors(tap, label, g)
            check_tasks(tap, label, g, files)
        windows, last = replay(oracle.our_events(log))
        check_slabs(tap, label, read_slabs(files)[0], windows)
        differ = {k: (listed[k], last[k]) for k in set(listed) | set(last)
                  if listed[k] != last[k]}
        tap.ok(listed and not differ,
               f'{label}: the monitor lists what the journal leads to',
               f'(monitor, journal): {differ}')


def main():
    ap = programs.arguments(
        __doc__, short='6.12 on 1 vCPU only, a small workload, without '
                       'slub_debug= and with FZPU')
    ap.add_argument('--size', type=int, help='rounds of the workload')
    ap.add_argument('--slub-debug', action='append', choices=FLAGS,
                    help="'' is without; default: all, on the first --smp")
    args, tap = programs.parse(ap), Tap()
    size = args.size or (1 if args.short else 4)

    def states(tap, kernel, smp, label):
        some = args.slub_debug or (FLAGS[:2] if args.short else FLAGS)
        for flags in some if smp == args.smp[0] else some[:1]:
            name = f'{label}, slub_debug={flags}' if flags else label
            with tap.test(f'{name}: runs and is read'):
                state(tap, kernel, smp, size, flags, name)

    programs.run_over(tap, args.kernel, args.smp, states, test=None)
    tap.done()


if __name__ == '__main__':
    main()
