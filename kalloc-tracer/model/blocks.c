/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Blocks: see blocks.h. The model calls what changes them, in the order of
 * events; queries and the self-check call the rest. The tracer's lock is held.
 */
#include "kalloc-tracer/model/blocks-internal.h"

#include <string.h>

#define REC_SHIFT   17      /* chunks of 6 MiB */
#define END_SHIFT   16      /* 2 MiB */
#define RCU_SHIFT   12      /* 96 KiB: kfree_rcu() is rare */
#define MAX_GFPS    UINT16_MAX
#define AGE_SHIFT   16      /* 512 KiB */
#define HUGE_BYTES  96      /* of an entry of the table of huge sizes */
#define GFP_BYTES   48      /* of one of the gfp values */

/* Sizes of 4 GiB and more, which do not fit into a record. */
typedef struct Huge {
    uint64_t requested;
    uint64_t actual;
} Huge;

/* ---- life --------------------------------------------------------------- */

static void charge_pools(KtBlocks *b)
{
    KtPool *pools[] = { &b->rec, &b->end, &b->rcu, &b->age };

    for (unsigned i = 0; i < G_N_ELEMENTS(pools); i++) {
        kt_pool_charge(pools[i], b->budget, KT_MEM_BLOCKS);
        pools[i]->always = pools[i] != &b->rec && !b->bounded;
    }
}

void kt_blocks_init(KtBlocks *b, KtBudget *budget)
{
    *b = (KtBlocks) {
        .budget = budget, .bounded = kt_budget_bounded(budget)
    };
    kt_pool_init(&b->rec, sizeof(KtRec), REC_SHIFT);
    kt_pool_init(&b->end, sizeof(KtEnd), END_SHIFT);
    kt_pool_init(&b->rcu, sizeof(KtRcu), RCU_SHIFT);
    kt_pool_init(&b->age, sizeof(KtLink), AGE_SHIFT);
    charge_pools(b);
    list_init(&b->by_alloc, &b->rec, offsetof(KtRec, link), budget);
    list_init(&b->by_free, &b->end, offsetof(KtEnd, link), budget);
    list_init(&b->by_rcu, &b->rcu, offsetof(KtRcu, link), budget);
    b->huge = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    b->gfp_ids = g_hash_table_new(gs_number_hash_direct, NULL);
    b->gfps = g_new0(uint64_t, 1);
    b->n_gfps = 1;
}

void kt_blocks_deinit(KtBlocks *b)
{
    list_deinit(&b->by_alloc);
    list_deinit(&b->by_free);
    list_deinit(&b->by_rcu);
    kt_budget_release(b->budget, KT_MEM_BLOCKS,
                      (uint64_t)g_hash_table_size(b->huge) * HUGE_BYTES +
                       (uint64_t)(b->n_gfps - 1) * GFP_BYTES);
    g_hash_table_unref(b->huge);
    g_hash_table_unref(b->gfp_ids);
    g_free(b->gfps);
    young_deinit(b);
    kt_pool_deinit(&b->rec);
    kt_pool_deinit(&b->end);
    kt_pool_deinit(&b->rcu);
    kt_pool_deinit(&b->age);
}

/* Reserve a KtEnd and its place in the order of frees for each existing block.
 * Not for each possible KtEnd: the last free memory would then go to ends that
 * no block can use. */
static bool reserve_ends(KtBlocks *b)
{
    uint64_t more = kt_pool_in_use(&b->rec) - kt_pool_in_use(&b->end);
    uint64_t last;

    if (!kt_pool_reserve(&b->end, more)) {
        return false;
    }
    last = b->end.used + (more > b->end.n_free ? more - b->end.n_free : 0);
    return last <= b->age.used || kt_pool_reserve(&b->age, last - b->age.used);
}

uint32_t kt_blocks_new(KtBlocks *b)
{
    uint32_t index = kt_pool_alloc(&b->rec);

    if (index && b->bounded && !reserve_ends(b)) {
        kt_pool_release(&b->rec, index);
        return 0;
    }
    young_reserve(b, index);
    return index;
}

void kt_blocks_release(KtBlocks *b, uint32_t index)
{
    kt_pool_release(&b->rec, index);
}

/* ---- age ---------------------------------------------------------------- */

/* Blocks that the search for the oldest may skip: a guest must not be able to
 * make it long. */
#define PUT_BACK 4

uint32_t kt_blocks_oldest(KtBlocks *b)
{
    for (unsigned i = 0; i < PUT_BACK && b->oldest; i++) {
        uint32_t end = b->oldest;

        if (!kt_end(b, end)->reported) {
            break;
        }
        age_remove(b, end);
        age_add(b, end);
    }
    return b->oldest ? kt_end(b, b->oldest)->block : 0;
}

/* ---- values ------------------------------------------------------------- */

