/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One boot in a snapshot: blocks, past lives, errors. See snapshot-internal.h.
 *
 * Blocks are written by address, past lives and errors from the oldest to the
 * newest. Numbers are written as the difference to the one before where this is
 * shorter.
 *
 * Reading uses the same functions that apply events. Before, it checks what
 * these functions rely on: addresses ascend, blocks do not overlap, and ids
 * are in the tables of the stream.
 */
#include "kalloc-tracer/snapshot/snapshot-internal.h"

/* Flags in the first number of a block, below its layer. */
enum {
    B_FREED = 1, B_QUEUED = 2, B_OLD = 4, B_RCU = 8,
};

#define US_MAX ((1ull << 48) - 1)

/* ---- one block ---------------------------------------------------------- */

static void pack_block(GsOut *p, const KtBlock *b, uint64_t from,
                       unsigned flags)
{
    gs_out_varint(p, flags | b->layer << 4);
    gs_out_step(p, from, b->va);
    gs_out_varint(p, b->requested);
    gs_out_step(p, b->requested, b->actual);
    gs_out_step(p, 0, b->alloc_us);
    gs_out_varint(p, b->alloc_stack.v);
    gs_out_varint(p, b->alloc_task.v);
    gs_out_varint(p, b->cache.v);
    gs_out_varint(p, b->gfp);
    gs_out_varint(p, b->hook.v);
    gs_out_varint(p, b->alloc_cpu);
    if (flags & B_FREED) {
        gs_out_step(p, b->alloc_us, b->free_us);
        gs_out_varint(p, b->free_stack.v);
        gs_out_varint(p, b->free_task.v);
        gs_out_varint(p, b->free_hook.v);
        gs_out_varint(p, b->free_cpu);
    }
    if (flags & B_RCU) {
        gs_out_step(p, b->alloc_us, b->rcu_us);
        gs_out_varint(p, b->rcu_stack.v);
    }
}

static unsigned flags_of(const KtBlock *b)
{
    return (b->state == KT_BLOCK_FREED ? B_FREED : 0) |
           (b->rcu_queued ? B_QUEUED : 0) |
           (b->rcu_queued && (b->rcu_stack.v || b->rcu_us) ? B_RCU : 0);
}

static KtHookId unpack_hook(GsBytes *u, const KtSnapshotIds *ids)
{
    return ids->hook[gs_bytes_upto(u, ids->hooks, "the number of a hook")];
}

static KtStackId unpack_stack(GsBytes *u, const KtSnapshotIds *ids)
{
    return (KtStackId) {
        gs_bytes_upto(u, ids->stacks, "the number of a backtrace")
    };
}

static KtTaskId unpack_task(GsBytes *u, const KtSnapshotIds *ids)
{
    return (KtTaskId) {
        gs_bytes_upto(u, ids->tasks, "the number of a task")
    };
}

static KtCacheId unpack_cache(GsBytes *u, const KtSnapshotIds *ids)
{
    return (KtCacheId) {
        gs_bytes_upto(u, ids->caches, "the number of a cache")
    };
}

static uint64_t unpack_us(GsBytes *u, uint64_t from)
{
    uint64_t us = gs_bytes_step(u, from);

    if (us > US_MAX) {
        gs_bytes_fail(u, "a time has more than 48 bits");
    }
    return us & US_MAX;
}

static void unpack_end(GsBytes *u, KtBlock *b, unsigned flags,
                       const KtSnapshotIds *ids)
{
    if (flags & B_FREED) {
        b->free_us = unpack_us(u, b->alloc_us);
        b->free_stack = unpack_stack(u, ids);
        b->free_task = unpack_task(u, ids);
        b->free_hook = unpack_hook(u, ids);
        b->free_cpu = gs_bytes_upto(u, UINT16_MAX, "a vCPU");
    }
    if (flags & B_RCU) {
        b->rcu_us = unpack_us(u, b->alloc_us);
        b->rcu_stack = unpack_stack(u, ids);
    }
}

