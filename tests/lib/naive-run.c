/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compare a tracer with the naive model: see naive-run.h. Single-threaded.
 *
 * Eight bytes make an event, naive-bytes.c; a first byte from 0xf8 on makes a
 * special one.
 */
#include "tests/lib/naive-run.h"

#include "kalloc-tracer/tracer/tracer.h"
#include "tests/lib/naive-bytes.h"

#define N_TASKS         7
#define N_CACHES        3

/* ---- comparing ---------------------------------------------------------- */

static void same_block(const KtBlock *a, const KtBlock *b)
{
    g_assert_cmphex(a->va, ==, b->va);
    g_assert_cmphex(a->requested, ==, b->requested);
    g_assert_cmphex(a->actual, ==, b->actual);
    g_assert_cmpuint(a->alloc_us, ==, b->alloc_us);
    g_assert_cmpuint(a->free_us, ==, b->free_us);
    g_assert_cmpuint(a->rcu_us, ==, b->rcu_us);
    g_assert_cmpuint(a->alloc_stack.v, ==, b->alloc_stack.v);
    g_assert_cmpuint(a->free_stack.v, ==, b->free_stack.v);
    g_assert_cmpuint(a->rcu_stack.v, ==, b->rcu_stack.v);
    g_assert_cmpuint(a->alloc_task.v, ==, b->alloc_task.v);
    g_assert_cmpuint(a->free_task.v, ==, b->free_task.v);
    g_assert_cmphex(a->gfp, ==, b->gfp);
    g_assert_cmpuint(a->cache.v, ==, b->cache.v);
    g_assert_cmpuint(a->hook.v, ==, b->hook.v);
    g_assert_cmpuint(a->free_hook.v, ==, b->free_hook.v);
    g_assert_cmpuint(a->alloc_cpu, ==, b->alloc_cpu);
    g_assert_cmpuint(a->free_cpu, ==, b->free_cpu);
    g_assert_cmpuint(a->state, ==, b->state);
    g_assert_cmpuint(a->layer, ==, b->layer);
    g_assert_cmpint(a->rcu_queued, ==, b->rcu_queued);
    g_assert_cmpint(a->removed, ==, b->removed);
    g_assert_cmpint(a->past, ==, b->past);
}

static bool collect(const KtBlock *b, void *opaque)
{
    g_array_append_val((GArray *)opaque, *b);
    return true;
}

static int by_place(const void *a, const void *b)
{
    const KtBlock *x = a;
    const KtBlock *y = b;

    if (x->va != y->va) {
        return x->va < y->va ? -1 : 1;
    }
    return (y->layer == KT_LAYER_PAGES) - (x->layer == KT_LAYER_PAGES);
}

static void same_lists(GArray *want, GArray *got)
{
    g_assert_cmpuint(want->len, ==, got->len);
    for (unsigned i = 0; i < want->len; i++) {
        same_block(&g_array_index(want, KtBlock, i),
                   &g_array_index(got, KtBlock, i));
    }
    g_array_unref(want);
    g_array_unref(got);
}

static GArray *new_list(void)
{
    return g_array_new(FALSE, FALSE, sizeof(KtBlock));
}

static void compare_range(const Naive *m, uint64_t lo, uint64_t hi)
{
    GArray *want = new_list();
    GArray *got = new_list();

    for (unsigned i = 0; i < m->blocks->len; i++) {
        const NaiveBlock *x = naive_nth(m, i);

        if (x->b.va <= hi && naive_last(x) >= lo) {
            collect(&x->b, want);
        }
    }
    g_array_sort(want, by_place);
    kt_query_range(m->t, lo, hi, collect, got);
    same_lists(want, got);
}

/* The frames of stack i are 0x100 * i and 0x1000. */
static bool stack_meets(KtStackId id, uint64_t lo, uint64_t hi)
{
    return id.v && ((0x100 * id.v >= lo && 0x100 * id.v <= hi) ||
                    (0x1000 >= lo && 0x1000 <= hi));
}

