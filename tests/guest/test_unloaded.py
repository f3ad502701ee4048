#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What modules leave behind when they are unloaded: a leak scan and `ka leak
module` report each object that is lost, though its address stays in per-CPU
memory that was given back, and none that the kernel's own tables keep. A block
that the kernel refused to free is still live. A cache that is left is one line.

Oracle: the module ka_lost and the kernel's own samples/kmemleak, which is built
here if the source of a kernel is there, print what they lose. The kernel's own
modules (lib/module_uses.py) lose nothing, or each load loses as many objects of
each cache as /proc/slabinfo has more.

usage: test_unloaded.py [--short] [--kernel K]... [--smp N]...
"""
import json
import os
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from collections import Counter

from lib import module_uses, oracle, programs
from lib.pause import pause
from lib.slabs import group_of, kmalloc_group, read_slabs
from lib.tap import Tap
from scripts.lib import mkinitramfs
from scripts.lib.guest import Guest
from scripts.lib.prepared import kernel_file, paths

OTHERS = 20         # leaks of the kernel's own, and what rules do not know
# A module that is blamed is loaded so often in each of some rounds. The kernel
# itself keeps some objects more or less, but not one a load; and what happens
# once, such as the end of a delayed work, changes one round only.
LOADS, ROUNDS = 12, 3
# 6.12.117 loses a hardware queue context with each load of null_blk.
LEAKY = '6.12.117', 'null_blk'
SAMPLE = 'samples/kmemleak/kmemleak-test.c'
# Modules that are here to leak, and all that the second one loses but a block
# a CPU.
LOSERS = 'ka_lost', 'kmemleak_test'
SAMPLE_OBJECTS = 24


def rows(text):
    return [json.loads(line) for line in text.splitlines()]


def planted(guest, pattern=r'ka_lost: ([\w-]+)=([0-9a-f]{16})'):
    """Parse the console, whose last lines may arrive late. A program that
    read the kernel's log would get pages that were a stack before, with old
    addresses in them."""
    return {int(va, 16): kind for kind, va in
            re.findall(pattern, guest.settled_console())}


def note_broken_lines(tap, guest):
    """Print lines of ka_lost on the console that planted() cannot read."""
    for line in guest.console.splitlines():
        if 'ka_' in line and not re.search(r'ka_lost: [\w-]+=[0-9a-f]{16}$',
                                           line.rstrip()):
            tap.note('on the console: ' + line)


def sampled(guest):
    """Parse what the kernel's own sample of kmemleak prints."""
    return planted(guest, r'kmemleak: (\S.*) = ([0-9a-f]{16})')


def scan(guest):
    """Return the addresses of all leaked blocks."""
    found = rows(guest.hmp_qmp('ka leak scan -a -j -n 0'))
    assert 'fail' not in found[-1], found[-1]
    assert found[-1]['leaks'] == len(found) - 1, found[-1]
    return {int(row['va'], 16) for row in found[:-1]}


def check_scan(tap, guest, lost):
    lost = {va: kind for va, kind in lost.items() if 'page' not in kind}
    assert len(lost) >= 6 + 2 + 23 + 1 + 1, lost
    leaks = scan(guest)
    missed = {va: kind for va, kind in lost.items() if va not in leaks}
    for va, kind in missed.items():
        tap.note(f'{kind}: ' + guest.hmp_qmp(f'ka refs {va:x} -s'))
    others = leaks - set(lost)
    for va in others:
        tap.note(guest.hmp_qmp(f'ka {va:x} -s'))
    tap.figures('lost', found=len(lost) - len(missed), of=len(lost),
                others=len(others))
    assert not missed, missed
    assert len(others) <= OTHERS, f'{len(others)} others'


def scan_by_program(sock):
    """Return the answer of `ka -q`, on a QMP socket that nobody else uses."""
    program = os.path.join(paths()['build'], 'monitor-cmds', 'ka')
    return subprocess.run([program, '-q', sock, 'leak', 'scan', '-n', '1'],
                          stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=300, check=False).stdout


def check_running(guest, sock):
    """A scan of a running VM pauses it; the guest goes on afterwards."""
    text = 'no vCPU maps'
    while 'no vCPU maps' in text:
        time.sleep(0.2)
        text = scan_by_program(sock)
    assert 'leaked blocks of' in text, text
    assert guest.qmp('query-status')['running']


def check_lost_module(tap, guest, name, lost):
    """Each object of a module is a leak of it, pages included."""
    head, *found = rows(guest.hmp_qmp(f'ka leak module {name} -a -j -n 0'))
    leaks = {int(row['va'], 16) for row in found if 'leak' in row}
    for row in found:
        if 'kept' in row:
            tap.note(f"{lost.get(int(row['va'], 16))}: {row['kept']} "
                     f"{row.get('kept_by')} {row.get('kept_in')}")
    tap.figures('lost_by_module', name=name, found=len(leaks & set(lost)),
                of=len(lost), kept=head['kept'])
    for va in set(lost) - leaks:
        tap.note(guest.hmp_qmp(f'ka {va:x} --history -s -n 5'))
    if leaks != set(lost):
        note_broken_lines(tap, guest)
    assert leaks == set(lost), (
        {k: v for k, v in lost.items() if k not in leaks}, leaks - set(lost),
        head)
    assert head['leaked'] == len(leaks) and head['pages'] == 1, head


def check_refused(guest):
    """The kernel refused to free two blocks of ka_lost. The right kfree() of
    one of them is no error."""
    text = guest.hmp_qmp('ka error -j -n 0')
    kinds = [row['error'] for row in rows(text) if row['type'] == 'error']
    assert kinds == 2 * ['wrong-family'], text


def check_cache(tap, guest):
    """A cache that a module left is one line; -a lists what belongs to it."""
    head, *lines = rows(guest.hmp_qmp('ka leak module ka_cache -j -n 0'))
    _, *each = rows(guest.hmp_qmp('ka leak module ka_cache -a -j -n 0'))
    tap.figures('cache', lines=len(lines), blocks=len(each))
    assert len(each) == head['blocks'] > 1, each
    assert [row['held'] for row in lines] == [len(each) - 1], lines


def left_by(text):
    """Parse `ka leak module`: return {name: [leaked blocks]} and {name: [blocks
    in use]} of all modules but those that are here to leak, and [name and
    numbers of a report]."""
    leaked, kept, heads, name = {}, {}, [], None
    for row in rows(text):
        if row['type'] == 'module':
            name = row['name']
            leaked.setdefault(name, [])
            kept.setdefault(name, [])
            heads.append(f"{name}: {row['blocks']} left, {row['kept']} kept, "
                         f"{row['leaked']} leaked")
        elif 'leak' in row:
            leaked[name].append(row)
        else:
            assert row.get('kept_by') or row['kept'] == 'otherwise', row
            kept[name].append(row)
    for name in LOSERS:
        leaked.pop(name, None)
    return leaked, kept, heads


def read_modules(tap, guest):
    """Return {module: [leaked blocks]}, and print what is left of each."""
    for failed in re.findall(r'ka_uses: (.*)', guest.console):
        tap.note(failed)
    leaked, _, heads = left_by(guest.hmp_qmp('ka leak module -a -j -s -n 0'))
    for head in heads:
        if not head.endswith(': 0 left, 0 kept, 0 leaked'):
            tap.note(head)
    for name, blocks in leaked.items():
        for row in blocks:
            tap.note(f"{name}: leak of {' '.join(row['alloc_symbols'][:6])}")
    return leaked


def check_modules(tap, kernel, leaked, names):
    """Each module was unloaded; the one that is known to leak does."""
    blamed = sorted(name for name, blocks in leaked.items() if blocks)
    tap.figures('modules', used=len(names), unloaded=len(leaked),
                blamed=blamed)
    missing = set(names) - set(leaked)
    assert not missing, f'not unloaded: {sorted(missing)}'
    with open(kernel_file(kernel, 'release'), encoding='ascii') as f:
        known = f.read().startswith(LEAKY[0])
    assert not known or LEAKY[1] in blamed, blamed


def count_slabs(files, folder):
    """Return {group: active objects} of ka-slabs' files in FOLDER."""
    slabs, _ = read_slabs({name: files[f'{folder}.{name}']
                           for name in ('slabs', 'slabinfo')})
    found = Counter()
    for name, slab in slabs.items():
        found[kmalloc_group(name, slab)] += slab.active
    return found


def read_files(folder):
    """Return {FOLDER.FILE: bytes} of the files in the subfolders."""
    files = {}
    for base, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(base, name), 'rb') as f:
                files[f'{os.path.basename(base)}.{name}'] = f.read()
    return files


def groups_of(blocks):
    return Counter(group_of(row['layer'], row.get('cache'), row['actual'])
                   for row in blocks)


def grown_a_load(files, group):
    """Return by how much a group grew with each load: the median round."""
    counts = [count_slabs(files, str(i))[group] for i in range(ROUNDS + 1)]
    return statistics.median(round((b - a) / LOADS)
                             for a, b in zip(counts, counts[1:]))


def check_growth(tap, guest, name):
    """Each load loses at least as many objects of a cache as are leaked blocks
    of it. Others can grow, too: what a lost object keeps in use."""
    leaked, kept, heads = left_by(
        guest.hmp_qmp(f'ka leak module {name} -a -j -s -v -n 0'))
    least, most = groups_of(leaked[name]), groups_of(leaked[name] + kept[name])
    files = read_files(guest.collect())
    figures = {group: (round(n / len(heads)), grown_a_load(files, group),
                       round(most[group] / len(heads)))
               for group, n in least.items()}
    tap.figures('slabinfo', module=name, loads=LOADS * ROUNDS,
                leaked_grown_left=figures)
    assert figures, heads
    assert all(lo and lo <= n for lo, n, _ in figures.values()), figures


def make_share(tmp, kernel, scripts, names):
    share = oracle.make_share(os.path.join(tmp, 'share'), scripts, kernel,
                              modules=True)
    oracle.add_drivers(share, kernel, *names)
    shutil.copy(oracle.build_tool('ka_use', kernel),
                os.path.join(share, 'ka-use'))
    return share


def fill_share(tmp, kernel, chosen, sample):
    share = make_share(tmp, kernel, ['lost.sh'], [name for name, *_ in chosen])
    with open(os.path.join(share, 'uses.sh'), 'w', encoding='utf-8') as f:
        f.write(module_uses.script(chosen))
    if sample:
        shutil.copy(sample, share)
    return share


def check_leaks(tap, guest, smp, label, sample):
    """What the two modules have lost is found, and is theirs."""
    lost, more = planted(guest), sampled(guest)
    with tap.test(f'{label}: all that was lost is found'):
        check_scan(tap, guest, {**lost, **more})
    with tap.test(f'{label}: and is a leak of its module'):
        check_lost_module(tap, guest, LOSERS[0], lost)
    with tap.test(f'{label}: what the kernel refused to free is still live'):
        check_refused(guest)
    with tap.test(f'{label}: a cache that was left is one line'):
        check_cache(tap, guest)
    name = f'{label}: so are the objects of samples/kmemleak'
    if not sample:
        tap.skip(name, "no source of a kernel: scripts/setup unpacks it to "
                       'build a kernel')
        return
    with tap.test(name):
        check_lost_module(tap, guest, LOSERS[1], more)
        assert len(more) == SAMPLE_OBJECTS + smp, len(more)


def run(tap, kernel, smp, label, chosen):
    names = [name for name, *_ in chosen]
    sample = oracle.build_sample(kernel, SAMPLE)
    with tempfile.TemporaryDirectory(prefix='ka-unloaded.') as tmp:
        share = fill_share(tmp, kernel, chosen, sample)
        sock = os.path.join(tmp, 'qmp')
        with Guest(kernel=kernel, smp=smp, share=share, run='lost',
                   cmdline='no_hash_pointers', end='shell', timeout=600,
                   plugin_opts='pages=on',
                   qemu=['-qmp', f'unix:{sock},server=on,wait=off'],
                   name=f'unloaded-{kernel}-{smp}') as g:
            with tap.test(f'{label}: runs'):
                assert g.wait_done() == 0
            with tap.test(f'{label}: a scan pauses a running VM'):
                check_running(g, sock)
            pause(g)
            check_leaks(tap, g, smp, label, sample)
            leaked = {}
            with tap.test(f'{label}: {len(names)} modules are unloaded'):
                leaked = read_modules(tap, g)
                check_modules(tap, kernel, leaked, names)
    for name in filter(leaked.get, leaked):
        with tap.test(f'{label}: {name} loses what slabinfo has more'):
            run_again(tap, kernel, smp, name)


def run_again(tap, kernel, smp, name):
    """Load the module again and again. With slub_debug no CPU holds slabs, of
    which slabinfo counts the free objects as active, 256 of 16 bytes each."""
    with tempfile.TemporaryDirectory(prefix='ka-unloaded.') as tmp:
        share = make_share(tmp, kernel, ['reload.sh'], [name])
        with Guest(kernel=kernel, smp=smp, share=share, run='reload', n=LOADS,
                   end='shell', timeout=600, out=os.path.join(tmp, 'out'),
                   cmdline='slub_debug=U',
                   name=f'reload-{kernel}-{smp}') as g:
            assert g.wait_done() == 0
            pause(g)
            check_growth(tap, g, name)


def main():
    ap = programs.arguments(__doc__, short='6.12, two vCPUs, few modules')
    args, tap = programs.parse(ap, short_smps=(2,)), Tap()

    def run_one(tap, kernel, smp, label):
        found = mkinitramfs.find_modules(kernel_file(kernel, 'modules'))
        run(tap, kernel, smp, label, module_uses.rows(args.short, found))

    programs.run_over(tap, args.kernel, args.smp, run_one, test=None)
    tap.done()


if __name__ == '__main__':
    main()
