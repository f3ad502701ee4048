/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The naive model: see naive-model.h. Single-threaded.
 *
 * Eight bytes make an event. Most addresses lie within two pages, so that
 * blocks meet; some are at the ends of the address space.
 */
#include "naive-model.h"

#include "kt.h"

#define HISTORY_ROWS    40
#define N_STACKS        6
#define OP_BYTES        8
#define COMPARE_EVERY   64

typedef struct Block {
    KtBlock b;
    bool pages;             /* in the map of the page allocator */
    bool old;
    unsigned reported;
} Block;

typedef struct Naive {
    KtTracer *t;
    GArray *blocks;         /* Block, any order */
    GArray *history;        /* KtBlock, oldest first */
    GArray *errors;         /* KtError */
    bool complete;
    bool gap;
    uint64_t events;
    uint64_t unknown_frees;
    uint64_t evicted;
    uint64_t previous;
    uint64_t us;
} Naive;

/* ---- blocks ---------------------------------------------------------------- */

static uint64_t end_of(uint64_t va, uint64_t len)
{
    uint64_t last = va + (len ? len - 1 : 0);

    return last < va ? UINT64_MAX : last;
}

static uint64_t last_of(const Block *x)
{
    return end_of(x->b.va, kt_block_len(&x->b));
}

static Block *nth(const Naive *m, unsigned i)
{
    return &g_array_index(m->blocks, Block, i);
}

static Block *find(const Naive *m, bool pages, uint64_t va)
{
    for (unsigned i = 0; i < m->blocks->len; i++) {
        Block *x = nth(m, i);

        if (x->pages == pages && va >= x->b.va && va <= last_of(x)) {
            return x;
        }
    }
    return NULL;
}

static void add_error(Naive *m, KtErrorKind kind, const KtEvent *ev,
                      const Block *x)
{
    KtError e = {
        .id = m->errors->len + 1, .kind = kind, .va = ev->va,
        .has_block = x != NULL, .stack = ev->stack, .task = ev->task,
        .cpu = ev->cpu, .hook = ev->hook, .cache = ev->cache, .us = ev->us,
    };

    if (x) {
        e.block = x->b;
    }
    g_array_append_val(m->errors, e);
}

/* What history keeps of a block. */
static void add_history(Naive *m, const Block *x)
{
    KtBlock past = {
        .va = x->b.va, .requested = x->b.requested, .actual = x->b.actual,
        .alloc_us = x->b.alloc_us, .free_us = x->b.free_us,
        .alloc_stack = x->b.alloc_stack, .free_stack = x->b.free_stack,
        .alloc_task = x->b.alloc_task, .cache = x->b.cache,
        .state = x->b.state, .layer = x->b.layer,
        .rcu_queued = x->b.rcu_queued, .past = true,
    };

    if (x->b.rcu_queued) {
        past.rcu_stack = x->b.rcu_stack;
    } else {
        past.free_task = x->b.free_task;
    }
    g_array_append_val(m->history, past);
    if (m->history->len > HISTORY_ROWS) {
        g_array_remove_index(m->history, 0);
        m->evicted++;
    }
}

/* The first block of a map that meets [lo, hi]. */
static Block *first_in(const Naive *m, bool pages, uint64_t lo, uint64_t hi)
{
    Block *best = NULL;

    for (unsigned i = 0; i < m->blocks->len; i++) {
        Block *x = nth(m, i);

        if (x->pages == pages && x->b.va <= hi && last_of(x) >= lo &&
            (!best || x->b.va < best->b.va)) {
            best = x;
        }
    }
    return best;
}

static void retire_all(Naive *m, bool pages, uint64_t lo, uint64_t hi,
                       const KtEvent *ev)
{
    bool reported = false;
    Block *x;

    while ((x = first_in(m, pages, lo, hi))) {
        if (x->b.state == KT_STATE_ALLOCATED && !x->old && !reported) {
            add_error(m, KT_ERR_OVERLAP, ev, x);
            reported = true;
        }
        add_history(m, x);
        g_array_remove_index(m->blocks, x - nth(m, 0));
    }
}

/* ---- events ---------------------------------------------------------------- */

