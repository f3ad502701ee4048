/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Find the direct map and the memory map of a kernel.
 *
 *     page_offset + pfn * PAGE_SIZE            address of page frame pfn
 *     vmemmap + pfn * sizeof(struct page)      address of its struct page
 *
 * No shared state, no locks: any thread.
 */
#ifndef GS_API_DIRECT_MAP_H
#define GS_API_DIRECT_MAP_H

#include "guest-symbols/api/gs-kernel.h"

/** struct GsDirectMap - direct-map address of page frame 0, and of its struct
 *  page. The page need not exist: only differences are used. */
typedef struct GsDirectMap {
    uint64_t page_offset;
    uint64_t vmemmap;
} GsDirectMap;

/** struct GsDirectMapAt - what a kernel's symbols and types say about it;
 *  addresses of variables, 0 if there is no such variable. @learned_size,
 *  @learned_base: 0, or what was learned of a kernel whose direct map is in
 *  variables */
typedef struct GsDirectMapAt {
    const GsArch *arch;
    unsigned page_shift;
    uint64_t struct_page;           /* bytes */
    uint64_t vmemmap_base, page_offset_base;
    uint64_t learned_size, learned_base;
    uint64_t memstart_addr;
    uint64_t va_pa_offset, ram_base, ram_base_pfn, l4, l5;
} GsDirectMapAt;

#define GS_DIRECT_MAP_MAX 16

/**
 * struct GsDirectMapRules - where the direct map of an architecture can be
 * @guess: list the possible direct maps, as gs_direct_map_guess()
 * @in_variables: the kernel's variables vmemmap_base and page_offset_base have
 *                the bases
 * @in_struct: its struct kernel_mapping has one
 * @relative: page_offset of a map that was learned, of which only differences
 *            are right; 0: there is none
 */
typedef struct GsDirectMapRules {
    unsigned (*guess)(const GsDirectMapAt *at, const GsMem *mem,
                      GsDirectMap *out);
    bool in_variables, in_struct;
    uint64_t relative;
} GsDirectMapRules;

/** gs_direct_map_init() - find the variables in @k's symbols. Returns: false if
 *  the size of struct page is unknown. */
bool gs_direct_map_init(GsDirectMapAt *at, const GsKernel *k);

/**
 * gs_direct_map_guess() - list the possible direct maps
 * @mem: guest memory
 * @out: (out) the possible direct maps
 * @certain: (out) true if the kernel's variables have the bases. Otherwise try
 *           each with an object whose kmem_cache is known
 *
 * Returns: how many there are; 0 before the kernel has set its variables.
 */
unsigned gs_direct_map_guess(const GsDirectMapAt *at, const GsMem *mem,
                             GsDirectMap out[GS_DIRECT_MAP_MAX], bool *certain);

/**
 * gs_direct_map_by_page() - find the memory of a struct page in use
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
uint64_t gs_direct_map_by_page(const GsDirectMapAt *at, const GsMem *mem,
                               uint64_t page);

#endif /* GS_API_DIRECT_MAP_H */
