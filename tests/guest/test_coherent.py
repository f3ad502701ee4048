#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Coherent DMA buffers that a driver lost are found, and both of the addresses
that the driver has lead to them: that of the CPU, and that of the device. Where
the device does not see the CPU's caches (arm64), the first is a second mapping
of pages that may be of the kernel's area for contiguous memory (CMA).

Oracle: the module ka_coherent, which prints each buffer with its addresses; the
kernel's own list of such mappings, /proc/vmallocinfo.

usage: test_coherent.py [--short] [--kernel K]... [--smp N]...
"""
import collections
import json
import os
import re
import tempfile

from lib import oracle, programs
from lib.tap import Tap
from scripts.lib.guest import Guest
from scripts.lib.prepared import kernel_arch

KERNELS = '6.12', 'arm64-6.12'
SAID = re.compile(r'ka_coherent: (lost|held)=(\w+) dma=(\w+) page=(\w+) '
                  r'size=(\w+)')
SITE = 'ka_coherent_take+'
PAGE = 4096

Buffer = collections.namedtuple('Buffer', 'kind cpu dma page size')


def rows(guest, command):
    return [json.loads(line) for line in
            guest.hmp_qmp(f'ka {command} -j -n 0 -s').splitlines()]


def buffers_of(guest):
    guest.shell('insmod /share/ka_coherent.ko')
    found = {Buffer(kind, *(int(word, 16) for word in words))
             for kind, *words in SAID.findall(guest.console)}
    assert len(found) == 10, found
    return sorted(found)


def block_of(guest, address):
    """Return the live block that the address leads to, with its stack."""
    found = [r for r in rows(guest, address) if r['type'] == 'block']
    live = [r for r in found if r['state'] == 'A']
    assert len(live) == 1, (address, found)
    assert any(name.startswith(SITE) for name in live[0]['alloc_symbols']), live
    return int(live[0]['va'], 16), live[0]['requested']


def check_buffer(guest, b, remapped):
    """Each address leads to the same block, of the buffer's pages."""
    va, size = block_of(guest, f'phys:{b.dma:x}')
    assert size >= -(-b.size // PAGE) * PAGE, (b, size)
    for address in f'{b.cpu:x}', f'{b.cpu + b.size - 1:x}', f'page:{b.page:x}':
        assert block_of(guest, address) == (va, size), (b, address)
    told = json.loads(guest.hmp_qmp(f'ka whatis {b.cpu:x} -j'))
    text = told['mapping'] if remapped else told['block']
    assert f'live block {va:016x}-' in text, told
    if remapped:
        assert told['mapping'].startswith(f'maps physical {b.dma:x}, '), told
        assert told['area'].startswith(f'dma-coherent area {b.cpu:016x}-'), told
    return va


def check_mappings(guest, buffers):
    """The buffers are those that the kernel lists."""
    text = guest.shell('grep dma-coherent /proc/vmallocinfo')
    listed = {int(va, 16) for va in re.findall(r'^0x(\w+)-', text, re.M)}
    assert {b.cpu for b in buffers} <= listed, (buffers, text)


def check_lost(guest, lost):
    """The buffers that the driver lost are left of its module, no others."""
    guest.shell('rmmod ka_coherent')
    head, *left = rows(guest, 'leak module ka_coherent -a')
    found = {int(r['va'], 16) for r in left if 'leak' in r}
    assert found == lost, ([hex(va) for va in found ^ lost], head)


def run(tap, kernel, smp, label):
    remapped = kernel_arch(kernel) == 'aarch64'
    with tempfile.TemporaryDirectory(prefix='ka-coherent.') as tmp:
        share = oracle.make_share(os.path.join(tmp, 'share'), [], kernel,
                                  modules=True)
        with Guest(kernel=kernel, smp=smp, end='shell', share=share,
                   cmdline='no_hash_pointers', plugin_opts='pages=on',
                   timeout=300, name=f'coherent-{kernel}-{smp}') as g:
            buffers = buffers_of(g)
            if remapped:
                check_mappings(g, buffers)
            va = {b: check_buffer(g, b, remapped) for b in buffers}
            check_lost(g, {va[b] for b in buffers if b.kind == 'lost'})
            text = g.hmp_qmp('ka error')
            assert text.startswith('no errors'), text
            cma = g.shell('grep CmaTotal /proc/meminfo').strip()
            tap.note(f"{label}: {len(va)} buffers, {cma or 'no CMA'}")


def main():
    args, tap = programs.parse(programs.arguments(
        __doc__, short='6.12 on 1 vCPU only'), kernels=KERNELS), Tap()
    programs.run_over(tap, args.kernel, args.smp, run,
                      'lost buffers and both addresses are found')
    tap.done()


if __name__ == '__main__':
    main()
