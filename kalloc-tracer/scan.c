/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Scan: see scan.h.
 *
 * Most words are no address of a block; a table of bits, by the word's 2 MiB,
 * tells of nearly all of them. For the rest each page of a block's has the
 * number of its first extent, found by a hash of the 2 MiB around it.
 */
#include "scan.h"

#include <stdlib.h>
#include <string.h>

#define PAGE_SHIFT      12
#define CHUNK_SHIFT     21
#define CHUNK_PAGES     (1u << (CHUNK_SHIFT - PAGE_SHIFT))
#define CHUNKS_MAX      (1u << 17)      /* 256 GiB of addresses */
#define EXTENT_MAX      (1ull << 34)
#define FILTER_BITS     16
#define LOW_COOKIE      (1ull << 31)

typedef enum Colour { WHITE, GREY, BLACK } Colour;

typedef struct Block {
    uint64_t va, len;
    uint32_t alias;             /* first of them */
    uint16_t n_alias;
    uint8_t flags;
    uint8_t colour:2;
    uint8_t hold:2;
    uint8_t areas:1;            /* it has scan areas */
} Block;

/* Addresses of a block. They do not overlap. */
typedef struct Extent {
    uint64_t va, len;
    uint32_t block;
} Extent;

/* What overlaps with a page: @n extents from @first on. */
typedef struct Page {
    uint32_t first;
    uint32_t n;
} Page;

typedef struct Chunk {
    uint64_t number;            /* UINT64_MAX: none */
    Page *page;                 /* CHUNK_PAGES */
} Chunk;

struct KtScan {
    GArray *block;              /* Block */
    GArray *alias;              /* uint64_t */
    uint64_t short_of_alias;    /* blocks that have more */
    GArray *area;               /* KtScanArea, by block */
    Extent *extent;
    uint32_t n_extents;
    Chunk *chunk;               /* a power of 2 of them */
    uint32_t chunk_mask;
    uint32_t n_chunks;
    GArray *grey;               /* uint32_t */
    uint64_t filter[(1u << FILTER_BITS) / 64];
    uint64_t pages_lo, pages_hi, page_struct, pages_va, page_bytes;
    bool no_pages;              /* they are not followed now */
    Colour from;                /* colour of those whose words are looked at */
    uint32_t self;              /* the white one among them */
};

KtScan *kt_scan_new(void)
{
    KtScan *s = g_new0(KtScan, 1);

    s->block = g_array_new(FALSE, FALSE, sizeof(Block));
    s->alias = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    s->area = g_array_new(FALSE, FALSE, sizeof(KtScanArea));
    s->grey = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    s->from = BLACK;
    s->self = KT_SCAN_NONE;
    return s;
}

void kt_scan_free(KtScan *s)
{
    if (!s) {
        return;
    }
    for (uint32_t i = 0; s->chunk && i <= s->chunk_mask; i++) {
        g_free(s->chunk[i].page);
    }
    g_free(s->chunk);
    g_free(s->extent);
    g_array_unref(s->block);
    g_array_unref(s->alias);
    g_array_unref(s->area);
    g_array_unref(s->grey);
    g_free(s);
}

static inline Block *block_at(const KtScan *s, uint32_t i)
{
    return &((Block *)s->block->data)[i];
}

/* ---- what there is ------------------------------------------------------ */

uint32_t kt_scan_add(KtScan *s, uint64_t va, uint64_t len, unsigned flags)
{
    Block b = { .va = va, .len = len, .alias = s->alias->len,
                .flags = flags };

    if (va + len < va) {
        b.len = -va;
    }
    g_array_append_val(s->block, b);
    return s->block->len - 1;
}

void kt_scan_alias(KtScan *s, uint64_t va)
{
    Block *b = block_at(s, s->block->len - 1);

    if (s->alias->len >= KT_SCAN_ALIASES_MAX) {
        s->short_of_alias += !(b->flags & KT_SCANF_HELD);
        b->flags |= KT_SCANF_HELD;
    } else if (b->n_alias < UINT16_MAX && va + b->len >= va) {
        b->n_alias++;
        g_array_append_val(s->alias, va);
    }
}

