#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel whose types come from a file (types=FILE) is traced as with its own.
Oracle: the listings of the same kernel with its own BTF. Files that do not fit
are refused with the numbers, and nothing false is reported.

usage: test_types.py [--short] [--kernel K]...

The kernel appears to lack BTF (without=types); the file is the guest's
/sys/kernel/btf/vmlinux, as it is, or in an ELF file. A kernel that was built
here with debug information has DWARF in its vmlinux, too. If such a kernel has
no BTF, the oracle is the listings with the BTF that pahole makes of vmlinux.
"""
import json
import os
import re
import shutil
import struct
import subprocess
import tempfile

from lib import oracle, programs
from lib.btf import Btf
from lib.tap import Tap
from scripts.lib.guest import Guest
from scripts.lib.prepared import kernel_arch, kernel_file
from scripts.lib.qmp import GuestError

# One vCPU whose time counts instructions, and nothing random: both runs do
# nearly the same.
SAME = ['--icount']
SAME_X86 = ['--cpu', 'max,la57=off,rdrand=off,rdseed=off']
ELF_FORMATS = {'x86_64': 'elf64-x86-64', 'aarch64': 'elf64-littleaarch64',
               'riscv64': 'elf64-littleriscv'}
HEX = re.compile(r'0x[0-9a-f]+|\b[0-9a-f]{16}\b')
EARLY_PIDS = 40
NO_TYPES = 'the kernel has no types'
WHATIS_CACHES = 'task_struct', 'dentry', 'kmalloc-64'


def boot(kernel, plugin_opts=None, **args):
    options = SAME + (SAME_X86 if kernel_arch(kernel) == 'x86_64' else [])
    return Guest(kernel=kernel, plugin_opts=plugin_opts, kaslr=False,
                 options=options, name='types', timeout=300,
                 **{'run': 'work', **args})


def rows(guest, command):
    return [json.loads(line) for line in guest.hmp_qmp(command).splitlines()]


def said(guest):
    return [line for line in guest.qemu_log.splitlines()
            if line.startswith('ka:')]


def sizes_by_cache(blocks):
    """{cache: sizes}: the requested one of a kmem_cache, and the reserved one.
    Objects of a cache that another one is merged into may grow, so the least
    requested size counts."""
    found = {}
    for row in blocks:
        if row.get('layer') in ('cache', 'kmalloc'):
            asked = row['requested'] if row['layer'] == 'cache' else 0
            at = found.setdefault(row.get('cache'), (asked, row['actual']))
            found[row.get('cache')] = min(at, (asked, row['actual']))
    return found


def early_tasks(guest):
    """{pid: name}, of the threads that the kernel starts first. What comes
    after / and : in the name of a worker depends on its work."""
    return {row['pid']: re.split('[/:]', row['comm'])[0]
            for row in rows(guest, 'ka top --by task -n 10000 -j')
            if row.get('type') == 'top' and row.get('comm') and
            row['pid'] < EARLY_PIDS}


def whatis(guest, blocks):
    """What an address of some caches is, without numbers, and without past
    lives: each boot has others."""
    found = {}
    for cache in WHATIS_CACHES:
        va = next(row['va'] for row in blocks if row.get('cache') == cache)
        answer = rows(guest, f'ka whatis {va} -j')[0]
        found[cache] = {key for key in answer
                        if key not in ('va', 'past')}
    return found


def scan(guest):
    """Were the stacks of tasks searched, and were blocks in use found?"""
    answer = rows(guest, 'ka leak scan -j')[-1]
    return answer['tasks'] > 20, answer['leaks'] < 100


def listings(guest):
    """What is compared, of one moment: a task may end, and has no name then."""
    guest.hmp('stop')
    blocks = [row for row in rows(guest, 'ka -v -j -n 1000000')
              if row.get('type') == 'block']
    stat = guest.stat()
    hooks = guest.hmp_qmp('ka stat -v -j').splitlines()
    return {
        'sizes': sizes_by_cache(blocks),
        'tasks': early_tasks(guest),
        'hooks': {(row['name'], row.get('args_from'))
                  for row in map(json.loads, hooks)
                  if row.get('type') == 'hook' and row.get('va')},
        'unknown': [stat.get(key, 0) for key in
                    ('cache.unknown', 'task.unknown')],
        'errors': stat['errors.recorded'],
        'whatis': whatis(guest, blocks),
        'scan': scan(guest),
    }


def own_types(kernel, folder):
    """Boot with the kernel's own types. Return listings and the raw BTF."""
    out = os.path.join(folder, 'out')
    with boot(kernel, run='types', share=share_of(kernel, folder),
              out=out) as g:
        assert g.wait_done() == 0
        assert g.stat()['kernel.types'] == 'BTF'
        assert not said(g), said(g)
        found = listings(g)
        g.collect()
    for path, _, files in os.walk(out):
        if 'btf.vmlinux' in files:
            shutil.copy(os.path.join(path, 'btf.vmlinux'),
                        os.path.join(folder, 'raw'))
    return found, os.path.join(folder, 'raw')


def share_of(kernel, folder):
    return oracle.make_share(os.path.join(folder, 'share'), ['types.sh'],
                             kernel)


def types_of_pahole(kernel, folder):
    """Make BTF of the kernel's vmlinux, and boot with it. Return listings and
    the raw BTF."""
    raw = os.path.join(folder, 'raw')
    subprocess.run(['pahole', f'--btf_encode_detached={raw}',
                    kernel_file(kernel, 'vmlinux')], check=True)
    return types_of_file(kernel, raw, share_of(kernel, folder)), raw


