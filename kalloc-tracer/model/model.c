/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Model: see model.h. Applies events one by one, with the tracer's lock held.
 *
 * Allocation: blocks that it overlaps leave the map and become past lives (if
 * one is live, that is an error or, after a gap, a missed free). Free: the
 * rules decide (errors.c), and the block stays in the map as freed until its
 * memory is allocated again. Events come from a guest that may be hostile:
 * whatever comes, blocks of a map do not overlap, and memory is bounded.
 */
#include "kalloc-tracer/model/model.h"

#include "kalloc-tracer/model/evict.h"

/* Attempts to evict something for one block. */
#define MAKE_ROOM 8
/* Events that are prefetched together. */
#define GROUP 32

/* Count; kt_model_publish() adds it to the counters at the end of the batch. */
static void count(KtModel *m, KtCounter c)
{
    m->count[c]++;
}

static void add_error(KtModel *m, KtErrorKind kind, const KtEvent *ev,
                      uint32_t index)
{
    KtBlock b;

    if (index) {
        kt_blocks_get(&m->blocks, index, &b);
    }
    if (!kt_errors_add(&m->errors, kind, ev, index ? &b : NULL)) {
        count(m, KT_CNT_DROP_ERROR);
    }
}

static KtMap *map_of_event(KtModel *m, const KtEvent *ev)
{
    bool pages = ev->kind == KT_EV_FREE ? ev->family == KT_FAMILY_PAGES :
                 ev->layer == KT_LAYER_PAGES;

    return &m->map[pages ? KT_MAP_PAGES : KT_MAP_MAIN];
}

/* Return the block that contains the address of the hint; 0: none. */
static uint32_t hit(const KtModel *m, const KtMapHint *h)
{
    KtMapEntry floor, above;

    kt_map_around_hint(h, &floor, &above);
    return floor.val && kt_blocks_last(&m->blocks, floor.val) >= h->key ?
           floor.val : 0;
}

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

/* Count a block that cannot be kept. Its free will be unknown, which must not
 * be reported: so there is a gap. */
static void not_kept(KtModel *m)
{
    m->gap = true;
    m->full = true;
    count(m, KT_CNT_DROP_BLOCK);
}

/* Add a block to the map, where none is. Return 0 if there is no memory. */
static uint32_t new_block(KtModel *m, const KtMapHint *h)
{
    uint32_t index = 0;

    for (unsigned i = 0; i < MAKE_ROOM; i++) {
        index = index ? index : kt_blocks_new(&m->blocks);
        if (index && kt_map_insert_hint(h, index)) {
            m->full = false;
            return index;
        }
        if (!kt_evict_for_block(m)) {
            break;
        }
    }
    if (index) {
        kt_blocks_release(&m->blocks, index);
    }
    return 0;
}

/* ---- parts of blocks ---------------------------------------------------- */

/* Split a live block after @len bytes. Return the new block, which has the
 * rest; 0 if there is no memory: the rest is not kept. */
