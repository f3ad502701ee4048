/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Accounts: how much was allocated and freed in one boot, and by whom.
 *
 * The history is bounded, so sums cannot be made from it: they are counted
 * when an event is applied. Each allocation and each free counts once in each
 * of four tables of accounts (64 bytes each), found by number:
 *
 *     by stack    number = id of the allocation's backtrace
 *     by cache    number = id of the cache, or the layer if there is none
 *     by task     number = id of the allocating task
 *     by size     number = class of the requested size
 *
 * So the sums of the four tables are the same, and the live part of each
 * account (allocations less frees) is what a recount of the map gives. The
 * self-check compares both. Callers have no table: their sums are those of
 * their stacks. Only live bytes and peak are counted for them (KtHeld).
 *
 * A page block is backing if another allocator got it for its own blocks:
 *
 *     kmalloc(200 KiB) --> large block, counted
 *       ___kmalloc_large_node() --> __alloc_pages() --> page block, backing
 *
 * Its bytes are counted already, or will be. So backing blocks have an account
 * by stack, but share one account in each of the other tables, which no sum
 * contains (KtCells.backing). The first frame of a stack decides, when the
 * stack allocates for the first time; docs/accounts.md has the rule.
 *
 * There are as many accounts by stack as backtraces, so they are prefetched;
 * the others are few and stay in the host's cache.
 *
 * No lock: the tracer's lock is held.
 */
#ifndef KT_ACCOUNTS_H
#define KT_ACCOUNTS_H

#include "kalloc-tracer/api/kt-accounts.h"
#include "kalloc-tracer/base/budget.h"
#include "kalloc-tracer/base/depot.h"
#include "kalloc-tracer/model/blocks.h"

/**
 * struct KtCells - a table of accounts
 * @pool: accounts by number
 * @refused: the memory limit was reached: no account is added any more, and
 *           whatever has none counts in @rest
 * @backing: of all backing blocks; unused in the table by stack
 */
typedef struct KtCells {
    KtPool pool;
    bool refused;
    KtAccount rest;
    KtAccount backing;
} KtCells;

/** kt_cells_end() - return the number above the greatest that has memory. */
static inline uint32_t kt_cells_end(const KtCells *c)
{
    return kt_pool_capacity(&c->pool);
}

/** struct KtHeld - reserved bytes of a caller that are live, and the most that
 *  ever were at one time */
typedef struct KtHeld {
    uint64_t live, peak;
} KtHeld;

/**
 * struct KtCaller - whom sums by caller belong to
 * @era: of the module that @pc is in: the same address is another caller if
 *       another module lies there
 * @next: number of the next caller of the same address; 0: the last
 */
typedef struct KtCaller {
    uint64_t pc;
    uint32_t era, next;
} KtCaller;

/** KT_CALLER_BACKING - number of the caller of all stacks that allocate backing
 *  blocks. It has no address, and no row. */
#define KT_CALLER_BACKING 2

/* Memory of a KtStray and its hash entry. */
#define KT_STRAY_BYTES 96

/* The first of KtBy whose accounts are stored. Those of callers are made from
 * the accounts of stacks when somebody asks. */
#define KT_BY_KEPT KT_BY_STACK

/**
 * struct KtTables - all accounts, now or at a mark
 * @by: the four tables; that of callers is unused
 * @held: KtHeld of each caller, by number
 * @all: live bytes and peak of everything but backing blocks
 * @totals: without the sum
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
 * struct KtAccounts - accounts of a boot
 * @now: the current ones
 * @stacks: (borrowed, nullable) backtraces, whose first frame is the caller
 * @backing: (borrowed, nullable) KtCodeRange of functions that allocate backing
 *           blocks, ascending; NULL: not known
 * @original: (borrowed, nullable) of a recount: the accounts that decided which
 *           stacks allocate backing blocks
 * @callers: program counter -> number of its first caller
 * @list: KtCaller by number; 0 is unused
 * @short_of_callers: there was no room for some callers
 * @marks: KtMark, oldest first
 * @stray: stack -> KtStray
 * @off: the boot is over: nothing is counted
 */
typedef struct KtAccounts {
    KtTables now;
    const KtDepot *stacks;
    const GArray *backing;
    const struct KtAccounts *original;
    KtBudget *budget;
    GHashTable *callers;
    GArray *list;
    bool short_of_callers;
    GPtrArray *marks;
    GHashTable *stray;
    bool off;
} KtAccounts;

