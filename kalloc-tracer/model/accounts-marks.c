/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Accounts compared with a recount of the map: see accounts.h.
 *
 * The recount is a second KtAccounts, made by walking the live blocks. It takes
 * from the first one which stacks allocate backing blocks. The
 * self-check reports the first difference (kt_accounts_differ()). The load of
 * a snapshot corrects the live parts (kt_accounts_settle()), or refuses the
 * accounts if the sums by stack, cache, task and size are not the same.
 */
#include "kalloc-tracer/model/accounts.h"

#include <inttypes.h>
#include <string.h>

#define MAX_STRAY 65536

static const char *const by_names[KT_BY__COUNT] = {
    [KT_BY_CALLER] = "caller", [KT_BY_STACK] = "stack",
    [KT_BY_CACHE] = "cache", [KT_BY_TASK] = "task", [KT_BY_SIZE] = "size",
};

/* ---- arithmetic ---------------------------------------------------------- */

/* Live blocks, requested bytes, reserved bytes; modulo 2^64. */
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

/* Return what the recount has live for all numbers without an account. */
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

/* Change an account so that @want is live. What is missing is moved from
 * @nobody; what is too much counts as freed, and is added to @lost. */
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
    if (!settle_one(&c->backing, live_of(&recount->backing), nobody, lost)) {
        return false;
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

/* Set the live bytes of callers, from the accounts of stacks. Peaks are set. */
static void set_held(KtAccounts *a)
{
    KtCells *stacks = &a->now.by[KT_BY_STACK];

    for (uint32_t id = 0; id < kt_cells_end(stacks); id++) {
        KtAccount *s = kt_cells_at(stacks, id);

        if (!kt_account_is_empty(s)) {
            hold_for(a, s, s->caller == KT_CALLER_BACKING ?
                     s->caller : kt_accounts_caller_of(a, id));
        }
    }
    if (!kt_account_is_empty(&stacks->rest)) {
        hold_for(a, &stacks->rest, kt_accounts_caller(a, 0, 0));
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
    a->now.all.live = live_of(&sum).reserved -
                      live_of(&a->now.by[KT_BY_SIZE].backing).reserved;
    kt_held_peak(&a->now.all, 0);
    return sums_agree(a);
}

void kt_accounts_fold_backing(KtAccounts *a)
{
    KtCells *stacks = &a->now.by[KT_BY_STACK];

    for (uint32_t id = 0; id < kt_cells_end(stacks); id++) {
        KtAccount *s = kt_cells_at(stacks, id);

        s->caller = s->caller == KT_CALLER_BACKING ? 0 : s->caller;
    }
    for (unsigned i = KT_BY_KEPT + 1; i < KT_BY__COUNT; i++) {
        KtCells *c = &a->now.by[i];

        kt_account_add(kt_cells_at(c, 0), &c->backing);
        c->backing = (KtAccount) { 0 };
    }
    a->now.totals.backing_unknown++;
}

/* Compare the live parts of two accounts. @id: UINT32_MAX for backing blocks */
static char *differ_at(KtBy by, uint32_t id, const KtAccount *account,
                       const KtAccount *recounted)
{
    Live has = live_of(account);
    Live want = live_of(recounted);

    if (is_zero(minus(has, want))) {
        return NULL;
    }
    return g_strdup_printf("by %s, number %d: %" PRIu64 " live blocks of %"
                           PRIu64 " bytes (%" PRIu64 " asked for), the map "
                           "has %" PRIu64 " of %" PRIu64 " (%" PRIu64 ")",
                           by_names[by], (int)id, has.n, has.reserved,
                           has.asked, want.n, want.reserved, want.asked);
}

static char *cells_differ(const KtAccounts *a, KtBy by, const KtAccount *all,
                          const KtAccounts *recount)
{
    const KtCells *c = &a->now.by[by], *again = &recount->now.by[by];
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
        char *where = has_cell(c, id) ?
                      differ_at(by, id, kt_cells_get(c, id),
                                kt_cells_get(again, id)) : NULL;

        if (where) {
            return where;
        }
    }
    return differ_at(by, UINT32_MAX, &c->backing, &again->backing);
}

/* Return the live bytes of a caller in the recount, which has other numbers. */
static uint64_t held_in(const KtAccounts *recount, const KtCaller *c)
{
    uint32_t id = kt_accounts_find_caller(recount, c->pc, c->era);

    return kt_accounts_held(recount, id)->live;
}

static char *callers_differ(const KtAccounts *a, const KtAccounts *recount)
{
    bool all = !a->now.by[KT_BY_STACK].refused && !a->short_of_callers &&
               !recount->short_of_callers;

    for (guint id = 1; id < a->list->len && all; id++) {
        const KtCaller *c = &g_array_index(a->list, KtCaller, id);
        uint64_t has = kt_accounts_held(a, id)->live;
        uint64_t want = id == KT_CALLER_BACKING ?
                        kt_accounts_held(recount, id)->live :
                        held_in(recount, c);

        if (has != want) {
            return g_strdup_printf("by caller, 0x%" PRIx64 ": %" PRIu64
                                   " live bytes, the map has %" PRIu64,
                                   c->pc, has, want);
        }
    }
    return NULL;
}

char *kt_accounts_differ(const KtAccounts *a, const KtAccounts *recount)
{
    KtAccount all = kt_cells_sum(&a->now.by[KT_BY_KEPT]);
    uint64_t live = live_of(&all).reserved -
                    live_of(&a->now.by[KT_BY_SIZE].backing).reserved;
    char *where = NULL;

    if (a->now.all.live != live) {
        return g_strdup_printf("%" PRIu64 " live bytes in all, of %" PRIu64,
                               a->now.all.live, live);
    }
    for (unsigned i = KT_BY_KEPT; i < KT_BY__COUNT && !where; i++) {
        where = cells_differ(a, i, &all, recount);
    }
    return where ? where : callers_differ(a, recount);
}

/* ---- marks --------------------------------------------------------------- */
/*
 * Marks: copies of all accounts at a time that the user named. See accounts.h.
 */

/* Copy a table. Return false if there is no memory. */
static bool cells_copy(KtCells *to, const KtCells *from)
{
    size_t chunk = kt_pool_chunk_bytes(&from->pool);

    to->pool.shift = from->pool.shift;
    to->rest = from->rest;
    to->backing = from->backing;
    if (kt_cells_end(from) &&
        !kt_pool_reserve(&to->pool, kt_cells_end(from) - 1)) {
        return false;
    }
    for (uint32_t i = 0; i < from->pool.n_chunks; i++) {
        memcpy(to->pool.chunk[i], from->pool.chunk[i], chunk);
    }
    return true;
}

static uint64_t held_bytes(const KtTables *t)
{
    return (uint64_t)t->held->len * sizeof(KtHeld);
}

void kt_mark_free(gpointer p)
{
    KtMark *mark = p;

    kt_budget_release(mark->budget, KT_MEM_ACCOUNTS,
                      held_bytes(&mark->tables));
    kt_tables_clear(&mark->tables);
    g_free(mark->name);
    g_free(mark);
}

static guint find_mark(const KtAccounts *a, const char *name)
{
    guint i = 0;

    while (i < a->marks->len &&
           strcmp(((KtMark *)a->marks->pdata[i])->name, name)) {
        i++;
    }
    return i;
}

/* Copy the current accounts as a mark. Return NULL if there is no memory. */
static KtMark *new_mark(const KtAccounts *a, const char *name)
{
    KtMark *p;
    bool ok = true;

    if (!kt_budget_take(a->budget, KT_MEM_ACCOUNTS, held_bytes(&a->now))) {
        return NULL;
    }
    p = g_new0(KtMark, 1);
    p->name = g_strdup(name);
    p->budget = a->budget;
    kt_tables_init(&p->tables, a->budget);
    p->tables.held = g_array_copy(a->now.held);
    p->tables.all = a->now.all;
    p->tables.totals = a->now.totals;
    for (unsigned i = KT_BY_KEPT; i < KT_BY__COUNT && ok; i++) {
        ok = cells_copy(&p->tables.by[i], &a->now.by[i]);
    }
    if (!ok) {
        g_clear_pointer(&p, kt_mark_free);
    }
    return p;
}

bool kt_accounts_set_mark(KtAccounts *a, const char *name, GError **errp)
{
    bool is_new = find_mark(a, name) == a->marks->len;
    KtMark *p;

    if (is_new && a->marks->len >= KT_MARKS_MAX) {
        g_set_error(errp, GS_ERROR, GS_ERROR_UNSUPPORTED,
                    "there are %d marks, no more can be kept; drop one",
                    KT_MARKS_MAX);
        return false;
    }
    p = new_mark(a, name);
    if (!p) {
        g_set_error(errp, GS_ERROR, GS_ERROR_UNSUPPORTED,
                    "no memory for it within the bound (mem=); drop a mark");
        return false;
    }
    kt_accounts_drop_mark(a, name);
    g_ptr_array_add(a->marks, p);
    return true;
}

bool kt_accounts_drop_mark(KtAccounts *a, const char *name)
{
    guint i = find_mark(a, name);

    if (i == a->marks->len) {
        return false;
    }
    g_ptr_array_remove_index(a->marks, i);
    return true;
}

const KtTables *kt_accounts_tables(const KtAccounts *a, const char *mark)
{
    guint i = mark ? find_mark(a, mark) : 0;

    if (!mark) {
        return &a->now;
    }
    return i < a->marks->len ? &((KtMark *)a->marks->pdata[i])->tables : NULL;
}

/* ---- stray frees --------------------------------------------------------- */

/* If there is no room for another backtrace, count it for stack 0. */
void kt_accounts_add_stray(KtAccounts *a, const KtStray *more_of)
{
    uint32_t stack = more_of->stack.v;
    KtStray *s = g_hash_table_lookup(a->stray, GUINT_TO_POINTER(stack));

    if (!s && stack &&
        (g_hash_table_size(a->stray) >= MAX_STRAY ||
         !kt_budget_take(a->budget, KT_MEM_ACCOUNTS, KT_STRAY_BYTES))) {
        stack = 0;
        s = g_hash_table_lookup(a->stray, NULL);
    }
    if (!s) {
        if (!stack) {
            kt_budget_charge(a->budget, KT_MEM_ACCOUNTS, KT_STRAY_BYTES);
        }
        s = g_new0(KtStray, 1);
        s->stack.v = stack;
        g_hash_table_insert(a->stray, GUINT_TO_POINTER(stack), s);
    }
    s->unknown += more_of->unknown;
    s->invalid += more_of->invalid;
    s->pages += more_of->pages;
}

void kt_accounts_stray(KtAccounts *a, uint32_t stack, KtStrayKind kind)
{
    const KtStray one = {
        .stack = { stack },
        .unknown = kind == KT_STRAY_UNKNOWN,
        .invalid = kind == KT_STRAY_INVALID,
        .pages = kind == KT_STRAY_PAGES,
    };

    kt_accounts_add_stray(a, &one);
    a->now.totals.stray++;
}
