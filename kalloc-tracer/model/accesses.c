/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Model: accesses that may be errors (KT_EV_ACCESS); see model.h. With the
 * tracer's lock held.
 *
 * The shadow found the access, on a vCPU. Here the map decides, as it is after
 * all events before the access. The rules report only what is certain: an
 * access that may be right is counted.
 */
#include "kalloc-tracer/model/model-internal.h"

/* A live block that ends so far in front of an access, or begins so far behind
 * it, is named with it. */
#define NEIGHBOUR_MAX 256u
/* Blocks that are examined to find it: more do not fit in so many bytes. */
#define NEIGHBOUR_STEPS 32u
/* Rows of the history that are read to find a past life. */
#define PAST_ROWS 256u

/* An access, the first bad byte of it, the block there (0: none), and the
 * address in front of which neighbours are. @past: what was there, if no block
 * is */
typedef struct Access {
    const KtEvent *ev;
    uint64_t bad;
    uint32_t index;
    uint64_t from;
    KtBlock past;
} Access;

/* ---- rules -------------------------------------------------------------- */

/* May memory be handed out without an event? */
static bool is_unsure(const KtModel *m, const KtEvent *ev)
{
    return m->unseen || m->blind || (ev->flags & KT_EVF_UNSURE);
}

static bool is_evicted(const KtModel *m)
{
    return m->count[KT_CNT_EVICT_FREED] || kt_history_evicted(m->history) ||
           kt_counters_get(m->counters, KT_CNT_EVICT_FREED) ||
           kt_counters_get(m->counters, KT_CNT_EVICT_HISTORY);
}

/* Return true if the block was freed, and the page went on to a slab of another
 * cache. What this slab handed out there is not known. */
static bool has_other_owner(KtLayer layer, uint32_t cache, const KtEvent *ev)
{
    bool object = layer == KT_LAYER_KMALLOC || layer == KT_LAYER_CACHE;

    return ev->cache.v && (!object || (cache && cache != ev->cache.v));
}

/* The time at which the access was made, at the earliest. */
static uint64_t earliest_us(const KtEvent *ev)
{
    return ev->us - MIN(ev->gfp, ev->us);
}

/* A store is examined afterwards; see may_precede(). */
static bool is_store_of_before(const KtEvent *ev, uint64_t us)
{
    return (ev->flags & (KT_EVF_WRITE | KT_EVF_RANGE)) == KT_EVF_WRITE &&
           us >= earliest_us(ev);
}

/*
 * A freed block leaves the map when a part of its memory is allocated again.
 * The rest is as free as before:
 *
 *     freed    [        32 KiB of kmalloc()        ]
 *     then     [ slab  |    nobody has this        ]
 *                              ^ access
 *
 * The history does not keep which vCPU freed it.
 */
static KtVerdict rule_past(const KtModel *m, Access *a, KtErrorKind *kind)
{
    unsigned rows = PAST_ROWS;

    if (!kt_history_newest(m->history, a->bad, &rows, &a->past)) {
        return m->complete && rows && !is_evicted(m) ? KT_OK : KT_OK_UNKNOWN;
    }
    if (a->past.state != KT_BLOCK_FREED ||
        has_other_owner(a->past.layer, a->past.cache.v, a->ev) ||
        is_store_of_before(a->ev, a->past.free_us)) {
        return KT_OK_UNKNOWN;
    }
    *kind = KT_ERR_USE_AFTER_FREE;
    return KT_BAD;
}

/* No block is known there. The block that was may be evicted. A slot that
 * nobody owns was on a list of the allocator, whatever happened before. */
static KtVerdict rule_nothing(const KtModel *m, Access *a, KtErrorKind *kind)
{
    if (m->gap || is_unsure(m, a->ev)) {
        return KT_OK_UNKNOWN;
    }
    if (a->ev->flags & KT_EVF_FREE_SLOT) {
        *kind = KT_ERR_FREE_SLOT;
        return KT_BAD;
    }
    return rule_past(m, a, kind);
}