/* Get the index of a gfp value and a tag. Index 0 is gfp 0 without a tag, and
 * any value for which there is no room. Few kernels keep tags, and there are
 * some 60 values: so a table of pairs costs less than a byte in each block. */
static uint16_t gfp_id_slow(KtBlocks *b, uint64_t gfp)
{
    gpointer key = GSIZE_TO_POINTER(gfp);
    uint32_t id = GPOINTER_TO_UINT(g_hash_table_lookup(b->gfp_ids, key));

    if (!id && gfp && b->n_gfps < MAX_GFPS) {
        id = b->n_gfps++;
        if ((id & (id - 1)) == 0) {
            b->gfps = g_renew(uint64_t, b->gfps, id * 2);
        }
        kt_budget_charge(b->budget, KT_MEM_BLOCKS, GFP_BYTES);
        b->gfps[id] = gfp;
        g_hash_table_insert(b->gfp_ids, key, GUINT_TO_POINTER(id));
    }
    b->last_gfp = gfp;
    b->last_gfp_id = id;
    return id;
}

static uint16_t gfp_id(KtBlocks *b, const KtEvent *ev)
{
    uint64_t gfp = ev->gfp | (uint64_t)ev->tag << 32;

    return gfp == b->last_gfp ? b->last_gfp_id : gfp_id_slow(b, gfp);
}

static void drop_huge(KtBlocks *b, uint32_t index)
{
    g_hash_table_remove(b->huge, GUINT_TO_POINTER(index));
    kt_budget_release(b->budget, KT_MEM_BLOCKS, HUGE_BYTES);
    kt_rec(b, index)->huge = 0;
}

static bool is_huge(uint64_t requested, uint64_t actual)
{
    return requested > UINT32_MAX || actual > UINT32_MAX;
}

bool kt_blocks_fit(const KtBlocks *b, uint64_t requested, uint64_t actual)
{
    return G_LIKELY(!is_huge(requested, actual)) ||
           kt_budget_has(b->budget, KT_MEM_BLOCKS, HUGE_BYTES);
}

static void set_sizes(KtBlocks *b, uint32_t index, uint64_t requested,
                      uint64_t actual)
{
    KtRec *r = kt_rec(b, index);
    gpointer key = GUINT_TO_POINTER(index);
    Huge *huge;

    if (G_LIKELY(!is_huge(requested, actual))) {
        if (r->huge) {
            drop_huge(b, index);
        }
        r->requested = requested;
        r->actual = actual;
        return;
    }
    huge = g_new(Huge, 1);
    *huge = (Huge) { requested, actual };
    if (!r->huge) {
        kt_budget_charge(b->budget, KT_MEM_BLOCKS, HUGE_BYTES);
    }
    r->huge = 1;
    g_hash_table_replace(b->huge, key, huge);
}

static Huge get_sizes(const KtBlocks *b, uint32_t index)
{
    const KtRec *r = kt_rec(b, index);

    if (G_LIKELY(!r->huge)) {
        return (Huge) { r->requested, r->actual };
    }
    return *(Huge *)g_hash_table_lookup(b->huge, GUINT_TO_POINTER(index));
}

uint64_t kt_blocks_requested(const KtBlocks *b, uint32_t index)
{
    return get_sizes(b, index).requested;
}

uint64_t kt_blocks_len(const KtBlocks *b, uint32_t index)
{
    Huge h = get_sizes(b, index);

    return MAX(h.requested, h.actual);
}

uint64_t kt_blocks_last(const KtBlocks *b, uint32_t index)
{
    uint64_t va = kt_rec(b, index)->va;
    uint64_t len = kt_blocks_len(b, index);

    return len > 1 ? va + MIN(len - 1, UINT64_MAX - va) : va;
}

/* ---- changes ------------------------------------------------------------ */

void kt_blocks_set(KtBlocks *b, uint32_t index, const KtEvent *ev)
{
    KtRec *r = kt_rec(b, index);

    *r = (KtRec) {
        .va = ev->va,
        .alloc_us = ev->us,
        .cache = ev->cache.v,
        .stack = ev->stack.v,
        .hook = ev->hook.v,
        .task = ev->task.v,
        .layer = ev->layer,
        .gfp = gfp_id(b, ev),
        .cpu = ev->cpu,
    };
    young_add(b, index);
    set_sizes(b, index, ev->size, ev->actual ? ev->actual : ev->size);
    /* Not r->stack: that load would wait for the stores above. */
    list_add(&b->by_alloc, ev->stack.v & KT_MAX_STACKS, index);
}

static void drop_rcu(KtBlocks *b, KtEnd *e)
{
    if (e->rcu) {
        list_remove(&b->by_rcu, kt_rcu(b, e->rcu)->stack, e->rcu);
        kt_pool_release(&b->rcu, e->rcu);
        e->rcu = 0;
    }
}

