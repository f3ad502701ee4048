# SPDX-License-Identifier: GPL-2.0-or-later
"""drgn's slab_object_info() of a stopped guest: run drgn_slabs.py with a drgn
that is new enough, and answer its questions about the guest's memory.
"""
import json
import os
import re
import subprocess
import sys

from . import gmem, ksyms
from scripts.lib.prepared import kernel_arch, paths
from scripts.lib.qmp import GuestError

PROGRAM = os.path.join(os.path.dirname(__file__), 'drgn_slabs.py')
# Older ones look for a page flag that 6.10 no longer has: they say "no slab" of
# each address.
LEAST = 0, 0, 31
ARCH = {'x86_64': 'X86_64', 'aarch64': 'AARCH64', 'riscv64': 'RISCV64'}
# Variables that drgn's helpers read, and their types.
VARIABLES = {'__per_cpu_offset': 'unsigned long [512]',
             '__cpu_online_mask': 'struct cpumask',
             'nr_cpu_ids': 'unsigned int',
             'min_low_pfn': 'unsigned long', 'max_low_pfn': 'unsigned long'}


class Failed(Exception):
    """The helpers of this drgn do not know this kernel."""


def find_python(first=None):
    """Return a Python with a drgn that is new enough, or None. FIRST: tried
    before those of the machine and of the set-up."""
    for python in filter(None, (first, sys.executable, paths()['drgn'])):
        try:
            said = subprocess.run(
                [python, '-c', 'import drgn; print(drgn.__version__)'],
                check=True, capture_output=True, text=True).stdout
        except (OSError, subprocess.CalledProcessError):
            continue
        if tuple(map(int, re.findall(r'\d+', said)))[:3] >= LEAST:
            return python
    return None


def vmcoreinfo(memory, symbols):
    """Return the kernel's own text, '' if it has none."""
    if 'vmcoreinfo_data' not in symbols:
        return ''
    at = memory.u64(symbols['vmcoreinfo_data'])
    size = memory.u64(symbols['vmcoreinfo_size'])
    return memory.read(at, min(size, 4096)).split(b'\0')[0].decode()


def geometry(guest):
    """Return how far the direct map is from physical memory, and where page
    frame 0 has its struct page, or would have it."""
    rows = {}
    for line in guest.hmp_qmp('ka base -j').splitlines():
        row = json.loads(line)
        rows[row.get('name')] = row
    first = re.match(r'of physical (\w+) on', rows['direct']['note'])
    pages = re.match(r'struct pages of physical (\w+) on, (\d+) bytes each',
                     rows['pages']['note'])
    return int(rows['direct']['start'], 16) - int(first[1], 16), \
        int(rows['pages']['start'], 16) - \
        (int(pages[1], 16) >> 12) * int(pages[2])


def make_job(guest, kernel, kallsyms, types, addresses):
    memory = gmem.Memory(guest)
    symbols = ksyms.Symbols(kallsyms).by_name
    direct, page0 = geometry(guest)
    return {
        'arch': ARCH[kernel_arch(kernel)], 'types': types,
        'addresses': addresses, 'direct': direct,
        'vmcoreinfo': vmcoreinfo(memory, symbols),
        'variables': {name: (of, symbols[name])
                      for name, of in VARIABLES.items()},
        'values': {'vmemmap': ('struct page *', page0),
                   'PAGE_SHIFT': ('int', 12),
                   'PAGE_SIZE': ('unsigned long', 4096)},
    }


def ask(guest, python, kernel, kallsyms, types, addresses):
    """Return a row of drgn_slabs.py for each address. PYTHON: of
    find_python(). TYPES: a file that bpftool printed."""
    path, memory = guest.path('drgn-job'), gmem.Memory(guest)
    with open(path, 'w', encoding='utf-8') as f:
        json.dump(make_job(guest, kernel, kallsyms, types, addresses), f)
    with subprocess.Popen([python, PROGRAM, path], text=True,
                          stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as drgn:
        for line in drgn.stdout:
            said = json.loads(line)
            if 'done' in said:
                return said['done']
            if 'failed' in said:
                raise Failed(said['failed'])
            try:
                answer = memory.read(said['read'], said['page']).hex()
            except GuestError:
                answer = '-'
            drgn.stdin.write(answer + '\n')
            drgn.stdin.flush()
    raise AssertionError('drgn ended without an answer')