def make_dwarf(kernel, folder):
    """Copy the kernel's vmlinux without its BTF, if there is a vmlinux. Return
    the paths."""
    path = os.path.join(folder, 'dwarf')
    if not os.path.exists(kernel_file(kernel, 'vmlinux')):
        return []
    subprocess.run(['objcopy', '-R', '.BTF', kernel_file(kernel, 'vmlinux'),
                    path], check=True)
    return [path]


def types_of_file(kernel, path, share):
    with boot(kernel, f'without=types,types={path}', run='types',
              share=share) as g:
        assert g.wait_done() == 0
        assert g.stat()['kernel.types'] == 'file'
        assert not said(g), said(g)
        return listings(g)


def make_elf(kernel, raw):
    form = ELF_FORMATS[kernel_arch(kernel)]
    path = raw + '.elf'
    subprocess.run(['objcopy', '-I', 'binary', '-O', form,
                    '--rename-section', '.data=.BTF', raw, path], check=True)
    return path


def with_larger_dentry(raw):
    """Write types in which struct dentry has 4096 bytes more. Return the path,
    and the size."""
    with open(raw, 'rb') as f:
        data = bytearray(f.read())
    btf = Btf(bytes(data))
    _, _, size, at, _ = btf.types[btf.by_name['dentry']]
    struct.pack_into('<I', data, at + 8, size + 4096)
    path = raw + '.larger'
    with open(path, 'wb') as f:
        f.write(data)
    return path, size


def check_unchecked(guest):
    """Access checks began with the file, and end with it; that is said."""
    said_so = f'accesses are not checked: {NO_TYPES}'
    assert said_so in said(guest)[1], said(guest)
    access, = rows(guest, 'ka access -j')
    assert (access['armed'], access['since_us']) == (0, None), access
    assert f'not checked: {NO_TYPES}' in access['text'], access
    for text in guest.hmp('ka error'), guest.hmp_qmp('ka error -j'):
        assert said_so in ' '.join(text.split()), text


def check_refused(kernel, path, why):
    with boot(kernel, f'without=types,types={path},access=on') as g:
        assert g.wait_done() == 0
        check_unchecked(g)
        lines, numbers = said(g), g.stat()
    assert len(lines) == 2 and 'does not fit' in lines[0], lines
    assert re.search(why, lines[0]), lines
    assert numbers['kernel.types'] in ('none', 'learned')
    assert numbers['errors.recorded'] == 0, numbers
    assert numbers['events.checked'] > 10000


def check_bad_file(kernel, path):
    try:
        with boot(kernel, f'types={path}') as g:
            g.wait_marker('KA-')
    except GuestError as e:
        assert f'ka: types={path}: ' in str(e), e
        return
    raise AssertionError('QEMU started')


def compare_keys(tap, name, ours, wanted):
    """Most keys are in both, and these have equal values."""
    both = ours.keys() & wanted.keys()
    wrong = {key: (ours[key], wanted[key]) for key in both
             if ours[key] != wanted[key]}
    tap.ok(not wrong and len(both) >= 0.8 * max(len(ours), len(wanted)),
           f'{name}, {len(both)} compared',
           f'{wrong}\n{sorted(ours.keys() ^ wanted.keys())}')


def compare(tap, name, ours, wanted):
    for key in ('sizes', 'tasks'):
        compare_keys(tap, f'{name}: {key}', ours.pop(key), wanted[key])
    for key, value in ours.items():
        tap.ok(value == wanted[key], f'{name}: {key}',
               f'{value}\nnot {wanted[key]}')


def check_kernel(tap, kernel, short, folder):
    has_types = oracle.has_types(kernel)
    wanted, raw = (own_types if has_types else types_of_pahole)(kernel, folder)
    elf, dwarf = make_elf(kernel, raw), make_dwarf(kernel, folder)
    share = os.path.join(folder, 'share')
    for path in dwarf + ([elf] if short else [elf, raw]):
        name = f'{kernel}, types from {os.path.basename(path)}'
        compare(tap, name, types_of_file(kernel, path, share), wanted)
    larger, size = with_larger_dentry(raw)
    with tap.test(f'{kernel}: a file with a larger struct dentry is refused'):
        check_refused(kernel, larger,
                      f'struct dentry has {size + 4096} bytes there, objects '
                      f'of dentry {size}')
    with tap.test(f'{kernel}: a file without types is refused at the start'):
        check_bad_file(kernel, '/dev/null')
    if has_types and not short:
        with tap.test(f'{kernel}: a file is not used if the kernel has BTF'):
            with boot(kernel, f'types={raw}') as g:
                g.wait_done()
                assert len(said(g)) == 1 and 'not used' in said(g)[0], said(g)
    return raw


def main():
    ap = programs.arguments(__doc__, short='6.12 and an ELF file only',
                            smp=False)
    args, tap = programs.parse(ap), Tap()
    before = None
    with tempfile.TemporaryDirectory(prefix='ka-types.') as tmp:
        for kernel in args.kernel:
            folder = os.path.join(tmp, kernel)
            os.mkdir(folder)
            raw = check_kernel(tap, kernel, args.short, folder)
            if before:
                with tap.test(f'{kernel}: types of another kernel are '
                              'refused'):
                    check_refused(kernel, before, r'\d')
            before = raw
    tap.done()


main()
