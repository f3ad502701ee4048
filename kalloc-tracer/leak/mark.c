/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The marker: see mark.h.
 *
 * The way of a word; each step drops most of the words that reach it:
 *
 *     gather()        pointers into the scanned block itself
 *                     the filter: 2 MiB without any block (mark-internal.h)
 *     waiting[]       up to 64 words are buffered
 *     is_new()        words that were looked up lately
 *     mark_words()    index lookup; all words of the buffer together, so that
 *                     their cache misses overlap
 *     mark()          set the state; add to the queue if newly reached
 */
#include "kalloc-tracer/leak/mark.h"
#include "kalloc-tracer/base/host-memory.h"
#include "kalloc-tracer/leak/mark-internal.h"

#include <stdlib.h>
#include <string.h>

#define WAITING     64          /* words in the buffer */
#define AT_ONCE     8           /* words that gather() handles in one loop */
#define SEEN_BITS   10          /* log2 of the words that is_new() keeps */

typedef struct Block {
    uint64_t va, len;
    uint32_t alias;             /* index of the first one */
    uint16_t n_alias;
    uint8_t flags:6;            /* KtMarkerFlag */
    bool areas:1, skips:1;      /* does it have any? */
} Block;
G_STATIC_ASSERT(sizeof(Block) == 24);

/* State of a block in one byte: its KtHold in two bits, and REACHED. */
enum {
    HOLD_MASK = 3,
    REACHED = 4,
};

/* The block that is scanned now. Many of its words point back into it (an empty
 * list_head, a lock without waiters), and need no lookup.
 * @least: smallest offset that its words point to; >= @len if none does */
typedef struct Own {
    uint64_t va, len, least;
} Own;

struct KtMarker {
    GArray *block;              /* Block */
    GArray *alias;              /* uint64_t */
    GArray *area;               /* KtMarkerArea, by block */
    GArray *skip;               /* KtMarkerArea, by block: words to skip */
    GArray *also;               /* KtMarkerArea: @lo refers to the block */
    KtMarkIndex *index;
    KtMarkerFilter filter;
    uint8_t *state;             /* by block */
    KtMarkQueue queue;
    uint64_t waiting[WAITING];
    unsigned n_waiting;
    Own own;
    uint64_t seen[1u << SEEN_BITS];     /* words looked up lately, by hash */
    uint64_t dropped;
    uint64_t pages_lo, pages_hi, page_struct, pages_va, page_bytes;
    bool no_pages;              /* ignore addresses of struct pages */
    bool among_pages;           /* a block overlaps the memory map: possible
                                 * only if the guest's types are wrong */
    bool unreached;             /* words of unreached blocks are scanned */
    uint32_t self;              /* of this block */
};

KtMarker *kt_marker_new(void)
{
    KtMarker *s = g_new0(KtMarker, 1);

    s->block = g_array_new(FALSE, FALSE, sizeof(Block));
    s->alias = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    s->area = g_array_new(FALSE, FALSE, sizeof(KtMarkerArea));
    s->skip = g_array_new(FALSE, FALSE, sizeof(KtMarkerArea));
    s->also = g_array_new(FALSE, FALSE, sizeof(KtMarkerArea));
    s->self = KT_MARKER_NONE;
    s->seen[0] = 1;             /* so that 0 does not count as looked up */
    return s;
}

void kt_marker_free(KtMarker *s)
{
    if (!s) {
        return;
    }
    kt_mark_index_free(s->index);
    g_free(s->state);
    kt_mark_queue_deinit(&s->queue);
    g_array_unref(s->block);
    g_array_unref(s->alias);
    g_array_unref(s->area);
    g_array_unref(s->skip);
    g_array_unref(s->also);
    g_free(s);
}

static inline Block *block_at(const KtMarker *s, uint32_t i)
{
    return &((Block *)s->block->data)[i];
}

/* ---- blocks ------------------------------------------------------------- */

