/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Accounts: see accounts.h. The model calls this for each event.
 *
 * A hostile guest can make sums wrap. What is live stays right, because it is
 * the difference of two sums.
 */
#include "kalloc-tracer/model/accounts.h"

#include <string.h>

#include "kalloc-tracer/base/stack-tag.h"

#define STACKS_SHIFT  15    /* 2 MiB at a time: a huge page */
#define CELLS_SHIFT   10    /* 64 KiB */
#define MAX_CALLERS   ((1u << 24) - 1)
#define NOBODY        1     /* the caller if there is no backtrace */
#define CALLER_BYTES  88    /* of a caller, in three tables */

/* ---- cells --------------------------------------------------------------- */

static void cells_init(KtCells *c, KtBudget *budget, KtBy by)
{
    *c = (KtCells) { 0 };
    kt_pool_init(&c->pool, sizeof(KtAccount),
                 by == KT_BY_STACK ? STACKS_SHIFT : CELLS_SHIFT);
    kt_pool_charge(&c->pool, budget, KT_MEM_ACCOUNTS);
}

void kt_cells_clear(KtCells *c)
{
    KtPool pool = c->pool;

    kt_pool_deinit(&c->pool);
    *c = (KtCells) { 0 };
    kt_pool_init(&c->pool, pool.size, pool.shift);
    c->pool.budget = pool.budget;
    c->pool.part = pool.part;
}

/* Reserve memory up to the account of @id. New memory is 0, so the accounts are
 * empty. */
static G_GNUC_NO_INLINE KtAccount *make_cell(KtCells *c, uint32_t id)
{
    uint64_t more = (uint64_t)id + 1 - c->pool.used;

    if (c->refused || more > UINT32_MAX ||
        !kt_pool_reserve(&c->pool, more)) {
        c->refused = true;
        return &c->rest;
    }
    return kt_pool_at(&c->pool, id);
}

static inline KtAccount *cell(KtCells *c, uint32_t id)
{
    const KtPool *p = &c->pool;

    if (G_UNLIKELY(id >> p->shift >= p->n_chunks)) {
        return make_cell(c, id);
    }
    /* kt_pool_at(), with a record size that the compiler knows. */
    return (KtAccount *)p->chunk[id >> p->shift] +
           (id & ((1u << p->shift) - 1));
}

static inline void set_peak(KtAccount *c)
{
    uint64_t live = c->reserved - c->freed_reserved;

    c->peak = MAX(c->peak, live);
}

KtAccount *kt_cells_at(KtCells *c, uint32_t id)
{
    return cell(c, id);
}

const KtAccount *kt_cells_get(const KtCells *c, uint32_t id)
{
    static const KtAccount none;

    return id < kt_cells_end(c) ? kt_pool_at(&c->pool, id) : &none;
}

void kt_account_add(KtAccount *to, const KtAccount *a)
{
    to->allocs += a->allocs;
    to->asked += a->asked;
    to->reserved += a->reserved;
    to->frees += a->frees;
    to->freed_asked += a->freed_asked;
    to->freed_reserved += a->freed_reserved;
    to->cross += a->cross;
    to->peak = MAX(to->peak, a->peak);
    set_peak(to);
}

void kt_account_subtract(KtAccount *to, const KtAccount *a)
{
    to->allocs -= a->allocs;
    to->asked -= a->asked;
    to->reserved -= a->reserved;
    to->frees -= a->frees;
    to->freed_asked -= a->freed_asked;
    to->freed_reserved -= a->freed_reserved;
    to->cross -= a->cross;
}

KtAccount kt_cells_sum(const KtCells *c)
{
    KtAccount sum = c->rest;

    kt_account_add(&sum, &c->backing);
    for (uint32_t id = 0; id < kt_cells_end(c); id++) {
        kt_account_add(&sum, kt_cells_get(c, id));
    }
    return sum;
}

void kt_size_class_range(uint32_t size_class, uint64_t *lo, uint64_t *hi)
{
    unsigned bits = (size_class - 1) / 4 + 1;

    if (size_class <= 8) {
        *lo = *hi = size_class;
        return;
    }
    *lo = ((uint64_t)4 + (size_class - 1) % 4) << (bits - 2);
    *hi = *lo + ((uint64_t)1 << (bits - 2));
    *lo += 1;
}