void kt_scan_set_flags(KtScan *s, uint32_t block, unsigned flags)
{
    block_at(s, block)->flags |= flags;
}

void kt_scan_area(KtScan *s, KtScanArea area)
{
    block_at(s, area.block)->areas = 1;
    g_array_append_val(s->area, area);
}

void kt_scan_pages(KtScan *s, uint64_t lo, uint64_t hi, uint64_t size,
                   uint64_t va, uint64_t page)
{
    s->pages_lo = lo;
    s->pages_hi = hi;
    s->page_struct = size;
    s->pages_va = va;
    s->page_bytes = page;
}

void kt_scan_follow_pages(KtScan *s, bool follow)
{
    s->no_pages = !follow;
}

/* ---- index -------------------------------------------------------------- */

static inline uint64_t hash(uint64_t number)
{
    return number * 0x9e3779b97f4a7c15ull;
}

static inline unsigned filter_bit(uint64_t va)
{
    return hash(va >> CHUNK_SHIFT) >> (64 - FILTER_BITS);
}

static void let_through(KtScan *s, uint64_t va)
{
    unsigned bit = filter_bit(va);

    s->filter[bit / 64] |= 1ull << bit % 64;
}

/* The chunk's place, or the free one that it would take. */
static inline Chunk *chunk_place(const KtScan *s, uint64_t number)
{
    uint32_t i = hash(number) >> 32 & s->chunk_mask;

    while (s->chunk[i].page && s->chunk[i].number != number) {
        i = (i + 1) & s->chunk_mask;
    }
    return &s->chunk[i];
}

static Chunk *add_chunk(KtScan *s, uint64_t number)
{
    Chunk *c = chunk_place(s, number);

    if (c->page) {
        return c;
    }
    if (s->n_chunks == CHUNKS_MAX) {
        return NULL;
    }
    s->n_chunks++;
    c->number = number;
    c->page = g_new0(Page, CHUNK_PAGES);
    let_through(s, number << CHUNK_SHIFT);
    return c;
}

static bool add_extent(KtScan *s, uint32_t index)
{
    const Extent *e = &s->extent[index];
    uint64_t last = (e->va + e->len - 1) >> PAGE_SHIFT;
    Chunk *c = NULL;

    if (e->len > EXTENT_MAX) {
        return false;
    }
    for (uint64_t n = e->va >> PAGE_SHIFT; n <= last; n++) {
        Page *p;

        if (!c || c->number != n / CHUNK_PAGES) {
            c = add_chunk(s, n / CHUNK_PAGES);
        }
        if (!c) {
            return false;
        }
        p = &c->page[n % CHUNK_PAGES];
        p->first = p->n ? p->first : index;
        p->n++;
    }
    return true;
}

static int by_address(const void *a, const void *b)
{
    const Extent *x = a, *y = b;

    return (x->va > y->va) - (x->va < y->va);
}

static void list_extents(KtScan *s)
{
    s->extent = g_new(Extent, (size_t)s->block->len + s->alias->len + 1);
    for (uint32_t i = 0; i < s->block->len; i++) {
        const Block *b = block_at(s, i);

        if (!b->len) {
            continue;
        }
        s->extent[s->n_extents++] = (Extent) { b->va, b->len, i };
        for (unsigned j = 0; j < b->n_alias; j++) {
            s->extent[s->n_extents++] = (Extent) {
                g_array_index(s->alias, uint64_t, b->alias + j), b->len, i };
        }
    }
    qsort(s->extent, s->n_extents, sizeof(Extent), by_address);
}

/* Returns: how many are left. */
static uint32_t drop_overlaps(KtScan *s)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->n_extents; i++) {
        const Extent *e = &s->extent[i];

        if (!n || e->va - s->extent[n - 1].va >= s->extent[n - 1].len) {
            s->extent[n++] = *e;
        } else {
            block_at(s, e->block)->flags |= KT_SCANF_HELD;
        }
    }
    return n;
}

static int area_order(const void *a, const void *b)
{
    const KtScanArea *x = a, *y = b;

    return (x->block > y->block) - (x->block < y->block);
}

