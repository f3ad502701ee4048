/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * KtReader, which reads guest memory by words: see mark.h. Blocks that are
 * allocated together are mostly scanned together, so a direct-mapped cache of
 * 256 pages saves most reads.
 */
#include "kalloc-tracer/leak/mark.h"

#include <string.h>

#define PAGES         256       /* in the cache; slot: page number % PAGES */
#define TICK_ACCESSES 2048      /* page accesses between two ticks */
#define HOLE_PAGES    4096      /* unreadable pages that end a range */

struct KtReaderPage {
    uint64_t va;                /* 1: free slot */
    bool readable;
    uint64_t word[KT_READER_PAGE / sizeof(uint64_t)];
};

void kt_reader_init(KtReader *r)
{
    r->bytes = r->unreadable = r->accesses = 0;
    r->stopped = false;
    r->page = g_new(struct KtReaderPage, PAGES);
    for (unsigned i = 0; i < PAGES; i++) {
        r->page[i].va = 1;
    }
}

void kt_reader_deinit(KtReader *r)
{
    g_clear_pointer(&r->page, g_free);
}

static void untag(const KtReader *r, struct KtReaderPage *p)
{
    for (size_t i = 0; i < G_N_ELEMENTS(p->word); i++) {
        p->word[i] = gs_untag(r->tag_bits, p->word[i]);
    }
}

static const struct KtReaderPage *page_at(KtReader *r, uint64_t va)
{
    struct KtReaderPage *p = &r->page[va / KT_READER_PAGE % PAGES];

    if (p->va != va) {
        p->va = va;
        p->readable = r->mem.read(r->mem.opaque, va, p->word,
                                  sizeof(p->word));
        if (p->readable && r->tag_bits) {
            untag(r, p);
        }
        r->bytes += p->readable ? KT_READER_PAGE : 0;
        r->unreadable += !p->readable;
    }
    if (++r->accesses % TICK_ACCESSES == 0 && r->tick && !r->tick(r->opaque)) {
        r->stopped = true;
    }
    return p->readable ? p : NULL;
}

void kt_reader_each(KtReader *r, uint64_t va, uint64_t len, KtSpanFn *fn,
                    void *opaque)
{
    uint64_t end = va + len < va ? UINT64_MAX - 7 : (va + len) & ~7ull;
    unsigned hole = 0;

    if (va >= end) {
        return;             /* rounding @va up must not wrap to 0 */
    }
    va = (va + 7) & ~7ull;
    while (va < end && !r->stopped && hole < HOLE_PAGES) {
        uint64_t page = va & ~(KT_READER_PAGE - 1ull);
        uint64_t n = MIN(end - va, page + KT_READER_PAGE - va);
        const struct KtReaderPage *p = page_at(r, page);

        hole = p ? 0 : hole + 1;
        if (p) {
            fn(opaque, va, &p->word[(va - page) / 8], n / 8);
        }
        if (page + KT_READER_PAGE < page) {
            return;
        }
        va += n;
    }
}