static unsigned unpack_block(GsBytes *u, KtBlock *b, uint64_t from,
                             const KtSnapshotIds *ids)
{
    unsigned head = gs_bytes_upto(u, UINT8_MAX, "the kind of a block");

    *b = (KtBlock) {
        .layer = head >> 4,
        .state = head & B_FREED ? KT_BLOCK_FREED : KT_BLOCK_ALLOCATED,
        .rcu_queued = head & B_QUEUED,
    };
    if (b->layer == KT_LAYER_NONE || b->layer >= KT_LAYER__COUNT) {
        gs_bytes_fail(u, "a block of an unknown layer");
    }
    b->va = gs_bytes_step(u, from);
    b->requested = gs_bytes_varint(u, UINT64_MAX);
    b->actual = gs_bytes_step(u, b->requested);
    b->alloc_us = unpack_us(u, 0);
    b->alloc_stack = unpack_stack(u, ids);
    b->alloc_task = unpack_task(u, ids);
    b->cache = unpack_cache(u, ids);
    b->gfp = gs_bytes_upto(u, UINT32_MAX, "gfp flags");
    b->hook = unpack_hook(u, ids);
    b->alloc_cpu = gs_bytes_upto(u, UINT16_MAX, "a vCPU");
    unpack_end(u, b, head, ids);
    return head & (B_OLD | B_RCU);
}

/* ---- the map ------------------------------------------------------------ */

static uint32_t reported(const KtBlocks *b, uint32_t index)
{
    const KtRec *r = kt_rec(b, index);

    return r->end ? kt_end(b, r->end)->reported : 0;
}

static void pack_map(const KtModel *m, const KtMap *map, GsOut *p)
{
    KtMapIter it = kt_map_seek(map, 0);
    KtMapEntry e;
    uint64_t last = 0;

    gs_out_varint(p, map->n);
    while ((e = kt_map_next(map, &it)).val) {
        KtBlock b;

        kt_blocks_get(&m->blocks, e.val, &b);
        pack_block(p, &b, last, flags_of(&b) |
                   (kt_rec(&m->blocks, e.val)->old ? B_OLD : 0));
        gs_out_varint(p, reported(&m->blocks, e.val));
        last = b.va;
    }
}

/* Fill a record as the events of the block would have done. */
static void set_block(KtModel *m, uint32_t index, const KtBlock *b,
                      unsigned flags)
{
    KtBlocks *blocks = &m->blocks;
    KtEvent ev = {
        .va = b->va, .size = b->actual ? b->requested : 0,
        .actual = b->actual, .us = b->alloc_us, .cpu = b->alloc_cpu,
        .stack = b->alloc_stack, .task = b->alloc_task, .gfp = b->gfp,
        .cache = b->cache, .hook = b->hook, .layer = b->layer,
    };

    kt_blocks_set(blocks, index, &ev);
    if (!b->actual && b->requested) {
        kt_blocks_resize(blocks, index, b->requested);
    }
    if (flags & B_RCU) {
        kt_blocks_set_queued(blocks, index, &(KtEvent) {
            .us = b->rcu_us, .stack = b->rcu_stack });
    }
    if (b->state == KT_BLOCK_FREED) {
        kt_blocks_set_freed(blocks, index, &(KtEvent) {
            .us = b->free_us, .cpu = b->free_cpu, .stack = b->free_stack,
            .hook = b->free_hook, .task = b->free_task });
    }
    kt_rec(blocks, index)->queued = b->rcu_queued;
    kt_rec(blocks, index)->old = !!(flags & B_OLD);
}

static void count_block(KtModel *m, uint32_t index)
{
    if (kt_rec(&m->blocks, index)->freed) {
        m->freed_blocks++;
    } else {
        m->live_blocks++;
        m->live_bytes += kt_blocks_len(&m->blocks, index);
    }
}

/* Add a block. Without memory it is dropped and counted, as at its allocation.
 * Returns: its record, 0 if it was dropped. */
static uint32_t add_block(KtModel *m, KtMap *map, const KtBlock *b,
                          unsigned flags)
{
    uint32_t index = kt_blocks_fit(&m->blocks, b->requested, b->actual) ?
                     kt_blocks_new(&m->blocks) : 0;

    if (!index || !kt_map_insert(map, b->va, index)) {
        m->gap = true;
        m->count[KT_CNT_DROP_BLOCK]++;
        if (index) {
            kt_blocks_release(&m->blocks, index);
        }
        return 0;
    }
    set_block(m, index, b, flags);
    count_block(m, index);
    return index;
}

