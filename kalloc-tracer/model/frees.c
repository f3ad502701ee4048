/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Model: frees, and blocks that kfree_rcu() queues; see model.h. The rules
 * (errors.c) decide what is an error. With the tracer's lock held.
 */
#include "kalloc-tracer/model/model-internal.h"

static void set_freed(KtModel *m, uint32_t index, const KtEvent *ev)
{
    const KtRec *r = kt_rec(&m->blocks, index);
    KtWho who = kt_model_who(r);

    kt_accounts_free(&m->accounts, &who, kt_model_amount(m, index),
                     r->cpu != ev->cpu);
    m->live_blocks--;
    m->live_bytes -= kt_blocks_len(&m->blocks, index);
    m->freed_blocks++;
    kt_blocks_set_freed(&m->blocks, index, ev);
}

/* ---- parts of blocks ---------------------------------------------------- */

/* Split a live block after @len bytes. Return the new block, which has the
 * rest; 0 if there is no memory: the rest is not kept. */
static uint32_t split(KtModel *m, KtMap *map, uint32_t index, uint64_t len)
{
    uint64_t va = kt_rec(&m->blocks, index)->va + len;
    uint64_t rest = kt_blocks_len(&m->blocks, index) - len;
    uint32_t part = kt_model_new_block(m, &(KtMapHint) { map, va });
    KtWho who = kt_model_who(kt_rec(&m->blocks, index));
    KtAmount before = kt_model_amount(m, index);
    KtAmount first = { len, len }, second = { rest, rest };

    kt_model_count(m, KT_CNT_SPLIT);
    if (part) {
        kt_blocks_copy(&m->blocks, part, index, va, rest);
        m->live_blocks++;
        kt_accounts_split(&m->accounts, &who, before, first, second);
    } else {
        m->live_bytes -= rest;
        kt_model_not_kept(m);
        kt_accounts_truncate(&m->accounts, &who, before, first);
    }
    kt_blocks_shrink(&m->blocks, index, len);
    return part;
}

/* Free the part of a live block that lies in [@va, @last]; the rest stays
 * live. */
static void free_part(KtModel *m, KtMap *map, uint32_t index, uint64_t va,
                      uint64_t last, const KtEvent *ev)
{
    uint64_t start = kt_rec(&m->blocks, index)->va;

    if (kt_blocks_last(&m->blocks, index) > last) {
        split(m, map, index, last - start + 1);
    }
    if (start < va) {
        index = split(m, map, index, va - start);
    }
    if (index) {
        set_freed(m, index, ev);
    }
}

bool kt_model_free_range(KtModel *m, KtMap *map, uint64_t va, uint64_t last,
                         const KtEvent *ev)
{
    KtMapEntry e = kt_map_floor(map, va);
    bool any = false;

    if (!e.val || kt_blocks_last(&m->blocks, e.val) < va) {
        e = kt_map_above(map, va);
    }
    while (e.val && e.key <= last) {
        if (!kt_rec(&m->blocks, e.val)->freed) {
            free_part(m, map, e.val, va, last, ev);
            any = true;
        }
        e = kt_map_above(map, e.key);
    }
    return any;
}

/* ---- frees -------------------------------------------------------------- */

/* Collect what the rules need to know of a call. */
static KtCase make_case(const KtModel *m, const KtEvent *ev, uint32_t index)
{
    return (KtCase) {
        .ev = ev,
        .rec = index ? kt_rec(&m->blocks, index) : NULL,
        .requested = index && (ev->flags & KT_EVF_SIZED) ?
                     kt_blocks_requested(&m->blocks, index) : 0,
        .certain = m->complete && !m->gap,
        .unseen = m->unseen,
    };
}

/* The free of a block said which cache it is of, which was unknown. */
static void found_cache(KtModel *m, uint32_t index, uint16_t cache)
{
    KtRec *r = kt_rec(&m->blocks, index);
    KtWho who = kt_model_who(r);

    if (cache) {
        kt_accounts_found_cache(&m->accounts, &who,
                                kt_model_amount(m, index), cache);
        r->cache = cache;
    }
}

/* Return true if the free of a freed block is no free: another event covers it,
 * or it was reported before. See capture/record-vfree.c. */
static bool is_covered(KtModel *m, const KtEvent *ev, uint32_t index)
{
    unsigned flags = ev->family == KT_FAMILY_VFREE ? ev->flags : 0;

    if ((flags & KT_EVF_AGAIN) && kt_blocks_freed_so(&m->blocks, index, ev)) {
        return true;
    }
    if ((flags & KT_EVF_QUEUES) && !(flags & KT_EVF_MAYBE_WORKER)) {
        return false;
    }
    if (!kt_blocks_expected(&m->blocks, index)) {
        return false;
    }
    m->count[KT_CNT_FREE_DEFERRED] += (flags & KT_EVF_WORKER) != 0;
    m->count[KT_CNT_FREE_UNJUDGED] += (flags & KT_EVF_MAYBE_WORKER) != 0;
    return true;
}

/* Return true if the area may have been freed when it was queued, and its
 * record was evicted since: then the worker's free is of an unknown address. */