/** struct KtWho - who allocated a block: the accounts that it counts in */
typedef struct KtWho {
    uint32_t stack, task, cache;
    KtLayer layer;
} KtWho;

/** struct KtAmount - requested and reserved bytes of a block */
typedef struct KtAmount {
    uint64_t asked, reserved;
} KtAmount;

/** kt_accounts_init() - begin with empty accounts. @budget and @stacks are
 *  borrowed; @stacks may be set later. */
void kt_accounts_init(KtAccounts *a, KtBudget *budget, const KtDepot *stacks);
/** kt_accounts_init_recount() - begin a recount of the blocks of @original,
 *  which is borrowed. */
void kt_accounts_init_recount(KtAccounts *a, const KtAccounts *original);
void kt_accounts_deinit(KtAccounts *a);
/** kt_accounts_bytes() - return the host memory, without that of marks. */
uint64_t kt_accounts_bytes(const KtAccounts *a);
/** kt_accounts_end() - drop everything: the boot is over. */
void kt_accounts_end(KtAccounts *a);

/* ---- events -------------------------------------------------------------- */

/** kt_accounts_alloc() - count an allocation. */
void kt_accounts_alloc(KtAccounts *a, const KtWho *w, KtAmount n);
/** kt_accounts_free() - count a free. @cross: on another vCPU than the
 *  allocation. */
void kt_accounts_free(KtAccounts *a, const KtWho *w, KtAmount n, bool cross);
/** kt_accounts_free_unseen() - count as freed a block whose free was not
 *  recorded. */
void kt_accounts_free_unseen(KtAccounts *a, const KtWho *w, KtAmount n);
/** kt_accounts_alloc_unkept() - count a block that cannot be kept as allocated,
 *  and at once as freed. */
void kt_accounts_alloc_unkept(KtAccounts *a, const KtWho *w, KtAmount n);
/** kt_accounts_resize() - count a krealloc in place. */
void kt_accounts_resize(KtAccounts *a, const KtWho *w, KtAmount before,
                        KtAmount after);
/** kt_accounts_split() - count that a block became two, of one allocation. */
void kt_accounts_split(KtAccounts *a, const KtWho *w, KtAmount before,
                       KtAmount first, KtAmount second);
/** kt_accounts_truncate() - count the end of a block as freed: there is no
 *  memory for a record of it. */
void kt_accounts_truncate(KtAccounts *a, const KtWho *w, KtAmount before,
                          KtAmount after);
/** kt_accounts_found_cache() - move a live block to the account of @cache,
 *  which was unknown when it was allocated. */
void kt_accounts_found_cache(KtAccounts *a, const KtWho *w, KtAmount n,
                             uint32_t cache);
/** kt_accounts_stray() - count a free without a recorded allocation. */
typedef enum KtStrayKind {
    KT_STRAY_UNKNOWN, KT_STRAY_INVALID, KT_STRAY_PAGES
} KtStrayKind;
void kt_accounts_stray(KtAccounts *a, uint32_t stack, KtStrayKind kind);
/** kt_accounts_add_stray() - add the frees of a backtrace to the table, but not
 *  to the totals. */
void kt_accounts_add_stray(KtAccounts *a, const KtStray *more_of);

/* Prefetch in two steps: the account of @stack; then that of its caller. */
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

/** kt_size_class() - return the class of a requested size, less than
 *  KT_SIZE_CLASSES: each power of two has four, as 65..80, 81..96, 97..112,
 *  113..128. */
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
/** kt_size_class_range() - find the least and the greatest size of a class. */
void kt_size_class_range(uint32_t size_class, uint64_t *lo, uint64_t *hi);

/** kt_cells_at() - return the account of @id (borrowed); make it if there is
 *  none. */
KtAccount *kt_cells_at(KtCells *c, uint32_t id);
/** kt_cells_clear() - remove all accounts. */
void kt_cells_clear(KtCells *c);
/** kt_account_add() - add @a to @to. The peak becomes at least that of @a. */
void kt_account_add(KtAccount *to, const KtAccount *a);
/** kt_account_subtract() - subtract @a from @to, whose peak stays. */
void kt_account_subtract(KtAccount *to, const KtAccount *a);
/** kt_cells_sum() - return the sum of all accounts, with backing blocks. Its
 *  peak is at least that of each. */