/* Count the frees that were reported as errors before they happened. */
static void expect(KtModel *m, uint32_t index, uint64_t n)
{
    for (uint64_t i = 0; index && i < n; i++) {
        kt_blocks_expect(&m->blocks, index);
    }
}

static void unpack_map(KtModel *m, KtMapId id, GsBytes *u,
                       const KtSnapshotIds *ids)
{
    uint64_t n = gs_bytes_upto(u, UINT32_MAX, "the number of blocks");
    uint64_t before = 0, last = 0;

    for (uint64_t i = 0; i < n && gs_bytes_ok(u); i++) {
        KtBlock b;
        unsigned flags = unpack_block(u, &b, before, ids);
        uint64_t frees = gs_bytes_upto(u, UINT8_MAX, "reported frees");
        uint64_t len = kt_block_len(&b);

        if ((b.layer == KT_LAYER_PAGES) != (id == KT_MAP_PAGES) ||
            (i && b.va <= last)) {
            gs_bytes_fail(u, "blocks overlap or are out of order");
        }
        if (!gs_bytes_ok(u)) {
            return;
        }
        before = b.va;
        last = len > 1 ? b.va + MIN(len - 1, UINT64_MAX - b.va) : b.va;
        expect(m, add_block(m, &m->map[id], &b, flags), frees);
    }
}

/* ---- past lives, errors ------------------------------------------------- */

typedef struct PackRows {
    GsOut *p;
    uint64_t last;
} PackRows;

static bool pack_row(const KtBlock *b, void *opaque)
{
    PackRows *rows = opaque;

    pack_block(rows->p, b, rows->last, flags_of(b));
    rows->last = b->va;
    return true;
}

static void pack_history(const KtHistory *h, GsOut *p)
{
    PackRows rows = { p, 0 };

    gs_out_varint(p, kt_history_rows(h));
    kt_history_foreach(h, pack_row, &rows);
}

static void unpack_history(KtModel *m, GsBytes *u, const KtSnapshotIds *ids)
{
    uint64_t n = gs_bytes_upto(u, UINT32_MAX, "the number of past lives");
    uint64_t last = 0;

    for (uint64_t i = 0; i < n && gs_bytes_ok(u); i++) {
        KtBlock b;

        unpack_block(u, &b, last, ids);
        last = b.va;
        if (gs_bytes_ok(u)) {
            kt_history_add(m->history, &b);
        }
    }
}

static void pack_access(const KtErrorAccess *a, GsOut *p)
{
    gs_out_varint(p, a->pc);
    gs_out_varint(p, a->offset);
    gs_out_varint(p, a->count);
    gs_out_step(p, 0, a->last_us);
    gs_out_varint(p, a->flags);
    gs_out_varint(p, a->has_neighbour + a->behind);
    if (a->has_neighbour) {
        gs_out_varint(p, a->distance);
        gs_out_varint(p, a->neighbour.va);
        gs_out_varint(p, a->neighbour.requested);
        gs_out_step(p, 0, a->neighbour.us);
        gs_out_varint(p, a->neighbour.stack.v);
        gs_out_varint(p, a->neighbour.task.v);
        gs_out_varint(p, a->neighbour.cache.v);
    }
}

static void unpack_access(KtErrorAccess *a, GsBytes *u,
                          const KtSnapshotIds *ids)
{
    uint64_t beside;

    a->pc = gs_bytes_varint(u, UINT64_MAX);
    a->offset = gs_bytes_varint(u, UINT64_MAX);
    a->count = gs_bytes_varint(u, UINT64_MAX);
    a->last_us = unpack_us(u, 0);
    a->flags = gs_bytes_upto(u, UINT8_MAX, "flags of an access");
    beside = gs_bytes_upto(u, 2, "the side of a neighbour");
    a->has_neighbour = beside > 0;
    a->behind = beside > 1;
    if (a->has_neighbour) {
        a->distance = gs_bytes_upto(u, UINT16_MAX, "a distance");
        a->neighbour.va = gs_bytes_varint(u, UINT64_MAX);
        a->neighbour.requested = gs_bytes_varint(u, UINT64_MAX);
        a->neighbour.us = unpack_us(u, 0);
        a->neighbour.stack = unpack_stack(u, ids);
        a->neighbour.task = unpack_task(u, ids);
        a->neighbour.cache = unpack_cache(u, ids);
    }
    if (!a->count && gs_bytes_ok(u)) {
        gs_bytes_fail(u, "an access that was never made");
    }
}