void kt_blocks_unset(KtBlocks *b, uint32_t index)
{
    KtRec *r = kt_rec(b, index);

    list_remove(&b->by_alloc, r->stack, index);
    if (r->end) {
        KtEnd *e = kt_end(b, r->end);

        if (r->freed) {
            age_remove(b, r->end);
        }
        list_remove(&b->by_free, e->stack, r->end);
        drop_rcu(b, e);
        kt_pool_release(&b->end, r->end);
        r->end = 0;
    }
    if (r->huge) {
        drop_huge(b, index);
    }
}

void kt_blocks_copy(KtBlocks *b, uint32_t to, uint32_t from, uint64_t va,
                    uint64_t len)
{
    KtRec *r = kt_rec(b, to);

    *r = *kt_rec(b, from);
    r->va = va;
    r->end = 0;
    r->queued = 0;
    r->huge = 0;
    young_add(b, to);
    set_sizes(b, to, len, len);
    list_add(&b->by_alloc, r->stack, to);
}

void kt_blocks_shrink(KtBlocks *b, uint32_t index, uint64_t len)
{
    set_sizes(b, index, len, len);
}

void kt_blocks_resize(KtBlocks *b, uint32_t index, uint64_t requested)
{
    set_sizes(b, index, requested, get_sizes(b, index).actual);
}

/* Return the KtEnd of a block; make it if there is none. NULL: no memory. */
static KtEnd *extend(KtBlocks *b, uint32_t index)
{
    KtRec *r = kt_rec(b, index);
    KtEnd *e;

    if (r->end) {
        return kt_end(b, r->end);
    }
    r->end = kt_pool_alloc(&b->end);
    if (!r->end) {
        return NULL;
    }
    e = kt_end(b, r->end);
    *e = (KtEnd) { .block = index };
    return e;
}

void kt_blocks_set_freed(KtBlocks *b, uint32_t index, const KtEvent *ev)
{
    KtRec *r = kt_rec(b, index);
    KtEnd *e = extend(b, index);

    r->freed = 1;
    r->old = 0;
    young_add(b, index);
    if (!e) {
        return;
    }
    e->free_us = ev->us;
    e->cpu = ev->cpu;
    e->stack = ev->stack.v;
    e->hook = ev->hook.v;
    e->task = ev->task.v;
    list_add(&b->by_free, ev->stack.v & KT_MAX_STACKS, r->end);
    age_add(b, r->end);
}

void kt_blocks_set_removed(KtBlocks *b, uint32_t index)
{
    KtEnd *e = extend(b, index);

    if (e) {
        e->removed = 1;
    }
}

bool kt_blocks_set_queued(KtBlocks *b, uint32_t index, const KtEvent *ev)
{
    KtEnd *e = extend(b, index);
    KtRcu *rcu;

    kt_rec(b, index)->queued = 1;
    if (!e) {
        return false;
    }
    e->rcu = kt_pool_alloc(&b->rcu);
    if (!e->rcu) {
        return false;
    }
    rcu = kt_rcu(b, e->rcu);
    *rcu = (KtRcu) { .us = ev->us, .stack = ev->stack.v, .block = index };
    list_add(&b->by_rcu, rcu->stack, e->rcu);
    return true;
}

void kt_blocks_expect(KtBlocks *b, uint32_t index)
{
    KtEnd *e = extend(b, index);

    if (e && e->reported < KT_REPORTED_MAX) {
        e->reported++;
    }
}

bool kt_blocks_expected(KtBlocks *b, uint32_t index)
{
    KtRec *r = kt_rec(b, index);
    KtEnd *e = r->end ? kt_end(b, r->end) : NULL;

    if (!e || !e->reported) {
        return false;
    }
    e->reported--;
    return true;
}

bool kt_blocks_freed_so(const KtBlocks *b, uint32_t index, const KtEvent *ev)
{
    const KtRec *r = kt_rec(b, index);
    const KtEnd *e = r->end ? kt_end(b, r->end) : NULL;

    return r->freed && e && e->stack == (ev->stack.v & KT_MAX_STACKS) &&
           e->task == (ev->task.v & KT_MAX_STACKS);
}

uint64_t kt_blocks_age(KtBlocks *b)
{
    uint64_t looked_at = 0;

    for (uint64_t word = 0; word < b->n_young; word++) {
        for (uint64_t left = b->young[word]; left; left &= left - 1) {
            looked_at += age_group(b, word * 64 + __builtin_ctzll(left));
        }
        b->young[word] = 0;
    }
    return looked_at;
}

/* ---- reading ------------------------------------------------------------ */

