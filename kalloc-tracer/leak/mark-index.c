/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Index of a marker: see mark-internal.h.
 */
#include "kalloc-tracer/leak/mark-internal.h"

#include "kalloc-tracer/base/host-memory.h"

#include <stdlib.h>
#include <string.h>

#define PAGE_SHIFT      12
#define PAGE            (1ull << PAGE_SHIFT)
#define CHUNK_PAGES (1u << (KT_MARKER_CHUNK_SHIFT - PAGE_SHIFT))
#define CHUNKS_MAX      (1u << 17)      /* 256 GiB of addresses */
#define EXTENT_MAX      (1ull << 34)
#define BLOCKS_MAX      (1u << 29)
#define GROUP           32              /* addresses looked up together */
#define STEPS           4               /* from a guess, then binary search */

/* Extents that overlap a page: @n of them, from number @first on. */
typedef struct Page {
    uint32_t first;
    uint32_t n;
} Page;

typedef struct Chunk {
    uint64_t number;
    Page *page;                 /* CHUNK_PAGES of them; NULL: free slot */
} Chunk;

struct KtMarkIndex {
    KtExtent *extent;
    uint32_t n_extents, room;
    Chunk *chunk;               /* hash table with a power of 2 slots */
    uint64_t odd;               /* random factor of the hash: a guest that
                                 * knew it could make all chunks collide */
    uint32_t chunk_mask;
    uint32_t n_chunks;
};

KtMarkIndex *kt_mark_index_new(uint32_t n)
{
    KtMarkIndex *ix = g_new0(KtMarkIndex, 1);

    ix->odd = (uint64_t)g_random_int() << 32 | g_random_int() | 1;
    ix->room = n;
    ix->extent = g_new(KtExtent, n + 1ull);
    kt_huge(ix->extent, n * sizeof(KtExtent));
    return ix;
}

void kt_mark_index_free(KtMarkIndex *ix)
{
    if (!ix) {
        return;
    }
    for (uint32_t i = 0; ix->chunk && i <= ix->chunk_mask; i++) {
        g_free(ix->chunk[i].page);
    }
    g_free(ix->chunk);
    g_free(ix->extent);
    g_free(ix);
}

bool kt_mark_index_add(KtMarkIndex *ix, uint64_t va, uint64_t len,
                       uint32_t block)
{
    if (len > EXTENT_MAX || block >= BLOCKS_MAX || ix->n_extents == ix->room) {
        return false;
    }
    ix->extent[ix->n_extents++] = (KtExtent) { va, len, block };
    return true;
}

/* ---- order -------------------------------------------------------------- */

static int by_address(const void *a, const void *b)
{
    const KtExtent *x = a, *y = b;

    return (x->va > y->va) - (x->va < y->va);
}

static uint32_t sorted_head(const KtMarkIndex *ix)
{
    uint32_t n = MIN(1, ix->n_extents);

    while (n < ix->n_extents && ix->extent[n - 1].va <= ix->extent[n].va) {
        n++;
    }
    return n;
}

/* Sort the extents by address. The blocks come first and are sorted already,
 * aliases follow: so sort the tail, and merge it into the head from the end. */
static void sort(KtMarkIndex *ix)
{
    uint32_t head = sorted_head(ix), tail = ix->n_extents - head;
    g_autofree KtExtent *rest = g_new(KtExtent, tail + 1ull);
    KtExtent *all = ix->extent;

    memcpy(rest, all + head, tail * sizeof(KtExtent));
    qsort(rest, tail, sizeof(KtExtent), by_address);
    while (tail) {
        bool of_head = head && all[head - 1].va > rest[tail - 1].va;

        all[head + tail - 1] = of_head ? all[head - 1] : rest[tail - 1];
        head -= of_head;
        tail -= !of_head;
    }
}

/* Keep the first of extents that overlap. */
static void drop_overlaps(KtMarkIndex *ix,
                          void (*drop)(void *opaque, uint32_t block),
                          void *opaque)
{
    KtExtent *all = ix->extent;
    uint32_t n = 0;

    for (uint32_t i = 0; i < ix->n_extents; i++) {
        if (!n || all[i].va - all[n - 1].va >= all[n - 1].len) {
            all[n++] = all[i];
        } else {
            drop(opaque, all[i].block);
        }
    }
    ix->n_extents = n;
}