/* The block of an error. */
enum { NO_BLOCK, IN_MAP, PAST_LIFE };

static void pack_error(const KtError *e, GsOut *p)
{
    gs_out_varint(p, e->kind);
    gs_out_varint(p, e->va);
    gs_out_varint(p, e->stack.v);
    gs_out_varint(p, e->task.v);
    gs_out_varint(p, e->cpu);
    gs_out_varint(p, e->hook.v);
    gs_out_varint(p, e->cache.v);
    gs_out_step(p, 0, e->us);
    gs_out_varint(p, e->size);
    gs_out_varint(p, !e->has_block ? NO_BLOCK :
                     e->block.past ? PAST_LIFE : IN_MAP);
    if (e->has_block) {
        pack_block(p, &e->block, e->va, flags_of(&e->block));
    }
    if (kt_error_is_access(e->kind)) {
        pack_access(&e->access, p);
    }
}

static void unpack_error(KtError *e, GsBytes *u, const KtSnapshotIds *ids)
{
    unsigned block;

    e->kind = gs_bytes_upto(u, KT_ERR__COUNT - 1, "the kind of an error");
    e->va = gs_bytes_varint(u, UINT64_MAX);
    e->stack = unpack_stack(u, ids);
    e->task = unpack_task(u, ids);
    e->cpu = gs_bytes_upto(u, UINT16_MAX, "a vCPU");
    e->hook = unpack_hook(u, ids);
    e->cache = unpack_cache(u, ids);
    e->us = unpack_us(u, 0);
    e->size = gs_bytes_varint(u, UINT64_MAX);
    block = gs_bytes_upto(u, PAST_LIFE, "what an error has of a block");
    e->has_block = block != NO_BLOCK;
    if (e->has_block) {
        unpack_block(u, &e->block, e->va, ids);
        e->block.past = block == PAST_LIFE;
    }
    if (kt_error_is_access(e->kind)) {
        unpack_access(&e->access, u, ids);
    }
}

static void unpack_errors(KtModel *m, GsBytes *u, const KtSnapshotIds *ids)
{
    uint64_t n = gs_bytes_upto(u, KT_MAX_ERRORS, "the number of errors");

    for (uint64_t i = 1; i <= n && gs_bytes_ok(u); i++) {
        KtError e = { 0 };

        unpack_error(&e, u, ids);
        if (!kt_errors_keep(&m->errors, &e)) {
            m->count[KT_CNT_DROP_ERROR]++;
        }
    }
}

/* ---- all of it ---------------------------------------------------------- */

/* Flags of a boot whose events are not complete. */
enum { GAP = 1, UNSEEN = 2, BLIND = 4 };

void kt_model_pack(const KtModel *m, GsOut *p)
{
    gs_out_varint(p, m->complete);
    gs_out_varint(p, (m->gap ? GAP : 0) | (m->unseen ? UNSEEN : 0) |
                  (m->blind ? BLIND : 0));
    for (unsigned i = 0; i < KT_MAP__COUNT; i++) {
        pack_map(m, &m->map[i], p);
    }
    pack_history(m->history, p);
    gs_out_varint(p, m->errors.list->len);
    for (unsigned i = 0; i < m->errors.list->len; i++) {
        pack_error(&g_array_index(m->errors.list, KtError, i), p);
    }
    kt_accounts_pack(&m->accounts, p);
}

/* Count all live blocks in @out, which is empty. */
static void recount(const KtModel *m, KtAccounts *out)
{
    for (unsigned i = 0; i < KT_MAP__COUNT; i++) {
        KtMapIter it = kt_map_seek(&m->map[i], 0);
        KtMapEntry e;

        while ((e = kt_map_next(&m->map[i], &it)).val) {
            const KtRec *r = kt_rec(&m->blocks, e.val);
            KtWho who = kt_model_who(r);

            if (!r->freed) {
                kt_accounts_alloc(out, &who, kt_model_amount(m, e.val));
            }
        }
    }
}