/* ---- life ---------------------------------------------------------------- */

void kt_tables_init(KtTables *t, KtBudget *budget)
{
    *t = (KtTables) { 0 };
    for (unsigned i = KT_BY_KEPT; i < KT_BY__COUNT; i++) {
        cells_init(&t->by[i], budget, i);
    }
}

void kt_tables_clear(KtTables *t)
{
    for (unsigned i = KT_BY_KEPT; i < KT_BY__COUNT; i++) {
        kt_cells_clear(&t->by[i]);
    }
    g_clear_pointer(&t->held, g_array_unref);
}

KtTotals kt_tables_totals(const KtTables *t)
{
    const KtAccount *b = &t->by[KT_BY_SIZE].backing;
    const KtAccount *unsized = kt_cells_get(&t->by[KT_BY_SIZE], 0);
    KtTotals totals = t->totals;
    KtAccount *sum = &totals.sum;

    *sum = kt_cells_sum(&t->by[KT_BY_SIZE]);
    kt_account_subtract(sum, b);
    sum->peak = t->all.peak;
    sum->caller = 0;
    totals.backing_blocks = b->allocs - b->frees;
    totals.backing = b->reserved - b->freed_reserved;
    totals.unsized = unsized->allocs - unsized->frees;
    return totals;
}

static void add_to_caller(const KtTables *t, KtCells *out, const KtAccount *a)
{
    KtAccount mine = *a;

    if (!kt_account_is_empty(a) && a->caller != KT_CALLER_BACKING) {
        mine.peak = g_array_index(t->held, KtHeld, a->caller).peak;
        kt_account_add(cell(out, a->caller), &mine);
    }
}

void kt_tables_callers(const KtTables *t, KtCells *out)
{
    const KtCells *c = &t->by[KT_BY_STACK];

    cells_init(out, NULL, KT_BY_CALLER);
    for (uint32_t id = 0; id < kt_cells_end(c); id++) {
        add_to_caller(t, out, kt_cells_get(c, id));
    }
    add_to_caller(t, out, &c->rest);
}

/* Callers of one address are a chain, in the order of their numbers. */
static uint32_t add_caller(KtAccounts *a, uint64_t pc, uint32_t era)
{
    const KtCaller c = { pc, era, 0 };
    gpointer key = GSIZE_TO_POINTER(pc);
    uint32_t at = GPOINTER_TO_UINT(g_hash_table_lookup(a->callers, key));
    uint32_t id = a->list->len, last = 0;

    for (; at; at = g_array_index(a->list, KtCaller, at).next) {
        last = at;
    }
    if (last) {
        g_array_index(a->list, KtCaller, last).next = id;
    } else {
        g_hash_table_insert(a->callers, key, GUINT_TO_POINTER(id));
    }
    g_array_append_val(a->list, c);
    g_array_set_size(a->now.held, id + 1);
    return id;
}

void kt_accounts_init(KtAccounts *a, KtBudget *budget, const KtDepot *stacks)
{
    *a = (KtAccounts) { .budget = budget, .stacks = stacks };
    kt_tables_init(&a->now, budget);
    a->now.held = g_array_new(FALSE, TRUE, sizeof(KtHeld));
    g_array_set_size(a->now.held, 1);
    a->callers = g_hash_table_new(gs_number_hash_direct, NULL);
    a->list = g_array_new(FALSE, TRUE, sizeof(KtCaller));
    g_array_set_size(a->list, 1);
    kt_budget_charge(budget, KT_MEM_ACCOUNTS, 2 * CALLER_BYTES);
    add_caller(a, 0, 0);
    add_caller(a, 0, 0);
    a->marks = g_ptr_array_new_with_free_func(kt_mark_free);
    a->stray = g_hash_table_new_full(NULL, NULL, NULL, g_free);
}

void kt_accounts_init_recount(KtAccounts *a, const KtAccounts *original)
{
    kt_accounts_init(a, NULL, original->stacks);
    a->original = original;
}