static void compare_stacks(const Naive *m, uint64_t lo, uint64_t hi)
{
    GArray *want_alloc = new_list();
    GArray *want_free = new_list();
    GArray *got_alloc = new_list();
    GArray *got_free = new_list();

    for (unsigned i = 0; i < m->blocks->len; i++) {
        const KtBlock *b = &naive_nth(m, i)->b;

        if (stack_meets(b->alloc_stack, lo, hi)) {
            collect(b, want_alloc);
        }
        if (b->state == KT_BLOCK_FREED && (stack_meets(b->free_stack, lo, hi) ||
                                           stack_meets(b->rcu_stack, lo, hi))) {
            collect(b, want_free);
        }
    }
    kt_query_alloc_pc(m->t, lo, hi, collect, got_alloc);
    kt_query_free_pc(m->t, lo, hi, collect, got_free);
    g_array_sort(want_alloc, by_place);
    g_array_sort(want_free, by_place);
    /* two blocks at one address may be in any order */
    g_array_sort(got_alloc, by_place);
    g_array_sort(got_free, by_place);
    same_lists(want_alloc, got_alloc);
    same_lists(want_free, got_free);
}

/* Return the newest past life of @va before number @end, 0 if there is none.
 * Past lives have numbers from 1 on. */
static unsigned past_before(const Naive *m, uint64_t va, bool pages,
                            unsigned end)
{
    while (end > 1) {
        const KtBlock *b = &g_array_index(m->history, KtBlock, --end - 1);

        if ((b->layer == KT_LAYER_PAGES) == pages && va >= b->va &&
            va <= naive_end(b->va, kt_block_len(b))) {
            return end;
        }
    }
    return 0;
}

static uint64_t began(const Naive *m, unsigned number)
{
    return g_array_index(m->history, KtBlock, number - 1).alloc_us;
}

/* Past lives of objects and of pages are each in their order; of the two that
 * are next, the one that began later comes first. */
static void compare_history(const Naive *m, uint64_t va)
{
    unsigned end = m->history->len + 1;
    unsigned object = past_before(m, va, false, end);
    unsigned pages = past_before(m, va, true, end);
    GArray *want = new_list();
    GArray *got = new_list();

    while (object || pages) {
        bool is_pages = pages &&
                        (!object || began(m, pages) > began(m, object));
        unsigned *next = is_pages ? &pages : &object;

        collect(&g_array_index(m->history, KtBlock, *next - 1), want);
        *next = past_before(m, va, is_pages, *next);
    }
    kt_query_history(m->t, va, collect, got);
    same_lists(want, got);
}

static void compare_one(bool got, const KtBlock *b, const NaiveBlock *want)
{
    g_assert_cmpint(got, ==, want != NULL);
    if (want) {
        same_block(&want->b, b);
    }
}

/* Return true if @x is nearer than @best. Of two blocks at one address the page
 * allocator's is farther. */
static bool nearer(const NaiveBlock *x, const NaiveBlock *best, int direction)
{
    if (!best || x->b.va == best->b.va) {
        return !best || !x->pages;
    }
    return direction > 0 ? x->b.va < best->b.va : x->b.va > best->b.va;
}

/* Of an object and pages, the one that was handed out last has the address,
 * unless the object is live. */
static const NaiveBlock *owner(const Naive *m, uint64_t va)
{
    const NaiveBlock *x = naive_find(m, false, va);
    const NaiveBlock *pages = naive_find(m, true, va);

    if (x && pages && x->b.state == KT_BLOCK_FREED &&
        pages->b.alloc_us > x->b.alloc_us) {
        return pages;
    }
    return x ? x : pages;
}

static void compare_at(const Naive *m, uint64_t va)
{
    const NaiveBlock *hit = owner(m, va);
    const NaiveBlock *next = NULL;
    const NaiveBlock *prev = NULL;
    KtBlock b;

    for (unsigned i = 0; i < m->blocks->len; i++) {
        const NaiveBlock *x = naive_nth(m, i);

        if (x->b.va > va && nearer(x, next, 1)) {
            next = x;
        }
        if (naive_last(x) < va && nearer(x, prev, -1)) {
            prev = x;
        }
    }
    compare_one(kt_query_find(m->t, va, &b), &b, hit);
    compare_one(kt_query_next(m->t, va, &b), &b, next);
    compare_one(kt_query_prev(m->t, va, &b), &b, prev);
    compare_history(m, va);
}

