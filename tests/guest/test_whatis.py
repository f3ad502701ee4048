#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`ka whatis` says the same of an address as the guest.

Oracle: symbols by /proc/kallsyms and /proc/iomem, areas by /proc/vmallocinfo,
blocks and their pages by a module that prints them, a device's by another,
percpu memory by QEMU's monitor.

usage: test_whatis.py [--short] [--kernel K]...
"""
import collections
import json
import os
import re
import tempfile

from lib import oracle
from lib.programs import kernel_options
from lib.tap import Tap
from scripts.lib.guest import Guest

SAID = re.compile(r'ka_life: (\w+)=([0-9a-f]{16})')
PLACE = re.compile(r'ka_life is at pfn=(\w+) phys=(\w+) page=(\w+)')
SYMBOLS = {'do_exit': 'kernel text', 'init_task': 'kernel data'}
# Names in /proc/iomem, and the symbols where they begin.
DATA = {'Kernel rodata': '__start_rodata', 'Kernel data': '_sdata'}
EVERY = 500
END_LABEL = re.compile(r'_+(edata|end_\w+|stop_\w+)|\w*_(end|stop)')


def whatis(guest, address):
    return json.loads(guest.hmp_qmp(f'ka whatis {address} -j'))


def names_variables(guest):
    """Return whether the kernel names variables (CONFIG_KALLSYMS_ALL)."""
    return ' init_task' in guest.shell("grep ' init_task$' /proc/kallsyms")


def check_symbols(guest, variables):
    wanted = [name for name, what in SYMBOLS.items()
              if variables or what == 'kernel text']
    words = '|'.join(wanted)
    text = guest.shell(f"grep -E ' ({words})$' /proc/kallsyms")
    found = re.findall(r'^([0-9a-f]{16}) . (\w+)$', text, re.M)
    assert len(found) == len(wanted), text
    for va, name in found:
        got = whatis(guest, f'{int(va, 16) + 4:x}')
        assert got['kernel'] == f'{SYMBOLS[name]} {name}+0x4', got
        assert 'not_mapped' not in got and 'module' not in got, got


def check_data(guest):
    """What the kernel lists as its data is not text, whatever letters its
    symbols have. Return how many of each were checked."""
    text = guest.shell('cat /proc/iomem')
    found = re.findall(r'([0-9a-f]+)-([0-9a-f]+) : (Kernel (?:ro)?data)', text)
    assert found, text
    asked = collections.Counter()
    for first, last, what in found:
        start = guest.symbol(DATA[what])
        end = start + int(last, 16) - int(first, 16)
        rows = guest.shell(f"awk '$1 >= \"{start:x}\" && $1 <= \"{end:x}\" && "
                           f"n[$2]++ % {EVERY} == 0' /proc/kallsyms")
        for va, letter, name in re.findall(r'^([0-9a-f]{16}) (\w) (\S+)$',
                                           rows, re.M):
            if END_LABEL.fullmatch(name):
                continue        # nothing may be there
            got = whatis(guest, va)
            assert got['kernel'].startswith('kernel data '), (letter, name,
                                                             got)
            asked[letter] += 1
    return asked


def check_module(guest, loaded):
    """Check blocks and code of the module, while it is LOADED or afterwards."""
    for site, va in SAID.findall(guest.console)[:2]:
        got = whatis(guest, f'{int(va, 16) + 8:x}')
        state = 'live' if loaded else 'freed'
        assert got['block'].startswith(f'{state} block {va}-'), (site, got)
        assert re.match(r'slab of kmalloc-(rnd-\d+-)?1k$', got['slab']), got
        assert 'direct_map' in got, got
    va, name = re.search(r'^([0-9a-f]{16}) \w (ka_life_site_core)\s',
                         guest.console, re.M).groups()
    got = whatis(guest, f'{int(va, 16) + 1:x}')
    what = 'module ka_life' if loaded else \
        r'unloaded module ka_life @\d+us to @\d+us'
    assert re.fullmatch(rf'{what} text {name}\+0x1', got['module']), got


def check_places(guest):
    """A block is found by the number of its frame, its physical address and
    its struct page; a frame that does not exist is none."""
    va = dict(SAID.findall(guest.console))['ka_life_site_core']
    pfn, phys, page = PLACE.search(guest.console).groups()
    got = whatis(guest, f'phys:{phys}')
    assert int(got['va'], 16) == int(va, 16), got
    assert f'block {va}-' in got['block'], got
    at = [int(whatis(guest, word)['va'], 16) for word in
          (f'pfn:{pfn}', f'page:{page}', f'page:{int(page, 16) + 9:x}')]
    assert len(set(at)) == 1 and 0 <= int(va, 16) - at[0] < 1 << 16, at
    assert not (at[0] + int(phys, 16) - int(va, 16)) & 4095, at
    got = whatis(guest, pfn)
    # The number can also be a pointer to percpu memory, which is a block.
    assert 'block' in got or f'pfn:{pfn}' in got['user'], got
    for word in 'pfn:ffffffffff', f'page:{va}':
        answer = guest.hmp_qmp(f'ka whatis {word}')
        assert 'the direct map' in answer, answer


def check_areas(guest):
    """Each area of vmalloc() is a block; stacks have their tasks."""
    text = guest.shell('cat /proc/vmallocinfo')
    # The address space of percpu chunks is not allocated as memory.
    areas = re.findall(r'^0x([0-9a-f]{16})-0x[0-9a-f]{16}\s+\d+ '
                       r'(?!pcpu_get_vm_areas).*\bvmalloc\b', text, re.M)
    assert areas, text[:500]
    told = [whatis(guest, va) for va in areas]
    for va, got in zip(areas, told):
        assert 'not_mapped' not in got, got
        assert got.get('block', '').startswith(f'live block {va}-'), got
    check_tasks(guest, [got['task_stack'] for got in told
                        if 'task_stack' in got])


def check_books(guest, variables):
    """Each area is found by its last page, which is mostly a guard page."""
    text = guest.shell('cat /proc/vmallocinfo')
    areas = re.findall(r'^0x([0-9a-f]{16})-0x([0-9a-f]{16})\s+\d+ (\S+)/0x\S+ '
                       r'.*?\b(ioremap|vmalloc|vmap)\b', text, re.M)
    # Areas of the kernel's image were not allocated.
    told = [(area, whatis(guest, f'{int(area[1], 16) - 1:x}'))
            for area in areas if 'kernel' not in whatis(guest, area[0])]
    guards = [(area, got) for area, got in told if 'block' not in got]
    assert len(guards) > len(told) / 2, told
    for (start, end, caller, kind), got in guards:
        last = f'{int(end, 16) - 1:016x}'
        area = got.get('area', '')
        assert area.startswith(f'{kind} area {start}-{last}') and \
            area.endswith(f' by {caller}'), (got, caller)
        # Code of modules and BPF has a separate address range.
        assert 'vmalloc' in got or not variables or \
            re.search('module|execmem|bpf', caller), (got, caller)
    return {kind for (_, _, _, kind), _ in guards}


def check_tasks(guest, stacks):
    """The task of each stack has the right name; most tasks have such a
    stack."""
    text = guest.shell('for p in /proc/[0-9]*; do '
                       'read c <$p/comm && echo "KA-TASK ${p#/proc/} $c"; done')
    comm = dict(re.findall(r'^KA-TASK (\d+) (.+)$', text, re.M))
    assert len(stacks) > len(comm) / 2, f'{len(stacks)} of {len(comm)} tasks'
    for stack in stacks:
        name, pid = re.match(r'stack of (\S+) pid=(\d+)$', stack).groups()
        assert comm.get(pid, name).startswith(name), (stack, comm.get(pid))


def check_devres(guest):
    """A block of a device: the data, the header before it, and a device that
    owns nothing there."""
    guest.shell('insmod /share/ka_owned.ko')
    data, device = re.search(r'ka_owned: data=(\w+) device=(\w+)',
                             guest.console).groups()
    owner = f'devres of ka_owner device={device}'
    got = whatis(guest, f'{int(data, 16) + 8:x}')
    assert got.get('devres') == f'{owner} data +8', got
    got = whatis(guest, f'{int(data, 16) - 8:x}')
    assert got.get('devres') == f'{owner} header, data at {data}', got
    guest.shell('rmmod ka_owned')
    got = whatis(guest, data)
    assert 'devres' not in got and got['block'].startswith('freed'), got


def check_dead_stacks(guest):
    """Stacks of many tasks that ran at once and ended: the kernel keeps a few,
    the others are freed. Return how many are kept and freed."""
    guest.shell('for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 2 & done; wait')
    text = guest.hmp_qmp('ka alloc copy_process -j -v')
    blocks = [json.loads(line) for line in text.splitlines()]
    stacks = [b for b in blocks if b.get('layer') == 'vmalloc']
    told = [(b, whatis(guest, b['va'])) for b in stacks]
    kept = freed = 0
    for block, got in told:
        assert ('task_stack' in got) + ('dead_stack' in got) == 1, (block, got)
        kept += 'kept' in got.get('dead_stack', '')
        freed += got['block'].startswith('freed')
        assert 'task_stack' not in got or got['block'].startswith('live'), got
    return kept, freed


def check_names(guest):
    """Names that do not exist, one as long as it can be, are the names of
    their dentries. Such dentries stay in kernfs; in tmpfs they end at once."""
    names = [f'ka-none-{i}' for i in range(40)] + ['ka-none-' + 'x' * 247]
    words = ' '.join(names[:40])
    guest.shell(f'for n in {words}; do stat /sys/$n; done 2>/dev/null; '
                f'x=ka-none-; for i in $(seq 247); do x=${{x}}x; done; '
                'stat /sys/$x 2>/dev/null')
    rows = [r for r in guest.rows('ka 0-ffffffffffffffff --cache dentry -n 0')
            if r.get('state') == 'A']
    rows.sort(key=lambda r: r['alloc_us'])
    found = [whatis(guest, r['va'].removeprefix('0x')).get('name', '')
             for r in rows[-60:]]
    missing = [n for n in names if not any(n[:200] in t for t in found)]
    assert not missing, (missing[:3], found[-3:])
    return len(names)


def check_percpu(guest):
    """Check the first CPU's copy of a percpu variable; QEMU reads the base
    address of the CPU's copies."""
    text = guest.shell("grep -E ' (__per_cpu_offset|__per_cpu_start|"
                       "runqueues)$' /proc/kallsyms")
    at = {name: int(va, 16) for va, name in
          re.findall(r'^([0-9a-f]{16}) . (\w+)$', text, re.M)}
    word = guest.hmp_qmp(f"x /1gx {at['__per_cpu_offset']:#x}")
    va = at['runqueues'] + int(word.split(': ')[1], 16) + 8
    got = whatis(guest, f'{va % 2**64:x}')
    offset = at['runqueues'] - at['__per_cpu_start'] + 8
    assert got['percpu'] == f'percpu of CPU 0: variables +{offset:x}', got