/* Return the host memory besides that of the tables. */
static uint64_t listed_bytes(const KtAccounts *a)
{
    return (uint64_t)(a->list->len - 1) * CALLER_BYTES +
           (uint64_t)g_hash_table_size(a->stray) * KT_STRAY_BYTES;
}

uint64_t kt_accounts_bytes(const KtAccounts *a)
{
    uint64_t bytes = listed_bytes(a);

    for (unsigned i = KT_BY_KEPT; i < KT_BY__COUNT; i++) {
        bytes += kt_pool_bytes(&a->now.by[i].pool);
    }
    return bytes;
}

void kt_accounts_deinit(KtAccounts *a)
{
    kt_tables_clear(&a->now);
    kt_budget_release(a->budget, KT_MEM_ACCOUNTS, listed_bytes(a));
    g_clear_pointer(&a->callers, g_hash_table_unref);
    g_clear_pointer(&a->list, g_array_unref);
    g_clear_pointer(&a->marks, g_ptr_array_unref);
    g_clear_pointer(&a->stray, g_hash_table_unref);
}

void kt_accounts_end(KtAccounts *a)
{
    KtBudget *budget = a->budget;

    kt_accounts_deinit(a);
    kt_accounts_init(a, budget, NULL);
    a->off = true;
}

/* ---- callers ------------------------------------------------------------- */

/* Find the first frame of @stack; 0 if there is none. */
static KtCaller first_frame(const KtAccounts *a, uint32_t stack)
{
    KtCaller c = { 0 };
    const uint64_t *pc;
    unsigned n;
    uint64_t tag;

    if (!a->stacks) {
        return c;
    }
    pc = kt_depot_get(a->stacks, stack, &n, &tag);
    if (pc && n) {
        c.pc = pc[0];
        c.era = kt_stack_tag_era(tag).first;
    }
    return c;
}

uint32_t kt_accounts_find_caller(const KtAccounts *a, uint64_t pc,
                                 uint32_t era)
{
    uint32_t id = GPOINTER_TO_UINT(
        g_hash_table_lookup(a->callers, GSIZE_TO_POINTER(pc)));

    while (id && g_array_index(a->list, KtCaller, id).era != era) {
        id = g_array_index(a->list, KtCaller, id).next;
    }
    return id;
}

/* If there is no room for another caller, it is NOBODY. */
uint32_t kt_accounts_caller(KtAccounts *a, uint64_t pc, uint32_t era)
{
    uint32_t id = pc ? kt_accounts_find_caller(a, pc, era) : NOBODY;

    if (id) {
        return id;
    }
    if (a->list->len > MAX_CALLERS ||
        !kt_budget_take(a->budget, KT_MEM_ACCOUNTS, CALLER_BYTES)) {
        a->short_of_callers = true;
        return NOBODY;
    }
    return add_caller(a, pc, era);
}

/* A stack without an account has the caller NOBODY. */
uint32_t kt_accounts_caller_of(KtAccounts *a, uint32_t stack)
{
    KtCells *c = &a->now.by[KT_BY_STACK];
    KtCaller first = first_frame(a, stack);

    return cell(c, stack) == &c->rest ?
           NOBODY : kt_accounts_caller(a, first.pc, first.era);
}

static bool is_backing_code(const GArray *code, uint64_t pc)
{
    guint from = 0, to = code->len;

    while (from < to) {
        guint at = from + (to - from) / 2;
        const KtCodeRange *r = &g_array_index(code, KtCodeRange, at);

        if (pc < r->lo) {
            to = at;
        } else if (pc > r->hi) {
            from = at + 1;
        } else {
            return true;
        }
    }
    return false;
}

/* Decide whether a stack allocates backing blocks. A frame is the address after
 * the call. */
static bool is_backing(KtAccounts *a, const KtWho *w)
{
    uint64_t pc = first_frame(a, w->stack).pc;

    if (a->original) {
        return kt_accounts_is_backing(a->original, w->stack);
    }
    if (w->layer != KT_LAYER_PAGES) {
        return false;
    }
    if (!a->backing || !pc) {
        a->now.totals.backing_unknown++;
        return false;
    }
    return is_backing_code(a->backing, pc - 1);
}

