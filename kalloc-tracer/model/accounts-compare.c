/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Accounts as a stream, and against a recount of the map: see accounts.h.
 *
 * Of callers only the peaks are in a stream: the rest is sums. What a stream
 * says is believed where it fits the blocks that came with it: sums by stack,
 * cache, task and size are the same, and live parts are what these blocks are.
 */
#include "kalloc-tracer/model/accounts.h"

#include <inttypes.h>
#include <string.h>

static const char *const by_names[KT_BY__COUNT] = {
    [KT_BY_CALLER] = "caller", [KT_BY_STACK] = "stack",
    [KT_BY_CACHE] = "cache", [KT_BY_TASK] = "task", [KT_BY_SIZE] = "size",
};

/* ---- arithmetic ---------------------------------------------------------- */

/* Live: blocks, bytes asked for, bytes reserved; modulo 2^64. */
typedef struct Live {
    uint64_t n, asked, reserved;
} Live;

static Live live_of(const KtAccount *a)
{
    return (Live) {
        a->allocs - a->frees, a->asked - a->freed_asked,
        a->reserved - a->freed_reserved,
    };
}

static Live plus(Live a, Live b)
{
    return (Live) {
        a.n + b.n, a.asked + b.asked, a.reserved + b.reserved
    };
}

static Live minus(Live a, Live b)
{
    return (Live) {
        a.n - b.n, a.asked - b.asked, a.reserved - b.reserved
    };
}

static bool is_zero(Live l)
{
    return !l.n && !l.asked && !l.reserved;
}

static void add_alloc(KtAccount *to, Live n)
{
    to->allocs += n.n;
    to->asked += n.asked;
    to->reserved += n.reserved;
    to->peak = MAX(to->peak, live_of(to).reserved);
}

static void add_free(KtAccount *to, Live n)
{
    to->frees += n.n;
    to->freed_asked += n.asked;
    to->freed_reserved += n.reserved;
}

static bool same_sums(const KtAccount *a, const KtAccount *b)
{
    return a->allocs == b->allocs && a->asked == b->asked &&
           a->reserved == b->reserved && a->frees == b->frees &&
           a->freed_asked == b->freed_asked && a->cross == b->cross &&
           a->freed_reserved == b->freed_reserved;
}

/* ---- against a recount --------------------------------------------------- */

static bool has_cell(const KtCells *c, uint32_t id)
{
    return id < kt_cells_end(c);
}

/* Live as recounted of what has no account of its own. */
static Live live_of_rest(const KtCells *c, const KtCells *recount)
{
    Live sum = { 0 };

    for (uint32_t id = 0; id < kt_cells_end(recount); id++) {
        if (!has_cell(c, id)) {
            sum = plus(sum, live_of(kt_cells_get(recount, id)));
        }
    }
    return sum;
}

/* An account that is to have @want live: what it lacks comes from @nobody,
 * what it has too much of is lost, and added to @lost. */
static bool settle_one(KtAccount *a, Live want, KtAccount *nobody, Live *lost)
{
    Live lack = minus(want, live_of(a));
    Live over = minus(live_of(a), want);

    if (is_zero(lack)) {
        return true;
    }
    if (lack.n > UINT64_MAX / 2) {
        add_free(a, over);
        *lost = plus(*lost, over);
        return true;
    }
    if (a == nobody || nobody->allocs < lack.n) {
        return false;
    }
    nobody->allocs -= lack.n;
    nobody->asked -= lack.asked;
    nobody->reserved -= lack.reserved;
    add_alloc(a, lack);
    return true;
}

static bool settle_cells(KtCells *c, const KtCells *recount, Live *lost)
{
    uint32_t end = MAX(kt_cells_end(c), kt_cells_end(recount));
    KtAccount *nobody = kt_cells_at(c, 0);

    for (uint32_t id = 1; id < end; id++) {
        const KtAccount *want = kt_cells_get(recount, id);
        bool any = !kt_account_is_empty(want);

        if ((any || has_cell(c, id)) && kt_cells_at(c, id) != &c->rest &&
            !settle_one(kt_cells_at(c, id), live_of(want), nobody, lost)) {
            return false;
        }
    }
    if (nobody != &c->rest &&
        !settle_one(&c->rest, live_of_rest(c, recount), nobody, lost)) {
        return false;
    }
    return settle_one(nobody, nobody == &c->rest ?
                      live_of_rest(c, recount) :
                      live_of(kt_cells_get(recount, 0)), nobody, lost);
}

