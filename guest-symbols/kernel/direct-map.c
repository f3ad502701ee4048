/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Find the direct map: see gs-direct-map.h. */
#include "guest-symbols/gs.h"

static uint64_t symbol(const GsKernel *k, const char *name)
{
    GsSymbol sym;

    return gs_kernel_variable(k, name, &sym) ? sym.va : 0;
}

bool gs_direct_map_init(GsDirectMapAt *at, const GsKernel *k)
{
    uint32_t struct_page, offset;

    *at = (GsDirectMapAt) {
        .arch = gs_kernel_arch(k),
        .page_shift = gs_kernel_page_shift(k),
        .vmemmap_base = symbol(k, "vmemmap_base"),
        .page_offset_base = symbol(k, "page_offset_base"),
        .memstart_addr = symbol(k, "memstart_addr"),
        .va_pa_offset = symbol(k, "kernel_map"),
        .ram_base = symbol(k, "phys_ram_base"),
        .ram_base_pfn = symbol(k, "vmemmap_start_pfn"),
        .l4 = symbol(k, "pgtable_l4_enabled"),
        .l5 = symbol(k, "pgtable_l5_enabled"),
    };
    if (at->va_pa_offset &&
        gs_kernel_member(k, "kernel_mapping", "va_pa_offset", &offset, NULL)) {
        at->va_pa_offset += offset;
    } else {
        at->va_pa_offset = 0;
    }
    if (!gs_kernel_type_size(k, "page", &struct_page)) {
        return false;
    }
    at->struct_page = struct_page;
    return true;
}

unsigned gs_direct_map_guess(const GsDirectMapAt *at, const GsMem *mem,
                             GsDirectMap out[GS_DIRECT_MAP_MAX], bool *certain)
{
    const GsDirectMapRules *rules = at->arch->direct_maps;

    *certain = rules->in_variables && at->vmemmap_base && at->page_offset_base;
    return rules->guess(at, mem, out);
}

/* ---- by a struct page --------------------------------------------------- */

#define MAX_PFN (1ull << 40)

/* Return the address of @page's memory, 0 if this memory map does not have
 * @page, or the memory is not mapped. */
static uint64_t memory_of(const GsDirectMapAt *at, const GsMem *mem,
                          const GsDirectMap *m, uint64_t page)
{
    uint64_t pfn, va, word;

    if (page < m->vmemmap || (page - m->vmemmap) % at->struct_page) {
        return 0;
    }
    pfn = (page - m->vmemmap) / at->struct_page;
    va = m->page_offset + (pfn << at->page_shift);
    return pfn < MAX_PFN && gs_mem_load(mem, page, &word, sizeof(word)) &&
           gs_mem_load(mem, va, &word, sizeof(word)) ? va : 0;
}

uint64_t gs_direct_map_by_page(const GsDirectMapAt *at, const GsMem *mem,
                               uint64_t page)
{
    GsDirectMap guess[GS_DIRECT_MAP_MAX];
    bool certain;
    unsigned n = gs_direct_map_guess(at, mem, guess, &certain);
    uint64_t found = 0;

    for (unsigned i = 0; i < n; i++) {
        uint64_t va = memory_of(at, mem, &guess[i], page);

        if (va && found && va != found) {
            return 0;
        }
        found = va ? va : found;
    }
    return found;
}