/* The first allocation of a stack: find its caller. */
static uint32_t new_caller(KtAccounts *a, const KtWho *w)
{
    KtCells *stacks = &a->now.by[KT_BY_STACK];

    return cell(stacks, w->stack) != &stacks->rest && is_backing(a, w) ?
           KT_CALLER_BACKING : kt_accounts_caller_of(a, w->stack);
}

/* ---- events -------------------------------------------------------------- */

static inline uint32_t cache_cell(uint32_t cache, KtLayer layer)
{
    return cache ? cache + KT_LAYER__COUNT : layer;
}

/* The accounts in which a block counts. */
typedef struct Cells {
    KtAccount *by[KT_BY__COUNT];
    KtHeld *caller;
    bool backing;
} Cells;

/* Find the account of a requested size. */
static inline KtAccount *size_cell(KtAccounts *a, const Cells *c,
                                   uint64_t asked)
{
    KtCells *sizes = &a->now.by[KT_BY_SIZE];

    return G_UNLIKELY(c->backing) ? &sizes->backing :
           cell(sizes, kt_size_class(asked));
}

/* Find the accounts, without that of the size. */
static inline void find_cells(KtAccounts *a, const KtWho *w, Cells *c)
{
    KtAccount *stack = cell(&a->now.by[KT_BY_STACK], w->stack);

    if (G_UNLIKELY(!stack->caller)) {
        stack->caller = new_caller(a, w);
    }
    c->by[KT_BY_STACK] = stack;
    c->caller = kt_accounts_held(a, stack->caller);
    c->backing = stack->caller == KT_CALLER_BACKING;
    if (G_UNLIKELY(c->backing)) {
        c->by[KT_BY_CACHE] = &a->now.by[KT_BY_CACHE].backing;
        c->by[KT_BY_TASK] = &a->now.by[KT_BY_TASK].backing;
        return;
    }
    c->by[KT_BY_CACHE] = cell(&a->now.by[KT_BY_CACHE],
                              cache_cell(w->cache, w->layer));
    c->by[KT_BY_TASK] = cell(&a->now.by[KT_BY_TASK], w->task);
}

static inline void add_alloc(KtAccount *c, uint64_t n, KtAmount bytes)
{
    c->allocs += n;
    c->asked += bytes.asked;
    c->reserved += bytes.reserved;
    set_peak(c);
}

static inline void add_free(KtAccount *c, uint64_t n, KtAmount bytes,
                            uint64_t cross)
{
    c->frees += n;
    c->freed_asked += bytes.asked;
    c->freed_reserved += bytes.reserved;
    c->cross += cross;
}

static inline void add_held(KtHeld *h, uint64_t more)
{
    h->live += more;
    h->peak = MAX(h->peak, h->live);
}

/* Add live bytes to the caller, and to the sum of all. */
static inline void add_live(KtAccounts *a, const Cells *c, uint64_t more)
{
    add_held(c->caller, more);
    if (G_LIKELY(!c->backing)) {
        add_held(&a->now.all, more);
    }
}

void kt_accounts_alloc(KtAccounts *a, const KtWho *w, KtAmount n)
{
    Cells c;

    find_cells(a, w, &c);
    c.by[KT_BY_SIZE] = size_cell(a, &c, n.asked);
    for (unsigned i = KT_BY_KEPT; i < KT_BY__COUNT; i++) {
        add_alloc(c.by[i], 1, n);
    }
    add_live(a, &c, n.reserved);
}

void kt_accounts_free(KtAccounts *a, const KtWho *w, KtAmount n, bool cross)
{
    Cells c;

    find_cells(a, w, &c);
    c.by[KT_BY_SIZE] = size_cell(a, &c, n.asked);
    for (unsigned i = KT_BY_KEPT; i < KT_BY__COUNT; i++) {
        add_free(c.by[i], 1, n, cross);
    }
    c.caller->live -= n.reserved;
    a->now.all.live -= c.backing ? 0 : n.reserved;
}

