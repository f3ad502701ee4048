/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Queries of blocks, errors and sizes: kt-query.h.
 *
 * Monitor commands and the program ka call them, between kt_query_begin() and
 * kt_query_end(): begin applies all events that were pushed before, and holds
 * the tracer's lock until the end. Results are copied out; callbacks run under
 * the lock.
 */
#include "kalloc-tracer/base/host-memory.h"
#include "kalloc-tracer/tracer/tracer.h"

#include <stdlib.h>

#define AHEAD   16      /* prefetch the record so many blocks ahead */

void kt_query_begin(KtTracer *t)
{
    kt_tracer_lock_drained(t);
    if (t->journal) {
        kt_journal_flush(t->journal, true);
    }
}

void kt_query_end(KtTracer *t)
{
    pthread_mutex_unlock(&t->lock);
}

static bool read_block(const KtModel *m, uint32_t index, KtBlock *out)
{
    if (index) {
        kt_blocks_get(&m->blocks, index, out);
    }
    return index != 0;
}

static bool reaches(const KtModel *m, KtMapEntry e, uint64_t va)
{
    return e.val && kt_blocks_last(&m->blocks, e.val) >= va;
}

/* ---- by address --------------------------------------------------------- */

bool kt_query_find(KtTracer *t, uint64_t va, KtBlock *out)
{
    uint32_t earlier;

    return read_block(t->model, kt_model_find(t->model, va, &earlier), out);
}

bool kt_query_earlier(KtTracer *t, uint64_t va, KtBlock *out)
{
    uint32_t earlier;

    kt_model_find(t->model, va, &earlier);
    return read_block(t->model, earlier, out);
}

bool kt_query_next(KtTracer *t, uint64_t va, KtBlock *out)
{
    const KtModel *m = t->model;
    KtMapEntry best = { 0 };

    for (int i = KT_MAP__COUNT - 1; i >= 0; i--) {
        KtMapEntry e = kt_map_above(&m->map[i], va);

        if (e.val && (!best.val || e.key < best.key)) {
            best = e;
        }
    }
    return read_block(m, best.val, out);
}

/* Find the last block of one map that ends below @va. */
static KtMapEntry below(const KtModel *m, const KtMap *map, uint64_t va)
{
    KtMapEntry e = kt_map_floor(map, va);

    if (!reaches(m, e, va)) {
        return e;
    }
    return e.key ? kt_map_floor(map, e.key - 1) : (KtMapEntry) { 0 };
}

bool kt_query_prev(KtTracer *t, uint64_t va, KtBlock *out)
{
    const KtModel *m = t->model;
    KtMapEntry best = { 0 };

    for (int i = KT_MAP__COUNT - 1; i >= 0; i--) {
        KtMapEntry e = below(m, &m->map[i], va);

        if (e.val && (!best.val || e.key > best.key)) {
            best = e;
        }
    }
    return read_block(m, best.val, out);
}

/* Begin with the block that contains @lo, or with the first one after it. */
static KtMapIter begin_at(const KtModel *m, const KtMap *map, uint64_t lo)
{
    KtMapEntry e = kt_map_floor(map, lo);

    return kt_map_seek(map, reaches(m, e, lo) ? e.key : lo);
}

/* A walk over the blocks of one map by address. The records of neighbours lie
 * anywhere in memory, so each is prefetched AHEAD blocks before its turn. */
typedef struct Walk {
    const KtMap *map;
    KtMapIter it, ahead;
    KtMapEntry e;
} Walk;

static void touch(const KtModel *m, Walk *w)
{
    KtMapEntry e = kt_map_next(w->map, &w->ahead);

    if (e.val) {
        kt_prefetch(kt_rec(&m->blocks, e.val));
    }
}

static void step(const KtModel *m, Walk *w)
{
    w->e = kt_map_next(w->map, &w->it);
    touch(m, w);
}

static void begin_walk(const KtModel *m, const KtMap *map, uint64_t lo,
                       Walk *w)
{
    *w = (Walk) { .map = map, .it = begin_at(m, map, lo) };
    w->ahead = w->it;
    for (unsigned i = 0; i < AHEAD; i++) {
        touch(m, w);
    }
    step(m, w);
}

