/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where a kernel has its direct map of memory, and the struct pages that tell
 * of it. QEMU-free.
 */
#ifndef KT_DIRECT_MAP_H
#define KT_DIRECT_MAP_H

#include "kalloc-tracer/kt.h"

/** struct KtDirectMap - the direct map, and the struct page, of page frame 0
 *  (which need not exist) */
typedef struct KtDirectMap {
    uint64_t page_offset;
    uint64_t vmemmap;
} KtDirectMap;

/** struct KtDirectMapAt - what one kernel tells of that; addresses of variables
 *  are 0 where it has none */
typedef struct KtDirectMapAt {
    GsArchId arch;
    unsigned page_shift;
    uint64_t struct_page;           /* bytes */
    uint64_t vmemmap_base, page_offset_base;
    uint64_t memstart_addr;
    uint64_t va_pa_offset, ram_base, ram_base_pfn, l4, l5;
} KtDirectMapAt;

#define KT_DIRECT_MAP_MAX 16

/** kt_direct_map_init() - false: the kernel does not tell. */
bool kt_direct_map_init(KtDirectMapAt *at, const GsKernel *k);

/**
 * kt_direct_map_guess() - what it can be
 * @read: guest memory
 * @certain: (out) the kernel's own variables tell; otherwise each is to be
 *           tried with an object whose struct page is known
 *
 * Returns: how many; 0 before the kernel has decided.
 */
unsigned kt_direct_map_guess(const KtDirectMapAt *at, const GsMem *mem,
                             KtDirectMap out[KT_DIRECT_MAP_MAX], bool *certain);

#endif /* KT_DIRECT_MAP_H */
