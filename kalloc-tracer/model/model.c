/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Model: see model.h. Applies events one by one, with the tracer's lock held.
 *
 * Allocation: blocks that it overlaps leave the map and become past lives (if
 * one is live, that is an error or, after a gap, a missed free). Free: see
 * frees.c; the block stays in the map as freed until its memory is allocated
 * again. Events come from a guest that may be hostile: whatever comes, blocks
 * of a map do not overlap, and memory is bounded.
 */
#include "kalloc-tracer/model/model-internal.h"

/* Attempts to evict something for one block. */
#define MAKE_ROOM 8
/* Events that are prefetched together. */
#define GROUP 32

void kt_model_add_error(KtModel *m, KtErrorKind kind, const KtEvent *ev,
                        uint32_t index)
{
    KtBlock b;

    if (index) {
        kt_blocks_get(&m->blocks, index, &b);
    }
    if (!kt_errors_add(&m->errors, kind, ev, index ? &b : NULL)) {
        kt_model_count(m, KT_CNT_DROP_ERROR);
    }
}

static KtMap *map_of_event(KtModel *m, const KtEvent *ev)
{
    bool pages = ev->kind == KT_EV_FREE ? ev->family == KT_FAMILY_PAGES :
                 ev->layer == KT_LAYER_PAGES;

    return &m->map[pages ? KT_MAP_PAGES : KT_MAP_MAIN];
}

void kt_model_not_kept(KtModel *m)
{
    m->gap = true;
    m->full = true;
    kt_model_count(m, KT_CNT_DROP_BLOCK);
}

uint32_t kt_model_new_block(KtModel *m, const KtMapHint *h)
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

uint32_t kt_model_find(const KtModel *m, uint64_t va, uint32_t *earlier)
{
    uint32_t index = kt_model_block_at(m, KT_MAP_MAIN, va);
    uint32_t pages = kt_model_block_at(m, KT_MAP_PAGES, va);

    *earlier = 0;
    if (!index || !pages || !kt_model_is_newer(m, pages, index)) {
        return index ? index : pages;
    }
    *earlier = index;
    return pages;
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
        kt_model_count(m, KT_CNT_RETIRED_GAP);
    } else if (!r->freed && ev->kind == KT_EV_ALLOC &&
               (ev->flags & KT_EVF_UNSURE)) {
        kt_model_count(m, KT_CNT_ALLOC_UNJUDGED);
    } else if (!r->freed && !*reported) {
        kt_model_add_error(m, KT_ERR_OVERLAP, ev, index);
        *reported = true;
    }
    retire(m, index);
}

static void remove_block(KtModel *m, KtMap *map, KtMapEntry e)
{
    kt_map_remove(map, e.key);
    kt_blocks_release(&m->blocks, e.val);
}

static void replace_and_remove(KtModel *m, KtMap *map, KtMapEntry e,
                               const KtEvent *ev, bool *reported)
{
    replace(m, e.val, ev, reported);
    remove_block(m, map, e);
}

void kt_model_retire_freed(KtModel *m, KtMap *map, KtMapEntry e)
{
    retire(m, e.val);
    remove_block(m, map, e);
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

static uint64_t event_last(const KtEvent *ev)
{
    return kt_model_last_of(ev->va, MAX(ev->size, ev->actual));
}

static bool is_live(const KtModel *m, const KtMapHint *h)
{
    uint32_t index = kt_model_hit(m, h);

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
        index = kt_model_new_block(m, h);
    }
    if (!index) {
        kt_model_not_kept(m);
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
    kt_model_count(m, KT_CNT_EV_ALLOC);
    if (ev->layer == KT_LAYER_NONE || ev->layer >= KT_LAYER__COUNT ||
        ((ev->flags & KT_EVF_IF_NEW) && is_live(m, h))) {
        kt_model_count(m, KT_CNT_ALLOC_AGAIN);
        return;
    }
    if (ev->flags & KT_EVF_TAKE) {
        kt_model_free_range(m, h->map, ev->va, event_last(ev), ev);
    }
    place_alloc(m, ev, h);
}

/* krealloc() in place. If the reserved size was not known, the block may grow
 * over others, which become past lives. */
static void apply_resize(KtModel *m, const KtEvent *ev, const KtMapHint *h)
{
    uint32_t index = kt_model_hit(m, h);
    bool reported = false;
    KtAmount before;
    KtWho who;

    kt_model_count(m, KT_CNT_EV_RESIZE);
    if (!index || kt_rec(&m->blocks, index)->va != ev->va ||
        kt_rec(&m->blocks, index)->freed ||
        !kt_blocks_fit(&m->blocks, ev->size, 0)) {
        kt_model_count(m, KT_CNT_EV_UNKNOWN);
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

/* ---- events ------------------------------------------------------------- */

static void apply_gap(KtModel *m, const KtEvent *ev)
{
    kt_model_count(m, KT_CNT_GAPS);
    m->gap = true;
    m->unseen |= (ev->flags & (KT_EVF_UNSEEN | KT_EVF_BLIND)) != 0;
    m->blind |= (ev->flags & KT_EVF_BLIND) != 0;
    kt_blocks_age(&m->blocks);
}

static void observe(const KtModel *m, const KtEvent *ev, const KtMapHint *h)
{
    m->observer->fn(m->observer->opaque, m, ev, kt_model_hit(m, h));
}

static void apply(KtModel *m, const KtEvent *ev, const KtMapHint *h)
{
    switch (ev->kind) {
    case KT_EV_ALLOC:
        apply_alloc(m, ev, h);
        break;
    case KT_EV_FREE:
        if (ev->family == KT_FAMILY_PAGES) {
            kt_model_free_pages(m, ev, h);
        } else if (G_UNLIKELY(!kt_is_memory(ev->va))) {
            kt_model_free_nothing(m, ev);
        } else if (G_UNLIKELY(ev->flags & KT_EVF_INSIDE)) {
            kt_model_free_inside(m, ev, h);
        } else {
            kt_model_free_block(m, ev, h);
        }
        break;
    case KT_EV_RESIZE:
        apply_resize(m, ev, h);
        break;
    case KT_EV_RCU_QUEUE:
        if (G_UNLIKELY(!kt_is_memory(ev->va))) {
            kt_model_free_nothing(m, ev);
        } else {
            kt_model_queue(m, ev, h);
        }
        break;
    case KT_EV_GAP:
        apply_gap(m, ev);
        break;
    case KT_EV_DESTROY:
        kt_model_destroy(m, ev);
        break;
    case KT_EV_ACCESS:
        kt_model_access(m, ev);
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
            if (G_UNLIKELY(m->observer)) {
                observe(m, &ev[done + i], &h[i]);
            }
            apply(m, &ev[done + i], &h[i]);
        }
    }
    kt_evict_for_others(m);
    kt_model_publish(m);
}