static void naive_alloc(Naive *m, const KtEvent *ev)
{
    Block x = {
        .b = {
            .va = ev->va, .requested = ev->size,
            .actual = ev->actual ? ev->actual : ev->size,
            .alloc_us = ev->us, .alloc_stack = ev->stack,
            .alloc_task = ev->task, .gfp = ev->gfp, .cache = ev->cache,
            .hook = ev->hook, .alloc_cpu = ev->cpu,
            .state = KT_STATE_ALLOCATED, .layer = ev->layer,
        },
        .pages = ev->layer == KT_LAYER_PAGES,
    };

    if (ev->layer == KT_LAYER_NONE || ev->layer >= KT_LAYER__COUNT) {
        return;
    }
    retire_all(m, x.pages, ev->va, last_of(&x), ev);
    g_array_append_val(m->blocks, x);
}

static bool family_fits(unsigned family, KtLayer layer)
{
    switch (family) {
    case KT_FAMILY_KFREE:
        return layer == KT_LAYER_KMALLOC || layer == KT_LAYER_LARGE ||
               layer == KT_LAYER_CACHE;
    case KT_FAMILY_CACHE:
        return layer == KT_LAYER_KMALLOC || layer == KT_LAYER_CACHE;
    case KT_FAMILY_VFREE:
        return layer == KT_LAYER_VMALLOC;
    case KT_FAMILY_PERCPU:
        return layer == KT_LAYER_PERCPU;
    case KT_FAMILY_PAGES:
        return layer == KT_LAYER_PAGES;
    default:
        return true;
    }
}

/* -1: nothing wrong. */
static int what_is_wrong(const Naive *m, const KtEvent *ev, const Block *x)
{
    if (!x) {
        return KT_ERR_INVALID_FREE;
    }
    if (x->b.va != ev->va) {
        return x->b.state == KT_STATE_FREED ? KT_ERR_INVALID_FREE :
               KT_ERR_INTERIOR_FREE;
    }
    if (x->b.state == KT_STATE_FREED) {
        return KT_ERR_DOUBLE_FREE;
    }
    if (!family_fits(ev->family, x->b.layer)) {
        return KT_ERR_WRONG_FAMILY;
    }
    if (ev->family == KT_FAMILY_CACHE && ev->cache.v && x->b.cache.v &&
        ev->cache.v != x->b.cache.v) {
        return KT_ERR_WRONG_CACHE;
    }
    return -1;
}

static void naive_free_event(Naive *m, const KtEvent *ev)
{
    Block *x = find(m, ev->family == KT_FAMILY_PAGES, ev->va);
    bool starts = x && x->b.va == ev->va;
    bool live = x && x->b.state == KT_STATE_ALLOCATED;
    int wrong;

    if (starts && !live && x->reported) {
        x->reported--;
        return;
    }
    if (starts && live && !x->b.cache.v) {
        x->b.cache = ev->cache;
    }
    wrong = what_is_wrong(m, ev, x);
    if (wrong == KT_ERR_INVALID_FREE ? !m->complete || m->gap :
        wrong >= 0 && x->old) {
        m->unknown_frees++;
    } else if (wrong >= 0) {
        add_error(m, wrong, ev, x);
    }
    if (starts && live) {
        x->old = false;
        x->b.state = KT_STATE_FREED;
        x->b.free_us = ev->us;
        x->b.free_stack = ev->stack;
        x->b.free_task = ev->task;
        x->b.free_cpu = ev->cpu;
        x->b.free_hook = ev->hook;
    }
}

static void naive_queue(Naive *m, const KtEvent *ev)
{
    Block *x = find(m, ev->layer == KT_LAYER_PAGES, ev->va);

    if (!x || x->b.va != ev->va) {
        return;
    }
    if (x->b.state == KT_STATE_ALLOCATED && !x->b.rcu_queued) {
        x->b.rcu_queued = true;
        x->b.rcu_us = ev->us;
        x->b.rcu_stack = ev->stack;
    } else if (!x->old) {
        add_error(m, KT_ERR_DOUBLE_FREE, ev, x);
        x->reported = MIN(x->reported + 1, UINT8_MAX);
    }
}

static void naive_resize(Naive *m, const KtEvent *ev)
{
    bool pages = ev->layer == KT_LAYER_PAGES;
    Block *x = find(m, pages, ev->va);
    Block grown;

    if (!x || x->b.va != ev->va || x->b.state == KT_STATE_FREED) {
        return;
    }
    grown = *x;
    grown.b.requested = ev->size;
    g_array_remove_index(m->blocks, x - nth(m, 0));
    retire_all(m, pages, ev->va, last_of(&grown), ev);
    g_array_append_val(m->blocks, grown);
}