typedef struct ErrorCheck {
    const Naive *m;
    unsigned n;
} ErrorCheck;

static void same_access(const KtErrorAccess *a, const KtErrorAccess *b)
{
    g_assert_cmphex(a->pc, ==, b->pc);
    g_assert_cmphex(a->offset, ==, b->offset);
    g_assert_cmpuint(a->count, ==, b->count);
    g_assert_cmpuint(a->last_us, ==, b->last_us);
    g_assert_cmphex(a->flags, ==, b->flags);
    g_assert_cmpint(a->has_neighbour, ==, b->has_neighbour);
    g_assert_cmpint(a->behind, ==, b->behind);
    g_assert_cmpuint(a->distance, ==, b->distance);
    g_assert_cmphex(a->neighbour.va, ==, b->neighbour.va);
    g_assert_cmphex(a->neighbour.requested, ==, b->neighbour.requested);
    g_assert_cmpuint(a->neighbour.us, ==, b->neighbour.us);
    g_assert_cmpuint(a->neighbour.stack.v, ==, b->neighbour.stack.v);
    g_assert_cmpuint(a->neighbour.task.v, ==, b->neighbour.task.v);
    g_assert_cmpuint(a->neighbour.cache.v, ==, b->neighbour.cache.v);
}

static bool same_error(const KtError *got, void *opaque)
{
    ErrorCheck *c = opaque;
    const KtError *e;

    g_assert_cmpuint(c->n, <, c->m->errors->len);
    e = &g_array_index(c->m->errors, KtError, c->n++);
    g_assert_cmpuint(e->id, ==, got->id);
    g_assert_cmpstr(kt_error_name(e->kind), ==, kt_error_name(got->kind));
    g_assert_cmphex(e->va, ==, got->va);
    g_assert_cmpuint(e->stack.v, ==, got->stack.v);
    g_assert_cmpuint(e->task.v, ==, got->task.v);
    g_assert_cmpuint(e->cache.v, ==, got->cache.v);
    g_assert_cmpuint(e->us, ==, got->us);
    g_assert_cmpuint(e->size, ==, got->size);
    same_access(&e->access, &got->access);
    g_assert_cmpint(e->has_block, ==, got->has_block);
    if (e->has_block) {
        same_block(&e->block, &got->block);
    }
    return true;
}

static void compare_counts(const Naive *m)
{
    ErrorCheck check = { m };
    KtStats s;

    kt_query_errors(m->t, 0, UINT64_MAX, same_error, &check);
    g_assert_cmpuint(check.n, ==, m->errors->len);
    kt_query_stats(m->t, &s);
    g_assert_cmpuint(s.events, ==, m->events);
    g_assert_cmpuint(s.live_blocks, ==, naive_live(m));
    g_assert_cmpuint(s.freed_blocks, ==, m->blocks->len - naive_live(m));
    g_assert_cmpuint(s.history_rows, ==, m->history->len);
    g_assert_cmpuint(s.errors, ==, m->errors->len);
    g_assert_cmpuint(s.previous_live_blocks, ==, m->previous);
    g_assert_cmpuint(kt_tracer_counter(m->t, KT_CNT_FREE_UNKNOWN), ==,
                     m->unknown_frees);
    g_assert_cmpuint(kt_tracer_counter(m->t, KT_CNT_FREE_PAGES_UNKNOWN), ==,
                     m->unknown_pages);
    g_assert_cmpuint(kt_tracer_counter(m->t, KT_CNT_EVICT_HISTORY), ==,
                     m->evicted);
    g_assert_cmpuint(kt_tracer_counter(m->t, KT_CNT_ACCESS_UNJUDGED), ==,
                     m->unjudged);
    g_assert_cmpuint(kt_tracer_counter(m->t, KT_CNT_ACCESS_DISAGREED), ==,
                     m->disagreed);
}