/* By the numbers of their chunks: the last may be the last of all. */
static void let_pages_through(KtScan *s)
{
    uint64_t first = s->pages_lo >> CHUNK_SHIFT;
    uint64_t last = (s->pages_hi - 1) >> CHUNK_SHIFT;

    if (s->pages_hi <= s->pages_lo) {
        return;
    }
    for (uint64_t n = first; n <= last; n++) {
        let_through(s, n << CHUNK_SHIFT);
    }
}

uint64_t kt_scan_seal(KtScan *s)
{
    uint64_t dropped;
    uint32_t n;

    g_array_sort(s->area, area_order);
    list_extents(s);
    n = drop_overlaps(s);
    dropped = s->short_of_alias + s->n_extents - n;
    s->n_extents = n;
    s->chunk = g_new0(Chunk, 2 * CHUNKS_MAX);
    s->chunk_mask = 2 * CHUNKS_MAX - 1;
    for (uint32_t i = 0; i < s->n_extents; i++) {
        if (!add_extent(s, i)) {
            dropped++;
            block_at(s, s->extent[i].block)->flags |= KT_SCANF_HELD;
        }
    }
    let_pages_through(s);
    return dropped;
}

static const Page *page_of(const KtScan *s, uint64_t va)
{
    uint64_t n = va >> PAGE_SHIFT;
    const Chunk *c = chunk_place(s, n / CHUNK_PAGES);

    return c->page ? &c->page[n % CHUNK_PAGES] : NULL;
}