static void naive_gap(Naive *m)
{
    m->gap = true;
    for (unsigned i = 0; i < m->blocks->len; i++) {
        nth(m, i)->old = true;
    }
}

static void naive_event(Naive *m, const KtEvent *ev)
{
    m->events++;
    switch (ev->kind) {
    case KT_EV_ALLOC:
        naive_alloc(m, ev);
        break;
    case KT_EV_FREE:
        naive_free_event(m, ev);
        break;
    case KT_EV_RCU_QUEUE:
        naive_queue(m, ev);
        break;
    case KT_EV_RESIZE:
        naive_resize(m, ev);
        break;
    case KT_EV_GAP:
        naive_gap(m);
        break;
    }
}

static void forget(Naive *m)
{
    g_array_set_size(m->blocks, 0);
    g_array_set_size(m->history, 0);
    g_array_set_size(m->errors, 0);
}

static unsigned live_blocks(const Naive *m)
{
    unsigned n = 0;

    for (unsigned i = 0; i < m->blocks->len; i++) {
        n += nth(m, i)->b.state == KT_STATE_ALLOCATED;
    }
    return n;
}

/* ---- comparing ------------------------------------------------------------- */

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
        if (nth(m, i)->b.va <= hi && last_of(nth(m, i)) >= lo) {
            collect(&nth(m, i)->b, want);
        }
    }
    g_array_sort(want, by_place);
    kt_query_range(m->t, lo, hi, collect, got);
    same_lists(want, got);
}

/* Frames of stack i: 0x100 * i, and 0x1000 of all. */
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
        const KtBlock *b = &nth(m, i)->b;

        if (stack_meets(b->alloc_stack, lo, hi)) {
            collect(b, want_alloc);
        }
        if (b->state == KT_STATE_FREED &&
            (stack_meets(b->free_stack, lo, hi) ||
             stack_meets(b->rcu_stack, lo, hi))) {
            collect(b, want_free);
        }
    }
    kt_query_alloc_pc(m->t, lo, hi, collect, got_alloc);
    kt_query_free_pc(m->t, lo, hi, collect, got_free);
    g_array_sort(want_alloc, by_place);
    g_array_sort(want_free, by_place);
    /* Of two blocks at one address either may come first. */
    g_array_sort(got_alloc, by_place);
    g_array_sort(got_free, by_place);
    same_lists(want_alloc, got_alloc);
    same_lists(want_free, got_free);
}

static void compare_history(const Naive *m, uint64_t va)
{
    GArray *want = new_list();
    GArray *got = new_list();

    for (unsigned i = m->history->len; i > 0; i--) {
        const KtBlock *b = &g_array_index(m->history, KtBlock, i - 1);

        if (va >= b->va && va <= end_of(b->va, kt_block_len(b))) {
            collect(b, want);
        }
    }
    kt_query_history(m->t, va, collect, got);
    same_lists(want, got);
}

static void compare_one(bool got, const KtBlock *b, const Block *want)
{
    g_assert_cmpint(got, ==, want != NULL);
    if (want) {
        same_block(&want->b, b);
    }
}

/* Of two blocks at one address the one that is not of the page allocator. */
static bool nearer(const Block *x, const Block *best, int direction)
{
    if (!best || x->b.va == best->b.va) {
        return !best || !x->pages;
    }
    return direction > 0 ? x->b.va < best->b.va : x->b.va > best->b.va;
}

