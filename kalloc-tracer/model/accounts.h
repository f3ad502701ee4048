/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Accounts: how much was allocated and freed, by whom, of one boot.
 *
 * Past lives are bounded, so totals are counted as events are applied: an
 * account of 64 bytes for each stack, cache, task and class of sizes, found by
 * number without a search. The accounts by stack are as many as there are
 * backtraces, and are loaded ahead; those of the others are few and stay in
 * the host's caches. Accounts of callers, and that of everything, are sums of
 * others: only what they hold and held at most is counted.
 *
 * The live part of every account is what a recount of the map gives; the
 * checker sees to it. No locking: the tracer's lock covers it.
 */
#ifndef KT_ACCOUNTS_H
#define KT_ACCOUNTS_H

#include "kalloc-tracer/api/kt-accounts.h"
#include "kalloc-tracer/base/budget.h"
#include "kalloc-tracer/base/depot.h"
#include "kalloc-tracer/model/blocks.h"

/**
 * struct KtCells - accounts by number
 * @pool: those of all numbers that it has room for
 * @refused: there was no memory for more: none is made any more, and what has
 *           no account counts in @rest
 */
typedef struct KtCells {
    KtPool pool;
    bool refused;
    KtAccount rest;
} KtCells;

/** kt_cells_end() - numbers below it have accounts. */
static inline uint32_t kt_cells_end(const KtCells *c)
{
    return kt_pool_capacity(&c->pool);
}

/** struct KtHeld - bytes that are live of somebody, slack included, and the
 *  most that ever were */
typedef struct KtHeld {
    uint64_t live, peak;
} KtHeld;

/** KT_BY_KEPT - the first of KtBy whose accounts are kept; the others are put
 *  together from these. */
#define KT_BY_KEPT KT_BY_STACK

/**
 * struct KtTables - all accounts at one time
 * @by: but for those of callers
 * @held: KtHeld of each caller by number; @all: of everything
 * @totals: but for the sum
 */
typedef struct KtTables {
    KtCells by[KT_BY__COUNT];
    GArray *held;
    KtHeld all;
    KtTotals totals;
} KtTables;

/** struct KtMark - the accounts at a time that the user named */
typedef struct KtMark {
    char *name;
    KtBudget *budget;       /* borrowed: what its memory is charged to */
    KtTables tables;
} KtMark;

/**
 * struct KtAccounts - of one boot
 * @now: as they are
 * @stacks: (borrowed, nullable) whose backtraces tell callers
 * @callers: pc -> number; @pcs: pc of each number, that of 0 unused
 * @short_of_callers: for some there was no room
 * @marks: KtMark, oldest first
 * @stray: stack -> KtStray
 * @off: the boot is over, nothing is counted
 */
typedef struct KtAccounts {
    KtTables now;
    const KtDepot *stacks;
    KtBudget *budget;
    GHashTable *callers;
    GArray *pcs;
    bool short_of_callers;
    GPtrArray *marks;
    GHashTable *stray;
    bool off;
} KtAccounts;

/** struct KtWho - who a block is accounted to */
typedef struct KtWho {
    uint32_t stack, task, cache;
    KtLayer layer;
} KtWho;

/** struct KtAmount - bytes of a block */
typedef struct KtAmount {
    uint64_t asked, reserved;
} KtAmount;

/** kt_accounts_init() - both borrowed, @stacks may come later. */
void kt_accounts_init(KtAccounts *a, KtBudget *budget, const KtDepot *stacks);
void kt_accounts_deinit(KtAccounts *a);
/** kt_accounts_bytes() - host memory of all but marks. */
uint64_t kt_accounts_bytes(const KtAccounts *a);
/** kt_accounts_end() - the boot is over: nothing is kept. */
void kt_accounts_end(KtAccounts *a);

/* ---- events -------------------------------------------------------------- */

/** kt_accounts_alloc() - a block more. */
void kt_accounts_alloc(KtAccounts *a, const KtWho *w, KtAmount n);
/** kt_accounts_free() - a block less. @cross: on another vCPU. */
void kt_accounts_free(KtAccounts *a, const KtWho *w, KtAmount n, bool cross);
/** kt_accounts_free_unseen() - a block less, whose free was not seen. */
void kt_accounts_free_unseen(KtAccounts *a, const KtWho *w, KtAmount n);
/** kt_accounts_alloc_unkept() - a block that was allocated and cannot be kept.
 * */
void kt_accounts_alloc_unkept(KtAccounts *a, const KtWho *w, KtAmount n);
/** kt_accounts_resize() - a block asks for other bytes than before. */
void kt_accounts_resize(KtAccounts *a, const KtWho *w, KtAmount before,
                        KtAmount after);
/** kt_accounts_split() - a block became two. */
void kt_accounts_split(KtAccounts *a, const KtWho *w, KtAmount before,
                       KtAmount first, KtAmount second);
/** kt_accounts_truncate() - the end of a block was lost. */
void kt_accounts_truncate(KtAccounts *a, const KtWho *w, KtAmount before,
                          KtAmount after);
/** kt_accounts_found_cache() - a live block turns out to be of @cache. */
void kt_accounts_found_cache(KtAccounts *a, const KtWho *w, KtAmount n,
                             uint32_t cache);