static void hold_for(KtAccounts *a, KtAccount *stack, uint32_t caller)
{
    KtHeld *h = kt_accounts_held(a, caller);

    stack->caller = caller;
    h->live += live_of(stack).reserved;
    kt_held_peak(h, stack->peak);
}

/* What callers hold, from the accounts of stacks; peaks are there. */
static void set_held(KtAccounts *a)
{
    KtCells *stacks = &a->now.by[KT_BY_STACK];

    for (uint32_t id = 0; id < kt_cells_end(stacks); id++) {
        KtAccount *s = kt_cells_at(stacks, id);

        if (!kt_account_is_empty(s)) {
            hold_for(a, s, kt_accounts_caller_of(a, id));
        }
    }
    if (!kt_account_is_empty(&stacks->rest)) {
        hold_for(a, &stacks->rest, kt_accounts_caller(a, 0));
    }
}

static bool sums_agree(const KtAccounts *a)
{
    KtAccount first = kt_cells_sum(&a->now.by[KT_BY_KEPT]);

    for (unsigned i = KT_BY_KEPT + 1; i < KT_BY__COUNT; i++) {
        KtAccount sum = kt_cells_sum(&a->now.by[i]);

        if (!same_sums(&sum, &first)) {
            return false;
        }
    }
    return true;
}

bool kt_accounts_settle(KtAccounts *a, const KtAccounts *recount)
{
    Live lost = { 0 };
    KtAccount sum;

    for (unsigned i = KT_BY_KEPT; i < KT_BY__COUNT; i++) {
        lost = (Live) { 0 };
        if (!settle_cells(&a->now.by[i], &recount->now.by[i],
                          &lost)) {
            return false;
        }
    }
    a->now.totals.lost += lost.n;
    a->now.totals.lost_asked += lost.asked;
    a->now.totals.lost_reserved += lost.reserved;
    set_held(a);
    sum = kt_cells_sum(&a->now.by[KT_BY_STACK]);
    a->now.all.live = live_of(&sum).reserved;
    kt_held_peak(&a->now.all, 0);
    return sums_agree(a);
}

static char *differ_at(const KtAccounts *a, KtBy by, uint32_t id,
                       const KtAccounts *recount)
{
    Live has = live_of(kt_cells_get(&a->now.by[by], id));
    Live want = live_of(kt_cells_get(&recount->now.by[by], id));

    if (is_zero(minus(has, want))) {
        return NULL;
    }
    return g_strdup_printf("by %s, number %u: %" PRIu64 " live blocks of %"
                           PRIu64 " bytes (%" PRIu64 " asked for), the map "
                           "has %" PRIu64 " of %" PRIu64 " (%" PRIu64 ")",
                           by_names[by], id, has.n, has.reserved, has.asked,
                           want.n, want.reserved, want.asked);
}

static char *cells_differ(const KtAccounts *a, KtBy by, const KtAccount *all,
                          const KtAccounts *recount)
{
    const KtCells *c = &a->now.by[by];
    KtAccount sum = kt_cells_sum(c);

    if (!same_sums(&sum, all)) {
        return g_strdup_printf("by %s: %" PRIu64 " allocations and %" PRIu64
                               " frees, of %" PRIu64 " and %" PRIu64
                               ", or their bytes differ", by_names[by],
                               sum.allocs, sum.frees, all->allocs,
                               all->frees);
    }
    for (uint32_t id = 0; id < kt_cells_end(c) &&
                          !a->now.by[KT_BY_STACK].refused; id++) {
        char *where = has_cell(c, id) ? differ_at(a, by, id, recount) : NULL;

        if (where) {
            return where;
        }
    }
    return NULL;
}

/* Callers have numbers of their own in a recount. */
static uint64_t held_in(const KtAccounts *recount, uint64_t pc)
{
    gpointer id = g_hash_table_lookup(recount->callers, GSIZE_TO_POINTER(pc));

    return kt_accounts_held(recount, GPOINTER_TO_UINT(id))->live;
}

static char *callers_differ(const KtAccounts *a, const KtAccounts *recount)
{
    bool all = !a->now.by[KT_BY_STACK].refused && !a->short_of_callers &&
               !recount->short_of_callers;

    for (guint id = 1; id < a->pcs->len && all; id++) {
        uint64_t pc = g_array_index(a->pcs, uint64_t, id);
        uint64_t has = kt_accounts_held(a, id)->live;
        uint64_t want = held_in(recount, pc);

        if (has != want) {
            return g_strdup_printf("by caller, 0x%" PRIx64 ": %" PRIu64
                                   " live bytes, the map has %" PRIu64, pc,
                                   has, want);
        }
    }
    return NULL;
}