/* ---- pages -------------------------------------------------------------- */

/* Return the slot of a chunk, or the free slot where it belongs. */
static inline Chunk *chunk_place(const KtMarkIndex *ix, uint64_t number)
{
    uint32_t i = number * ix->odd >> 32 & ix->chunk_mask;

    while (ix->chunk[i].page && ix->chunk[i].number != number) {
        i = (i + 1) & ix->chunk_mask;
    }
    return &ix->chunk[i];
}

static inline uint64_t last_of(const KtExtent *e)
{
    return e->va + e->len - 1;
}

/* Count the chunks that extents touch, and make a table of twice the size. */
static void make_chunks(KtMarkIndex *ix)
{
    uint64_t n = 0, next = 0, size = 16;

    for (uint32_t i = 0; i < ix->n_extents && n < CHUNKS_MAX; i++) {
        uint64_t first = ix->extent[i].va >> KT_MARKER_CHUNK_SHIFT;
        uint64_t last = last_of(&ix->extent[i]) >> KT_MARKER_CHUNK_SHIFT;

        first = MAX(first, next);
        n += last + 1 - MIN(first, last + 1);
        next = last + 1;
    }
    while (size < 2 * MIN(n, CHUNKS_MAX)) {
        size *= 2;
    }
    ix->chunk = g_new0(Chunk, size);
    ix->chunk_mask = size - 1;
}

static Chunk *add_chunk(KtMarkIndex *ix, uint64_t number,
                        KtMarkerFilter *filter)
{
    Chunk *c = chunk_place(ix, number);

    if (c->page) {
        return c;
    }
    if (ix->n_chunks == CHUNKS_MAX) {
        return NULL;
    }
    ix->n_chunks++;
    c->number = number;
    c->page = g_new0(Page, CHUNK_PAGES);
    if (number << KT_MARKER_CHUNK_SHIFT >= KT_MARKER_LOW) {
        kt_marker_filter_add(filter, number << KT_MARKER_CHUNK_SHIFT);
    }
    return c;
}

static bool add_to_pages(KtMarkIndex *ix, uint32_t i, KtMarkerFilter *filter)
{
    uint64_t last = last_of(&ix->extent[i]) >> PAGE_SHIFT;
    Chunk *c = NULL;

    if (ix->extent[i].va < KT_MARKER_LOW) {
        kt_marker_filter_add(filter, ix->extent[i].va);
    }
    for (uint64_t n = ix->extent[i].va >> PAGE_SHIFT; n <= last; n++) {
        Page *p;

        if (!c || c->number != n / CHUNK_PAGES) {
            c = add_chunk(ix, n / CHUNK_PAGES, filter);
        }
        if (!c) {
            return false;
        }
        p = &c->page[n % CHUNK_PAGES];
        p->first = p->n ? p->first : i;
        p->n++;
    }
    return true;
}

void kt_mark_index_seal(KtMarkIndex *ix, KtMarkerFilter *filter,
                        void (*drop)(void *opaque, uint32_t block),
                        void *opaque)
{
    sort(ix);
    drop_overlaps(ix, drop, opaque);
    make_chunks(ix);
    for (uint32_t i = 0; i < ix->n_extents; i++) {
        if (!add_to_pages(ix, i, filter)) {
            drop(opaque, ix->extent[i].block);
        }
    }
}

/* ---- looking up --------------------------------------------------------- */

static inline const Page *page_of(const KtMarkIndex *ix, uint64_t va)
{
    uint64_t n = va >> PAGE_SHIFT;
    const Chunk *c = chunk_place(ix, n / CHUNK_PAGES);

    return c->page ? &c->page[n % CHUNK_PAGES] : NULL;
}

/* Count the extents that end at or before @va, by binary search. */
static uint32_t ends_before(const KtExtent *e, uint32_t n, uint64_t va)
{
    uint32_t lo = 0;

    while (lo < n) {
        uint32_t mid = (lo + n) / 2;

        if (e[mid].va <= va && va - e[mid].va >= e[mid].len) {
            lo = mid + 1;
        } else {
            n = mid;
        }
    }
    return lo;
}

