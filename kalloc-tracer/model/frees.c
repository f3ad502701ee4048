/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Model: frees, and blocks that kfree_rcu() queues; see model.h. The rules
 * (errors.c) decide what is an error. With the tracer's lock held.
 */
#include "kalloc-tracer/model/model-internal.h"

/* Blocks of other allocators that are examined for each free of pages. */
#define OBJECTS_MAX 8

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
    if (G_UNLIKELY(kt_event_removes(ev))) {
        kt_blocks_set_removed(&m->blocks, index);
        m->count[KT_CNT_REMOVED_BLOCKS]++;
        m->count[KT_CNT_REMOVED_BYTES] += kt_blocks_len(&m->blocks, index);
    }
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

/* Return true if @ev makes an ended block a past life. If @ev frees pages of a
 * removed block, the guest has that memory again. If @ev removes memory, the
 * memory is freed when it comes back: a block that was freed there before must
 * not make this look like a second free. */
static bool ends_freed(const KtModel *m, uint32_t index, const KtEvent *ev)
{
    return kt_event_removes(ev) != kt_blocks_removed(&m->blocks, index);
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
        } else if (G_UNLIKELY(ends_freed(m, e.val, ev))) {
            kt_model_retire_freed(m, map, e);
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
        .tag = index && ev->tag ? kt_blocks_tag(&m->blocks, index) : 0,
        .certain = m->complete && !m->gap,
        .unseen = m->unseen,
    };
}