/** kt_accounts_stray() - a free of what nobody allocated. */
typedef enum KtStrayKind {
    KT_STRAY_UNKNOWN, KT_STRAY_INVALID, KT_STRAY_PAGES
} KtStrayKind;
void kt_accounts_stray(KtAccounts *a, uint32_t stack, KtStrayKind kind);
/** kt_accounts_add_stray() - those of a backtrace, into the table alone. */
void kt_accounts_add_stray(KtAccounts *a, const KtStray *more_of);

/** kt_accounts_touch() - start to load the account of @stack;
 *  kt_accounts_touch_caller() - then that of its caller. */
static inline void kt_accounts_touch(const KtAccounts *a, uint32_t stack)
{
    const KtCells *c = &a->now.by[KT_BY_STACK];

    if (stack < kt_cells_end(c)) {
        kt_prefetch(kt_pool_at(&c->pool, stack));
    }
}

static inline void kt_accounts_touch_caller(const KtAccounts *a,
                                            uint32_t stack)
{
    const KtCells *c = &a->now.by[KT_BY_STACK];
    const KtAccount *account;

    if (stack < kt_cells_end(c)) {
        account = kt_pool_at(&c->pool, stack);
        kt_prefetch(&g_array_index(a->now.held, KtHeld, account->caller));
    }
}

/* ---- numbers ------------------------------------------------------------- */

/** kt_size_class() - the class of @asked, below KT_SIZE_CLASSES: four for
 *  each power of two; kt_size_class_range() - and back. */
#define KT_SIZE_CLASSES 256
static inline uint32_t kt_size_class(uint64_t asked)
{
    uint64_t x = asked - 1;
    unsigned bits;

    if (asked <= 8) {
        return asked;
    }
    bits = 63 - __builtin_clzll(x);
    return (bits - 1) * 4 + (x >> (bits - 2) & 3) + 1;
}
void kt_size_class_range(uint32_t size_class, uint64_t *lo, uint64_t *hi);

/** kt_cells_at() - (borrowed) the account of @id, made if need be. */
KtAccount *kt_cells_at(KtCells *c, uint32_t id);
/** kt_cells_clear() - there are none. */
void kt_cells_clear(KtCells *c);
/** kt_account_add() - @a to another, whose peak becomes at least that. */
void kt_account_add(KtAccount *to, const KtAccount *a);
/** kt_cells_sum() - of all accounts there; a peak at least that of each. */
KtAccount kt_cells_sum(const KtCells *c);
/** kt_accounts_caller() - the number of a caller, not 0;
 *  kt_accounts_caller_of() - of who called for @stack. */
uint32_t kt_accounts_caller(KtAccounts *a, uint64_t pc);
uint32_t kt_accounts_caller_of(KtAccounts *a, uint32_t stack);
/** kt_cells_get() - (borrowed) the account of @id; all 0 when there is
 *  none. */
const KtAccount *kt_cells_get(const KtCells *c, uint32_t id);
static inline bool kt_account_is_empty(const KtAccount *a)
{
    return !a->allocs && !a->frees && !a->asked && !a->freed_asked;
}

/* ---- marks -------------------------------------------------------------- */

bool kt_accounts_set_mark(KtAccounts *a, const char *name, GError **errp);
bool kt_accounts_drop_mark(KtAccounts *a, const char *name);
/** kt_accounts_tables() - (borrowed) as of a mark, NULL: now. Returns NULL
 *  when there is none of that name. */
const KtTables *kt_accounts_tables(const KtAccounts *a, const char *mark);
void kt_mark_free(gpointer mark);
/** kt_tables_init() - all but @held, which the caller makes;
 *  kt_tables_clear() - that included. */
void kt_tables_init(KtTables *t, KtBudget *budget);
void kt_tables_clear(KtTables *t);
/** kt_tables_totals() - with their sum. */
KtTotals kt_tables_totals(const KtTables *t);
/** kt_tables_callers() - into @out, which is empty: their accounts by number,
 *  for kt_cells_clear(). */
void kt_tables_callers(const KtTables *t, KtCells *out);
/** kt_accounts_held() - (borrowed, until the next is made) of a caller. */
static inline KtHeld *kt_accounts_held(const KtAccounts *a, uint32_t caller)
{
    return &g_array_index(a->now.held, KtHeld, caller);
}
static inline void kt_held_peak(KtHeld *h, uint64_t peak)
{
    h->peak = MAX(MAX(h->peak, peak), h->live);
}

/* ---- compared with a recount of the map, accounts-compare.c -------------- */

/**
 * kt_accounts_settle() - make the live parts what @recount says
 *
 * Where an account has more, the rest counts as lost; where it has less, that
 * comes from the account of nobody. Returns: false when that has not got it,
 * or sums differ: these are no accounts of these blocks.
 */
bool kt_accounts_settle(KtAccounts *a, const KtAccounts *recount);
/** kt_accounts_differ() - (nullable, owned) the first account whose live part
 *  is not what @recount says, or sum that is not that of all; in words. */
char *kt_accounts_differ(const KtAccounts *a, const KtAccounts *recount);

#endif /* KT_ACCOUNTS_H */
