/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Find the direct map: see direct-map.h.
 *
 *     x86-64    both bases are in variables, which are exported to modules;
 *               without symbols for them, they are learned, or those of a
 *               kernel that is not randomised
 *     arm64     the bases are constants that depend on the configuration and
 *               the version: five widths of addresses, three layouts each
 *     riscv64   one base is in a variable, the other one of two constants
 */
#include "kalloc-tracer/kernel/direct-map.h"

static uint64_t symbol(const GsKernel *k, const char *name)
{
    GsSymbol sym;

    return gs_kernel_variable(k, name, &sym) ? sym.va : 0;
}

static bool load(const GsMem *mem, uint64_t va, void *to, size_t len)
{
    return va && mem->read(mem->opaque, va, to, len);
}

/* ---- x86-64 ------------------------------------------------------------- */

/* Below each direct map */
#define LOWEST  0xff00000000000000ull

/* The struct page of each address is known, but not where page frame 0 is. Any
 * address below the direct map will do, because only differences are used. */
static KtDirectMap learned_x86_64(const KtDirectMapAt *at)
{
    KtDirectMap none = { UINT64_MAX, 0 };

    return at->struct_page != at->learned_size ? none : (KtDirectMap) {
        .page_offset = LOWEST,
        .vmemmap = at->learned_base +
                   (LOWEST >> at->page_shift) * at->struct_page,
    };
}

/* kernel_randomize_memory() in arch/x86/mm/kaslr.c sets both variables long
 * before the first kmalloc(). Then they do not change. */
static unsigned guess_x86_64(const KtDirectMapAt *at, const GsMem *mem,
                             KtDirectMap *out)
{
    if (at->vmemmap_base && at->page_offset_base) {
        return load(mem, at->vmemmap_base, &out->vmemmap, 8) &&
               load(mem, at->page_offset_base, &out->page_offset, 8);
    }
    if (at->learned_size) {
        out[0] = learned_x86_64(at);
        return 1;
    }
    /* __PAGE_OFFSET_BASE_L4, _L5 in arch/x86/include/asm/page_64_types.h */
    out[0] = (KtDirectMap) { 0xffff888000000000, 0xffffea0000000000 };
    out[1] = (KtDirectMap) { 0xff11000000000000, 0xffd4000000000000 };
    return 2;
}

/* ---- arm64 -------------------------------------------------------------- */

#define STRUCT_PAGE_SHIFT   6       /* STRUCT_PAGE_MAX_SHIFT, of 64 bytes */

/* Return VA_BITS_MIN. A kernel for 52 bits also runs on CPUs that have less: 48
 * bits, or 47 with 16K pages (since 6.9). */
static unsigned least_bits_arm64(unsigned va_bits, unsigned page_shift)
{
    return va_bits <= 48 ? va_bits : page_shift == 14 ? 47 : 48;
}

/*
 * Add the three layouts for one width. PAGE_OFFSET is the lowest address of the
 * kernel's half, VA_BITS wide. The memory map is near the top; its place
 * changed twice in arch/arm64/include/asm/memory.h: see VMEMMAP_START in 6.9,
 * in 5.11, and before.
 */
static void add_arm64(const KtDirectMapAt *at, unsigned va_bits,
                      uint64_t memstart, KtDirectMap *out)
{
    unsigned min_bits = least_bits_arm64(va_bits, at->page_shift);
    uint64_t page_offset = ~0ull << va_bits;
    uint64_t pages = ((~0ull << (min_bits - 1)) - page_offset) >>
                     at->page_shift;
    uint64_t start[] = {
        -(1ull << 30) - pages * at->struct_page,
        ~0ull << (va_bits - (at->page_shift - STRUCT_PAGE_SHIFT)),
        -(pages << STRUCT_PAGE_SHIFT) - (2ull << 20),
    };
    uint64_t pfn = memstart >> at->page_shift;

    for (unsigned i = 0; i < G_N_ELEMENTS(start); i++) {
        out[i].page_offset = page_offset - memstart;
        out[i].vmemmap = start[i] - pfn * at->struct_page;
    }
}

