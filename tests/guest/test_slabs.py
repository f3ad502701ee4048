#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`ka cache` and `ka slab` say what the kernel says of its slabs.

Oracle: /proc/slabinfo, read by a process of the guest that stands still
afterwards, after each cache was shrunk (`echo 1 > shrink`): number of objects,
active objects and sizes of each cache. The map is a second oracle for the
lists: an object on a list of free objects is not live, and with the objects on
lists all slots of a cache are accounted for.

Also with slub_debug=FZPU, slab_nomerge and init_on_free=1.

Other names of caches are those of /sys/kernel/slab. drgn's slab_object_info()
says of random addresses of the stopped VM in which object of which cache they
are, and if it is free.

usage: test_slabs.py [--short] [--kernel K]... [--options WORDS]...
"""
import json
import os
import random
import subprocess
import tempfile
import time
from collections import Counter, defaultdict

from lib import ftrace, oracle, programs, slab_drgn
from lib.btf import plain_btf
from lib.slabs import read_slabs
from lib.tap import Tap
from scripts.lib.guest import Guest

KERNELS = ('6.12', '5.10', '6.1', '6.18', '7.3', 'arm64-6.12', 'riscv64-6.12')
OPTIONS = '', 'slub_debug=FZPU', 'slab_nomerge init_on_free=1'
SMP = 2
SECONDS = 4             # that the guest stands still
SAMPLE = 12             # caches whose slots are compared one by one
ADDRESSES = 10_000      # that drgn is asked about
# What drgn 0.0.31 does not know: 7.1 has no page.compound_head, so its helpers
# take the kernel for one of before 4.4.
DRGN_FAILS = {'7.3': "'PG_compound'"}


def rows_of(guest, line):
    return [json.loads(text) for text in guest.hmp_qmp(line).splitlines()]


class Caches:
    """What ka says of all caches of a VM that stands: .caches {name: row};
    .free {address: list} of all free objects; .slabs {address: (cache, slots)}
    of the slabs; .problems."""

    def __init__(self, guest):
        begun = time.monotonic()
        rows = rows_of(guest, 'ka cache -j -n 0')
        self.ms = 1000 * (time.monotonic() - begun)
        self.caches = {r['name']: r for r in rows if r['type'] == 'cache'}
        assert len(self.caches) > 30, rows
        self.free, self.slabs, self.problems = {}, {}, []
        self.lists, self.each_ms = Counter(), []
        for row in self.caches.values():
            self._read_cache(guest, row)

    def _read_cache(self, guest, cache):
        begun = time.monotonic()
        guest.hmp_qmp(f'ka cache {cache["va"]}')
        self.each_ms.append(1000 * (time.monotonic() - begun))
        for row in rows_of(guest, f'ka cache {cache["va"]} -v -j -n 0'):
            if row['type'] == 'slot':
                self.free[int(row['va'], 16)] = row
            elif row['type'] == 'list_problem':
                self.problems.append(row)
            elif row['type'] == 'free_list':
                self.lists[row['list'].strip('0123456789')] += 1
        for row in rows_of(guest,
                           f'ka cache {cache["va"]} --format line -j -n 0'):
            if row['type'] == 'slab':
                self.slabs[int(row['va'], 16)] = cache, row


# --- the kernel's numbers ----------------------------------------------------

def slabinfo_of(files):
    """Return {name: (active, objects, bytes of a slot, objects of a slab)}."""
    found = {}
    for line in files['slabinfo'].decode().splitlines():
        words = line.split()
        if len(words) >= 6 and words[1].isdigit():
            found[words[0]] = tuple(map(int, words[1:3] + words[3:5]))
    return found


def check_slabinfo(tap, ours, files):
    """Every cache of the kernel is there, and its numbers are the same but for
    what the reader itself has done since."""
    slabs = slabinfo_of(files)
    _, links = read_slabs(files)
    differ = []
    for name, (active, objects, size, each) in slabs.items():
        row = ours.caches.get(name)
        assert row, f'{name} is missing'
        assert (row['size'], row['each']) == (size, each) or \
            row['size'] >= size, (name, row, size, each)
        if (row['active_objs'], row['num_objs']) != (active, objects):
            differ.append((name, (active, objects),
                           (row['active_objs'], row['num_objs'])))
    extra = set(ours.caches) - set(slabs) - set(links)
    assert not extra, extra
    tap.note(f'{len(slabs)} caches, {len(slabs) - len(differ)} equal: {differ}')
    assert len(differ) <= len(slabs) // 20, differ
    for name, theirs, mine in differ:
        each = slabs[name][3]
        assert abs(theirs[0] - mine[0]) <= 2 * each and \
            abs(theirs[1] - mine[1]) <= 2 * each, (name, theirs, mine)
    return len(slabs), len(differ)


def check_aliases(ours, files):
    """Each name of /sys/kernel/slab leads to its cache, by ka, too."""
    _, links = read_slabs(files)
    names = defaultdict(set)
    for name, link in links.items():
        names[link].add(name)
    merged = 0
    for group in names.values():
        rows = [r for name, r in ours.caches.items() if name in group]
        assert len(rows) == 1, (group, rows)
        others = group - {rows[0]['name']}
        assert others <= set(rows[0].get('aliases', [])), (others, rows[0])
        merged += len(others)
    return merged


# --- the map -----------------------------------------------------------------

def check_map(tap, ours):
    """No object on a list is live, and nothing is missing."""
    live = [r for r in ours.free.values()
            if r['state'] == 'A' and '-rcu' not in r['list']]
    assert not live, live[:5]
    assert not ours.problems, ours.problems[:5]
    missing = {r['name']: r['transit'] for r in ours.caches.values()
               if r['transit']}
    tap.note(f'{len(ours.free)} free objects; in transit: {missing}')
    total = sum(r['num_objs'] or 0 for r in ours.caches.values())
    assert sum(map(abs, missing.values())) <= max(total // 200, 40), missing
    unknown = [r['name'] for r in ours.caches.values()
               if r['num_objs'] is not None and r['transit'] is None]
    assert not unknown, unknown
    return len(ours.free)


def check_slabs(tap, ours):
    """All slabs are there; letters and lists say the same."""
    count = Counter()
    for cache, row in ours.slabs.values():
        count[cache['name']] += 1
    for name, cache in ours.caches.items():
        if cache['slabs'] is not None:
            assert count[name] <= cache['slabs'], (name, count[name], cache)
    total = sum(c['slabs'] or 0 for c in ours.caches.values())
    tap.note(f'{len(ours.slabs)} slabs of {total}; lists: '
             f'{dict(ours.lists)}')
    if total:
        assert len(ours.slabs) >= total * 0.99, (len(ours.slabs), total)


def check_slots(guest, ours):
    """ka slab has the same lists and letters for some slabs."""
    rng = random.Random(1)
    some = rng.sample(sorted(ours.slabs), min(SAMPLE, len(ours.slabs)))
    for va in some:
        cache, slab = ours.slabs[va]
        head, *slots = rows_of(guest, f'ka slab {va + 64:x} -j -n 0')
        assert int(head['va'], 16) == va and head['cache'] == cache['name']
        assert head['list'] == slab['list'], (head, slab)
        letters = ''
        for slot in slots:
            at = int(slot['va'], 16)
            listed = ours.free.get(at, {}).get('list')
            assert slot.get('list') == listed, (slot, listed)
            letters += '.' if slot['state'] == '-' else slot['state']
        assert letters == slab['letters'].replace('R', 'A'), (letters, slab)
    return len(some)


# --- one guest ---------------------------------------------------------------

def check_still(tap, label, guest):
    """Ask ka while the guest stands, after it has read its slabinfo."""
    guest.wait_marker('KA-STILL')
    guest.qmp('stop')
    ours = Caches(guest)
    each = sorted(ours.each_ms)
    tap.note(f'{label}: ka cache {ours.ms:.1f} ms; ka cache NAME median '
             f'{each[len(each) // 2]:.1f} ms, slowest {each[-1]:.1f} ms')
    with tap.test(f'{label}: lists and map agree'):
        tap.figures('slabs', free=check_map(tap, ours))
    with tap.test(f'{label}: all slabs are there'):
        check_slabs(tap, ours)
    with tap.test(f'{label}: slot by slot'):
        check_slots(guest, ours)
    guest.qmp('cont')
    return ours


def check(tap, kernel, options, label):
    with tempfile.TemporaryDirectory(prefix='ka-slabs.') as tmp:
        share = oracle.make_share(os.path.join(tmp, 'share'), ['slabs.sh'],
                                  kernel)
        with Guest(kernel=kernel, smp=SMP, run='slabs', n=SECONDS,
                   share=share, out=os.path.join(tmp, 'out'), mem='512M',
                   cmdline=options, timeout=600,
                   name=f'slabs-{kernel}') as g:
            ours = check_still(tap, label, g)
            assert g.wait_done() == 0, 'the workload failed'
            files = ftrace.read_out(g.collect())
            if 'slabinfo' not in files:
                tap.skip(f'{label}: numbers of /proc/slabinfo',
                         'this kernel has no sysfs of slabs')
                return
            with tap.test(f'{label}: numbers of /proc/slabinfo'):
                n, differ = check_slabinfo(tap, ours, files)
                tap.figures('slabs', caches=n, equal=n - differ)
            with tap.test(f'{label}: names of merged caches'):
                tap.note(f'{label}: {check_aliases(ours, files)} other names')


# --- drgn --------------------------------------------------------------------

def write_types(files, tmp):
    """Return the path of the guest's types, as bpftool prints them."""
    raw, path = os.path.join(tmp, 'raw'), os.path.join(tmp, 'types')
    with open(raw, 'wb') as f:
        f.write(plain_btf(files['btf.vmlinux']))
    with open(path, 'wb') as f:
        subprocess.run(['bpftool', 'btf', 'dump', 'file', raw, '-j'],
                       check=True, stdout=f)
    return path