void kt_query_range(KtTracer *t, uint64_t lo, uint64_t hi, KtBlockFn fn,
                    void *opaque)
{
    const KtModel *m = t->model;
    Walk walk[KT_MAP__COUNT];
    const KtMapEntry *objects = &walk[KT_MAP_MAIN].e;
    const KtMapEntry *pages = &walk[KT_MAP_PAGES].e;

    for (unsigned i = 0; i < KT_MAP__COUNT; i++) {
        begin_walk(m, &m->map[i], lo, &walk[i]);
    }
    for (;;) {
        Walk *w = &walk[!pages->val || (objects->val &&
                                        objects->key < pages->key) ?
                        KT_MAP_MAIN : KT_MAP_PAGES];
        KtBlock b;

        if (!w->e.val || w->e.key > hi) {
            return;
        }
        kt_blocks_get(&m->blocks, w->e.val, &b);
        if (!fn(&b, opaque)) {
            return;
        }
        step(m, w);
    }
}

void kt_query_history(KtTracer *t, uint64_t va, KtBlockFn fn, void *opaque)
{
    kt_history_find(t->model->history, va, fn, opaque);
}

/* ---- by stack ----------------------------------------------------------- */

/* A block that was found. Blocks are returned by address; pages come before
 * the objects that lie in them. */
typedef struct Found {
    uint64_t va;
    uint32_t index;
    bool in_pages;
} Found;

static int by_address(const void *a, const void *b)
{
    const Found *x = a;
    const Found *y = b;

    if (x->va != y->va) {
        return x->va < y->va ? -1 : 1;
    }
    if (x->in_pages != y->in_pages) {
        return y->in_pages ? -1 : 1;
    }
    return x->index < y->index ? -1 : x->index > y->index;
}

static void found(GArray *list, const KtModel *m, uint32_t index)
{
    const KtRec *r = kt_rec(&m->blocks, index);
    Found f = { r->va, index, r->layer != KT_LAYER_PAGES };

    g_array_append_val(list, f);
}

static void collect_by_alloc(const KtModel *m, uint32_t stack, GArray *list)
{
    uint32_t i = kt_list_head(&m->blocks.by_alloc, stack);

    for (; i; i = kt_rec(&m->blocks, i)->link.next) {
        found(list, m, i);
    }
}

static void collect_by_free(const KtModel *m, uint32_t stack, GArray *list)
{
    const KtBlocks *b = &m->blocks;

    for (uint32_t i = kt_list_head(&b->by_free, stack); i;
         i = kt_end(b, i)->link.next) {
        found(list, m, kt_end(b, i)->block);
    }
    for (uint32_t i = kt_list_head(&b->by_rcu, stack); i;
         i = kt_rcu(b, i)->link.next) {
        if (kt_rec(b, kt_rcu(b, i)->block)->freed) {
            found(list, m, kt_rcu(b, i)->block);
        }
    }
}

static bool any_frame(const uint64_t *pc, unsigned n, uint64_t lo,
                      uint64_t hi)
{
    for (unsigned i = 0; i < n; i++) {
        if (pc[i] >= lo && pc[i] <= hi) {
            return true;
        }
    }
    return false;
}

typedef void (*CollectFn)(const KtModel *m, uint32_t stack, GArray *list);

static GArray *find_by_stack(const KtTracer *t, uint64_t lo, uint64_t hi,
                             CollectFn collect)
{
    GArray *list = g_array_new(FALSE, FALSE, sizeof(Found));
    uint32_t count = kt_depot_count(t->stacks);

    for (uint32_t id = 1; id <= count; id++) {
        unsigned n;
        uint64_t stop;
        const uint64_t *pc = kt_depot_get(t->stacks, id, &n, &stop);

        if (any_frame(pc, n, lo, hi)) {
            collect(t->model, id, list);
        }
    }
    if (list->len) {
        qsort(list->data, list->len, sizeof(Found), by_address);
    }
    return list;
}