char *kt_accounts_differ(const KtAccounts *a, const KtAccounts *recount)
{
    KtAccount all = kt_cells_sum(&a->now.by[KT_BY_KEPT]);
    char *where = NULL;

    if (a->now.all.live != live_of(&all).reserved) {
        return g_strdup_printf("%" PRIu64 " live bytes in all, of %" PRIu64,
                               a->now.all.live, live_of(&all).reserved);
    }
    for (unsigned i = KT_BY_KEPT; i < KT_BY__COUNT && !where; i++) {
        where = cells_differ(a, i, &all, recount);
    }
    return where ? where : callers_differ(a, recount);
}

/* ---- writing ------------------------------------------------------------- */

static void pack_account(GsPack *p, const KtAccount *a)
{
    gs_pack_u64(p, a->allocs);
    gs_pack_u64(p, a->asked);
    gs_pack_step(p, a->asked, a->reserved);
    gs_pack_step(p, a->allocs, a->frees);
    gs_pack_step(p, a->asked, a->freed_asked);
    gs_pack_step(p, a->reserved, a->freed_reserved);
    gs_pack_u64(p, a->peak);
    gs_pack_u64(p, a->cross);
}

/* What has no account of its own goes with what is nobody's. */
static KtAccount account_at(const KtCells *c, uint32_t id)
{
    KtAccount a = *kt_cells_get(c, id);

    if (id == 0) {
        kt_account_add(&a, &c->rest);
    }
    return a;
}

static void pack_cells(GsPack *p, const KtCells *c)
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
                gs_pack_step(p, last, id);
                pack_account(p, &a);
                last = id;
            }
        }
        if (!pass) {
            gs_pack_u64(p, n);
        }
    }
}

static void pack_callers(const KtAccounts *a, GsPack *p)
{
    gs_pack_u64(p, a->pcs->len - 1);
    for (guint id = 1; id < a->pcs->len; id++) {
        uint64_t pc = g_array_index(a->pcs, uint64_t, id);

        gs_pack_step(p, id > 1 ? g_array_index(a->pcs, uint64_t, id - 1) : 0,
                     pc);
        gs_pack_u64(p, kt_accounts_held(a, id)->peak);
    }
}

static void pack_stray(const KtAccounts *a, GsPack *p)
{
    GHashTableIter it;
    gpointer value;

    gs_pack_u64(p, g_hash_table_size(a->stray));
    g_hash_table_iter_init(&it, a->stray);
    while (g_hash_table_iter_next(&it, NULL, &value)) {
        const KtStray *s = value;

        gs_pack_u64(p, s->stack.v);
        gs_pack_u64(p, s->unknown);
        gs_pack_u64(p, s->invalid);
        gs_pack_u64(p, s->pages);
    }
}

static void numbers_of(KtTotals *t, uint64_t *out[9])
{
    uint64_t *all[] = {
        &t->us, &t->resizes, &t->grown, &t->shrunk, &t->lost, &t->lost_asked,
        &t->lost_reserved, &t->splits, &t->stray,
    };

    memcpy(out, all, sizeof(all));
}

void kt_accounts_pack(const KtAccounts *a, GsPack *p)
{
    KtTotals totals = a->now.totals;
    uint64_t *number[9];

    gs_pack_u64(p, !a->off);
    if (a->off) {
        return;
    }
    numbers_of(&totals, number);
    for (unsigned i = 0; i < G_N_ELEMENTS(number); i++) {
        gs_pack_u64(p, *number[i]);
    }
    gs_pack_u64(p, a->now.all.peak);
    for (unsigned i = KT_BY_KEPT; i < KT_BY__COUNT; i++) {
        pack_cells(p, &a->now.by[i]);
    }
    pack_callers(a, p);
    pack_stray(a, p);
}

/* ---- reading ------------------------------------------------------------- */

static KtAccount unpack_account(GsUnpack *u)
{
    KtAccount a = { .allocs = gs_unpack_u64(u) };

    a.asked = gs_unpack_u64(u);
    a.reserved = gs_unpack_step(u, a.asked);
    a.frees = gs_unpack_step(u, a.allocs);
    a.freed_asked = gs_unpack_step(u, a.asked);
    a.freed_reserved = gs_unpack_step(u, a.reserved);
    a.peak = gs_unpack_u64(u);
    a.cross = gs_unpack_upto(u, ((uint64_t)1 << 40) - 1, "frees elsewhere");
    return a;
}