/*
 * Return true if a store may have been made before another vCPU freed the
 * block, or was handed it out. A vCPU examines its store afterwards. If the
 * store released the block, the other vCPU may have been faster:
 *
 *     vCPU 0   refs = 1  ....................  examines the store: freed?
 *     vCPU 1              refs = 0, kfree()
 *
 * A load releases nothing, and a range is examined before its access.
 */
static bool may_precede(const KtModel *m, const Access *a)
{
    const KtRec *r = kt_rec(&m->blocks, a->index);
    const KtEnd *e = r->freed && r->end ? kt_end(&m->blocks, r->end) : NULL;
    uint64_t us = e ? e->free_us : r->alloc_us;
    unsigned cpu = e ? e->cpu : r->cpu;

    return cpu != a->ev->cpu && is_store_of_before(a->ev, us);
}

static KtVerdict rule_block(const KtModel *m, Access *a, KtErrorKind *kind)
{
    const KtRec *r = kt_rec(&m->blocks, a->index);

    if (r->old || has_other_owner(r->layer, r->cache, a->ev) ||
        may_precede(m, a) ||
        (r->freed && is_unsure(m, a->ev))) {
        return KT_OK_UNKNOWN;
    }
    if (r->freed) {
        *kind = KT_ERR_USE_AFTER_FREE;
        return KT_BAD;
    }
    if (a->bad - r->va >= kt_blocks_requested(&m->blocks, a->index)) {
        *kind = KT_ERR_OUT_OF_BOUNDS;
        return KT_BAD;
    }
    /* Another vCPU was just handed out the block when the access was made. */
    return r->alloc_us >= earliest_us(a->ev) ? KT_OK_UNKNOWN : KT_OK;
}

/* ---- the error ---------------------------------------------------------- */

/*
 * Find the live block that ends at most NEIGHBOUR_MAX bytes in front of the bad
 * byte, with only freed blocks between. Return 0 if there is none, or if it may
 * have been freed in a gap.
 */
static uint32_t find_neighbour(const KtModel *m, const Access *a)
{
    uint64_t at = a->from;

    for (unsigned i = 0; i < NEIGHBOUR_STEPS && at; i++) {
        KtMapEntry e = kt_map_floor(&m->map[KT_MAP_MAIN], at - 1);
        const KtRec *r = e.val ? kt_rec(&m->blocks, e.val) : NULL;

        if (!r || a->bad - r->va - kt_blocks_requested(&m->blocks, e.val) >
            NEIGHBOUR_MAX) {
            return 0;
        }
        if (!r->freed) {
            return r->old ? 0 : e.val;
        }
        at = e.key;
    }
    return 0;
}

/* Find the live block that begins at most NEIGHBOUR_MAX bytes behind the bad
 * byte, likewise. */
static uint32_t find_behind(const KtModel *m, const Access *a)
{
    uint64_t at = a->bad;

    for (unsigned i = 0; i < NEIGHBOUR_STEPS; i++) {
        KtMapEntry e = kt_map_above(&m->map[KT_MAP_MAIN], at);
        const KtRec *r = e.val ? kt_rec(&m->blocks, e.val) : NULL;

        if (!r || r->va - a->bad > NEIGHBOUR_MAX) {
            return 0;
        }
        if (!r->freed) {
            return r->old ? 0 : e.val;
        }
        at = e.key;
    }
    return 0;
}

static KtNeighbour neighbour_of(const KtModel *m, uint32_t index)
{
    const KtRec *r = kt_rec(&m->blocks, index);

    return (KtNeighbour) {
        .va = r->va, .requested = kt_blocks_requested(&m->blocks, index),
        .us = r->alloc_us, .stack = { r->stack }, .task = { r->task },
        .cache = { r->cache },
    };
}

