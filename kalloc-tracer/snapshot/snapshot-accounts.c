/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Accounts in a snapshot: see snapshot-internal.h.
 *
 * Sums by stack, cache, task and size are written. Sums by caller are the sums
 * over the caller's stacks: only their peaks are written, and
 * kt_accounts_settle() adds up the rest after the blocks were read.
 */
#include "kalloc-tracer/snapshot/snapshot-internal.h"

/* What the stream has: nothing of a boot that is over; accounts; and which are
 * of backing blocks, if there are any. */
enum { NO_ACCOUNTS, ACCOUNTS, ACCOUNTS_AND_BACKING };

/* All but the bit field @cross, which follows. */
static const KtField account_fields[] = {
    KT_NUMBER(KtAccount, allocs), KT_NUMBER(KtAccount, asked),
    KT_STEP(KtAccount, reserved, asked), KT_STEP(KtAccount, frees, allocs),
    KT_STEP(KtAccount, freed_asked, asked),
    KT_STEP(KtAccount, freed_reserved, reserved), KT_NUMBER(KtAccount, peak),
    { 0 }
};

static const KtField totals_fields[] = {
    KT_NUMBER(KtTotals, us), KT_NUMBER(KtTotals, resizes),
    KT_NUMBER(KtTotals, grown), KT_NUMBER(KtTotals, shrunk),
    KT_NUMBER(KtTotals, lost), KT_NUMBER(KtTotals, lost_asked),
    KT_NUMBER(KtTotals, lost_reserved), KT_NUMBER(KtTotals, splits),
    KT_NUMBER(KtTotals, stray),
    { 0 }
};

static const KtField backing_fields[] = {
    KT_NUMBER(KtTotals, backing_unknown),
    { 0 }
};

static const KtField stray_fields[] = {
    KT_ID(KtStray, stack, STACKS, "a backtrace"), KT_NUMBER(KtStray, unknown),
    KT_NUMBER(KtStray, invalid), KT_NUMBER(KtStray, pages),
    { 0 }
};

/* ---- writing ------------------------------------------------------------- */

/* What had no room for an account of its own is written as part of id 0. */
static KtAccount account_at(const KtCells *c, uint32_t id)
{
    KtAccount a = *kt_cells_get(c, id);

    if (id == 0) {
        kt_account_add(&a, &c->rest);
    }
    return a;
}

static void pack_account(GsOut *p, const KtAccount *a)
{
    kt_fields_pack(account_fields, a, NULL, p);
    gs_out_varint(p, a->cross);
}

static void pack_cells(GsOut *p, const KtCells *c)
{
    uint32_t end = MAX(kt_cells_end(c), 1);
    uint64_t n = 0;

    for (unsigned pass = 0; pass < 2; pass++) {
        for (uint32_t id = 0, last = 0; id < end; id++) {
            KtAccount a = account_at(c, id);

            if (kt_account_is_empty(&a)) {
                continue;
            }
            n += !pass;
            if (pass) {
                gs_out_step(p, last, id);
                pack_account(p, &a);
                last = id;
            }
        }
        if (!pass) {
            gs_out_varint(p, n);
        }
    }
}

/* The caller of backing blocks follows from the stacks, and is not written. */
static void pack_callers(const KtAccounts *a, GsOut *p)
{
    uint64_t last = 0;

    gs_out_varint(p, a->list->len - 2);
    for (guint id = 1; id < a->list->len; id++) {
        const KtCaller *c = &g_array_index(a->list, KtCaller, id);

        if (id == KT_CALLER_BACKING) {
            continue;
        }
        gs_out_step(p, last, c->pc);
        last = c->pc;
        gs_out_varint(p, c->era);
        gs_out_varint(p, kt_accounts_held(a, id)->peak);
    }
}

static bool has_backing(const KtAccounts *a)
{
    return a->now.totals.backing_unknown ||
           !kt_account_is_empty(&a->now.by[KT_BY_SIZE].backing);
}

static void pack_backing(const KtAccounts *a, GsOut *p)
{
    const KtCells *stacks = &a->now.by[KT_BY_STACK];
    uint32_t last = 0;

    kt_fields_pack(backing_fields, &a->now.totals, NULL, p);
    for (unsigned i = KT_BY_KEPT + 1; i < KT_BY__COUNT; i++) {
        pack_account(p, &a->now.by[i].backing);
    }
    for (uint32_t id = 1; id < kt_cells_end(stacks); id++) {
        if (kt_accounts_is_backing(a, id)) {
            gs_out_step(p, last, id);
            last = id;
        }
    }
    gs_out_step(p, last, 0);
}

