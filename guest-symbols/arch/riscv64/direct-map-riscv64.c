/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The direct map of riscv64, see gs-direct-map.h. One base is in a variable,
 * the other one of two constants.
 */
#include "guest-symbols/arch/arch-internal.h"

#define STRUCT_PAGE_SHIFT   6       /* STRUCT_PAGE_MAX_SHIFT, of 64 bytes */

/*
 * From high to low addresses (arch/riscv/include/asm/pgtable.h):
 *
 *     direct map    from PAGE_OFFSET on
 *     vmalloc area  an eighth of the address space of the page tables
 *     memory map    its first struct page is that of the first page of memory
 */
static unsigned guess(const GsDirectMapAt *at, const GsMem *mem,
                      GsDirectMap *out)
{
    uint64_t va_pa_offset, first = 0, page_offset;
    uint8_t l4 = 0, l5 = 0;
    unsigned bits;

    if (!gs_mem_load(mem, at->va_pa_offset, &va_pa_offset, 8)) {
        return 0;
    }
    if (gs_mem_load(mem, at->ram_base, &first, 8)) {
        first >>= at->page_shift;
    } else if (!gs_mem_load(mem, at->ram_base_pfn, &first, 8)) {
        return 0;
    }
    gs_mem_load(mem, at->l4, &l4, 1);
    gs_mem_load(mem, at->l5, &l5, 1);
    bits = l5 ? 57 : l4 ? 48 : 39;
    for (unsigned i = 0; i < 2; i++) {
        /* PAGE_OFFSET; that of Sv39 changed once */
        page_offset = bits == 57 ? 0xff60000000000000ull :
                      bits == 48 ? 0xffffaf8000000000ull :
                      i ? 0xffffffd800000000ull : 0xffffffd600000000ull;
        out[i].page_offset = va_pa_offset;
        out[i].vmemmap = page_offset - (1ull << (bits - 3)) -
            (1ull << (bits - at->page_shift - 1 + STRUCT_PAGE_SHIFT)) -
            first * at->struct_page;
    }
    return 2;
}

const GsDirectMapRules gs_direct_maps_riscv64 = {
    .guess = guess, .in_struct = true,
};