static uint32_t split(KtModel *m, KtMap *map, uint32_t index, uint64_t len)
{
    uint64_t va = kt_rec(&m->blocks, index)->va + len;
    uint64_t rest = kt_blocks_len(&m->blocks, index) - len;
    uint32_t part = new_block(m, &(KtMapHint) { map, va });
    KtWho who = kt_model_who(kt_rec(&m->blocks, index));
    KtAmount before = kt_model_amount(m, index);
    KtAmount first = { len, len }, second = { rest, rest };

    count(m, KT_CNT_SPLIT);
    if (part) {
        kt_blocks_copy(&m->blocks, part, index, va, rest);
        m->live_blocks++;
        kt_accounts_split(&m->accounts, &who, before, first, second);
    } else {
        m->live_bytes -= rest;
        not_kept(m);
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

/* Free everything that is live in [@va, @last]. Return true if there was
 * something. */
static bool free_range(KtModel *m, KtMap *map, uint64_t va, uint64_t last,
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

/* ---- allocations -------------------------------------------------------- */

/* Remove a block from the map and make it a past life: its memory was allocated
 * again. */
static void retire(KtModel *m, uint32_t index)
{
    KtBlock b;

    kt_blocks_get(&m->blocks, index, &b);
    if (b.state == KT_BLOCK_FREED) {
        m->freed_blocks--;
    } else {
        KtWho who = kt_model_who(kt_rec(&m->blocks, index));

        kt_accounts_free_unseen(&m->accounts, &who, kt_model_amount(m, index));
        m->live_blocks--;
        m->live_bytes -= kt_block_len(&b);
    }
    kt_history_add(m->history, &b);
    kt_blocks_unset(&m->blocks, index);
}

/* Make room for an allocation that overlaps a block. If it overlaps several
 * live blocks only the first is reported: one wrong call is one error. */
static void replace(KtModel *m, uint32_t index, const KtEvent *ev,
                    bool *reported)
{
    const KtRec *r = kt_rec(&m->blocks, index);

    if (!r->freed && r->old) {
        count(m, KT_CNT_RETIRED_GAP);
    } else if (!r->freed && ev->kind == KT_EV_ALLOC &&
               (ev->flags & KT_EVF_UNSURE)) {
        count(m, KT_CNT_ALLOC_UNJUDGED);
    } else if (!r->freed && !*reported) {
        add_error(m, KT_ERR_OVERLAP, ev, index);
        *reported = true;
    }
    retire(m, index);
}

static void replace_and_remove(KtModel *m, KtMap *map, KtMapEntry e,
                               const KtEvent *ev, bool *reported)
{
    replace(m, e.val, ev, reported);
    kt_map_remove(map, e.key);
    kt_blocks_release(&m->blocks, e.val);
}

/* Make room for an allocation in (@from, @last]. */
static void clear_above(KtModel *m, KtMap *map, KtMapEntry above,
                        uint64_t last, const KtEvent *ev, bool *reported)
{
    while (above.val && above.key <= last) {
        replace_and_remove(m, map, above, ev, reported);
        above = kt_map_above(map, above.key);
    }
}

static uint64_t last_of(uint64_t va, uint64_t len)
{
    return len > 1 ? va + MIN(len - 1, UINT64_MAX - va) : va;
}

static uint64_t event_last(const KtEvent *ev)
{
    return last_of(ev->va, MAX(ev->size, ev->actual));
}

static bool is_live(const KtModel *m, const KtMapHint *h)
{
    uint32_t index = hit(m, h);

    return index && !kt_rec(&m->blocks, index)->freed;
}

static KtWho who_asks(const KtEvent *ev)
{
    return (KtWho) {
        ev->stack.v & KT_MAX_STACKS, ev->task.v & KT_MAX_STACKS, ev->cache.v,
        ev->layer,
    };
}

static KtAmount amount_of(const KtEvent *ev)
{
    return (KtAmount) { ev->size, MAX(ev->size, ev->actual) };
}

static void place_alloc(KtModel *m, const KtEvent *ev, const KtMapHint *h)
{
    bool reported = false;
    uint32_t index = 0;
    KtMapEntry floor, above;
    KtWho who = who_asks(ev);

    kt_map_around_hint(h, &floor, &above);
    if (floor.val && floor.key == ev->va) {
        replace(m, floor.val, ev, &reported);
        index = floor.val;
    } else if (floor.val &&
               kt_blocks_last(&m->blocks, floor.val) >= ev->va) {
        replace_and_remove(m, h->map, floor, ev, &reported);
    }
    clear_above(m, h->map, above, event_last(ev), ev, &reported);
    if (index && !kt_blocks_fit(&m->blocks, ev->size, ev->actual)) {
        kt_map_remove(h->map, ev->va);
        kt_blocks_release(&m->blocks, index);
        index = 0;
    } else if (!index && kt_blocks_fit(&m->blocks, ev->size, ev->actual)) {
        index = new_block(m, h);
    }
    if (!index) {
        not_kept(m);
        kt_accounts_alloc_unkept(&m->accounts, &who, amount_of(ev));
        return;
    }
    kt_blocks_set(&m->blocks, index, ev);
    if (G_UNLIKELY(m->blind)) {
        kt_rec(&m->blocks, index)->old = 1;
    }
    kt_accounts_alloc(&m->accounts, &who, amount_of(ev));
    m->live_blocks++;
    m->live_bytes += kt_blocks_len(&m->blocks, index);
}

static void apply_alloc(KtModel *m, const KtEvent *ev, const KtMapHint *h)
{
    count(m, KT_CNT_EV_ALLOC);
    if (ev->layer == KT_LAYER_NONE || ev->layer >= KT_LAYER__COUNT ||
        ((ev->flags & KT_EVF_IF_NEW) && is_live(m, h))) {
        count(m, KT_CNT_ALLOC_AGAIN);
        return;
    }
    if (ev->flags & KT_EVF_TAKE) {
        free_range(m, h->map, ev->va, event_last(ev), ev);
    }
    place_alloc(m, ev, h);
}

/* krealloc() in place. If the reserved size was not known, the block may grow
 * over others, which become past lives. */
static void apply_resize(KtModel *m, const KtEvent *ev, const KtMapHint *h)
{
    uint32_t index = hit(m, h);
    bool reported = false;
    KtAmount before;
    KtWho who;

    count(m, KT_CNT_EV_RESIZE);
    if (!index || kt_rec(&m->blocks, index)->va != ev->va ||
        kt_rec(&m->blocks, index)->freed ||
        !kt_blocks_fit(&m->blocks, ev->size, 0)) {
        count(m, KT_CNT_EV_UNKNOWN);
        return;
    }
    before = kt_model_amount(m, index);
    who = kt_model_who(kt_rec(&m->blocks, index));
    m->live_bytes -= kt_blocks_len(&m->blocks, index);
    kt_blocks_resize(&m->blocks, index, ev->size);
    m->live_bytes += kt_blocks_len(&m->blocks, index);
    clear_above(m, h->map, kt_map_above(h->map, ev->va),
                kt_blocks_last(&m->blocks, index), ev, &reported);
    kt_accounts_resize(&m->accounts, &who, before, kt_model_amount(m, index));
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
static void apply_free_inside(KtModel *m, const KtEvent *ev,
                              const KtMapHint *h)
{
    uint32_t index = hit(m, h);
    const KtRec *r = index ? kt_rec(&m->blocks, index) : NULL;

    count(m, KT_CNT_EV_FREE);
    if (r && !r->freed &&
        (ev->family == KT_FAMILY_VFREE ? r->layer == KT_LAYER_VMALLOC :
                                         r->layer <= KT_LAYER_CACHE)) {
        set_freed(m, index, ev);
    }
}

static void apply_free(KtModel *m, const KtEvent *ev, const KtMapHint *h)
{
    uint32_t index = hit(m, h);
    KtCase c = make_case(m, ev, index);
    bool starts = c.rec && c.rec->va == ev->va;
    KtErrorKind kind;
    KtVerdict v;

    count(m, KT_CNT_EV_FREE);
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
        add_error(m, kind, ev, index);
        if (kind == KT_ERR_INVALID_FREE) {
            kt_accounts_stray(&m->accounts, ev->stack.v & KT_MAX_STACKS,
                              KT_STRAY_INVALID);
        }
    } else if (v == KT_OK_UNKNOWN) {
        count(m, ev->flags & KT_EVF_UNSURE ? KT_CNT_FREE_UNHOOKED :
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
static void apply_free_pages(KtModel *m, const KtEvent *ev,
                             const KtMapHint *h)
{
    uint32_t index = hit(m, h);
    KtCase c = make_case(m, ev, index);
    uint64_t last = ev->size ? last_of(ev->va, ev->size) :
                    index ? kt_blocks_last(&m->blocks, index) : ev->va;
    KtErrorKind kind;

    count(m, KT_CNT_EV_FREE);
    c.whole = index && kt_blocks_last(&m->blocks, index) == last;
    c.again = index && (ev->flags & KT_EVF_AGAIN) &&
              kt_blocks_freed_so(&m->blocks, index, ev);
    if (kt_rule_free_pages(&c, &kind) == KT_BAD) {
        add_error(m, kind, ev, index);
    } else if (!free_range(m, h->map, ev->va, last, ev) && !c.again) {
        count(m, KT_CNT_FREE_PAGES_UNKNOWN);
        kt_accounts_stray(&m->accounts, ev->stack.v & KT_MAX_STACKS,
                          KT_STRAY_PAGES);
    }
}

static void apply_queue(KtModel *m, const KtEvent *ev, const KtMapHint *h)
{
    uint32_t index = hit(m, h);
    KtCase c = make_case(m, ev, index);
    KtErrorKind kind;

    count(m, KT_CNT_EV_RCU);
    if (c.rec && c.rec->va == ev->va && (ev->flags & KT_EVF_AGAIN) &&
        kt_blocks_freed_so(&m->blocks, index, ev)) {
        return;
    }
    switch (kt_rule_queue(&c, &kind)) {
    case KT_OK:
        if (!kt_blocks_set_queued(&m->blocks, index, ev)) {
            count(m, KT_CNT_DROP_RCU);
        }
        break;
    case KT_OK_UNKNOWN:
        count(m, KT_CNT_EV_UNKNOWN);
        break;
    case KT_BAD:
        /* The free that follows would be the same error again. */
        add_error(m, kind, ev, index);
        kt_blocks_expect(&m->blocks, index);
        break;
    }
}

/* ---- events ------------------------------------------------------------- */

static void apply_gap(KtModel *m, const KtEvent *ev)
{
    count(m, KT_CNT_GAPS);
    m->gap = true;
    m->unseen |= (ev->flags & (KT_EVF_UNSEEN | KT_EVF_BLIND)) != 0;
    m->blind |= (ev->flags & KT_EVF_BLIND) != 0;
    kt_blocks_age(&m->blocks);
}

static void apply(KtModel *m, const KtEvent *ev, const KtMapHint *h)
{
    switch (ev->kind) {
    case KT_EV_ALLOC:
        apply_alloc(m, ev, h);
        break;
    case KT_EV_FREE:
        if (ev->family == KT_FAMILY_PAGES) {
            apply_free_pages(m, ev, h);
        } else if (G_UNLIKELY(ev->flags & KT_EVF_INSIDE)) {
            apply_free_inside(m, ev, h);
        } else {
            apply_free(m, ev, h);
        }
        break;
    case KT_EV_RESIZE:
        apply_resize(m, ev, h);
        break;
    case KT_EV_RCU_QUEUE:
        apply_queue(m, ev, h);
        break;
    case KT_EV_GAP:
        apply_gap(m, ev);
        break;
    default:
        break;
    }
}

/* Prefetch for @n events, in rounds: each reads what the round before loaded,
 * and starts to load what the next round, or apply(), will read. Nothing is
 * changed. If an event of the group changes these places, the later events are
 * applied slower, not differently. */
static void touch(KtModel *m, const KtEvent *ev, unsigned n, KtMapHint *h)
{
    uint32_t block[GROUP];

    for (unsigned i = 0; i < n; i++) {
        h[i] = (KtMapHint) { map_of_event(m, &ev[i]), ev[i].va };
        kt_blocks_touch_stack(&m->blocks, &ev[i]);
        kt_accounts_touch(&m->accounts, ev[i].stack.v);
        kt_history_touch(m->history, ev[i].va, MAX(ev[i].size, ev[i].actual));
    }
    kt_map_touch(h, n);
    for (unsigned i = 0; i < n; i++) {
        block[i] = kt_map_peek(&h[i]);
        kt_blocks_touch(&m->blocks, &ev[i], block[i]);
        if (ev[i].kind == KT_EV_ALLOC) {
            kt_accounts_touch_caller(&m->accounts, ev[i].stack.v);
        }
    }
    for (unsigned i = 0; i < n; i++) {
        kt_blocks_touch_links(&m->blocks, block[i]);
        if (block[i]) {
            kt_accounts_touch(&m->accounts,
                              kt_rec(&m->blocks, block[i])->stack);
        }
    }
    for (unsigned i = 0; i < n; i++) {
        kt_blocks_touch_end(&m->blocks, block[i]);
        if (block[i]) {
            kt_accounts_touch_caller(&m->accounts,
                                     kt_rec(&m->blocks, block[i])->stack);
        }
    }
}

void kt_model_apply(KtModel *m, const KtEvent *ev, unsigned n)
{
    KtMapHint h[GROUP];

    for (unsigned done = 0; done < n; done += GROUP) {
        unsigned k = MIN(n - done, GROUP);

        touch(m, &ev[done], k, h);
        for (unsigned i = 0; i < k; i++) {
            apply(m, &ev[done + i], &h[i]);
        }
    }
    kt_evict_for_others(m);
    kt_model_publish(m);
}