void kt_marker_reserve(KtMarker *s, uint32_t n)
{
    kt_huge_reserve(s->block, n);
}

uint32_t kt_marker_add(KtMarker *s, uint64_t va, uint64_t len, unsigned flags)
{
    Block b = { .va = va, .len = len, .alias = s->alias->len,
                .flags = flags };

    if (va + len < va) {
        b.len = -va;
    }
    g_array_append_val(s->block, b);
    return s->block->len - 1;
}

/* The index has no room for the block, so it cannot be reached: make it a
 * root. */
static void drop(void *opaque, uint32_t block)
{
    KtMarker *s = opaque;

    s->dropped++;
    block_at(s, block)->flags |= KT_MARKERF_ROOT;
}

void kt_marker_alias(KtMarker *s, uint64_t va)
{
    Block *b = block_at(s, s->block->len - 1);

    if (s->alias->len >= KT_MARKER_ALIASES_MAX) {
        if (!(b->flags & KT_MARKERF_ROOT)) {
            drop(s, s->block->len - 1);
        }
    } else if (b->n_alias < UINT16_MAX && va + b->len >= va) {
        b->n_alias++;
        g_array_append_val(s->alias, va);
    }
}

void kt_marker_also(KtMarker *s, uint32_t block, uint64_t word)
{
    g_array_append_val(s->also, ((KtMarkerArea) { block, word, word + 1 }));
}

void kt_marker_set_flags(KtMarker *s, uint32_t block, unsigned flags)
{
    block_at(s, block)->flags |= flags;
}

void kt_marker_area(KtMarker *s, KtMarkerArea area)
{
    block_at(s, area.block)->areas = true;
    g_array_append_val(s->area, area);
}

void kt_marker_skip(KtMarker *s, uint32_t block, uint64_t lo, uint64_t hi)
{
    KtMarkerArea skip = { block, lo & ~7ull, (hi + 7) & ~7ull };

    block_at(s, block)->skips = true;
    g_array_append_val(s->skip, skip);
}

void kt_marker_pages(KtMarker *s, uint64_t lo, uint64_t hi, uint64_t size,
                     uint64_t va, uint64_t page)
{
    s->pages_lo = lo;
    s->pages_hi = hi;
    s->page_struct = size;
    s->pages_va = va;
    s->page_bytes = page;
}

/* ---- index -------------------------------------------------------------- */

static void add(KtMarker *s, uint64_t va, uint64_t len, uint32_t block)
{
    s->among_pages |= va < s->pages_hi && va + (len - 1) >= s->pages_lo;
    if (!kt_mark_index_add(s->index, va, len, block)) {
        drop(s, block);
    }
}

static void add_blocks(KtMarker *s)
{
    s->index = kt_mark_index_new(s->block->len + s->alias->len +
                                 s->also->len);
    for (uint32_t i = 0; i < s->block->len; i++) {
        const Block *b = block_at(s, i);

        if (b->len) {
            add(s, b->va, b->flags & KT_MARKERF_EXACT ? 1 : b->len, i);
        }
    }
    for (uint32_t i = 0; i < s->block->len; i++) {
        const Block *b = block_at(s, i);

        for (unsigned j = 0; b->len && j < b->n_alias; j++) {
            add(s, g_array_index(s->alias, uint64_t, b->alias + j), b->len,
                i);
        }
    }
    for (uint32_t i = 0; i < s->also->len; i++) {
        const KtMarkerArea *a = &g_array_index(s->also, KtMarkerArea, i);

        add(s, a->lo, 1, a->block);
    }
}

static int area_order(const void *a, const void *b)
{
    const KtMarkerArea *x = a, *y = b;

    return x->block != y->block ? (x->block > y->block ? 1 : -1) :
           (x->lo > y->lo) - (x->lo < y->lo);
}

/* Add addresses of struct pages to the filter. Chunk numbers are compared,
 * not addresses: the memory map may end at the end of the address space. */
