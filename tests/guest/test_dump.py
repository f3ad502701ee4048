#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Other ways to read a traced guest work as without the tracer: dumps by QMP's
dump-guest-memory (ELF, and kdump-zlib if QEMU has it), memsave, x and xp of
the monitor, and gdb while `ka` lists.

Oracle: pages by pmemsave and registers by the monitor, of the stopped VM. In
the dump, drgn must find the tasks that `ka show` names, without debug
information.

usage: test_dump.py [--short] [--kernel K]...
"""
import json
import os
import random
import re
import struct
import tempfile
import threading

from lib import ftrace, gmem, ksyms, oracle
from lib.btf import Btf
from lib.programs import kernel_options
from lib.tap import Tap
from lib.vmcore import Kdump, Vmcore, unflatten
from scripts.lib import mkinitramfs
from scripts.lib.guest import Guest
from scripts.lib.prepared import kernel_arch, kernel_file

try:
    import drgn
except ImportError:
    drgn = None

SMP = 2
PAGE = 4096
TEXT_PAGES = RANDOM_PAGES = 128
# Architecture -> the pattern of a register in `info registers`.
REGISTER = {'x86_64': r'\b(R[A-Z0-9]{1,2}) ?=([0-9a-f]{8,16})\b',
            'aarch64': r'\b(PC|SP|X\d\d)=([0-9a-f]{16})\b',
            'riscv64': r'\b(pc|x[1-9]\d?)(?:/\w+)? +([0-9a-f]{16})\b'}


# --- what the stopped VM says ------------------------------------------------

def shown_registers(guest, arch):
    """Return [{register: value}] of each vCPU, from the monitor."""
    text = guest.hmp_qmp('info registers -a')
    return [{name: int(value, 16)
             for name, value in re.findall(REGISTER[arch], part)}
            for part in re.split(r'^CPU#\d+$', text, flags=re.M)[1:]]


def physical(guest, va):
    found = re.search(r'gpa: 0x([0-9a-f]+)',
                      guest.hmp_qmp(f'gva2gpa {va:#x}'))
    assert found, f'{va:#x} is not mapped'
    return int(found.group(1), 16)


def saved(guest, pa, size=PAGE):
    """Return physical memory, read by pmemsave."""
    name = guest.path('pmemory')
    guest.qmp('pmemsave', val=pa, size=size, filename=name)
    with open(name, 'rb') as f:
        data = f.read()
    os.unlink(name)
    return data


def examined(guest, command, at, size=PAGE):
    """Return memory, read by the monitor's x or xp."""
    text = guest.hmp_qmp(f'{command} /{size // 8}gx {at:#x}')
    words = [int(w, 16) for line in text.splitlines()
             for w in line.partition(':')[2].split()]
    return struct.pack(f'<{len(words)}Q', *words)