KtAccount kt_cells_sum(const KtCells *c);
/** kt_accounts_caller() - get the number of a caller; never 0. */
uint32_t kt_accounts_caller(KtAccounts *a, uint64_t pc, uint32_t era);
/** kt_accounts_find_caller() - get the number of a caller; 0 if it has none. */
uint32_t kt_accounts_find_caller(const KtAccounts *a, uint64_t pc,
                                 uint32_t era);
/** kt_accounts_caller_of() - get the number of the caller of @stack: its first
 *  frame. */
uint32_t kt_accounts_caller_of(KtAccounts *a, uint32_t stack);
/** kt_cells_get() - return the account of @id (borrowed); one with zeros if
 *  there is none. */
const KtAccount *kt_cells_get(const KtCells *c, uint32_t id);
static inline bool kt_account_is_empty(const KtAccount *a)
{
    return !a->allocs && !a->frees && !a->asked && !a->freed_asked;
}

/** kt_accounts_is_backing() - does @stack allocate backing blocks? */
static inline bool kt_accounts_is_backing(const KtAccounts *a, uint32_t stack)
{
    return kt_cells_get(&a->now.by[KT_BY_STACK], stack)->caller ==
           KT_CALLER_BACKING;
}

/** kt_accounts_fold_backing() - count all backing blocks as others, those of no
 *  task: a stack that allocates some has no account any more. Call
 *  kt_accounts_settle() afterwards. */
void kt_accounts_fold_backing(KtAccounts *a);

/* ---- marks -------------------------------------------------------------- */

/** kt_accounts_set_mark() - as kt_tracer_set_mark(). */
bool kt_accounts_set_mark(KtAccounts *a, const char *name, GError **errp);
/** kt_accounts_drop_mark() - as kt_tracer_drop_mark(). */
bool kt_accounts_drop_mark(KtAccounts *a, const char *name);
/** kt_accounts_tables() - return the accounts at a mark (borrowed); NULL: now.
 *  NULL if there is no such mark. */
const KtTables *kt_accounts_tables(const KtAccounts *a, const char *mark);
void kt_mark_free(gpointer p);
/** kt_tables_init() - make empty tables, without @held, which the caller
 *  sets. */
void kt_tables_init(KtTables *t, KtBudget *budget);
/** kt_tables_clear() - free everything, @held included. */
void kt_tables_clear(KtTables *t);
/** kt_tables_totals() - return the totals, with the sum of all accounts. */
KtTotals kt_tables_totals(const KtTables *t);
/** kt_tables_callers() - make the accounts of callers, by number, without
 *  backing blocks. @out: (out)
 *  was empty; free it with kt_cells_clear(). */
void kt_tables_callers(const KtTables *t, KtCells *out);
/** kt_accounts_held() - return the live bytes of a caller (borrowed until
 *  another caller is added). */
static inline KtHeld *kt_accounts_held(const KtAccounts *a, uint32_t caller)
{
    return &g_array_index(a->now.held, KtHeld, caller);
}
/** kt_held_peak() - raise the peak to @peak and to what is live. */
static inline void kt_held_peak(KtHeld *h, uint64_t peak)
{
    h->peak = MAX(MAX(h->peak, peak), h->live);
}

/* ---- compared with a recount of the map, accounts-marks.c ---------------- */

/**
 * kt_accounts_settle() - make the live parts those of @recount
 *
 * After a snapshot was read, the accounts may differ from its blocks. If an
 * account has more live than @recount, the rest counts as freed without a
 * recorded free; if it has less, the difference is taken from the account with
 * number 0. Returns: false if that does not have enough, or the sums of the
 * tables differ: then these are not the accounts of these blocks.
 */
bool kt_accounts_settle(KtAccounts *a, const KtAccounts *recount);
/** kt_accounts_differ() - return one line (owned) about the first account whose
 *  live part differs from @recount, or whose kind has another sum than the
 *  other kinds; NULL if everything agrees. */
char *kt_accounts_differ(const KtAccounts *a, const KtAccounts *recount);

#endif /* KT_ACCOUNTS_H */