static unsigned guess_arm64(const KtDirectMapAt *at, const GsMem *mem,
                            KtDirectMap *out)
{
    static const unsigned va_bits[] = { 48, 52, 39, 47, 42 };
    uint64_t memstart = 0;

    /* Without KALLSYMS_ALL there is no symbol memstart_addr. Then 0 is used:
     * the struct page of an address does not depend on it. */
    G_STATIC_ASSERT(3 * G_N_ELEMENTS(va_bits) <= KT_DIRECT_MAP_MAX);
    if (at->memstart_addr && !load(mem, at->memstart_addr, &memstart, 8)) {
        return 0;
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(va_bits); i++) {
        add_arm64(at, va_bits[i], memstart, &out[3 * i]);
    }
    return 3 * G_N_ELEMENTS(va_bits);
}

/* ---- riscv64 ------------------------------------------------------------ */

/*
 * From high to low addresses (arch/riscv/include/asm/pgtable.h):
 *
 *     direct map    from PAGE_OFFSET on
 *     vmalloc area  an eighth of the address space of the page tables
 *     memory map    its first struct page is that of the first page of memory
 */
static unsigned guess_riscv64(const KtDirectMapAt *at, const GsMem *mem,
                              KtDirectMap *out)
{
    uint64_t va_pa_offset, first = 0, page_offset;
    uint8_t l4 = 0, l5 = 0;
    unsigned bits;

    if (!load(mem, at->va_pa_offset, &va_pa_offset, 8)) {
        return 0;
    }
    if (load(mem, at->ram_base, &first, 8)) {
        first >>= at->page_shift;
    } else if (!load(mem, at->ram_base_pfn, &first, 8)) {
        return 0;
    }
    load(mem, at->l4, &l4, 1);
    load(mem, at->l5, &l5, 1);
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

/* ---- all ---------------------------------------------------------------- */

static const struct {
    unsigned (*guess)(const KtDirectMapAt *at, const GsMem *mem,
                      KtDirectMap *out);
    bool certain;
} row[GS_ARCH__COUNT] = {
    [GS_ARCH_X86_64] = { guess_x86_64, true },
    [GS_ARCH_ARM64] = { guess_arm64, false },
    [GS_ARCH_RISCV64] = { guess_riscv64, false },
};

bool kt_direct_map_init(KtDirectMapAt *at, const GsKernel *k)
{
    uint32_t struct_page, offset;

    *at = (KtDirectMapAt) {
        .arch = gs_kernel_arch(k)->id,
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

unsigned kt_direct_map_guess(const KtDirectMapAt *at, const GsMem *mem,
                             KtDirectMap out[KT_DIRECT_MAP_MAX], bool *certain)
{
    *certain = row[at->arch].certain && at->vmemmap_base &&
               at->page_offset_base;
    return row[at->arch].guess(at, mem, out);
}

/* ---- by a struct page --------------------------------------------------- */

#define MAX_PFN (1ull << 40)

/* Return the address of @page's memory, 0 if this memory map does not have
 * @page, or the memory is not mapped. */
static uint64_t memory_of(const KtDirectMapAt *at, const GsMem *mem,
                          const KtDirectMap *m, uint64_t page)
{
    uint64_t pfn, va, word;

    if (page < m->vmemmap || (page - m->vmemmap) % at->struct_page) {
        return 0;
    }
    pfn = (page - m->vmemmap) / at->struct_page;
    va = m->page_offset + (pfn << at->page_shift);
    return pfn < MAX_PFN && load(mem, page, &word, sizeof(word)) &&
           load(mem, va, &word, sizeof(word)) ? va : 0;
}

uint64_t kt_direct_map_by_page(const KtDirectMapAt *at, const GsMem *mem,
                               uint64_t page)
{
    KtDirectMap guess[KT_DIRECT_MAP_MAX];
    bool certain;
    unsigned n = kt_direct_map_guess(at, mem, guess, &certain);
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