typedef struct AccountCheck {
    Naive *m;
    unsigned n;
} AccountCheck;

static void same_account(const KtAccount *want, const KtAccount *got,
                         bool peaks)
{
    g_assert_cmpuint(want->allocs, ==, got->allocs);
    g_assert_cmpuint(want->asked, ==, got->asked);
    g_assert_cmpuint(want->reserved, ==, got->reserved);
    g_assert_cmpuint(want->frees, ==, got->frees);
    g_assert_cmpuint(want->freed_asked, ==, got->freed_asked);
    g_assert_cmpuint(want->freed_reserved, ==, got->freed_reserved);
    g_assert_cmpuint(want->cross, ==, got->cross);
    if (peaks) {
        g_assert_cmpuint(want->peak, ==, got->peak);
    }
}

static uint64_t key_of(const KtAccountKey *key)
{
    switch (key->by) {
    case KT_BY_CALLER:
        return key->pc;
    case KT_BY_STACK:
        return key->stack.v;
    case KT_BY_CACHE:
        return key->backing ? NAIVE_BACKING_KEY :
               key->cache.v ? 100u + key->cache.v : key->layer;
    case KT_BY_TASK:
        return key->task.v;
    default:
        return key->hi;
    }
}

static bool check_account(const KtAccountKey *key, const KtAccount *a,
                          void *opaque)
{
    AccountCheck *c = opaque;
    const NaiveAccount *x = naive_account(c->m, key->by, key_of(key));

    same_account(&x->a, a, key->by != KT_BY_SIZE || !c->m->split);
    c->n++;
    return true;
}

static bool is_empty(const KtAccount *a)
{
    return !a->allocs && !a->asked && !a->frees && !a->freed_asked;
}

static void compare_accounts(const Naive *model)
{
    Naive *m = (Naive *)model;
    unsigned n = 0;
    AccountCheck c = { m };
    KtTotals t;

    for (unsigned i = 0; i < m->accounts->len; i++) {
        n += !is_empty(&g_array_index(m->accounts, NaiveAccount, i).a);
    }
    for (unsigned by = 0; by < KT_BY__COUNT; by++) {
        g_assert_true(kt_query_accounts(m->t, NULL, by, check_account, &c));
    }
    g_assert_cmpuint(c.n, ==, n);
    g_assert_true(kt_query_totals(m->t, NULL, &t));
    same_account(&m->totals.sum, &t.sum, true);
    g_assert_cmpuint(t.resizes, ==, m->totals.resizes);
    g_assert_cmpuint(t.grown, ==, m->totals.grown);
    g_assert_cmpuint(t.shrunk, ==, m->totals.shrunk);
    g_assert_cmpuint(t.lost, ==, m->totals.lost);
    g_assert_cmpuint(t.lost_asked, ==, m->totals.lost_asked);
    g_assert_cmpuint(t.lost_reserved, ==, m->totals.lost_reserved);
    g_assert_cmpuint(t.splits, ==, m->totals.splits);
    g_assert_cmpuint(t.stray, ==, m->totals.stray);
    g_assert_cmpuint(t.backing_unknown, ==, m->totals.backing_unknown);
}

/* Accesses are random here: most are right. */
static void not_violated(KtCheckRule rule, const char *where, void *opaque)
{
    if (rule == KT_CHECK_ACCESS) {
        return;
    }
    g_error("%s: %s", kt_check_name(rule), where);
}

static void check(const Naive *m)
{
    const KtCheckFns fns = { .violation = not_violated };
    KtCheckReport report;

    kt_query_check(m->t, &fns, &report);
    g_assert_cmpuint(report.violations, ==, m->disagreed != 0);
    g_assert_cmpuint(report.blocks, >=, m->blocks->len);
}

static void compare(const Naive *m, uint64_t va)
{
    kt_query_begin(m->t);
    check(m);
    compare_at(m, va);
    compare_at(m, va + 64);
    compare_range(m, 0, UINT64_MAX);
    compare_range(m, va, va + MIN(300, UINT64_MAX - va));
    compare_stacks(m, 0x100, 0x200);
    compare_stacks(m, 0x1000, 0x1000);
    compare_counts(m);
    compare_accounts(m);
    kt_query_end(m->t);
}

