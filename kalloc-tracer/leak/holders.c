/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Holders: see leak-internal.h.
 *
 * One search over all words in use. The blocks in question have a small index
 * of their own, whose filter rejects nearly all words. Of the words that refer
 * to a block the one with the least rank is kept:
 *
 *     word in                             to the start    into the block
 *     a variable of the kernel, per CPU   0               3
 *     an instruction of the kernel        0               (none counts)
 *     another block                       1               4
 *     a page, or struct page              2               5
 *     a register, or stack                6               7
 *     another of the blocks in question   8               9
 *
 * Words on stacks are often stale, so they come late.
 */

#include "kalloc-tracer/leak/mark-internal.h"
#include "kalloc-tracer/leak/leak-internal.h"

#define NO_RANK UINT8_MAX

/*
 * struct Finding - state of the search
 * @s: how to walk; must be the first member
 * @blocks: KtReached
 * @index, @filter: the extents of @blocks, numbered as in @blocks. The address
 *                  of a struct page has the number of its block plus the number
 *                  of blocks
 * @rank: by block: rank of the holder that was found
 * @asked: by number in the live set: is it one of @blocks?
 */
typedef struct Finding {
    KtSearch s;
    GArray *blocks;
    KtMarkIndex *index;
    KtMarkerFilter filter;
    uint8_t *rank;
    bool *asked;
} Finding;

static KtReached *block_at(const Finding *f, uint32_t i)
{
    return &g_array_index(f->blocks, KtReached, i);
}

/* ---- the index ---------------------------------------------------------- */

static unsigned n_extents(const Finding *f, const KtLiveBlock *b)
{
    return b->layer == KT_LAYER_PERCPU ? 1 + f->s.w->offset->len : 2;
}

/* Add a block at all its addresses. */
static void add_block(const Finding *f, uint32_t i, const KtLiveBlock *b)
{
    const KtLiveSet *w = f->s.w;
    const KtPageUses *p = w->pages;
    bool exact = b->layer == KT_LAYER_PERCPU &&
                 kt_live_set_is_exact(w, b->va);

    kt_mark_index_add(f->index, b->va, exact ? 1 : b->len, i);
    for (unsigned cpu = 0; b->layer == KT_LAYER_PERCPU &&
         cpu < w->offset->len; cpu++) {
        kt_mark_index_add(f->index, kt_live_set_of_cpu(w, b->va, cpu), b->len,
                          i);
    }
    if (p && (b->layer == KT_LAYER_LARGE || b->layer == KT_LAYER_PAGES)) {
        uint64_t n = (b->va - kt_page_use_va(p, 0)) >> p->page_shift;

        kt_mark_index_add(f->index, kt_page_use_struct(p, n), p->struct_page,
                          f->blocks->len + i);
    }
}

static void ignore_overlap(void *opaque, uint32_t block)
{
}

static void build_index(Finding *f)
{
    const KtLiveSet *w = f->s.w;
    unsigned n = 0;

    for (unsigned pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < f->blocks->len; i++) {
            const KtLiveBlock *b = kt_live_set_find(w, block_at(f, i)->va);

            if (!b || block_at(f, i)->reach != KT_REACH_KEPT) {
                continue;
            }
            if (pass) {
                add_block(f, i, b);
                f->asked[kt_live_set_index(w, b)] = true;
            }
            n += n_extents(f, b);
        }
        f->index = f->index ? f->index : kt_mark_index_new(n);
    }
    kt_mark_index_seal(f->index, &f->filter, ignore_overlap, NULL);
}

/* ---- the search --------------------------------------------------------- */

/* Return the rank of a word at the current place, NO_RANK if it does not keep a
 * block in use. */
static uint8_t rank_here(const Finding *f, bool start)
{
    static const uint8_t of_place[KT_PLACE__COUNT][2] = {
        [KT_PLACE_DATA] = { 3, 0 }, [KT_PLACE_PERCPU] = { 3, 0 },
        [KT_PLACE_BLOCK] = { 4, 1 }, [KT_PLACE_PAGE] = { 5, 2 },
        [KT_PLACE_STRUCT_PAGE] = { 5, 2 }, [KT_PLACE_STACK] = { 7, 6 },
        [KT_PLACE_REGISTER] = { 7, 6 }, [KT_PLACE_CODE] = { 3, 0 },
    };
    const KtSearch *s = &f->s;

    if (s->here.place == KT_PLACE_FREELIST) {
        return NO_RANK;
    }
    if (s->block == KT_MARKER_NONE) {
        return of_place[s->here.place][start];
    }
    if (!kt_marker_reached(s->w->scan, s->block)) {
        return NO_RANK;
    }
    return f->asked[s->block] ? (start ? 8 : 9) :
                                of_place[KT_PLACE_BLOCK][start];
}

/* Struct pages refer to each other, in lists; that keeps no page in use. */
static bool is_page_in_list(const Finding *f)
{
    return f->s.here.place == KT_PLACE_STRUCT_PAGE ||
           f->s.here.place == KT_PLACE_PAGE;
}

static void consider(Finding *f, uint64_t va, uint64_t word, const KtExtent *e)
{
    bool by_page = e->block >= f->blocks->len;
    uint32_t i = by_page ? e->block - f->blocks->len : e->block;
    KtReached *r = block_at(f, i);
    uint8_t rank = rank_here(f, (word & ~7ull) == e->va);

    if (rank >= f->rank[i] || (by_page && is_page_in_list(f)) ||
        (f->s.block != KT_MARKER_NONE &&
         kt_live_set_block(f->s.w, f->s.block)->va == r->va)) {
        return;
    }
    f->rank[i] = rank;
    r->holder = f->s.here;
    r->holder.va = va;
    r->holder.value = word;
    r->among = f->s.block != KT_MARKER_NONE && f->asked[f->s.block];
}

static void compare(void *opaque, uint64_t va, const uint64_t *word, size_t n)
{
    Finding *f = opaque;

    for (size_t i = 0; i < n; i++) {
        const KtExtent *e;

        if (G_LIKELY(!kt_marker_filter_has(&f->filter, word[i]))) {
            continue;
        }
        kt_mark_index_find(f->index, &word[i], 1, &e);
        if (e && (e->va >= KT_MARKER_LOW || word[i] == e->va)) {
            consider(f, va + i * 8, word[i], e);
        }
    }
}

static bool find(Finding *f)
{
    build_index(f);
    for (uint32_t i = 0; i < f->blocks->len; i++) {
        f->rank[i] = NO_RANK;
        block_at(f, i)->holder.place = KT_PLACE__COUNT;
    }
    if (kt_search_run(&f->s)) {
        kt_search_name_owners(&f->s, &block_at(f, 0)->holder, f->blocks->len,
                              sizeof(KtReached));
        return true;
    }
    for (uint32_t i = 0; i < f->blocks->len; i++) {
        block_at(f, i)->reach = KT_REACH_UNKNOWN;
    }
    return false;
}

bool kt_holders_find(KtLiveSet *w, GArray *blocks)
{
    g_autofree uint8_t *rank = g_new(uint8_t, blocks->len + 1ull);
    g_autofree bool *asked = g_new0(bool, w->live->len + 1ull);
    Finding f = { .s = { .w = w, .compare = compare }, .blocks = blocks,
                  .rank = rank, .asked = asked };
    bool ok = find(&f);

    kt_mark_index_free(f.index);
    return ok;
}