static void unpack_cells(GsUnpack *u, KtCells *c, uint64_t max)
{
    uint64_t n = gs_unpack_upto(u, max + 1, "the number of accounts");
    uint64_t last = 0;

    for (uint64_t i = 0; i < n && gs_unpack_ok(u); i++) {
        uint64_t id = gs_unpack_step(u, last);

        if (id > max || (i && id <= last)) {
            gs_unpack_fail(u, "accounts are out of order");
        }
        if (gs_unpack_ok(u)) {
            KtAccount a = unpack_account(u);

            kt_account_add(kt_cells_at(c, id), &a);
        }
        last = id;
    }
}

static void unpack_callers(KtAccounts *a, GsUnpack *u, uint32_t n_stacks)
{
    uint64_t n = gs_unpack_upto(u, (uint64_t)n_stacks + 1,
                                "the number of callers");
    uint64_t last = 0;

    for (uint64_t i = 0; i < n && gs_unpack_ok(u); i++) {
        uint64_t pc = gs_unpack_step(u, last);

        kt_held_peak(kt_accounts_held(a, kt_accounts_caller(a, pc)),
                     gs_unpack_u64(u));
        last = pc;
    }
}

static void unpack_stray(KtAccounts *a, GsUnpack *u, uint32_t n_stacks)
{
    uint64_t n = gs_unpack_upto(u, (uint64_t)n_stacks + 1,
                                "the number of stray frees");

    for (uint64_t i = 0; i < n && gs_unpack_ok(u); i++) {
        KtStray s = {
            .stack = { gs_unpack_upto(u, n_stacks, "a backtrace") },
        };

        s.unknown = gs_unpack_u64(u);
        s.invalid = gs_unpack_u64(u);
        s.pages = gs_unpack_u64(u);
        kt_accounts_add_stray(a, &s);
    }
}

void kt_accounts_unpack(KtAccounts *a, GsUnpack *u, uint32_t n_stacks,
                        uint32_t n_tasks, uint32_t n_caches)
{
    const uint64_t max[KT_BY__COUNT] = {
        [KT_BY_STACK] = n_stacks, [KT_BY_TASK] = n_tasks,
        [KT_BY_CACHE] = (uint64_t)n_caches + KT_LAYER__COUNT,
        [KT_BY_SIZE] = KT_SIZE_CLASSES - 1,
    };
    uint64_t *number[9];

    if (!gs_unpack_upto(u, 1, "a flag")) {
        kt_accounts_end(a);
        return;
    }
    numbers_of(&a->now.totals, number);
    for (unsigned i = 0; i < G_N_ELEMENTS(number); i++) {
        *number[i] = gs_unpack_u64(u);
    }
    a->now.all.peak = gs_unpack_u64(u);
    for (unsigned i = KT_BY_KEPT; i < KT_BY__COUNT; i++) {
        unpack_cells(u, &a->now.by[i], max[i]);
    }
    unpack_callers(a, u, n_stacks);
    unpack_stray(a, u, n_stacks);
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

static void move_cells(KtCells *to, const KtCells *from, KtBy by,
                       const KtRenumber *ids)
{
    for (uint32_t id = 0; id < kt_cells_end(from); id++) {
        const KtAccount *a = kt_cells_get(from, id);

        if (!kt_account_is_empty(a)) {
            kt_account_add(kt_cells_at(to, new_id(ids, by, id)), a);
        }
    }
    if (!kt_account_is_empty(&from->rest)) {
        kt_account_add(kt_cells_at(to, 0), &from->rest);
    }
}

static void move_callers(KtAccounts *to, const KtAccounts *from)
{
    for (guint id = 1; id < from->pcs->len; id++) {
        uint64_t pc = g_array_index(from->pcs, uint64_t, id);

        kt_held_peak(kt_accounts_held(to, kt_accounts_caller(to, pc)),
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

/* Those of other ids are made beside the ones that they replace: within the
 * bound for both, once these are gone. */
void kt_accounts_renumber(KtAccounts *a, const KtRenumber *to,
                          const KtDepot *stacks)
{
    KtAccounts old = *a;
    uint64_t lent = kt_accounts_bytes(a);

    if (a->off) {
        return;
    }
    kt_budget_lend(old.budget, KT_MEM_ACCOUNTS, lent);
    kt_accounts_init(a, old.budget, stacks);
    a->now.totals = old.now.totals;
    a->now.all.peak = old.now.all.peak;
    for (unsigned i = KT_BY_KEPT; i < KT_BY__COUNT; i++) {
        move_cells(&a->now.by[i], &old.now.by[i], i, to);
    }
    move_callers(a, &old);
    move_stray(a, &old, to);
    kt_accounts_deinit(&old);
    kt_budget_unlend(a->budget, KT_MEM_ACCOUNTS, lent);
}