static void query_stacks(KtTracer *t, uint64_t lo, uint64_t hi,
                         CollectFn collect, KtBlockFn fn, void *opaque)
{
    g_autoptr(GArray) list = find_by_stack(t, lo, hi, collect);
    uint32_t last = 0;

    for (unsigned i = 0; i < list->len; i++) {
        uint32_t index = g_array_index(list, Found, i).index;
        KtBlock b;

        if (index == last) {
            continue;
        }
        last = index;
        kt_blocks_get(&t->model->blocks, index, &b);
        if (!fn(&b, opaque)) {
            return;
        }
    }
}

void kt_query_alloc_pc(KtTracer *t, uint64_t lo, uint64_t hi, KtBlockFn fn,
                       void *opaque)
{
    query_stacks(t, lo, hi, collect_by_alloc, fn, opaque);
}

void kt_query_free_pc(KtTracer *t, uint64_t lo, uint64_t hi, KtBlockFn fn,
                      void *opaque)
{
    query_stacks(t, lo, hi, collect_by_free, fn, opaque);
}

/* ---- errors, sizes ------------------------------------------------------ */

static bool touches(const KtError *e, uint64_t lo, uint64_t hi)
{
    uint64_t len;

    if (e->va >= lo && e->va <= hi) {
        return true;
    }
    if (!e->has_block || e->block.va > hi) {
        return false;
    }
    len = kt_block_len(&e->block);
    return e->block.va >= lo || lo - e->block.va < len;
}

void kt_query_errors(KtTracer *t, uint64_t lo, uint64_t hi, KtErrorFn fn,
                     void *opaque)
{
    const GArray *list = t->model->errors.list;

    for (unsigned i = 0; i < list->len; i++) {
        const KtError *e = &g_array_index(list, KtError, i);

        if (touches(e, lo, hi) && !fn(e, opaque)) {
            return;
        }
    }
}

/* A journal does not contain all stacks, tasks and caches, and the memory of
 * the reader says nothing: show the numbers of the tracer that wrote it. */
static void use_recorded(const KtRecordedStats *recorded, KtStats *out)
{
    const KtStats *s = &recorded->stats;

    out->stacks = s->stacks;
    out->tasks = s->tasks;
    out->caches = s->caches;
    out->depot_bytes = s->depot_bytes;
    out->map_bytes = s->map_bytes;
    out->history_bytes = s->history_bytes;
    out->mem_bytes = s->mem_bytes;
    out->mem_bound = s->mem_bound;
    out->full = s->full;
    memcpy(out->part_bytes, s->part_bytes, sizeof(out->part_bytes));
}

void kt_query_stats(KtTracer *t, KtStats *out)
{
    const KtModel *m = t->model;

    *out = (KtStats) {
        .live_blocks = m->live_blocks,
        .live_bytes = m->live_bytes,
        .freed_blocks = m->freed_blocks,
        .history_rows = kt_history_rows(m->history),
        .errors = m->errors.list->len,
        .stacks = kt_depot_count(t->stacks),
        .tasks = kt_tasks_caches_n_tasks(t->names),
        .caches = kt_tasks_caches_n_caches(t->names),
        .map_bytes = kt_model_bytes(m) +
                     (t->previous ? kt_model_bytes(t->previous) : 0),
        .history_bytes = kt_history_bytes(m->history),
        .depot_bytes = kt_depot_bytes(t->stacks),
        .events = t->events,
        .previous_live_blocks = t->previous_live,
        .last_us = t->last_us,
        .mem_bytes = kt_budget_total(t->budget),
        .mem_bound = t->config.mem_bytes,
        .full = m->full,
        .complete = m->complete,
        .gap = m->gap,
        .unseen = m->unseen,
        .blind = m->blind,
    };
    for (unsigned i = 0; i < KT_MEM__COUNT; i++) {
        out->part_bytes[i] = kt_budget_used(t->budget, i);
    }
    for (unsigned i = 0; i < KT_CNT__COUNT; i++) {
        out->counter[i] = kt_tracer_counter(t, i);
    }
    out->errors_dropped = out->counter[KT_CNT_DROP_ERROR] - t->errors_before;
    if (t->recorded.any) {
        use_recorded(&t->recorded, out);
    }
}