class Known:
    """What is known of a stopped VM: pages by pmemsave, {physical: bytes}; the
    kernel's text, {virtual: physical}; tasks, {virtual: name}."""

    def __init__(self, guest, files, core):
        symbols = ksyms.Symbols(files['proc.kallsyms'])
        self.banner = symbols.address('linux_banner')
        self.btf = Btf(files['btf.vmlinux'])
        self.memory = gmem.Memory(guest)
        self.text = self._text(guest, symbols)
        rng = random.Random(1)
        pages = list(self.text.values())
        for _ in range(RANDOM_PAGES):
            pa, size, _ = rng.choice(core.loads)
            pages.append(pa + rng.randrange(size // PAGE) * PAGE)
        self.pages = {pa: saved(guest, pa) for pa in pages}
        tasks = gmem.Tasks(self.memory, self.btf,
                           symbols.address('init_task'))
        self.tasks = {va: comm for va, comm, _ in tasks.walk()}
        self.comm = self.btf.offset('task_struct', 'comm')

    @staticmethod
    def _text(guest, symbols):
        start, end = (symbols.address(n) for n in ('_stext', '_etext'))
        step = max((end - start) // TEXT_PAGES & -PAGE, PAGE)
        return {va: physical(guest, va)
                for va in range(start & -PAGE, end - PAGE, step)}


# --- checks ------------------------------------------------------------------

def check_elf(tap, label, guest, core, known, arch):
    with tap.test(f'{label}: the notes hold the registers of each vCPU'):
        shown = shown_registers(guest, arch)
        assert len(core.regs) == len(shown) == SMP, (core.regs, shown)
        for ours, theirs in zip(core.regs, shown):
            assert len(theirs) >= 16, theirs
            differ = {n: (f'{ours[n]:#x}', f'{v:#x}')
                      for n, v in theirs.items() if ours[n] != v}
            assert not differ, f'(dump, monitor): {differ}'
    with tap.test(f'{label}: the pages are those of the stopped VM'):
        bad = [hex(pa) for pa, data in known.pages.items()
               if core.read(pa, PAGE) != data]
        tap.note(f'{len(known.pages)} pages, {len(known.text)} of text')
        assert len(known.pages) > RANDOM_PAGES and not bad, bad
    with tap.test(f'{label}: the kernel\'s vmcoreinfo is in it'):
        info = core.note('VMCOREINFO') or b''
        release = re.search(rb'^OSRELEASE=(.*)', info, re.M)
        banner = known.memory.read(known.banner, 200)
        assert release and release.group(1) in banner, info[:200]


def check_monitor(tap, label, guest, known):
    with tap.test(f'{label}: memsave, x and xp read the same'):
        for va, pa in list(known.text.items())[::8]:
            want = known.pages[pa]
            assert known.memory.read(va, PAGE) == want, f'memsave {va:#x}'
            assert examined(guest, 'x', va) == want, f'x {va:#x}'
            assert examined(guest, 'xp', pa) == want, f'xp {pa:#x}'


def task_block(guest, va):
    rows = [json.loads(line) for line in
            guest.hmp_qmp(f'ka show {va:#x} -j -v').splitlines()]
    return next((r for r in rows if r.get('type') == 'block' and
                 int(r['va'], 16) == va), None)


def check_tasks(tap, label, guest, core, known):
    """Each task is a live block of ours, and its bytes are in the dump. gdb
    finds its name there; the VM runs after gdb has detached."""
    with tap.test(f'{label}: tasks that ka names are the same in the dump'):
        assert len(known.tasks) > 10
        for va, comm in known.tasks.items():
            row = task_block(guest, va)
            assert row and row['state'] == 'A', f'{va:#x}: {row}'
            for at in range(va, va + row['requested'], PAGE):
                size = min(PAGE - at % PAGE, va + row['requested'] - at)
                assert core.read(physical(guest, at), size) == \
                    known.memory.read(at, size), f'{comm} at {at:#x}'
        said = guest.gdb([f'x/s {va + known.comm:#x}' for va in known.tasks])
        guest.qmp('stop')
        strings = re.findall(r'^0x\w+:\s+"(.*)"$', said, re.M)
        assert strings == list(known.tasks.values()), said


def check_drgn(tap, label, path, known, virtual):
    what = 'the kernel and its tasks' if virtual else 'physical memory'
    name = f'{label}: drgn reads {what} in it'
    if drgn is None:
        tap.skip(name, 'no drgn')
        return
    with tap.test(name):
        program = drgn.Program()
        program.set_core_dump(path)
        if not virtual:
            for pa, data in known.pages.items():
                assert program.read(pa, PAGE, physical=True) == data, hex(pa)
            return
        for va, pa in known.text.items():
            assert program.read(va, PAGE) == known.pages[pa], hex(va)
        for va, comm in known.tasks.items():
            found = program.read(va + known.comm, 16).split(b'\0')[0]
            assert found == comm.encode('latin-1'), (found, comm)


def check_kdump(tap, label, guest, known):
    name = f'{label}, kdump-zlib: the pages are those of the stopped VM'
    able = guest.qmp('query-dump-guest-memory-capability')
    if 'kdump-zlib' not in able['formats']:
        tap.skip(name, 'QEMU has it not')
        return
    with tap.test(name):
        flat = dump(guest, 'core.flat', format='kdump-zlib')
        unflatten(flat, guest.path('core.kdump'))
        kdump = Kdump(guest.path('core.kdump'))
        bad = [hex(pa) for pa, data in known.pages.items()
               if kdump.read(pa, PAGE) != data]
        assert not bad, bad


def check_listing(tap, label, guest, known):
    """gdb and memsave get answers between the listings. While a command of its
    monitor runs, QEMU answers nobody. gdb repeats its request after a second
    here, and must not get two answers."""
    listings = []

    def list_all():
        for _ in range(3):
            listings.append(guest.hmp('ka 0-ffffffffffffffff -n 0 -s'))

    with tap.test(f'{label}: gdb and memsave read right while ka lists'):
        want = known.memory.read(known.banner, 100)
        lister = threading.Thread(target=list_all, daemon=True)
        lister.start()
        rounds = 0
        while lister.is_alive() or not rounds:
            said = guest.gdb([f'x/s {known.banner:#x}'] * 20,
                             before=['set remotetimeout 1'])
            assert said.count(f'"{want.decode()}') == 20, said
            guest.qmp('stop')
            assert known.memory.read(known.banner, 100) == want
            rounds += 1
        lister.join()
        assert len(listings) == 3 and all(
            text.count(' alloc[') > 10000 for text in listings), \
            [len(text) for text in listings]
        tap.note(f'{rounds} rounds of gdb beside '
                 f'{len(listings[0].splitlines())} lines, three times')


def check_goes_on(tap, label, guest):
    with tap.test(f'{label}: the guest and its trace go on'):
        before = guest.stat()
        guest.qmp('cont')
        guest.shell('ls -lR /proc/self /sys/class >/tmp/list')
        after = guest.stat()
        assert after['events.checked'] > before['events.checked'] + 100
        assert after['gaps'] == 0 and after['errors.recorded'] == 0, after


# --- one guest ---------------------------------------------------------------

def make_share(folder, kernel):
    oracle.make_share(folder, ['dump.sh'], kernel)
    module = mkinitramfs.find_modules(kernel_file(kernel, 'modules'))
    with open(os.path.join(folder, 'qemu_fw_cfg.ko'), 'wb') as f:
        f.write(mkinitramfs.read_module(module['qemu_fw_cfg']))
    return folder


def dump(guest, name, paging=False, **how):
    path = guest.path(name)
    guest.qmp('dump-guest-memory', paging=paging, protocol='file:' + path,
              **how)
    return path


def check_formats(tap, label, guest, elf, known, arch):
    """Without page tables an ELF file has no virtual addresses for drgn; with
    them it does not have memory that nothing maps."""
    check_drgn(tap, f'{label}, ELF', elf, known, virtual=False)
    path = dump(guest, 'core.paged', paging=True)
    paged = Vmcore(path, arch)
    if paged.virtual:
        check_drgn(tap, f'{label}, ELF with paging', path, known, virtual=True)
    else:
        tap.skip(f'{label}, ELF with paging',
                 'QEMU does not read the page tables of this target')
    paged.close()
    check_kdump(tap, label, guest, known)


def check(tap, kernel, guest, files):
    arch = kernel_arch(kernel)
    guest.qmp('stop')
    path = dump(guest, 'core.elf')
    core = Vmcore(path, arch)
    known = Known(guest, files, core)
    check_elf(tap, kernel, guest, core, known, arch)
    check_monitor(tap, kernel, guest, known)
    check_formats(tap, kernel, guest, path, known, arch)
    check_tasks(tap, kernel, guest, core, known)
    check_listing(tap, kernel, guest, known)
    core.close()
    check_goes_on(tap, kernel, guest)


def main():
    tap = Tap()
    for kernel in kernel_options():
        with tap.test(f'{kernel}: runs and is read'), \
                tempfile.TemporaryDirectory(prefix='ka-dump.') as tmp:
            share = make_share(os.path.join(tmp, 'share'), kernel)
            with Guest(kernel=kernel, smp=SMP, run='dump', share=share,
                       out=os.path.join(tmp, 'out'), end='shell', mem='512M',
                       qemu=['-device', 'vmcoreinfo'], timeout=300,
                       name='dump-' + kernel) as g:
                assert g.wait_done() == 0, 'the workload failed'
                check(tap, kernel, g, ftrace.read_out(g.collect()))
    tap.done()


if __name__ == '__main__':
    main()