static void pack_stray(const KtAccounts *a, GsOut *p)
{
    GHashTableIter it;
    gpointer value;

    gs_out_varint(p, g_hash_table_size(a->stray));
    g_hash_table_iter_init(&it, a->stray);
    while (g_hash_table_iter_next(&it, NULL, &value)) {
        kt_fields_pack(stray_fields, value, NULL, p);
    }
}

void kt_accounts_pack(const KtAccounts *a, GsOut *p)
{
    const uint64_t part = has_backing(a) ? ACCOUNTS_AND_BACKING : ACCOUNTS;

    gs_out_varint(p, a->off ? NO_ACCOUNTS : part);
    if (a->off) {
        return;
    }
    kt_fields_pack(totals_fields, &a->now.totals, NULL, p);
    gs_out_varint(p, a->now.all.peak);
    for (unsigned i = KT_BY_KEPT; i < KT_BY__COUNT; i++) {
        pack_cells(p, &a->now.by[i]);
    }
    if (part == ACCOUNTS_AND_BACKING) {
        pack_backing(a, p);
    }
    pack_callers(a, p);
    pack_stray(a, p);
}

/* ---- reading ------------------------------------------------------------- */

static KtAccount unpack_account(GsBytes *u)
{
    KtAccount a = { 0 };

    kt_fields_unpack(account_fields, &a, NULL, NULL, u);
    a.cross = gs_bytes_upto(u, ((uint64_t)1 << 40) - 1, "frees elsewhere");
    return a;
}

static void unpack_cells(GsBytes *u, KtCells *c, uint64_t max)
{
    uint64_t n = gs_bytes_upto(u, max + 1, "the number of accounts");
    uint64_t last = 0;

    for (uint64_t i = 0; i < n && gs_bytes_ok(u); i++) {
        uint64_t id = gs_bytes_step(u, last);

        if (id > max || (i && id <= last)) {
            gs_bytes_fail(u, "accounts are out of order");
        }
        if (gs_bytes_ok(u)) {
            KtAccount a = unpack_account(u);

            kt_account_add(kt_cells_at(c, id), &a);
        }
        last = id;
    }
}

/* Note that a stack allocates backing blocks. Return false if it has no account
 * of its own. */
static bool set_backing(const KtCells *stacks, KtAccount *account)
{
    if (account != &stacks->rest) {
        account->caller = KT_CALLER_BACKING;
    }
    return account != &stacks->rest;
}

static void unpack_backing(KtAccounts *a, GsBytes *u, uint64_t max_stack)
{
    KtCells *stacks = &a->now.by[KT_BY_STACK];
    uint64_t last = 0, id;
    bool room = true;

    kt_fields_unpack(backing_fields, &a->now.totals, NULL, NULL, u);
    for (unsigned i = KT_BY_KEPT + 1; i < KT_BY__COUNT; i++) {
        a->now.by[i].backing = unpack_account(u);
    }
    while ((id = gs_bytes_step(u, last)) && gs_bytes_ok(u)) {
        if (id > max_stack || id <= last) {
            gs_bytes_fail(u, "backtraces are out of order");
            return;
        }
        room &= set_backing(stacks, kt_cells_at(stacks, id));
        last = id;
    }
    if (!room) {
        kt_accounts_fold_backing(a);
    }
}

/* Older versions count the pages of other layers, and go on to do so for the
 * backtraces that they have. */
static void note_old(KtAccounts *a)
{
    const KtCells *caches = &a->now.by[KT_BY_CACHE];

    a->now.totals.backing_unknown +=
        !kt_account_is_empty(kt_cells_get(caches, KT_LAYER_PAGES));
}

static void unpack_callers(KtAccounts *a, GsBytes *u, const KtSnapshotIds *ids)
{
    uint64_t n = gs_bytes_upto(u, ids->max[STACKS] + 1,
                               "the number of callers");
    uint64_t last = 0;

    for (uint64_t i = 0; i < n && gs_bytes_ok(u); i++) {
        uint64_t pc = gs_bytes_step(u, last);
        uint32_t era = ids->version < KT_SNAPSHOT_ERAS ? GS_ERA_NOW :
                       gs_bytes_upto(u, GS_ERA_NOW, "the number of a load");

        kt_held_peak(kt_accounts_held(a, kt_accounts_caller(a, pc, era)),
                     gs_bytes_varint(u, UINT64_MAX));
        last = pc;
    }
}

static void unpack_stray(KtAccounts *a, GsBytes *u, const KtSnapshotIds *ids)
{
    uint64_t n = gs_bytes_upto(u, ids->max[STACKS] + 1,
                               "the number of stray frees");

    for (uint64_t i = 0; i < n && gs_bytes_ok(u); i++) {
        KtStray s;

        kt_fields_unpack(stray_fields, &s, NULL, ids->max, u);
        kt_accounts_add_stray(a, &s);
    }
}