static void add_pages_to_filter(KtMarker *s)
{
    uint64_t first = s->pages_lo >> KT_MARKER_CHUNK_SHIFT;
    uint64_t last = (s->pages_hi - 1) >> KT_MARKER_CHUNK_SHIFT;

    if (s->pages_hi <= s->pages_lo) {
        return;
    }
    for (uint64_t n = first; n <= last; n++) {
        kt_marker_filter_add(&s->filter, n << KT_MARKER_CHUNK_SHIFT);
    }
}

uint64_t kt_marker_seal(KtMarker *s)
{
    g_array_sort(s->area, area_order);
    g_array_sort(s->skip, area_order);
    s->state = g_new0(uint8_t, s->block->len + 1ull);
    kt_mark_queue_init(&s->queue, s->block->len);
    add_blocks(s);
    kt_mark_index_seal(s->index, &s->filter, drop, s);
    add_pages_to_filter(s);
    return s->dropped;
}

uint32_t kt_marker_find(const KtMarker *s, uint64_t va)
{
    const KtExtent *e;

    kt_mark_index_find(s->index, &va, 1, &e);
    return e ? e->block : KT_MARKER_NONE;
}

void kt_marker_gaps(const KtMarker *s, uint64_t va, uint64_t len,
                    bool (*fn)(void *opaque, uint64_t va, uint64_t len),
                    void *opaque)
{
    kt_mark_index_gaps(s->index, va, len, fn, opaque);
}

/* ---- words of a block --------------------------------------------------- */

