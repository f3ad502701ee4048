/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * KtStructPages: see struct-page.h.
 *
 * Guest memory is not trusted: an address outside the memory map is refused,
 * and all walks are bounded.
 */
#include "kalloc-tracer/kernel/struct-page.h"

#define MAX_ORDER       20      /* larger than any MAX_PAGE_ORDER */
#define UNKNOWN         KT_NO_MEMBER

struct KtStructPages {
    KtGuest *guest;
    unsigned shift;             /* log2 of the size of a page */
    uint32_t page_size;         /* bytes of struct page */
    uint32_t flags, lru, refcount;      /* offsets in struct page */
    uint64_t head_bit;          /* PG_head of the flags; 0 if unknown */
    uint32_t folio_order;       /* offset of a byte in struct folio */
    uint32_t batch_nr, batch_folios;
};

/* Return the offset of a folio's order, a byte of its second struct page:
 * _folio_order, later the low byte of _flags_1 (folio_order() in
 * include/linux/mm.h). Before 5.16 there are no folios, and the member of
 * struct page is compound_order. */
static uint32_t folio_order(const GsKernel *k)
{
    uint32_t at = kt_member(k, KT_M_FOLIO_ORDER), size;

    if (at == UNKNOWN && gs_kernel_type_size(k, "page", &size)) {
        at = kt_member(k, KT_M_PAGE_ORDER);
        at = at == UNKNOWN ? at : size + at;
    }
    return at;
}

KtStructPages *kt_struct_page_new(const GsKernel *k, KtGuest *g)
{
    int64_t head = 0;
    KtStructPages p = {
        .guest = g,
        .shift = gs_kernel_page_shift(k),
        .flags = kt_member(k, KT_M_PAGE_FLAGS),
        .lru = kt_member(k, KT_M_PAGE_LRU),
        .refcount = kt_member(k, KT_M_PAGE_REFCOUNT),
        .folio_order = folio_order(k),
        .batch_nr = kt_member(k, KT_M_BATCH_NR),
        .batch_folios = kt_member(k, KT_M_BATCH_FOLIOS),
    };

    if (!gs_kernel_type_size(k, "page", &p.page_size) || !p.page_size ||
        p.flags == UNKNOWN || p.lru == UNKNOWN) {
        return NULL;
    }
    if (gs_kernel_enum_value(k, "PG_head", &head) && head > 0 && head < 64) {
        p.head_bit = 1ull << head;
    }
    return g_memdup2(&p, sizeof(p));
}

void kt_struct_page_free(KtStructPages *p)
{
    g_free(p);
}

uint64_t kt_struct_page_va_of(const KtStructPages *p, uint64_t pfn)
{
    uint64_t vmemmap, page_offset;

    if (pfn >= KT_FRAMES_MAX ||
        !kt_guest_direct_map(p->guest, &vmemmap, &page_offset)) {
        return 0;
    }
    return page_offset + (pfn << p->shift);
}

uint64_t kt_struct_page_va(const KtStructPages *p, uint64_t page)
{
    uint64_t vmemmap, page_offset;

    if (!kt_guest_direct_map(p->guest, &vmemmap, &page_offset)) {
        return kt_guest_memory_of(p->guest, page);
    }
    if (page < vmemmap || (page - vmemmap) % p->page_size) {
        return 0;
    }
    return kt_struct_page_va_of(p, (page - vmemmap) / p->page_size);
}

uint64_t kt_struct_page_len(const KtStructPages *p, uint64_t order)
{
    return order <= MAX_ORDER ? 1ull << (p->shift + order) : 0;
}

uint64_t kt_struct_page_folio_len(const KtStructPages *p, uint64_t folio)
{
    uint64_t flags;
    uint8_t order = 0;

    if (!kt_guest_u64(p->guest, folio + p->flags, &flags)) {
        return 0;
    }
    if ((flags & p->head_bit) &&
        (p->folio_order == UNKNOWN ||
         !kt_guest_read(p->guest, folio + p->folio_order, &order, 1))) {
        return 0;
    }
    return kt_struct_page_len(p, order);
}

KtOrderFit kt_struct_page_fit(const KtStructPages *p, uint64_t page,
                              uint64_t order)
{
    uint64_t len = kt_struct_page_len(p, order);
    uint64_t next = page + ((len >> p->shift) * p->page_size);
    uint64_t flags = 0;
    uint32_t references = 1;

    if (!len || !p->head_bit || p->refcount == UNKNOWN ||
        !kt_guest_u64(p->guest, page + p->flags, &flags)) {
        return KT_ORDER_FITS;
    }
    if (flags & p->head_bit) {
        uint64_t compound = kt_struct_page_folio_len(p, page);

        return !compound || compound == len ? KT_ORDER_FITS : KT_ORDER_DIFFERS;
    }
    return kt_guest_u64(p->guest, next + p->flags, &flags) &&
           !(flags & p->head_bit) &&
           kt_guest_read(p->guest, next + p->refcount, &references,
                         sizeof(references)) &&
           !references ? KT_ORDER_SHORT : KT_ORDER_FITS;
}

bool kt_struct_page_is_unreferenced(const KtStructPages *p, uint64_t page)
{
    uint32_t references = 1;

    return p->refcount != UNKNOWN &&
           kt_guest_read(p->guest, page + p->refcount, &references,
                         sizeof(references)) &&
           (int32_t)GUINT32_FROM_LE(references) <= 0;
}

/* ---- walks -------------------------------------------------------------- */

bool kt_struct_page_walk_array(const KtStructPages *p, uint64_t array,
                               uint64_t n, KtStructPageFn fn, void *opaque)
{
    for (uint64_t i = 0; i < n; i++) {
        uint64_t page;

        if (i == KT_PAGES_MAX ||
            !kt_guest_u64(p->guest, array + 8 * i, &page) ||
            (page && !fn(page, opaque))) {
            return false;
        }
    }
    return true;
}

bool kt_struct_page_walk_list(const KtStructPages *p, uint64_t head, uint64_t n,
                              KtStructPageFn fn, void *opaque)
{
    uint64_t at = head;

    for (uint64_t i = 0; i < n; i++) {
        if (i == KT_PAGES_MAX || !kt_guest_u64(p->guest, at, &at)) {
            return false;
        }
        if (at == head) {
            return true;
        }
        if (!fn(at - p->lru, opaque)) {
            return false;
        }
    }
    return true;
}

bool kt_struct_page_walk_batch(const KtStructPages *p, uint64_t batch,
                               KtStructPageFn fn, void *opaque)
{
    uint8_t n;

    if (p->batch_nr == UNKNOWN || p->batch_folios == UNKNOWN ||
        !kt_guest_read(p->guest, batch + p->batch_nr, &n, 1)) {
        return false;
    }
    return kt_struct_page_walk_array(p, batch + p->batch_folios, n, fn, opaque);
}