void kt_accounts_unpack(KtAccounts *a, GsBytes *u, const KtSnapshotIds *ids)
{
    const uint64_t max[KT_BY__COUNT] = {
        [KT_BY_STACK] = ids->max[STACKS], [KT_BY_TASK] = ids->max[TASKS],
        [KT_BY_CACHE] = ids->max[CACHES] + KT_LAYER__COUNT,
        [KT_BY_SIZE] = KT_SIZE_CLASSES - 1,
    };
    uint64_t part = gs_bytes_upto(u, ACCOUNTS_AND_BACKING, "a flag");

    if (part == NO_ACCOUNTS) {
        kt_accounts_end(a);
        return;
    }
    kt_fields_unpack(totals_fields, &a->now.totals, NULL, NULL, u);
    a->now.all.peak = gs_bytes_varint(u, UINT64_MAX);
    for (unsigned i = KT_BY_KEPT; i < KT_BY__COUNT; i++) {
        unpack_cells(u, &a->now.by[i], max[i]);
    }
    if (part == ACCOUNTS_AND_BACKING) {
        unpack_backing(a, u, ids->max[STACKS]);
    } else if (ids->version < KT_SNAPSHOT_BACKING) {
        note_old(a);
    }
    unpack_callers(a, u, ids);
    unpack_stray(a, u, ids);
}

/* ---- other ids ----------------------------------------------------------- */

static uint32_t new_id(const KtRenumber *to, KtBy by, uint32_t id)
{
    switch (by) {
    case KT_BY_STACK:
        return to->stack[id];
    case KT_BY_TASK:
        return to->task[id];
    case KT_BY_CACHE:
        if (id < KT_LAYER__COUNT) {
            return id;
        }
        id = to->cache[id - KT_LAYER__COUNT];
        return id ? id + KT_LAYER__COUNT : 0;
    default:
        return id;
    }
}

/* Return false if there is no room for a stack that allocates backing
 * blocks. */
static bool move_cells(KtCells *to, const KtCells *from, KtBy by,
                       const KtRenumber *ids)
{
    bool room = true;

    for (uint32_t id = 0; id < kt_cells_end(from); id++) {
        const KtAccount *a = kt_cells_get(from, id);
        KtAccount *moved = kt_account_is_empty(a) ? NULL :
                           kt_cells_at(to, new_id(ids, by, id));

        if (moved) {
            kt_account_add(moved, a);
            room &= a->caller != KT_CALLER_BACKING || set_backing(to, moved);
        }
    }
    kt_account_add(&to->backing, &from->backing);
    if (!kt_account_is_empty(&from->rest)) {
        kt_account_add(kt_cells_at(to, 0), &from->rest);
    }
    return room;
}

static void move_callers(KtAccounts *to, const KtAccounts *from)
{
    for (guint id = 1; id < from->list->len; id++) {
        const KtCaller *c = &g_array_index(from->list, KtCaller, id);
        uint32_t caller = id == KT_CALLER_BACKING ? id :
                          kt_accounts_caller(to, c->pc, c->era);

        kt_held_peak(kt_accounts_held(to, caller),
                     kt_accounts_held(from, id)->peak);
    }
}

static void move_stray(KtAccounts *to, const KtAccounts *from,
                       const KtRenumber *ids)
{
    GHashTableIter it;
    gpointer value;

    g_hash_table_iter_init(&it, from->stray);
    while (g_hash_table_iter_next(&it, NULL, &value)) {
        KtStray s = *(const KtStray *)value;

        s.stack.v = ids->stack[s.stack.v];
        kt_accounts_add_stray(to, &s);
    }
}

/* The renumbered accounts exist beside the old ones until these are freed: lend
 * the memory of the old ones meanwhile. */
void kt_accounts_renumber(KtAccounts *a, const KtRenumber *to,
                          const KtDepot *stacks)
{
    KtAccounts old = *a;
    uint64_t lent = kt_accounts_bytes(a);
    bool room = true;

    if (a->off) {
        return;
    }
    kt_budget_lend(old.budget, KT_MEM_ACCOUNTS, lent);
    kt_accounts_init(a, old.budget, stacks);
    a->now.totals = old.now.totals;
    a->now.all.peak = old.now.all.peak;
    for (unsigned i = KT_BY_KEPT; i < KT_BY__COUNT; i++) {
        room &= move_cells(&a->now.by[i], &old.now.by[i], i, to);
    }
    if (!room) {
        kt_accounts_fold_backing(a);
    }
    move_callers(a, &old);
    move_stray(a, &old, to);
    kt_accounts_deinit(&old);
    kt_budget_unlend(a->budget, KT_MEM_ACCOUNTS, lent);
}
