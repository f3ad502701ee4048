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

/* The first number of a block: flags, and its layer. */
enum {
    B_FREED = 1, B_QUEUED = 2, B_OLD = 4, B_RCU = 8, B_LAYER = 7 << 4,
    B_REMOVED = 128,
};
#define B_LAYER_SHIFT 4

#define US_MAX ((1ull << 48) - 1)

#define TOO_LATE "a time has more than 48 bits"
#define US(type_, member_) \
    KT_FIELD(DELTA, type_, member_, .max = US_MAX, .what = TOO_LATE)
#define US_FROM(member_, from_) \
    KT_FIELD(STEP, KtBlock, member_, .from = offsetof(KtBlock, from_), \
             .max = US_MAX, .what = TOO_LATE)
#define STACK(type_, member_) \
    KT_ID(type_, member_, STACKS, "the number of a backtrace")
#define TASK(type_, member_) \
    KT_ID(type_, member_, TASKS, "the number of a task")
#define CACHE(type_, member_) \
    KT_ID(type_, member_, CACHES, "the number of a cache")
#define HOOK(type_, member_) \
    KT_ID(type_, member_, HOOKS, "the number of a hook")
#define CPU(type_, member_) KT_UPTO(type_, member_, 0, "a vCPU")

/* ---- one block ---------------------------------------------------------- */

static const KtField block_fields[] = {
    KT_NUMBER(KtBlock, requested), KT_STEP(KtBlock, actual, requested),
    US(KtBlock, alloc_us), STACK(KtBlock, alloc_stack),
    TASK(KtBlock, alloc_task), CACHE(KtBlock, cache),
    KT_UPTO(KtBlock, gfp, 0, "gfp flags"), HOOK(KtBlock, hook),
    CPU(KtBlock, alloc_cpu),
    { 0 }
};

static const KtField freed_fields[] = {
    US_FROM(free_us, alloc_us), STACK(KtBlock, free_stack),
    TASK(KtBlock, free_task), HOOK(KtBlock, free_hook),
    CPU(KtBlock, free_cpu),
    { 0 }
};

static const KtField rcu_fields[] = {
    US_FROM(rcu_us, alloc_us), STACK(KtBlock, rcu_stack),
    { 0 }
};

static void pack_block(GsOut *p, const KtBlock *b, uint64_t from,
                       unsigned flags)
{
    gs_out_varint(p, flags | b->layer << B_LAYER_SHIFT);
    gs_out_step(p, from, b->va);
    kt_fields_pack(block_fields, b, NULL, p);
    if (flags & B_FREED) {
        kt_fields_pack(freed_fields, b, NULL, p);
    }
    if (flags & B_RCU) {
        kt_fields_pack(rcu_fields, b, NULL, p);
    }
}

static unsigned flags_of(const KtBlock *b)
{
    return (b->state == KT_BLOCK_FREED ? B_FREED : 0) |
           (b->removed ? B_REMOVED : 0) |
           (b->rcu_queued ? B_QUEUED : 0) |
           (b->rcu_queued && (b->rcu_stack.v || b->rcu_us) ? B_RCU : 0);
}

static unsigned unpack_block(GsBytes *u, KtBlock *b, uint64_t from,
                             const KtSnapshotIds *ids)
{
    unsigned head = gs_bytes_upto(u, UINT8_MAX, "the kind of a block");

    *b = (KtBlock) {
        .layer = (head & B_LAYER) >> B_LAYER_SHIFT,
        .state = head & B_FREED ? KT_BLOCK_FREED : KT_BLOCK_ALLOCATED,
        .rcu_queued = head & B_QUEUED,
        .removed = (head & B_FREED) && (head & B_REMOVED),
    };
    if (b->layer == KT_LAYER_NONE || b->layer >= KT_LAYER__COUNT) {
        gs_bytes_fail(u, "a block of an unknown layer");
    }
    b->va = gs_bytes_step(u, from);
    kt_fields_unpack(block_fields, b, NULL, ids->max, u);
    if (head & B_FREED) {
        kt_fields_unpack(freed_fields, b, NULL, ids->max, u);
    }
    if (head & B_RCU) {
        kt_fields_unpack(rcu_fields, b, NULL, ids->max, u);
    }
    b->hook = ids->hook[b->hook.v];
    b->free_hook = ids->hook[b->free_hook.v];
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
    if (b->removed) {
        kt_blocks_set_removed(blocks, index);
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

static const KtField access_fields[] = {
    KT_NUMBER(KtErrorAccess, pc), KT_NUMBER(KtErrorAccess, offset),
    KT_NUMBER(KtErrorAccess, count), US(KtErrorAccess, last_us),
    KT_UPTO(KtErrorAccess, flags, 0, "flags of an access"),
    { 0 }
};

static const KtField neighbour_fields[] = {
    KT_UPTO(KtErrorAccess, distance, 0, "a distance"),
    KT_NUMBER(KtErrorAccess, neighbour.va),
    KT_NUMBER(KtErrorAccess, neighbour.requested),
    US(KtErrorAccess, neighbour.us), STACK(KtErrorAccess, neighbour.stack),
    TASK(KtErrorAccess, neighbour.task), CACHE(KtErrorAccess, neighbour.cache),
    { 0 }
};

static void pack_access(const KtErrorAccess *a, GsOut *p)
{
    kt_fields_pack(access_fields, a, NULL, p);
    gs_out_varint(p, a->has_neighbour + a->behind);
    if (a->has_neighbour) {
        kt_fields_pack(neighbour_fields, a, NULL, p);
    }
}

static void unpack_access(KtErrorAccess *a, GsBytes *u,
                          const KtSnapshotIds *ids)
{
    uint64_t beside;

    kt_fields_unpack(access_fields, a, NULL, ids->max, u);
    beside = gs_bytes_upto(u, 2, "the side of a neighbour");
    a->has_neighbour = beside > 0;
    a->behind = beside > 1;
    if (a->has_neighbour) {
        kt_fields_unpack(neighbour_fields, a, NULL, ids->max, u);
    }
    if (!a->count && gs_bytes_ok(u)) {
        gs_bytes_fail(u, "an access that was never made");
    }
}

static const KtField error_fields[] = {
    KT_UPTO(KtError, kind, KT_ERR__COUNT - 1, "the kind of an error"),
    KT_NUMBER(KtError, va), STACK(KtError, stack), TASK(KtError, task),
    CPU(KtError, cpu), HOOK(KtError, hook), CACHE(KtError, cache),
    US(KtError, us), KT_NUMBER(KtError, size),
    { 0 }
};

/* The block of an error. */
enum { NO_BLOCK, IN_MAP, PAST_LIFE };

static void pack_error(const KtError *e, GsOut *p)
{
    kt_fields_pack(error_fields, e, NULL, p);
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

    kt_fields_unpack(error_fields, e, NULL, ids->max, u);
    e->hook = ids->hook[e->hook.v];
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
    kt_accounts_init_recount(&live, &m->accounts);
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
    kt_accounts_init_recount(&live, &m->accounts);
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
