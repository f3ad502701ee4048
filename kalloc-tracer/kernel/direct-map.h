/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Find the direct map and the memory map of a kernel. QEMU-free.
 *
 *     page_offset + pfn * PAGE_SIZE            address of page frame pfn
 *     vmemmap + pfn * sizeof(struct page)      address of its struct page
 *
 * Called by guest.c for each new kernel, in a vCPU thread, and by leak/. No
 * shared state, no locks.
 */
#ifndef KT_DIRECT_MAP_H
#define KT_DIRECT_MAP_H

#include "kalloc-tracer/kt.h"

/** struct KtDirectMap - direct-map address of page frame 0, and of its struct
 *  page. The page need not exist: only differences are used. */
typedef struct KtDirectMap {
    uint64_t page_offset;
    uint64_t vmemmap;
} KtDirectMap;

/** struct KtDirectMapAt - what a kernel's symbols and types say about it;
 *  addresses of variables, 0 if there is no such variable. @learned_size,
 *  @learned_base: 0, or what KtSlabWitnesses learned of an x86-64 kernel */
typedef struct KtDirectMapAt {
    GsArchId arch;
    unsigned page_shift;
    uint64_t struct_page;           /* bytes */
    uint64_t vmemmap_base, page_offset_base;
    uint64_t learned_size, learned_base;
    uint64_t memstart_addr;
    uint64_t va_pa_offset, ram_base, ram_base_pfn, l4, l5;
} KtDirectMapAt;

#define KT_DIRECT_MAP_MAX 16

/** kt_direct_map_init() - find the variables in @k's symbols. Returns: false if
 *  the size of struct page is unknown. */
bool kt_direct_map_init(KtDirectMapAt *at, const GsKernel *k);

/**
 * kt_direct_map_guess() - list the possible direct maps
 * @mem: guest memory
 * @out: (out) the possible direct maps
 * @certain: (out) true on x86-64 if the kernel's variables have the bases.
 *           Otherwise try each with an object whose kmem_cache is known
 *
 * Returns: how many there are; 0 before the kernel has set its variables.
 */
unsigned kt_direct_map_guess(const KtDirectMapAt *at, const GsMem *mem,
                             KtDirectMap out[KT_DIRECT_MAP_MAX], bool *certain);

/**
 * kt_direct_map_by_page() - find the memory of a struct page in use
 * @mem: guest memory
 * @page: address of the struct page
 *
 * Before the first object of a slab no object can decide which of the possible
 * direct maps is right. A wrong one has @page outside of its memory map, or its
 * memory where nothing is mapped. On arm64, those of 48 and 52 bits have the
 * same memory for the same struct page, though they count it differently.
 *
 * Returns: the direct-map address of the memory; 0 unless all possible direct
 * maps that have this page agree.
 */
uint64_t kt_direct_map_by_page(const KtDirectMapAt *at, const GsMem *mem,
                               uint64_t page);

#endif /* KT_DIRECT_MAP_H */