static bool was_evicted(const KtModel *m, const KtEvent *ev)
{
    return ev->family == KT_FAMILY_VFREE &&
           (ev->flags & (KT_EVF_WORKER | KT_EVF_MAYBE_WORKER)) &&
           (m->count[KT_CNT_EVICT_FREED] ||
            kt_counters_get(m->counters, KT_CNT_EVICT_FREED));
}

/* kvfree_rcu_cb() gets some address in the object. It frees areas of vmalloc()
 * with vfree(), which has an event of its own. vunmap() gets the start of an
 * area, which is a block only if vmap() owned its pages. */
void kt_model_free_inside(KtModel *m, const KtEvent *ev, const KtMapHint *h)
{
    uint32_t index = kt_model_hit(m, h);
    const KtRec *r = index ? kt_rec(&m->blocks, index) : NULL;

    kt_model_count(m, KT_CNT_EV_FREE);
    if (r && !r->freed &&
        (ev->family == KT_FAMILY_VFREE ? r->layer == KT_LAYER_VMALLOC :
                                         r->layer <= KT_LAYER_CACHE)) {
        set_freed(m, index, ev);
    }
}

void kt_model_free_block(KtModel *m, const KtEvent *ev, const KtMapHint *h)
{
    uint32_t index = kt_model_hit(m, h);
    KtCase c = make_case(m, ev, index);
    bool starts = c.rec && c.rec->va == ev->va;
    KtErrorKind kind;
    KtVerdict v;

    kt_model_count(m, KT_CNT_EV_FREE);
    if (starts && c.rec->freed && is_covered(m, ev, index)) {
        return;
    }
    if (starts && !c.rec->freed && !c.rec->cache &&
        !(ev->flags & KT_EVF_SLAB_READ)) {
        found_cache(m, index, ev->cache.v);
    }
    c.certain = c.certain && !was_evicted(m, ev);
    v = kt_rule_free(&c, &kind);
    if (v == KT_BAD) {
        kt_model_add_error(m, kind, ev, index);
        if (kind == KT_ERR_INVALID_FREE) {
            kt_accounts_stray(&m->accounts, ev->stack.v & KT_MAX_STACKS,
                              KT_STRAY_INVALID);
        }
    } else if (v == KT_OK_UNKNOWN) {
        kt_model_count(m, ev->flags & KT_EVF_UNSURE ? KT_CNT_FREE_UNHOOKED :
                 KT_CNT_FREE_UNKNOWN);
        kt_accounts_stray(&m->accounts, ev->stack.v & KT_MAX_STACKS,
                          KT_STRAY_UNKNOWN);
    }
    if (starts && !c.rec->freed) {
        set_freed(m, index, ev);
        if (ev->family == KT_FAMILY_VFREE && (ev->flags & KT_EVF_QUEUES)) {
            kt_blocks_expect(&m->blocks, index);
        }
    }
}

/* Pages may be freed in other pieces than they were allocated: after
 * split_page(), the split of a huge page, or as the tail of
 * alloc_pages_exact(). Only a block that is freed again as a whole is an error.
 */
void kt_model_free_pages(KtModel *m, const KtEvent *ev, const KtMapHint *h)
{
    uint32_t index = kt_model_hit(m, h);
    KtCase c = make_case(m, ev, index);
    uint64_t last = ev->size ? kt_model_last_of(ev->va, ev->size) :
                    index ? kt_blocks_last(&m->blocks, index) : ev->va;
    KtErrorKind kind;

    kt_model_count(m, KT_CNT_EV_FREE);
    c.whole = index && kt_blocks_last(&m->blocks, index) == last;
    c.again = index && (ev->flags & KT_EVF_AGAIN) &&
              kt_blocks_freed_so(&m->blocks, index, ev);
    if (kt_rule_free_pages(&c, &kind) == KT_BAD) {
        kt_model_add_error(m, kind, ev, index);
    } else if (!kt_model_free_range(m, h->map, ev->va, last, ev) && !c.again) {
        kt_model_count(m, KT_CNT_FREE_PAGES_UNKNOWN);
        kt_accounts_stray(&m->accounts, ev->stack.v & KT_MAX_STACKS,
                          KT_STRAY_PAGES);
    }
}

void kt_model_queue(KtModel *m, const KtEvent *ev, const KtMapHint *h)
{
    uint32_t index = kt_model_hit(m, h);
    KtCase c = make_case(m, ev, index);
    KtErrorKind kind;

    kt_model_count(m, KT_CNT_EV_RCU);
    if (c.rec && c.rec->va == ev->va && (ev->flags & KT_EVF_AGAIN) &&
        kt_blocks_freed_so(&m->blocks, index, ev)) {
        return;
    }
    switch (kt_rule_queue(&c, &kind)) {
    case KT_OK:
        if (!kt_blocks_set_queued(&m->blocks, index, ev)) {
            kt_model_count(m, KT_CNT_DROP_RCU);
        }
        break;
    case KT_OK_UNKNOWN:
        kt_model_count(m, KT_CNT_EV_UNKNOWN);
        break;
    case KT_BAD:
        /* The free that follows would be the same error again. */
        kt_model_add_error(m, kind, ev, index);
        kt_blocks_expect(&m->blocks, index);
        break;
    }
}