def some_addresses(guest, ours, n):
    """Return random addresses: half of them in slabs that ka lists, the others
    anywhere in the direct map."""
    rng = random.Random(1)
    slabs = sorted(ours.slabs)
    found = []
    for _ in range(n // 2):
        va = rng.choice(slabs)
        cache, row = ours.slabs[va]
        found.append(va + rng.randrange(cache['size'] * len(row['letters'])))
    direct, = (r for r in rows_of(guest, 'ka base -j')
               if r['name'] == 'direct')
    first, last = int(direct['start'], 16), int(direct['last'], 16)
    return found + [rng.randrange(first, last) for _ in range(n - len(found))]


class SlabsByPage:
    """What ka slab says of addresses; one command for each page."""

    def __init__(self, guest):
        self.guest, self.pages = guest, {}

    def get(self, va):
        """Return the row of the slab and its slots, or None."""
        page = va & -4096
        if page not in self.pages:
            head, *slots = rows_of(self.guest, f'ka slab {va:x} -j -n 0')
            self.pages[page] = (head, slots) if head.get('type') == 'slab' \
                else None
        return self.pages[page]


def compare(slab, theirs):
    """Return 'same', the name of what drgn does not know, or None."""
    if slab is None or theirs is None:
        return 'no slab' if slab is None and theirs is None else None
    (head, slots), (cache, start, allocated) = slab, theirs
    if head['cache'] != cache:
        return None
    slot = [s for s in slots if int(s['va'], 16) == start]
    if not slot:
        # It does not compare the number of the slot with slab.objects.
        return 'behind the last slot' \
            if start > int(slots[-1]['va'], 16) else None
    where = slot[0].get('list', '')
    free = bool(where) and '-rcu' not in where
    if free and allocated and ('-main' in where or '-spare' in where or
                               '-barn' in where):
        return 'in a sheaf'
    return 'same' if free != allocated else None


def check_addresses(tap, kernel, guest, python, files, tmp):
    ours, pages = Caches(guest), SlabsByPage(guest)
    addresses = some_addresses(guest, ours, ADDRESSES)
    try:
        theirs = slab_drgn.ask(guest, python, kernel, files['proc.kallsyms'],
                               write_types(files, tmp), addresses)
    except slab_drgn.Failed as e:
        assert DRGN_FAILS.get(kernel, '?') in str(e), e
        tap.note(f'{kernel}: drgn does not know it: {e}')
        return
    count, bad = Counter(), []
    for va, row in zip(addresses, theirs):
        slab = pages.get(va)
        said = compare(slab, row)
        count[said] += 1
        if not said:
            bad.append((f'{va:x}', slab and slab[0], row))
    tap.note(f'{kernel}: {dict(count)}')
    assert not bad, (len(bad), bad[:5])
    assert count['same'] > ADDRESSES // 3 and count['no slab'], count


def check_drgn(tap, kernel, first):
    python = slab_drgn.find_python(first)
    name = f'{kernel}: drgn says the same of {ADDRESSES} addresses'
    if not python:
        tap.skip(name, 'no drgn that is new enough')
        return
    with tempfile.TemporaryDirectory(prefix='ka-slabs.') as tmp:
        share = oracle.make_share(os.path.join(tmp, 'share'),
                                  ['symbols-and-types.sh'], kernel)
        with Guest(kernel=kernel, smp=SMP, run='symbols-and-types',
                   share=share, out=os.path.join(tmp, 'out'), end='shell',
                   mem='512M', timeout=600, name=f'drgn-{kernel}') as g:
            assert g.wait_done() == 0, 'the workload failed'
            files = ftrace.read_out(g.collect())
            g.qmp('stop')
            with tap.test(name):
                check_addresses(tap, kernel, g, python, files, tmp)


def main():
    ap = programs.arguments(__doc__, short='6.12 only, without options',
                            smp=False)
    ap.add_argument('--options', action='append',
                    help='words of the kernel command line; default: '
                         f'{OPTIONS}, on the first kernel')
    ap.add_argument('--drgn', metavar='PYTHON',
                    help='a Python that has another drgn')
    args, tap = programs.parse(ap, kernels=KERNELS), Tap()
    for kernel in args.kernel:
        some = args.options or (OPTIONS if kernel == args.kernel[0] and
                                not args.short else OPTIONS[:1])
        for words in some:
            label = f'{kernel}, {words}' if words else kernel
            with tap.test(f'{label}: runs and is read'):
                check(tap, kernel, words, label)
        if not args.short:
            with tap.test(f'{kernel}: runs for drgn'):
                check_drgn(tap, kernel, args.drgn)
    tap.done()


if __name__ == '__main__':
    main()