/* Find the first area of @block in a sorted list; NULL if there is none. */
static const KtMarkerArea *first_of(const GArray *list, uint32_t block)
{
    const KtMarkerArea *a = (const KtMarkerArea *)list->data;
    unsigned lo = 0, hi = list->len;

    while (lo < hi) {
        unsigned mid = lo + (hi - lo) / 2;

        if (a[mid].block < block) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo < list->len && a[lo].block == block ? &a[lo] : NULL;
}

/* Return the next area of the same block, or NULL. */
static const KtMarkerArea *next_of(const GArray *list, const KtMarkerArea *a)
{
    const KtMarkerArea *end = (const KtMarkerArea *)list->data + list->len;

    return a + 1 < end && a[1].block == a->block ? a + 1 : NULL;
}

/* Arguments of a walk over the words of a block. */
typedef struct Walk {
    const KtMarker *s;
    uint32_t block;
    uint64_t va;                /* address or alias of the block */
    KtReader *r;
    KtSpanFn *fn;
    void *opaque;
} Walk;

static void each_between(const Walk *l, uint64_t lo, uint64_t hi)
{
    if (lo < hi) {
        kt_reader_each(l->r, l->va + lo, hi - lo, l->fn, l->opaque);
    }
}

static void each_unskipped(const Walk *l, uint64_t lo, uint64_t hi)
{
    const GArray *skips = l->s->skip;
    const KtMarkerArea *skip = block_at(l->s, l->block)->skips ?
                                   first_of(skips, l->block) :
                                   NULL;

    for (; skip; skip = next_of(skips, skip)) {
        each_between(l, lo, MIN(skip->lo, hi));
        lo = MAX(lo, skip->hi);
    }
    each_between(l, lo, hi);
}

static void each_at(const Walk *l, bool whole)
{
    const Block *b = block_at(l->s, l->block);
    const KtMarkerArea *a = b->areas ? first_of(l->s->area, l->block) : NULL;

    if (whole) {
        each_between(l, 0, b->len);
    } else if (!a) {
        each_unskipped(l, 0, b->len);
    }
    for (; a && !whole; a = next_of(l->s->area, a)) {
        each_unskipped(l, a->lo, MIN(a->hi, b->len));
    }
}

void kt_marker_each(const KtMarker *s, uint32_t i, KtReader *r, bool whole,
                    KtSpanFn *fn, void *opaque)
{
    const Block *b = block_at(s, i);
    Walk l = { s, i, b->va, r, fn, opaque };

    if (b->flags & KT_MARKERF_NO_SCAN) {
        return;
    }
    if (!(b->flags & KT_MARKERF_HANDLE)) {
        each_at(&l, whole);
    }
    for (unsigned j = 0; j < b->n_alias; j++) {
        l.va = g_array_index(s->alias, uint64_t, b->alias + j);
        each_at(&l, whole);
    }
}

/* ---- marking ------------------------------------------------------------ */

static inline void mark(KtMarker *s, uint32_t i, KtHold how)
{
    /* between unreached blocks only: neither reached ones nor itself */
    if (s->unreached && (s->state[i] & REACHED || i == s->self)) {
        return;
    }
    if (!s->unreached && !(s->state[i] & REACHED)) {
        s->state[i] |= REACHED;
        kt_mark_queue_add(&s->queue, i);
    }
    if ((s->state[i] & HOLD_MASK) < how) {
        s->state[i] = (s->state[i] & ~HOLD_MASK) | how;
    }
}

/* Below KT_MARKER_LOW only the exact address counts: most such words are plain
 * numbers. */
static inline bool is_pointer(const KtExtent *e, uint64_t word)
{
    return e && (e->va >= KT_MARKER_LOW || word == e->va);
}

static void mark_words(KtMarker *s, const uint64_t *word, unsigned n)
{
    const KtExtent *e[WAITING];

    kt_mark_index_find(s->index, word, n, e);
    for (unsigned i = 0; i < n; i++) {
        e[i] = is_pointer(e[i], word[i]) ? e[i] : NULL;
        kt_prefetch(e[i] ? &s->state[e[i]->block] : NULL);
    }
    for (unsigned i = 0; i < n; i++) {
        if (e[i]) {
            mark(s, e[i]->block, (word[i] & ~7ull) == e[i]->va ?
                                 KT_HOLD_START : KT_HOLD_INTERIOR);
        }
    }
}

/* The address of a struct page refers to the block that begins in its page. */
static void mark_by_page(KtMarker *s, uint64_t word)
{
    uint64_t n = (word - s->pages_lo) / s->page_struct;
    uint32_t i = s->no_pages ?
                     KT_MARKER_NONE :
                     kt_marker_find(s, s->pages_va + n * s->page_bytes);

    if (i != KT_MARKER_NONE && block_at(s, i)->flags & KT_MARKERF_BY_PAGE) {
        mark(s, i, KT_HOLD_INTERIOR);
    }
}

/* Many blocks have the same word: about every seventh word was looked up
 * before. A word of an unreached block always counts as new, since a block's
 * own words must not mark it. */
static inline bool is_new(KtMarker *s, uint64_t word)
{
    uint64_t *seen = &s->seen[kt_marker_hash(word) >> (64 - SEEN_BITS)];
    bool is = *seen != word || s->unreached;

    *seen = word;
    return is;
}

/* Walk up all buffered words; the buffer is empty then. */
static G_GNUC_NO_INLINE void mark_waiting(KtMarker *s)
{
    uint64_t *word = s->waiting;
    unsigned n = 0;

    for (unsigned i = 0; i < s->n_waiting; i++) {
        bool page = word[i] >= s->pages_lo && word[i] < s->pages_hi;

        if (page) {
            mark_by_page(s, word[i]);
        }
        if (!page || s->among_pages) {
            word[n] = word[i];
            n += is_new(s, word[n]);
        }
    }
    s->n_waiting = 0;
    mark_words(s, word, n);
}

void kt_marker_follow_pages(KtMarker *s, bool follow)
{
    if (s->no_pages == follow) {
        mark_waiting(s);
        s->no_pages = !follow;
    }
}

/* Add @n words to the buffer, except pointers into the block itself and words
 * that the filter rejects. Without branches: each word is stored, and the next
 * one overwrites it if it is rejected. gcc does not unroll at -O2 by itself;
 * unrolling saves a fifth of the time. */
static inline void gather(KtMarker *s, const uint64_t *word, size_t n)
{
    unsigned to = s->n_waiting;
    Own own = s->own;

#pragma GCC unroll 8
    for (size_t i = 0; i < n; i++) {
        uint64_t off = word[i] - own.va;

        own.least = MIN(own.least, off);
        s->waiting[to] = word[i];
        to += (off >= own.len) & kt_marker_filter_has(&s->filter, word[i]);
    }
    s->own.least = own.least;
    s->n_waiting = to;
    if (to > WAITING - AT_ONCE) {
        mark_waiting(s);
    }
}

static inline bool are_zero(const uint64_t *word)
{
    uint64_t any = 0;

#pragma GCC unroll 8
    for (unsigned i = 0; i < AT_ONCE; i++) {
        any |= word[i];
    }
    return !any;
}

void kt_marker_span(void *scan, uint64_t va, const uint64_t *word, size_t n)
{
    for (; n >= AT_ONCE; n -= AT_ONCE, word += AT_ONCE) {
        if (!are_zero(word)) {
            gather(scan, word, AT_ONCE);
        }
    }
    gather(scan, word, n);
}

/* Return true if each address in [va, va + len) of @b refers to @b and nothing
 * else, so that gather() need not look it up. */
static bool is_alone(const Block *b)
{
    return !(b->flags & (KT_MARKERF_HANDLE | KT_MARKERF_ROOT)) &&
           b->va >= KT_MARKER_LOW;
}

static void scan_block(KtMarker *s, uint32_t i, KtReader *r, bool whole)
{
    const Block *b = block_at(s, i);
    uint64_t least;

    s->own = (Own) { b->va, is_alone(b) ? b->len : 0, UINT64_MAX };
    kt_marker_each(s, i, r, whole, kt_marker_span, s);
    least = s->own.least;
    if (least < s->own.len) {
        mark(s, i, least < 8 && b->va % 8 == 0 ? KT_HOLD_START :
                                                 KT_HOLD_INTERIOR);
    }
    s->own = (Own) { 0 };
}

static void mark_flagged(KtMarker *s, KtMarkerFlag flag)
{
    for (uint32_t i = 0; i < s->block->len; i++) {
        if (block_at(s, i)->flags & flag) {
            mark(s, i, KT_HOLD_NONE);
        }
    }
}

/* Scan a group of the queue. @bits: bit n is block @i + n */
static void scan_group(KtMarker *s, KtReader *r, uint32_t i, uint64_t bits,
                       bool second_pass)
{
    for (; bits; bits &= bits - 1) {
        uint32_t b = i + __builtin_ctzll(bits);

        scan_block(s, b, r,
                   !second_pass &&
                       block_at(s, b)->flags & KT_MARKERF_STACK_VM);
    }
}

static void scan_queued(KtMarker *s, KtReader *r, bool second_pass)
{
    uint64_t bits;
    uint32_t first;

    do {
        mark_waiting(s);
        while (!r->stopped && (bits = kt_mark_queue_pop(&s->queue, &first))) {
            scan_group(s, r, first, bits, second_pass);
        }
    } while (s->n_waiting && !r->stopped);
}

void kt_marker_run(KtMarker *s, KtReader *r)
{
    mark_flagged(s, KT_MARKERF_ROOT);
    scan_queued(s, r, false);
    mark_flagged(s, KT_MARKERF_STACK_VM);
    scan_queued(s, r, true);
}

void kt_marker_scan_unreached(KtMarker *s, KtReader *r)
{
    s->unreached = true;
    for (uint32_t i = 0; i < s->block->len && !r->stopped; i++) {
        if (!(s->state[i] & REACHED)) {
            s->self = i;
            scan_block(s, i, r, false);
            mark_waiting(s);
        }
    }
    s->unreached = false;
}

bool kt_marker_reached(const KtMarker *s, uint32_t block)
{
    return s->state[block] & REACHED;
}

KtHold kt_marker_hold(const KtMarker *s, uint32_t block)
{
    return s->state[block] & HOLD_MASK;
}
