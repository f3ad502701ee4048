/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where a kernel has its direct map of memory, and the struct pages that tell
 * of it. QEMU-free.
 */
#ifndef KT_LINEAR_H
#define KT_LINEAR_H

#include "kalloc-tracer/kt.h"

/** struct KtLinear - the direct map, and the struct page, of page frame 0
 *  (which need not exist) */
typedef struct KtLinear {
    uint64_t page_offset;
    uint64_t vmemmap;
} KtLinear;

/** struct KtLinearAt - what one kernel tells of that; addresses of variables
 *  are 0 where it has none */
typedef struct KtLinearAt {
    GsArchId arch;
    unsigned page_shift;
    uint64_t struct_page;           /* bytes */
    uint64_t vmemmap_base, page_offset_base;
    uint64_t memstart_addr;
    uint64_t va_pa_offset, ram_base, ram_base_pfn, l4, l5;
} KtLinearAt;

#define KT_LINEAR_MAX 16

/** kt_linear_init() - false: the kernel does not tell. */
bool kt_linear_init(KtLinearAt *at, const GsKernel *k);

/**
 * kt_linear_guess() - what it can be
 * @read: guest memory
 * @certain: (out) the kernel's own variables tell; otherwise each is to be
 *           tried with an object whose struct page is known
 *
 * Returns: how many; 0 before the kernel has decided.
 */
unsigned kt_linear_guess(const KtLinearAt *at, const GsMem *mem,
                         KtLinear out[KT_LINEAR_MAX], bool *certain);

#endif /* KT_LINEAR_H */