static void get_end(const KtBlocks *b, const KtEnd *e, KtBlock *out)
{
    out->free_us = e->free_us;
    out->free_stack.v = e->stack;
    out->free_task.v = e->task;
    out->free_cpu = e->cpu;
    out->free_hook.v = e->hook;
    out->removed = e->removed;
    if (e->rcu) {
        out->rcu_us = kt_rcu(b, e->rcu)->us;
        out->rcu_stack.v = kt_rcu(b, e->rcu)->stack;
    }
}

void kt_blocks_get(const KtBlocks *b, uint32_t index, KtBlock *out)
{
    const KtRec *r = kt_rec(b, index);
    Huge size = get_sizes(b, index);

    *out = (KtBlock) {
        .va = r->va,
        .requested = size.requested,
        .actual = size.actual,
        .alloc_us = r->alloc_us,
        .alloc_stack = { r->stack },
        .alloc_task = { r->task },
        .gfp = b->gfps[r->gfp],
        .cache = { r->cache },
        .hook = { r->hook },
        .alloc_cpu = r->cpu,
        .state = r->freed ? KT_BLOCK_FREED : KT_BLOCK_ALLOCATED,
        .layer = r->layer,
        .rcu_queued = r->queued,
    };
    if (r->end) {
        get_end(b, kt_end(b, r->end), out);
    }
}

/* ---- prefetching -------------------------------------------------------- */

static const KtList *list_of(const KtBlocks *b, const KtEvent *ev)
{
    return ev->kind == KT_EV_FREE ? &b->by_free : &b->by_alloc;
}

static void touch_link(const KtList *l, uint32_t index)
{
    if (index) {
        kt_prefetch(link_at(l, index));
    }
}

void kt_blocks_touch_stack(const KtBlocks *b, const KtEvent *ev)
{
    const KtList *l = list_of(b, ev);

    if (ev->stack.v < l->n) {
        kt_prefetch(&l->head[ev->stack.v]);
    }
}

void kt_blocks_touch(const KtBlocks *b, const KtEvent *ev, uint32_t index)
{
    const KtList *l = list_of(b, ev);

    touch_link(l, kt_list_head(l, ev->stack.v));
    if (index) {
        kt_pool_prefetch(&b->rec, index);
    }
}

void kt_blocks_touch_links(const KtBlocks *b, uint32_t index)
{
    const KtRec *r;

    if (!index) {
        return;
    }
    r = kt_rec(b, index);
    touch_link(&b->by_alloc, r->link.prev);
    touch_link(&b->by_alloc, r->link.next);
    if (r->end) {
        kt_prefetch(kt_end(b, r->end));
    }
}

void kt_blocks_touch_end(const KtBlocks *b, uint32_t index)
{
    uint32_t end = index ? kt_rec(b, index)->end : 0;

    if (end) {
        touch_link(&b->by_free, kt_end(b, end)->link.prev);
        touch_link(&b->by_free, kt_end(b, end)->link.next);
    }
}

/* ---- renumbering -------------------------------------------------------- */

static void renumber_list(KtList *l, const uint32_t *to)
{
    KtList old = *l;

    l->head = NULL;
    l->n = 0;
    for (uint32_t stack = 1; stack < old.n; stack++) {
        uint32_t now = old.head[stack] ? to[stack] : 0;

        if (now >= l->n) {
            list_grow(l, now);
        }
        if (now) {
            l->head[now] = old.head[stack];
        }
    }
    list_deinit(&old);
}

void kt_blocks_renumber(KtBlocks *b, const KtRenumber *to)
{
    for (uint32_t i = 1; i < b->rec.used; i++) {
        KtRec *r = kt_rec(b, i);

        r->stack = to->stack[r->stack];
        r->task = to->task[r->task];
        r->cache = to->cache[r->cache];
    }
    for (uint32_t i = 1; i < b->end.used; i++) {
        KtEnd *e = kt_end(b, i);

        e->stack = to->stack[e->stack];
        e->task = to->task[e->task];
    }
    for (uint32_t i = 1; i < b->rcu.used; i++) {
        kt_rcu(b, i)->stack = to->stack[kt_rcu(b, i)->stack];
    }
    renumber_list(&b->by_alloc, to->stack);
    renumber_list(&b->by_free, to->stack);
    renumber_list(&b->by_rcu, to->stack);
}

uint64_t kt_blocks_bytes(const KtBlocks *b)
{
    return kt_pool_bytes(&b->rec) + kt_pool_bytes(&b->end) +
           kt_pool_bytes(&b->rcu) + kt_pool_bytes(&b->age) +
           (uint64_t)b->n_young * sizeof(*b->young) +
           ((uint64_t)b->by_alloc.n + b->by_free.n + b->by_rcu.n) *
           sizeof(uint32_t) + (uint64_t)g_hash_table_size(b->huge) *
           HUGE_BYTES;
}
