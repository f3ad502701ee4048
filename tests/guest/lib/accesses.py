# SPDX-License-Identifier: GPL-2.0-or-later
"""The module ka_access: what it did, from the lines that it printed; which of
its cases KASAN and ka find; and what a report says of a case."""
import re
from collections import namedtuple

from . import kasan

# SITE accesses SIZE bytes (None: as many as it likes) at AT, by RW ('r', 'w').
# The block was BLOCK, of which BYTES were asked for.
Truth = namedtuple('Truth', 'site kind rw size at block bytes')
# What a report says. FUNCTION accessed, or called what did; OFFSET is where the
# access begins, in the block; ALLOC and FREE are functions, None if the report
# has none.
Facts = namedtuple('Facts', 'function kind rw size offset bytes alloc free')

TRUTH = re.compile(r'ka_access: truth (\S+) (\S+) how=([rw])(\d*) at=(\w+) '
                   r'block=(\w+) bytes=(\d+)')
BEGIN = re.compile(r'ka_access: begin (\S+)')
END = re.compile(r'ka_access: end (\S+) (-?\d+)')
SITES = ('ka_access_alloc', 'ka_access_free', 'ka_access_take',
         'ka_access_give', 'ka_access_realloc', 'ka_access_free_bulk',
         'ka_gone_take', 'ka_gone_give', 'ka_case_oob_vmalloc',
         'ka_case_uaf_pages')
KINDS = {'slab-use-after-free': 'use-after-free',
         'slab-out-of-bounds': 'out-of-bounds',
         'vmalloc-out-of-bounds': 'out-of-bounds'}

# Case -> why ka does not find it.
KA_MISSES = {
    'next_live': 'neighbour', 'left_live': 'neighbour',     # both are live
    # somebody else's block by then
    'reused': 'reused', 'reused_kmalloc': 'reused',
}
# The same of a kernel with SLAB: its lists of free objects are not read.
SLAB_MISSES = {'next_slot': 'slot', 'left_slot': 'slot'}
# Of KA_MISSES, what is found with quarantine=.
QUARANTINE_FINDS = ('reused_kmalloc',)
# Case -> why KASAN does not find it.
KASAN_MISSES = {
    'rep_movs': 'assembly', 'asm_load': 'assembly', 'memcpy_flush': 'assembly',
    'copy_page': 'assembly', 'clear_page': 'assembly',
    'nofault_store': 'assembly',
    # load_unaligned_zeropad() is assembly, too
    'name_hash': 'assembly', 'name_hash_far': 'assembly',
    'strscpy_from': 'assembly', 'dentry_name': 'assembly',
    # gcc before 13 calls functions that are not checked
    'memset_oob': 'compiler', 'memset_uaf': 'compiler',
    'memcpy_from': 'compiler', 'memcpy_to': 'compiler',
    'memmove_to': 'compiler',
    'oob_vmalloc': 'vmalloc',       # without CONFIG_KASAN_VMALLOC
    'in_bpf_program': 'BPF',
}
# Architecture, or kernel -> which of them it finds: areas of vmalloc(), what C
# code does elsewhere, and on arm64 and 6.1 what these functions get.
KASAN_FINDS = {
    'kasan-6.1': ('memset_oob', 'memset_uaf', 'memcpy_from', 'memcpy_to',
                  'memmove_to'),
    'arm64': ('oob_vmalloc', 'memset_oob', 'memset_uaf', 'memcpy_from',
              'memcpy_to', 'memmove_to', 'nofault_store'),
    'riscv64': ('oob_vmalloc', 'name_hash', 'name_hash_far', 'strscpy_from',
                'dentry_name', 'nofault_store'),
}
# KASAN takes the access for one behind the block to the left, or for one to
# the slot there.
KASAN_OTHER_BLOCK = 'left_live', 'left_slot', 'next_page'
# KASAN has no names for functions of a module that is gone.
KASAN_NO_NAMES = 'of_gone'
# An overflow into a freed block is a use of that block, too. ka names the live
# block in front of it as the neighbour.
ALIKE = 'next_freed', 'next_slot'
# ka sees an access to a slot that nobody owns. No block ends near it.
FREE_SLOT = 'left_slot', 'next_page'
# ka sees instructions, KASAN what the compiler or a function is about to do:
# an assignment of 16 bytes is two stores, and a copy can be many loads.
OTHER_SIZE = ('oob_16', 'uaf_16', 'memcmp', 'memchr', 'copy_to_user',
              'copy_to_user_oob', 'copy_from_user')