static void count_lost(KtAccounts *a, uint64_t blocks, KtAmount n)
{
    a->now.totals.lost += blocks;
    a->now.totals.lost_asked += n.asked;
    a->now.totals.lost_reserved += n.reserved;
}

void kt_accounts_free_unseen(KtAccounts *a, const KtWho *w, KtAmount n)
{
    kt_accounts_free(a, w, n, false);
    count_lost(a, 1, n);
}

/* First the free: the block must not count in the peaks. */
void kt_accounts_alloc_unkept(KtAccounts *a, const KtWho *w, KtAmount n)
{
    kt_accounts_free_unseen(a, w, n);
    kt_accounts_alloc(a, w, n);
}

/* ---- blocks that change -------------------------------------------------- */

static KtAmount more(KtAmount than, KtAmount n)
{
    return (KtAmount) {
        n.asked > than.asked ? n.asked - than.asked : 0,
        n.reserved > than.reserved ? n.reserved - than.reserved : 0,
    };
}

/* Remove an allocation, which moves to another account. */
static void undo_alloc(KtAccount *c, KtAmount n)
{
    c->allocs--;
    c->asked -= n.asked;
    c->reserved -= n.reserved;
}

/* Count @n more blocks, and bytes that grew or shrank, in all accounts but that
 * of the size, which the caller changes. */
static void change_all(KtAccounts *a, const Cells *c, uint64_t n,
                       KtAmount grown, KtAmount shrunk)
{
    for (unsigned i = KT_BY_KEPT; i < KT_BY_SIZE; i++) {
        add_free(c->by[i], 0, shrunk, 0);
        add_alloc(c->by[i], n, grown);
    }
    add_live(a, c, grown.reserved - shrunk.reserved);
}

/* Move an allocation to the class of its new size. */
static void move_size(KtAccounts *a, const Cells *c, KtAmount before,
                      KtAmount after)
{
    KtAccount *to = size_cell(a, c, after.asked);
    KtAmount shrunk = more(after, before);

    undo_alloc(size_cell(a, c, before.asked), before);
    add_free(to, 0, shrunk, 0);
    add_alloc(to, 1, (KtAmount) { after.asked + shrunk.asked,
                                  after.reserved + shrunk.reserved });
}

static void change(KtAccounts *a, const KtWho *w, KtAmount before,
                   KtAmount after)
{
    Cells c;

    find_cells(a, w, &c);
    change_all(a, &c, 0, more(before, after), more(after, before));
    move_size(a, &c, before, after);
}

void kt_accounts_resize(KtAccounts *a, const KtWho *w, KtAmount before,
                        KtAmount after)
{
    change(a, w, before, after);
    a->now.totals.resizes++;
    a->now.totals.grown += more(before, after).asked;
    a->now.totals.shrunk += more(after, before).asked;
}

void kt_accounts_truncate(KtAccounts *a, const KtWho *w, KtAmount before,
                          KtAmount after)
{
    change(a, w, before, after);
    count_lost(a, 0, more(after, before));
}

void kt_accounts_split(KtAccounts *a, const KtWho *w, KtAmount before,
                       KtAmount first, KtAmount second)
{
    KtAmount both = {
        first.asked + second.asked, first.reserved + second.reserved
    };
    KtAmount shrunk = more(both, before);
    KtAccount *last;
    Cells c;

    find_cells(a, w, &c);
    change_all(a, &c, 1, more(before, both), shrunk);
    undo_alloc(size_cell(a, &c, before.asked), before);
    add_alloc(size_cell(a, &c, first.asked), 1, first);
    last = size_cell(a, &c, second.asked);
    add_alloc(last, 1, second);
    add_free(last, 0, shrunk, 0);
    add_alloc(last, 0, shrunk);
    a->now.totals.splits++;
}

void kt_accounts_found_cache(KtAccounts *a, const KtWho *w, KtAmount n,
                             uint32_t cache)
{
    KtCells *caches = &a->now.by[KT_BY_CACHE];
    Cells c;

    find_cells(a, w, &c);
    if (!c.backing) {
        undo_alloc(c.by[KT_BY_CACHE], n);
        add_alloc(cell(caches, cache_cell(cache, w->layer)), 1, n);
    }
}