static bool is_object(const KtRec *r)
{
    return r->layer == KT_LAYER_KMALLOC || r->layer == KT_LAYER_CACHE;
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
 * or it was reported before. See capture/record-frees.c. */
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

/*
 * vunmap() of a block. It removes an area of vmalloc(), whose pages are lost
 * then, and refuses everything else. An area is right if vmap() made it; such
 * a block has no gfp flags.
 */
static void unmap(KtModel *m, const KtEvent *ev, uint32_t index)
{
    const KtRec *r = kt_rec(&m->blocks, index);
    bool area = r->layer == KT_LAYER_VMALLOC;
    bool may_own = area && (ev->flags & KT_EVF_OWNED) &&
                   !kt_blocks_gfp(&m->blocks, index);

    if (r->va != ev->va || r->freed) {
        return;
    }
    if (!may_own && !r->old && !(ev->flags & KT_EVF_UNSURE)) {
        kt_model_add_error(m, KT_ERR_WRONG_FAMILY, ev, index);
    }
    if (area) {
        set_freed(m, index, ev);
    }
}

/* kvfree_rcu_cb() gets some address in the object. It frees areas of vmalloc()
 * with vfree(), which has an event of its own. vunmap() gets the start of an
 * area, which is a block only if vmap() owned its pages. */
void kt_model_free_inside(KtModel *m, const KtEvent *ev, const KtMapHint *h)
{
    uint32_t index = kt_model_hit(m, h);
    const KtRec *r = index ? kt_rec(&m->blocks, index) : NULL;

    kt_model_count(m, KT_CNT_EV_FREE);
    if (r && (ev->flags & KT_EVF_UNMAP)) {
        unmap(m, ev, index);
    } else if (r && !r->freed &&
               (ev->family == KT_FAMILY_VFREE ? r->layer == KT_LAYER_VMALLOC :
                                                r->layer <= KT_LAYER_CACHE)) {
        set_freed(m, index, ev);
    }
}

static void add_invalid(KtModel *m, const KtEvent *ev, uint32_t index)
{
    kt_model_add_error(m, KT_ERR_INVALID_FREE, ev, index);
    kt_accounts_stray(&m->accounts, ev->stack.v & KT_MAX_STACKS,
                      KT_STRAY_INVALID);
}

/* Add what a rule found to the errors and counters. @index: the block. */
static void add_verdict(KtModel *m, const KtEvent *ev, uint32_t index,
                        KtVerdict v, KtErrorKind kind)
{
    if (v == KT_BAD && kind == KT_ERR_INVALID_FREE) {
        add_invalid(m, ev, index);
    } else if (v == KT_BAD) {
        kt_model_add_error(m, kind, ev, index);
    } else if (v == KT_OK_UNKNOWN) {
        kt_model_count(m, ev->flags & KT_EVF_UNSURE ? KT_CNT_FREE_UNHOOKED :
                                                      KT_CNT_FREE_UNKNOWN);
        kt_accounts_stray(&m->accounts, ev->stack.v & KT_MAX_STACKS,
                          KT_STRAY_UNKNOWN);
    }
}

/* Return the live block of the page allocator that contains the freed address;
 * 0 if there is none, or if the address is in a slab. */
static uint32_t pages_of(const KtModel *m, const KtEvent *ev)
{
    bool slab = (ev->flags & KT_EVF_SLAB_READ) && ev->cache.v;
    uint32_t index = slab ? 0 : kt_model_block_at(m, KT_MAP_PAGES, ev->va);
    const KtRec *r = index ? kt_rec(&m->blocks, index) : NULL;

    return r && !r->freed && !r->old ? index : 0;
}

/* Return the block at the freed address, 0 for none. If it was freed before,
 * and its page was handed out again since, the caller means the new pages. */
static uint32_t find_freed(const KtModel *m, const KtEvent *ev,
                           const KtMapHint *h)
{
    uint32_t index = kt_model_hit(m, h), pages;

    if (G_LIKELY(!index || !kt_rec(&m->blocks, index)->freed)) {
        return index;
    }
    pages = pages_of(m, ev);
    return pages && kt_model_is_newer(m, pages, index) ? 0 : index;
}

/*
 * kfree() or vfree() got an address that is in no block of their allocators. If
 * the page allocator handed out the page there, the error is no invalid free:
 * set @kind to what it is, and return the block of pages, which the error then
 * shows. Otherwise return 0; @kind is unchanged.
 */
static uint32_t find_pages(const KtModel *m, const KtEvent *ev,
                           KtErrorKind *kind)
{
    uint32_t index = pages_of(m, ev);

    if (*kind != KT_ERR_INVALID_FREE || !index ||
        (ev->family != KT_FAMILY_KFREE && ev->family != KT_FAMILY_VFREE)) {
        return 0;
    }
    *kind = kt_rec(&m->blocks, index)->va == ev->va ? KT_ERR_WRONG_FAMILY :
                                                     KT_ERR_INTERIOR_FREE;
    return index;
}

/* Return true if vfree() is called by the worker for a block that stayed live
 * when the call that queued it was reported. */
static bool was_reported(const KtEvent *ev, const KtRec *r)
{
    return ev->family == KT_FAMILY_VFREE && (ev->flags & KT_EVF_WORKER) &&
           r && r->va == ev->va && r->layer != KT_LAYER_VMALLOC &&
           !r->freed && !r->queued;
}

void kt_model_free_block(KtModel *m, const KtEvent *ev, const KtMapHint *h)
{
    uint32_t index = find_freed(m, ev, h);
    KtCase c = make_case(m, ev, index);
    bool starts = c.rec && c.rec->va == ev->va;
    KtErrorKind kind = KT_ERR__COUNT;
    uint32_t pages;
    KtVerdict v;

    kt_model_count(m, KT_CNT_EV_FREE);
    if (starts && c.rec->freed && is_covered(m, ev, index)) {
        return;
    }
    if (G_UNLIKELY(was_reported(ev, c.rec))) {
        kt_model_count(m, KT_CNT_FREE_DEFERRED);
        return;
    }
    if (starts && !c.rec->freed && !c.rec->cache && is_object(c.rec) &&
        !(ev->flags & KT_EVF_SLAB_READ)) {
        found_cache(m, index, ev->cache.v);
    }
    c.certain = c.certain && !was_evicted(m, ev);
    v = kt_rule_free(&c, &kind);
    pages = v == KT_BAD ? find_pages(m, ev, &kind) : 0;
    m->misfreed = pages ? kt_rec(&m->blocks, pages)->va : m->misfreed;
    add_verdict(m, ev, pages ? pages : index, v, kind);
    if (c.rec && !c.rec->freed && kt_rule_frees(&c, v, kind)) {
        set_freed(m, index, ev);
        if (ev->family == KT_FAMILY_VFREE && (ev->flags & KT_EVF_QUEUES)) {
            kt_blocks_expect(&m->blocks, index);
        }
    }
}

void kt_model_free_nothing(KtModel *m, const KtEvent *ev)
{
    bool queues = ev->kind == KT_EV_RCU_QUEUE;

    kt_model_count(m, queues ? KT_CNT_EV_RCU : KT_CNT_EV_FREE);
    if (ev->flags & KT_EVF_AGAIN) {
        return;
    }
    if (!queues && m->queued_nothing) {
        m->queued_nothing--;
        return;
    }
    m->queued_nothing += queues;
    add_invalid(m, ev, 0);
}

/* Find the first live object of a slab, or large block, that begins in
 * [@va, @last]. Only a few blocks are examined: pages that were a slab once can
 * have hundreds. Return 0 if there is none. */
static uint32_t find_object(const KtModel *m, uint64_t va, uint64_t last)
{
    KtMapIter it = kt_map_seek(&m->map[KT_MAP_MAIN], va);

    for (unsigned i = 0; i < OBJECTS_MAX; i++) {
        KtMapEntry e = kt_map_next(&m->map[KT_MAP_MAIN], &it);
        const KtRec *r = e.val ? kt_rec(&m->blocks, e.val) : NULL;

        if (!r || e.key > last) {
            break;
        }
        if (!r->freed && !r->old && r->layer <= KT_LAYER_CACHE) {
            return e.val;
        }
    }
    return 0;
}

/* free_pages() of pages without references: the state of blocks is unchanged.
 * Pages that are live, from their first one on, belong to somebody who uses
 * them without references; what the caller meant is unknown. */
static void refuse_pages(KtModel *m, const KtEvent *ev, uint32_t index,
                         uint64_t last)
{
    const KtRec *r = index ? kt_rec(&m->blocks, index) : NULL;
    uint32_t object = find_object(m, ev->va, last);

    if (object) {
        kt_model_add_error(m, KT_ERR_WRONG_FAMILY, ev, object);
    } else if (r && r->freed) {
        kt_model_add_error(m, KT_ERR_DOUBLE_FREE, ev, index);
    } else if (r && !r->old && r->va != ev->va) {
        kt_model_add_error(m, KT_ERR_INTERIOR_FREE, ev, index);
    } else {
        kt_model_count(m, KT_CNT_FREE_PAGES_UNKNOWN);
        kt_accounts_stray(&m->accounts, ev->stack.v & KT_MAX_STACKS,
                          KT_STRAY_PAGES);
    }
}

/*
 * free_pages() of what another allocator handed out. The first block in the
 * pages is reported. Only a few blocks are examined, as in find_object().
 */
static bool free_objects(KtModel *m, const KtEvent *ev, uint64_t last)
{
    bool reported = false;
    KtMapIter it;

    if ((ev->flags & (KT_EVF_ORDER | KT_EVF_UNSURE)) != KT_EVF_ORDER) {
        return false;
    }
    it = kt_map_seek(&m->map[KT_MAP_MAIN], ev->va);
    for (unsigned i = 0; i < OBJECTS_MAX; i++) {
        KtMapEntry e = kt_map_next(&m->map[KT_MAP_MAIN], &it);
        const KtRec *r = e.val ? kt_rec(&m->blocks, e.val) : NULL;

        if (!r || e.key > last) {
            break;
        }
        if (r->freed || r->old || r->layer > KT_LAYER_CACHE) {
            continue;
        }
        if (!reported) {
            kt_model_add_error(m, KT_ERR_WRONG_FAMILY, ev, e.val);
            reported = true;
        }
        if (kt_rule_frees(&(KtCase) { .ev = ev, .rec = r }, KT_BAD,
                          KT_ERR_WRONG_FAMILY)) {
            set_freed(m, e.val, ev);
        }
    }
    return reported;
}

/* The guest no longer has this memory, so all blocks in it end. The kernel had
 * freed the objects in its slabs before: a live one is there only if its free
 * was not recorded. */
static void remove_memory(KtModel *m, const KtEvent *ev)
{
    uint64_t last = kt_model_last_of(ev->va, ev->size);

    kt_model_count(m, KT_CNT_EV_REMOVE);
    for (unsigned i = 0; ev->size && i < KT_MAP__COUNT; i++) {
        kt_model_free_range(m, &m->map[i], ev->va, last, ev);
    }
}

/* Pages may be freed in other pieces than they were allocated: after
 * split_page(), the split of a huge page, or as the tail of
 * alloc_pages_exact(). Only a block that is freed again as a whole is an error,
 * and one that nobody split, if another order is freed.
 */
void kt_model_free_pages(KtModel *m, const KtEvent *ev, const KtMapHint *h)
{
    uint32_t index = kt_model_hit(m, h);
    KtCase c = make_case(m, ev, index);
    uint64_t last;
    KtErrorKind kind;

    if (G_UNLIKELY(ev->flags & KT_EVF_REMOVED)) {
        remove_memory(m, ev);
        return;
    }
    kt_model_count(m, KT_CNT_EV_FREE);
    c.block_last = index ? kt_blocks_last(&m->blocks, index) : ev->va;
    last = ev->size ? kt_model_last_of(ev->va, ev->size) : c.block_last;
    if (ev->flags & KT_EVF_UNREFERENCED) {
        refuse_pages(m, ev, index, last);
        return;
    }
    c.last = last;
    c.gfp = index ? kt_blocks_gfp(&m->blocks, index) : 0;
    c.removed = index && kt_blocks_removed(&m->blocks, index);
    c.again = index && (ev->flags & KT_EVF_AGAIN) &&
              kt_blocks_freed_so(&m->blocks, index, ev);
    if (free_objects(m, ev, last)) {
        kt_model_free_range(m, h->map, ev->va, last, ev);
    } else if (kt_rule_free_pages(&c, &kind) == KT_BAD) {
        if (kind != KT_ERR_WRONG_ORDER || ev->va != m->misfreed) {
            kt_model_add_error(m, kind, ev, index);
        }
        /* With a wrong order the kernel frees what it was told to. */
        kt_model_free_range(m, h->map, ev->va, last, ev);
    } else if (!kt_model_free_range(m, h->map, ev->va, last, ev) && !c.again) {
        kt_model_count(m, KT_CNT_FREE_PAGES_UNKNOWN);
        kt_accounts_stray(&m->accounts, ev->stack.v & KT_MAX_STACKS,
                          KT_STRAY_PAGES);
    }
}

void kt_model_queue(KtModel *m, const KtEvent *ev, const KtMapHint *h)
{
    uint32_t index = find_freed(m, ev, h);
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

/* ---- caches that are destroyed ------------------------------------------- */
/*
 * Model: a kmem_cache that was destroyed with objects left; see model.h. With
 * the tracer's lock held.
 *
 * The kernel says so itself, with a warning: this is not a guess. The objects
 * stay live, because nobody can free them any more. There is an error for each
 * stack that allocated some of them, and no more than STACKS_MAX.
 */

/* Errors of one call. */
#define STACKS_MAX 16
/* Calls whose objects are looked for in a boot. Each search visits all blocks,
 * and a hostile guest can make as many calls as it likes. */
#define SEARCHES_MAX 256

/* The objects of one stack: the one with the lowest address, and how many. */
typedef struct Objects {
    uint32_t stack, first;
    uint64_t n;
} Objects;

static void add_object(Objects *of, unsigned *n, uint32_t stack, uint32_t index)
{
    unsigned i = 0;

    while (i < *n && of[i].stack != stack) {
        i++;
    }
    if (i == STACKS_MAX) {
        return;
    }
    if (i == *n) {
        of[(*n)++] = (Objects) { .stack = stack, .first = index };
    }
    of[i].n++;
}

/* Find the live objects of a cache, by stack. Return the number of stacks. A
 * block from before a gap may have been freed in the gap. */
static unsigned find_objects(const KtModel *m, uint16_t cache, Objects *of)
{
    KtMapIter it = kt_map_seek(&m->map[KT_MAP_MAIN], 0);
    KtMapEntry e;
    unsigned n = 0;

    while ((e = kt_map_next(&m->map[KT_MAP_MAIN], &it)).val) {
        const KtRec *r = kt_rec(&m->blocks, e.val);

        if (r->cache == cache && !r->freed && !r->old) {
            add_object(of, &n, r->stack, e.val);
        }
    }
    return n;
}

void kt_model_destroy(KtModel *m, const KtEvent *ev)
{
    Objects of[STACKS_MAX];
    KtEvent each = *ev;
    unsigned n = 0;

    kt_model_count(m, KT_CNT_EV_DESTROY);
    if (ev->cache.v && m->destroyed < SEARCHES_MAX) {
        m->destroyed++;
        n = find_objects(m, ev->cache.v, of);
    }
    for (unsigned i = 0; i < n; i++) {
        each.size = of[i].n;
        kt_model_add_error(m, KT_ERR_OBJECTS_LEFT, &each, of[i].first);
    }
    if (!n) {
        each.size = 0;
        kt_model_add_error(m, KT_ERR_OBJECTS_LEFT, &each, 0);
    }
}