/* Add the live block beside an access, the nearer one. */
static void add_neighbour(const KtModel *m, const Access *a, KtErrorKind kind,
                          KtErrorAccess *to)
{
    uint32_t front = kind == KT_ERR_OUT_OF_BOUNDS ? 0 : find_neighbour(m, a);
    uint32_t behind = kind == KT_ERR_FREE_SLOT ? find_behind(m, a) : 0;
    uint64_t before = 0;

    if (behind) {
        to->neighbour = neighbour_of(m, behind);
        before = to->neighbour.va - a->bad;
        to->has_neighbour = to->behind = true;
        to->distance = (uint16_t)before;
    }
    if (front) {
        const KtNeighbour n = neighbour_of(m, front);
        uint64_t after = a->bad - n.va - n.requested;

        if (!behind || after <= before) {
            to->neighbour = n;
            to->has_neighbour = true;
            to->behind = false;
            to->distance = (uint16_t)after;
        }
    }
}

static uint64_t first_frame(const KtModel *m, KtStackId stack)
{
    const KtDepot *d = m->accounts.stacks;
    const uint64_t *pc;
    unsigned n = 0;
    uint64_t tag;

    pc = d && stack.v ? kt_depot_get(d, stack.v, &n, &tag) : NULL;
    return pc && n ? pc[0] : 0;
}

static void add_access_error(KtModel *m, const Access *a, KtErrorKind kind)
{
    const KtEvent *ev = a->ev;
    KtError err = {
        .kind = kind, .va = ev->va, .has_block = a->index || a->past.past,
        .block = a->past, .stack = ev->stack, .task = ev->task, .cpu = ev->cpu,
        .hook = ev->hook, .cache = ev->cache, .us = ev->us, .size = ev->size,
        .access = {
            .pc = first_frame(m, ev->stack), .last_us = ev->us,
            .flags = ev->flags & (KT_EVF_WRITE | KT_EVF_RANGE),
        },
    };

    if (a->index) {
        kt_blocks_get(&m->blocks, a->index, &err.block);
    }
    err.access.offset = a->bad - (err.has_block ? err.block.va : ev->va);
    add_neighbour(m, a, kind, &err.access);
    if (!kt_errors_add_access(&m->errors, &err)) {
        kt_model_count(m, KT_CNT_DROP_ERROR);
    }
}

/* Find the block of another allocator than that of pages, or a freed block of
 * pages. */
static uint32_t find_block(const KtModel *m, uint64_t va)
{
    uint32_t pages = kt_model_block_at(m, KT_MAP_PAGES, va);
    uint32_t index = kt_model_block_at(m, KT_MAP_MAIN, va);

    if (!pages || !kt_rec(&m->blocks, pages)->freed) {
        return index;
    }
    return !index || kt_model_is_newer(m, pages, index) ? pages : index;
}

/* Return true if the freed block was of an earlier owner of the page: the free
 * slot that is there now is no part of it. */
static bool is_before_slot(const KtModel *m, const Access *a)
{
    const KtRec *r = kt_rec(&m->blocks, a->index);

    return (a->ev->flags & KT_EVF_FREE_SLOT) && r->freed &&
           has_other_owner(r->layer, r->cache, a->ev);
}

void kt_model_access(KtModel *m, const KtEvent *ev)
{
    uint64_t bad = ev->va + MIN(ev->actual, UINT64_MAX - ev->va);
    Access a = {
        .ev = ev, .bad = bad, .index = find_block(m, bad), .from = bad,
    };
    KtErrorKind kind = KT_ERR__COUNT;

    if (a.index) {
        a.from = kt_rec(&m->blocks, a.index)->va;
        a.index = is_before_slot(m, &a) ? 0 : a.index;
    }
    kt_model_count(m, KT_CNT_EV_ACCESS);
    switch ((a.index ? rule_block : rule_nothing)(m, &a, &kind)) {
    case KT_OK:
        kt_model_count(m, KT_CNT_ACCESS_DISAGREED);
        break;
    case KT_OK_UNKNOWN:
        kt_model_count(m, KT_CNT_ACCESS_UNJUDGED);
        break;
    case KT_BAD:
        add_access_error(m, &a, kind);
        break;
    }
}