/* ---- events ------------------------------------------------------------- */

static void push_event(Naive *m, KtEvent ev)
{
    kt_tracer_push(m->t, 0, &ev);
    naive_event(m, &ev);
}

/* Tell the tracer which code gets pages for other layers: that of the stack
 * NAIVE_BACKING. Its address is none of a kernel. */
static void find_backing(Naive *m)
{
    const KtCodeRange code = { 0x100 * NAIVE_BACKING - 16,
                               0x100 * NAIVE_BACKING + 16 };

    g_clear_pointer(&m->t->backing, g_array_unref);
    m->t->backing = g_array_new(FALSE, FALSE, sizeof(code));
    g_array_append_val(m->t->backing, code);
    m->t->model->accounts.backing = m->t->backing;
    m->code_known = true;
}

static bool special(Naive *m, const uint8_t *p)
{
    switch (p[0]) {
    case 0xff:
        kt_tracer_clear(m->t);
        naive_forget(m);
        naive_gap(m);
        m->events++;
        return true;
    case 0xfe:
        kt_tracer_reset(m->t);
        m->previous = naive_live(m);
        naive_forget(m);
        m->gap = m->complete = m->unseen = m->blind = false;
        m->code_known = false;
        if (p[1] & 1) {
            find_backing(m);
        }
        return true;
    case 0xfd:
        m->complete = p[1] & 1;
        kt_tracer_set_complete(m->t, m->complete);
        return true;
    case 0xfc:
        kt_tracer_set_enabled(m->t, false);
        kt_tracer_set_enabled(m->t, true);
        naive_gap(m);
        m->events++;
        return true;
    case 0xf8:
        push_event(m, naive_make_removal(m, p));
        return true;
    case 0xf9:
        push_event(m, naive_make_access(m, p));
        return true;
    case 0xfa:
        push_event(m, (KtEvent) { .kind = KT_EV_DESTROY, .va = 0x4000,
                                  .cache = { p[1] & 3 }, .us = m->us });
        return true;
    case 0xfb:
        push_event(m, (KtEvent) { .kind = KT_EV_GAP, .flags = p[1] });
        return true;
    default:
        return false;
    }
}

static void one_op(Naive *m, const uint8_t *p)
{

    if (special(m, p)) {
        return;
    }
    push_event(m, naive_make_event(m, p));
}

/* Add the stacks, tasks and caches that events use. */
static void add_names(KtTracer *t)
{
    static const char comm[16] = "task";

    for (unsigned i = 1; i <= N_TASKS; i++) {
        g_assert_cmpuint(kt_tracer_intern_task(t, i, comm).v, ==, i);
    }
    for (unsigned i = 1; i <= N_CACHES; i++) {
        g_assert_cmpuint(kt_tracer_add_cache(t, i, "cache", 8, 8).v, ==, i);
    }
}

static void add_stacks(KtTracer *t)
{
    for (unsigned i = 1; i <= N_STACKS; i++) {
        uint64_t pc[2] = { 0x100 * i, 0x1000 };

        g_assert_cmpuint(kt_tracer_intern_stack(t, pc, 2, GS_STOP_END).v, ==,
                         i);
    }
}

size_t naive_run(const uint8_t *data, size_t len, unsigned every)
{
    const KtConfig config = {
        .n_cpus = 1,
        .history_bytes = NAIVE_HISTORY_ROWS * 48,
        .max_stacks = N_STACKS,
    };
    size_t n = len / NAIVE_OP_BYTES;
    Naive m;

    naive_init(&m);
    m.t = kt_tracer_new(&config, NULL);
    add_stacks(m.t);
    add_names(m.t);
    find_backing(&m);
    for (size_t i = 0; i < n; i++, data += NAIVE_OP_BYTES) {
        one_op(&m, data);
        if (i % every == 0) {
            compare(&m, naive_make_va(data));
        }
    }
    compare(&m, 0);
    kt_tracer_free(m.t);
    naive_deinit(&m);
    return n;
}
