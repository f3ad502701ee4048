/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The direct map of arm64, see gs-direct-map.h. The bases are constants that
 * depend on the configuration and the version: five widths of addresses, three
 * layouts each.
 */
#include "guest-symbols/arch/arch-internal.h"

#define STRUCT_PAGE_SHIFT   6       /* STRUCT_PAGE_MAX_SHIFT, of 64 bytes */

/* Return VA_BITS_MIN. A kernel for 52 bits also runs on CPUs that have less: 48
 * bits, or 47 with 16K pages (since 6.9). */
static unsigned least_bits(unsigned va_bits, unsigned page_shift)
{
    return va_bits <= 48 ? va_bits : page_shift == 14 ? 47 : 48;
}

/*
 * Add the three layouts for one width. PAGE_OFFSET is the lowest address of the
 * kernel's half, VA_BITS wide. The memory map is near the top; its place
 * changed twice in arch/arm64/include/asm/memory.h: see VMEMMAP_START in 6.9,
 * in 5.11, and before.
 */
static void add_layouts(const GsDirectMapAt *at, unsigned va_bits,
                      uint64_t memstart, GsDirectMap *out)
{
    unsigned min_bits = least_bits(va_bits, at->page_shift);
    uint64_t page_offset = ~0ull << va_bits;
    uint64_t pages = ((~0ull << (min_bits - 1)) - page_offset) >>
                     at->page_shift;
    uint64_t start[] = {
        -(1ull << 30) - pages * at->struct_page,
        ~0ull << (va_bits - (at->page_shift - STRUCT_PAGE_SHIFT)),
        -(pages << STRUCT_PAGE_SHIFT) - (2ull << 20),
    };
    int64_t pfn = (int64_t)memstart >> at->page_shift;

    for (unsigned i = 0; i < G_N_ELEMENTS(start); i++) {
        out[i].page_offset = page_offset - memstart;
        out[i].vmemmap = start[i] - pfn * at->struct_page;
    }
}

/*
 * A physical address has at most 52 bits, so the direct-map address of page
 * frame 0 is in the kernel's half, too. A kernel for 52 bits on a CPU of 48
 * subtracts the difference of both PAGE_OFFSETs from the start of memory
 * (arm64_memblock_init(), 5.5): then no other width is possible.
 */
static bool is_possible(unsigned va_bits, uint64_t memstart)
{
    return (int64_t)((~0ull << va_bits) - memstart) < 0;
}

static unsigned guess(const GsDirectMapAt *at, const GsMem *mem,
                      GsDirectMap *out)
{
    static const unsigned va_bits[] = { 48, 52, 39, 47, 42 };
    uint64_t memstart = 0;
    unsigned n = 0;

    /* Without KALLSYMS_ALL there is no symbol memstart_addr. Then 0 is used:
     * the struct page of an address does not depend on it. */
    G_STATIC_ASSERT(3 * G_N_ELEMENTS(va_bits) <= GS_DIRECT_MAP_MAX);
    if (at->memstart_addr &&
        !gs_mem_load(mem, at->memstart_addr, &memstart, 8)) {
        return 0;
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(va_bits); i++) {
        if (is_possible(va_bits[i], memstart)) {
            add_layouts(at, va_bits[i], memstart, &out[n]);
            n += 3;
        }
    }
    return n;
}

const GsDirectMapRules gs_direct_maps_arm64 = { .guess = guess };