def check_others(guest):
    got = whatis(guest, '400000')
    assert got['user'].startswith('user address'), got
    assert 'kernel' not in got and 'block' not in got, got
    # Above the widest page tables, and above the bits of tags.
    got = whatis(guest, '01f0000000000000')
    assert 'no_address' in got and 'user' not in got, got


def run(tap, kernel, share):
    with Guest(kernel=kernel, share=share, run='nothing', end='shell',
               cmdline='no_hash_pointers', timeout=300,
               name=f'whatis-{kernel}') as g:
        g.wait_done()
        with tap.test(f'{kernel}: symbols of the kernel'):
            variables = names_variables(g)
            check_symbols(g, variables)
        if variables:
            with tap.test(f'{kernel}: data, by its symbols'):
                asked = check_data(g)
                tap.note(f'{kernel}: ' + ', '.join(
                    f'{n} {letter}' for letter, n in sorted(asked.items())))
        else:
            tap.skip(f'{kernel}: data, by its symbols', 'the kernel names none')
        g.shell('insmod /share/ka_life.ko; '
                "grep '.ka_life.$' /proc/kallsyms")
        with tap.test(f'{kernel}: a module, and its blocks'):
            check_module(g, True)
        with tap.test(f'{kernel}: by frame, physical address, struct page'):
            check_places(g)
        with tap.test(f'{kernel}: areas of vmalloc(), and stacks'):
            check_areas(g)
        with tap.test(f'{kernel}: areas that are no blocks'):
            kinds = check_books(g, variables)
            tap.note(f'{kernel}: of {", ".join(sorted(kinds))}')
        with tap.test(f'{kernel}: a block of a device'):
            check_devres(g)
        with tap.test(f'{kernel}: names that do not exist, as text'):
            tap.note(f'{kernel}: {check_names(g)} names')
        with tap.test(f'{kernel}: stacks of tasks that ended'):
            kept, freed = check_dead_stacks(g)
            tap.note(f'{kernel}: {kept} kept, {freed} freed')
            assert kept + freed
        g.shell('rmmod ka_life')
        with tap.test(f'{kernel}: a module that is gone'):
            check_module(g, False)
        if variables:
            with tap.test(f'{kernel}: a percpu variable'):
                check_percpu(g)
        else:
            tap.skip(f'{kernel}: a percpu variable', 'the kernel names none')
        with tap.test(f"{kernel}: a user's, and what is no address"):
            check_others(g)


def main():
    tap = Tap()
    with tempfile.TemporaryDirectory(prefix='ka-whatis.') as tmp:
        for kernel in kernel_options():
            share = oracle.make_share(os.path.join(tmp, kernel), ['nothing.sh'],
                                      kernel, modules=True)
            run(tap, kernel, share)
    tap.done()


if __name__ == '__main__':
    main()