/* The first extent of @p that ends behind @va, or p->n. */
static uint32_t first_behind(const KtScan *s, const Page *p, uint64_t va)
{
    const Extent *e = &s->extent[p->first];
    uint32_t lo = 0, hi = p->n;

    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;

        if (e[mid].va <= va && va - e[mid].va >= e[mid].len) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

static const Extent *find(const KtScan *s, uint64_t va)
{
    const Page *p = page_of(s, va);
    uint32_t i = p ? first_behind(s, p, va) : 0;

    return p && i < p->n && s->extent[p->first + i].va <= va ?
           &s->extent[p->first + i] : NULL;
}

uint32_t kt_scan_find(const KtScan *s, uint64_t va)
{
    const Extent *e = find(s, va);

    return e ? e->block : KT_SCAN_NONE;
}

void kt_scan_gaps(const KtScan *s, uint64_t va, uint64_t len,
                  void (*fn)(void *opaque, uint64_t va, uint64_t len),
                  void *opaque)
{
    uint64_t end = va + MIN(len, UINT64_MAX - va);

    while (va < end) {
        uint64_t left = (1u << PAGE_SHIFT) - (va & ((1u << PAGE_SHIFT) - 1));
        uint64_t next = va + MIN(end - va, left);
        const Page *p = page_of(s, va);
        uint32_t i = p ? first_behind(s, p, va) : 0;

        for (; p && i < p->n && s->extent[p->first + i].va < next; i++) {
            const Extent *e = &s->extent[p->first + i];

            if (e->va > va) {
                fn(opaque, va, e->va - va);
            }
            va = MAX(va, e->va + MIN(next - e->va, e->len));
        }
        if (va < next) {
            fn(opaque, va, next - va);
            va = next;
        }
    }
}

/* ---- words of a block --------------------------------------------------- */

static void each_at(const KtScan *s, uint32_t i, uint64_t va, KtReader *r,
                    bool whole, KtSpanFn *fn, void *opaque)
{
    const Block *b = block_at(s, i);
    const KtScanArea key = { .block = i };
    const KtScanArea *first = (const KtScanArea *)s->area->data, *a;

    if (!b->areas || whole) {
        kt_reader_each(r, va, b->len, fn, opaque);
        return;
    }
    a = bsearch(&key, first, s->area->len, sizeof(key), area_order);
    while (a && a > first && a[-1].block == i) {
        a--;
    }
    for (; a && a < first + s->area->len && a->block == i; a++) {
        if (a->lo < MIN(a->hi, b->len)) {
            kt_reader_each(r, va + a->lo, MIN(a->hi, b->len) - a->lo, fn,
                           opaque);
        }
    }
}

void kt_scan_each(const KtScan *s, uint32_t i, KtReader *r, bool whole,
                  KtSpanFn *fn, void *opaque)
{
    const Block *b = block_at(s, i);

    if (b->flags & KT_SCANF_OPAQUE) {
        return;
    }
    if (!(b->flags & KT_SCANF_COOKIE)) {
        each_at(s, i, b->va, r, whole, fn, opaque);
    }
    for (unsigned j = 0; j < b->n_alias; j++) {
        each_at(s, i, g_array_index(s->alias, uint64_t, b->alias + j), r,
                whole, fn, opaque);
    }
}

/* ---- marking ------------------------------------------------------------ */

static void hold(KtScan *s, uint32_t i, KtHold how)
{
    Block *b = block_at(s, i);

    if (b->colour == WHITE && s->from != WHITE) {
        b->colour = GREY;
        g_array_append_val(s->grey, i);
    }
    /* what white ones say matters only of white ones */
    if (b->hold < how && i != s->self &&
        (s->from != WHITE || b->colour == WHITE)) {
        b->hold = how;
    }
}

/* A struct page refers to what begins in its page. */
static void hold_by_page(KtScan *s, uint64_t word)
{
    uint64_t n = (word - s->pages_lo) / s->page_struct;
    const Extent *e = s->no_pages ? NULL :
                      find(s, s->pages_va + n * s->page_bytes);

    if (e && block_at(s, e->block)->flags & KT_SCANF_PAGES) {
        hold(s, e->block, KT_HOLD_INTERIOR);
    }
}

/* The filter let it through. */
static G_GNUC_NO_INLINE void look_at(KtScan *s, uint64_t word)
{
    const Extent *e;

    if (word >= s->pages_lo && word < s->pages_hi) {
        hold_by_page(s, word);
        return;
    }
    e = find(s, word);
    if (!e) {
        return;
    }
    /* small numbers are mostly just that */
    if (e->va < LOW_COOKIE && word != e->va) {
        return;
    }
    hold(s, e->block, (word & ~7ull) == e->va ? KT_HOLD_START :
                                                KT_HOLD_INTERIOR);
}

void kt_scan_word(KtScan *s, uint64_t word)
{
    unsigned bit = filter_bit(word);

    if (s->filter[bit / 64] >> bit % 64 & 1) {
        look_at(s, word);
    }
}

static void look_at_span(void *opaque, uint64_t va, const uint64_t *word,
                         size_t n)
{
    KtScan *s = opaque;

    for (size_t i = 0; i < n; i++) {
        if (word[i]) {
            kt_scan_word(s, word[i]);
        }
    }
}

void kt_scan_root(KtScan *s, KtReader *r, uint64_t va, uint64_t len)
{
    s->from = BLACK;
    kt_reader_each(r, va, len, look_at_span, s);
}

static void hold_all(KtScan *s, KtScanFlag flag)
{
    for (uint32_t i = 0; i < s->block->len; i++) {
        if (block_at(s, i)->flags & flag) {
            hold(s, i, KT_HOLD_NONE);
        }
    }
}

static void blacken(KtScan *s, KtReader *r, bool books)
{
    while (s->grey->len && !r->stopped) {
        uint32_t i = g_array_index(s->grey, uint32_t, s->grey->len - 1);
        Block *b = block_at(s, i);

        g_array_set_size(s->grey, s->grey->len - 1);
        b->colour = BLACK;
        kt_scan_each(s, i, r, b->flags & KT_SCANF_BOOK && !books,
                     look_at_span, s);
    }
}

void kt_scan_run(KtScan *s, KtReader *r)
{
    s->from = BLACK;
    hold_all(s, KT_SCANF_HELD);
    blacken(s, r, false);
    hold_all(s, KT_SCANF_BOOK);
    blacken(s, r, true);
}

void kt_scan_rest(KtScan *s, KtReader *r)
{
    s->from = WHITE;
    for (uint32_t i = 0; i < s->block->len && !r->stopped; i++) {
        if (block_at(s, i)->colour == WHITE) {
            s->self = i;
            kt_scan_each(s, i, r, false, look_at_span, s);
        }
    }
}

bool kt_scan_reached(const KtScan *s, uint32_t block)
{
    return block_at(s, block)->colour != WHITE;
}

KtHold kt_scan_hold(const KtScan *s, uint32_t block)
{
    return block_at(s, block)->hold;
}