/* Version 1 had no accounts: begin with the live blocks. */
static void unpack_accounts(KtModel *m, GsBytes *u, const KtSnapshotIds *ids)
{
    KtAccounts live;

    if (ids->version < 2) {
        recount(m, &m->accounts);
        return;
    }
    kt_accounts_unpack(&m->accounts, u, ids);
    if (m->accounts.off || !gs_bytes_ok(u)) {
        return;
    }
    kt_accounts_init(&live, NULL, m->accounts.stacks);
    recount(m, &live);
    if (!kt_accounts_settle(&m->accounts, &live)) {
        gs_bytes_fail(u, "accounts do not fit the blocks");
    }
    kt_accounts_deinit(&live);
}

void kt_model_unpack(KtModel *m, GsBytes *u, const KtSnapshotIds *ids)
{
    uint64_t lost;

    m->complete = gs_bytes_upto(u, 1, "a flag");
    lost = gs_bytes_upto(u, GAP | UNSEEN | BLIND, "what was lost");
    m->gap = lost & GAP;
    m->unseen = lost & UNSEEN;
    m->blind = lost & BLIND;
    for (unsigned i = 0; i < KT_MAP__COUNT; i++) {
        unpack_map(m, i, u, ids);
    }
    unpack_history(m, u, ids);
    unpack_errors(m, u, ids);
    unpack_accounts(m, u, ids);
}

static void uncount_live(KtModel *m, uint32_t index)
{
    KtWho who = kt_model_who(kt_rec(&m->blocks, index));

    m->live_blocks--;
    m->live_bytes -= kt_blocks_len(&m->blocks, index);
    if (!m->accounts.off) {
        kt_accounts_free_unseen(&m->accounts, &who, kt_model_amount(m, index));
    }
}

void kt_model_drop_pages(KtModel *m)
{
    KtMap *map = &m->map[KT_MAP_PAGES];
    KtMapIter it = kt_map_seek(map, 0);
    KtMapEntry e;

    while ((e = kt_map_next(map, &it)).val) {
        const KtRec *r = kt_rec(&m->blocks, e.val);

        m->freed_blocks -= r->freed;
        if (!r->freed) {
            uncount_live(m, e.val);
        }
        m->count[KT_CNT_FORGOTTEN]++;
        kt_blocks_unset(&m->blocks, e.val);
        kt_blocks_release(&m->blocks, e.val);
    }
    kt_map_deinit(map);
    kt_map_init(map);
    kt_map_charge(map, m->budget, KT_MEM_BLOCKS);
}

static void renumber_block(KtBlock *b, const KtRenumber *to)
{
    b->alloc_stack.v = to->stack[b->alloc_stack.v];
    b->free_stack.v = to->stack[b->free_stack.v];
    b->rcu_stack.v = to->stack[b->rcu_stack.v];
    b->alloc_task.v = to->task[b->alloc_task.v];
    b->free_task.v = to->task[b->free_task.v];
    b->cache.v = to->cache[b->cache.v];
}

/* An account that finds no room is added to id 0, with its live blocks. */
static void settle(KtModel *m)
{
    KtAccounts live;

    if (m->accounts.off) {
        return;
    }
    kt_accounts_init(&live, NULL, m->accounts.stacks);
    recount(m, &live);
    kt_accounts_settle(&m->accounts, &live);
    kt_accounts_deinit(&live);
}

void kt_model_renumber(KtModel *m, const KtRenumber *to,
                       const KtDepot *stacks)
{
    kt_accounts_renumber(&m->accounts, to, stacks);
    kt_blocks_renumber(&m->blocks, to);
    settle(m);
    kt_history_renumber(m->history, to);
    for (unsigned i = 0; i < m->errors.list->len; i++) {
        KtError *e = &g_array_index(m->errors.list, KtError, i);

        e->stack.v = to->stack[e->stack.v];
        e->task.v = to->task[e->task.v];
        e->cache.v = to->cache[e->cache.v];
        renumber_block(&e->block, to);
        e->access.neighbour.stack.v = to->stack[e->access.neighbour.stack.v];
        e->access.neighbour.task.v = to->task[e->access.neighbour.task.v];
        e->access.neighbour.cache.v = to->cache[e->access.neighbour.cache.v];
    }
    kt_errors_index(&m->errors);
}