/* Guess the extent: objects in a page mostly have one size, so interpolate. */
static inline const KtExtent *guess(const KtMarkIndex *ix, const Page *p,
                                    uint64_t va)
{
    return &ix->extent[p->first + ((va & (PAGE - 1)) * p->n >> PAGE_SHIFT)];
}

static inline bool is_in(const KtExtent *e, uint64_t va)
{
    return va - e->va < e->len;
}

static const KtExtent *find_binary(const KtExtent *first, uint32_t n,
                                   uint64_t va)
{
    uint32_t i = ends_before(first, n, va);

    return i < n && is_in(first + i, va) ? first + i : NULL;
}

/* Find the extent of @va: a few steps from the guess @e, then binary search. */
static const KtExtent *find_near(const KtMarkIndex *ix, const Page *p,
                                 uint64_t va, const KtExtent *e)
{
    const KtExtent *first = &ix->extent[p->first], *end = first + p->n;

    for (unsigned step = 0; step < STEPS; step++) {
        if (is_in(e, va)) {
            return e;
        }
        if (va > e->va) {
            e++;
            if (e == end || va < e->va) {
                return NULL;
            }
        } else if (e == first) {
            return NULL;
        } else if (va >= (--e)->va) {
            return is_in(e, va) ? e : NULL;
        }
    }
    return find_binary(first, p->n, va);
}

static void find_group(const KtMarkIndex *ix, const uint64_t *va, unsigned n,
                       const KtExtent **out)
{
    const Page *page[GROUP];

    for (unsigned i = 0; i < n; i++) {
        page[i] = page_of(ix, va[i]);
        kt_prefetch(page[i]);
    }
    for (unsigned i = 0; i < n; i++) {
        out[i] = page[i] && page[i]->n ? guess(ix, page[i], va[i]) : NULL;
        kt_prefetch(out[i]);
    }
    for (unsigned i = 0; i < n; i++) {
        out[i] = out[i] ? find_near(ix, page[i], va[i], out[i]) : NULL;
    }
}

void kt_mark_index_find(const KtMarkIndex *ix, const uint64_t *va, unsigned n,
                        const KtExtent **out)
{
    for (unsigned i = 0; i < n; i += GROUP) {
        find_group(ix, va + i, MIN(GROUP, n - i), out + i);
    }
}

/* Handle one page of kt_mark_index_gaps(). The page may be the last one of the
 * address space, so @va + @len may be 0. Return false if @fn did. */
static bool gaps_of_page(const KtMarkIndex *ix, uint64_t va, uint64_t len,
                         bool (*fn)(void *opaque, uint64_t va, uint64_t len),
                         void *opaque)
{
    const Page *p = page_of(ix, va);
    const KtExtent *e = p ? &ix->extent[p->first] : NULL;
    uint32_t i = p ? ends_before(e, p->n, va) : 0;

    for (; len && p && i < p->n && (e[i].va <= va || e[i].va - va < len);
         i++) {
        uint64_t gap = e[i].va > va ? e[i].va - va : 0;
        uint64_t covered;

        if (e[i].len == 1) {            /* KT_MARKERF_EXACT: no memory */
            continue;
        }
        if (gap && !fn(opaque, va, gap)) {
            return false;
        }
        va += gap;
        len -= gap;
        covered = MIN(len, e[i].len - (va - e[i].va));
        va += covered;
        len -= covered;
    }
    return !len || fn(opaque, va, len);
}

void kt_mark_index_gaps(const KtMarkIndex *ix, uint64_t va, uint64_t len,
                        bool (*fn)(void *opaque, uint64_t va, uint64_t len),
                        void *opaque)
{
    len = len ? MIN(len - 1, UINT64_MAX - va) + 1 : 0;
    while (len) {
        uint64_t n = MIN(len, PAGE - (va & (PAGE - 1)));

        if (!gaps_of_page(ix, va, n, fn, opaque)) {
            return;
        }
        va += n;
        len -= n;
    }
}
