/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The direct map of x86-64, see gs-direct-map.h. Both bases are in variables,
 * which are exported to modules; without symbols for them, they are learned, or
 * those of a kernel that is not randomised.
 */
#include "guest-symbols/arch/arch-internal.h"

/* Below each direct map */
#define LOWEST  0xff00000000000000ull

/* The struct page of each address is known, but not where page frame 0 is. Any
 * address below the direct map will do, because only differences are used. */
static GsDirectMap learned(const GsDirectMapAt *at)
{
    GsDirectMap none = { UINT64_MAX, 0 };

    return at->struct_page != at->learned_size ? none : (GsDirectMap) {
        .page_offset = LOWEST,
        .vmemmap = at->learned_base +
                   (LOWEST >> at->page_shift) * at->struct_page,
    };
}

/* kernel_randomize_memory() in arch/x86/mm/kaslr.c sets both variables long
 * before the first kmalloc(). Then they do not change. */
static unsigned guess(const GsDirectMapAt *at, const GsMem *mem,
                      GsDirectMap *out)
{
    if (at->vmemmap_base && at->page_offset_base) {
        return gs_mem_load(mem, at->vmemmap_base, &out->vmemmap, 8) &&
               gs_mem_load(mem, at->page_offset_base, &out->page_offset, 8);
    }
    if (at->learned_size) {
        out[0] = learned(at);
        return 1;
    }
    /* __PAGE_OFFSET_BASE_L4, _L5 in arch/x86/include/asm/page_64_types.h */
    out[0] = (GsDirectMap) { 0xffff888000000000, 0xffffea0000000000 };
    out[1] = (GsDirectMap) { 0xff11000000000000, 0xffd4000000000000 };
    return 2;
}

const GsDirectMapRules gs_direct_maps_x86_64 = {
    .guess = guess, .in_variables = true, .relative = LOWEST,
};