# Where these are assembly, they load words.
OTHER_SIZE_ELSEWHERE = ('strlen', 'strnlen', 'strcmp', 'strncmp', 'strchr',
                        'strrchr')
# Names are read by words, but not on this architecture.
BYTEWISE = {'riscv64': ('name_hash', 'name_hash_far', 'dentry_name')}
# On arm64 this program has no frame record, and no symbol.
NO_CALLER = {'arm64-6.12': ('in_bpf_program',)}
# ka sees nothing of the page allocator without pages=on. If the pages were a
# block of kmalloc() before, it is an access to that block for ka; else ka
# misses it.
PAGES = 'uaf_pages'
# For KASAN, krealloc() in place is the function that allocated the block.
REALLOC = 'krealloc_more', 'krealloc_less'
# An instruction that loads and stores at once can be told as either.
EITHER = ('set_bit', 'change_bit', 'test_and_set_bit', 'atomic_inc',
          'atomic_fetch_add', 'atomic_cmpxchg', 'atomic64_xchg')


def kasan_misses(kernel):
    """Return {case: why KASAN does not find it in this kernel}."""
    found = KASAN_FINDS.get(kernel) or \
        KASAN_FINDS.get(kernel.partition('-')[0], ())
    return {case: why for case, why in KASAN_MISSES.items()
            if case not in found}


def case_of(site, name):
    return name or site.removeprefix('ka_case_')


class Log:
    """What the module printed.

    truth    {case: Truth}
    results  {case: result}, 0 if the case was run
    text     {case: the kernel's messages during the case}

    Cases of BYTEWISE access one byte, whatever the module says.
    """

    def __init__(self, console, bytewise=()):
        self.truth, self.results, self.text = {}, {}, {}
        self.bytewise = bytewise
        name = None
        for line in kasan.without_times(console).splitlines():
            begin, end, truth = (p.search(line) for p in (BEGIN, END, TRUTH))
            if begin:
                name = begin[1]
                self.text[name] = ''
            elif end:
                self.results[end[1]] = int(end[2])
                name = None
            elif truth:
                self.add(name, truth)
            elif name:
                self.text[name] += line + '\n'

    def add(self, name, m):
        name, size = case_of(m[1], name), int(m[4]) if m[4] else None
        if name in self.bytewise:
            size = 1
        self.truth[name] = Truth(m[1], m[2], m[3], size, int(m[5], 16),
                                 int(m[6], 16), int(m[7]))

    def was_run(self, name):
        return self.results.get(name) == 0

    def quiet(self):
        """Return the cases that do nothing wrong."""
        return [name for name in self.results if name not in self.truth]


def site_in(functions):
    """Return the first site of the module in a stack."""
    return next((f for f in functions if f in SITES), None)


def facts_of_kasan(report, truth):
    """Return the facts of a report of KASAN. It may have the size of the slot
    in place of the block's."""
    inside = truth.site in report.trace
    kind = KINDS.get(report.kind, report.kind)
    return Facts(truth.site if inside else report.function, kind, report.rw,
                 report.size, report.offset,
                 report.bytes if report.asked else truth.bytes,
                 site_in(report.alloc), site_in(report.free))


def functions(symbols):
    """Return the functions of a stack, ['f+0x10[module]'] of ka's JSON."""
    return [s.partition('+')[0] for s in symbols or ()]


def facts_of_ka(error, truth):
    """Return the facts of an error of ka. What a site called is in front of
    it in the stack."""
    trace = functions(error['error_stack_symbols'])
    block, size = error['va'], error['requested']
    alloc = error.get('alloc_symbols')
    if truth.kind == 'out-of-bounds' and 'neighbour_va' in error:
        block, size = error['neighbour_va'], error['neighbour_size']
        alloc = error['neighbour_alloc_symbols']
    return Facts(truth.site if truth.site in trace else trace and trace[0],
                 error['error'], error['error_access'],
                 error['error_access_size'],
                 int(error['error_va'], 16) - int(block, 16), size,
                 site_in(functions(alloc)),
                 site_in(functions(error.get('free_symbols'))))


def facts_of_truth(truth):
    """Return what the module says itself; it does not say who allocates."""
    return Facts(truth.site, truth.kind, truth.rw, truth.size,
                 truth.at - truth.block, truth.bytes, None, None)