static void compare_at(const Naive *m, uint64_t va)
{
    const Block *hit = find(m, false, va);
    const Block *next = NULL;
    const Block *prev = NULL;
    KtBlock b;

    hit = hit ? hit : find(m, true, va);
    for (unsigned i = 0; i < m->blocks->len; i++) {
        const Block *x = nth(m, i);

        if (x->b.va > va && nearer(x, next, 1)) {
            next = x;
        }
        if (last_of(x) < va && nearer(x, prev, -1)) {
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
    g_assert_cmpuint(s.live_blocks, ==, live_blocks(m));
    g_assert_cmpuint(s.freed_blocks, ==, m->blocks->len - live_blocks(m));
    g_assert_cmpuint(s.history_rows, ==, m->history->len);
    g_assert_cmpuint(s.errors, ==, m->errors->len);
    g_assert_cmpuint(s.previous_live_blocks, ==, m->previous);
    g_assert_cmpuint(kt_tracer_counter(m->t, KT_CNT_FREE_UNKNOWN), ==,
                     m->unknown_frees);
    g_assert_cmpuint(kt_tracer_counter(m->t, KT_CNT_EVICT_HISTORY), ==,
                     m->evicted);
}

static void compare(const Naive *m, uint64_t va)
{
    kt_query_begin(m->t);
    compare_at(m, va);
    compare_at(m, va + 64);
    compare_range(m, 0, UINT64_MAX);
    compare_range(m, va, va + MIN(300, UINT64_MAX - va));
    compare_stacks(m, 0x100, 0x200);
    compare_stacks(m, 0x1000, 0x1000);
    compare_counts(m);
    kt_query_end(m->t);
}

/* ---- events of bytes ------------------------------------------------------- */

static uint64_t make_va(const uint8_t *p)
{
    uint64_t small = (p[1] & 0x1f) << 8 | p[2];

    switch (p[1] >> 5) {
    case 0:
        return UINT64_MAX - small;
    case 1:
        return small << 52;
    case 2:
        return small;
    default:
        return 0xffff888000000000 + (small & ~7);
    }
}

static uint64_t make_size(uint8_t byte)
{
    return byte < 0xf0 ? byte * 4 : (uint64_t)1 << (byte & 0xf) * 4;
}

static KtEvent make_event(Naive *m, const uint8_t *p)
{
    static const uint8_t kinds[] = {
        KT_EV_ALLOC, KT_EV_FREE, KT_EV_ALLOC, KT_EV_FREE, KT_EV_ALLOC,
        KT_EV_FREE, KT_EV_RESIZE, KT_EV_RCU_QUEUE,
    };

    m->us += p[6] & 3;
    return (KtEvent) {
        .kind = kinds[p[0] & 7],
        .va = make_va(p),
        .size = make_size(p[3]),
        .actual = p[4] & 1 ? make_size(p[4]) : 0,
        .us = m->us,
        .cpu = p[6],
        .stack = { p[5] % (N_STACKS + 1) },
        .task = { p[5] >> 5 },
        .gfp = p[6] >> 4,
        .cache = { p[7] & 3 },
        .hook = { p[6] },
        .layer = p[7] >> 2 & 7,
        .family = p[7] >> 5,
    };
}

static bool special(Naive *m, const uint8_t *p)
{
    switch (p[0]) {
    case 0xff:
        kt_tracer_clear(m->t);
        forget(m);
        naive_gap(m);
        m->events++;
        return true;
    case 0xfe:
        kt_tracer_reset(m->t);
        m->previous = live_blocks(m);
        forget(m);
        m->gap = m->complete = false;
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
    default:
        return false;
    }
}

static void one_op(Naive *m, const uint8_t *p)
{
    KtEvent ev;

    if (special(m, p)) {
        return;
    }
    ev = make_event(m, p);
    kt_tracer_push(m->t, 0, &ev);
    naive_event(m, &ev);
}

static void add_stacks(KtTracer *t)
{
    for (unsigned i = 1; i <= N_STACKS; i++) {
        uint64_t pc[2] = { 0x100 * i, 0x1000 };

        g_assert_cmpuint(kt_tracer_intern_stack(t, pc, 2, GS_STOP_END).v, ==,
                         i);
    }
}

void naive_run(const uint8_t *data, size_t len)
{
    const KtConfig config = {
        .n_cpus = 1,
        .history_bytes = HISTORY_ROWS * 48,
        .max_stacks = N_STACKS,
    };
    Naive m = { .t = kt_tracer_new(&config, NULL) };

    m.blocks = g_array_new(FALSE, FALSE, sizeof(Block));
    m.history = new_list();
    m.errors = g_array_new(FALSE, FALSE, sizeof(KtError));
    add_stacks(m.t);
    for (size_t i = 0; i + OP_BYTES <= len; i += OP_BYTES) {
        one_op(&m, data + i);
        if (i / OP_BYTES % COMPARE_EVERY == 0) {
            compare(&m, make_va(data + i));
        }
    }
    compare(&m, 0);
    g_array_unref(m.blocks);
    g_array_unref(m.history);
    g_array_unref(m.errors);
    kt_tracer_free(m.t);
}
