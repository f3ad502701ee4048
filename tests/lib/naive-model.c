/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The naive model: see naive-model.h. Single-threaded. */
#include "tests/lib/naive-model.h"

void naive_init(Naive *m)
{
    *m = (Naive) { 0 };
    m->blocks = g_array_new(FALSE, FALSE, sizeof(NaiveBlock));
    m->history = g_array_new(FALSE, FALSE, sizeof(KtBlock));
    m->errors = g_array_new(FALSE, FALSE, sizeof(KtError));
    m->accounts = g_array_new(FALSE, FALSE, sizeof(NaiveAccount));
}

void naive_deinit(Naive *m)
{
    g_array_unref(m->blocks);
    g_array_unref(m->history);
    g_array_unref(m->errors);
    g_array_unref(m->accounts);
}

/* ---- blocks ------------------------------------------------------------- */

uint64_t naive_end(uint64_t va, uint64_t len)
{
    uint64_t last = va + (len ? len - 1 : 0);

    return last < va ? UINT64_MAX : last;
}

uint64_t naive_last(const NaiveBlock *x)
{
    return naive_end(x->b.va, kt_block_len(&x->b));
}

NaiveBlock *naive_nth(const Naive *m, unsigned i)
{
    return &g_array_index(m->blocks, NaiveBlock, i);
}

NaiveBlock *naive_find(const Naive *m, bool pages, uint64_t va)
{
    for (unsigned i = 0; i < m->blocks->len; i++) {
        NaiveBlock *x = naive_nth(m, i);

        if (x->pages == pages && va >= x->b.va && va <= naive_last(x)) {
            return x;
        }
    }
    return NULL;
}

void naive_error(Naive *m, KtErrorKind kind, const KtEvent *ev,
                 const NaiveBlock *x)
{
    KtError e = {
        .id = m->errors->len + 1, .kind = kind, .va = ev->va,
        .has_block = x != NULL, .stack = ev->stack, .task = ev->task,
        .cpu = ev->cpu, .hook = ev->hook, .cache = ev->cache, .us = ev->us,
        .size = ev->size,
    };

    if (x) {
        e.block = x->b;
    }
    g_array_append_val(m->errors, e);
}

/* Copy what history keeps of a block. */
static void add_history(Naive *m, const NaiveBlock *x)
{
    KtBlock past = {
        .va = x->b.va, .requested = x->b.requested, .actual = x->b.actual,
        .alloc_us = x->b.alloc_us, .free_us = x->b.free_us,
        .alloc_stack = x->b.alloc_stack, .free_stack = x->b.free_stack,
        .alloc_task = x->b.alloc_task, .cache = x->b.cache,
        .state = x->b.state, .layer = x->b.layer,
        .rcu_queued = x->b.rcu_queued, .removed = x->b.removed,
        .past = true,
    };

    if (x->b.rcu_queued) {
        past.rcu_stack = x->b.rcu_stack;
    } else {
        past.free_task = x->b.free_task;
    }
    g_array_append_val(m->history, past);
    if (m->history->len > NAIVE_HISTORY_ROWS) {
        g_array_remove_index(m->history, 0);
        m->evicted++;
    }
}

/* Find the first block of a map that overlaps [lo, hi]. */
static NaiveBlock *first_in(const Naive *m, bool pages, uint64_t lo,
                            uint64_t hi)
{
    NaiveBlock *best = NULL;

    for (unsigned i = 0; i < m->blocks->len; i++) {
        NaiveBlock *x = naive_nth(m, i);

        if (x->pages == pages && x->b.va <= hi && naive_last(x) >= lo &&
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
    NaiveBlock *x;

    while ((x = first_in(m, pages, lo, hi))) {
        if (x->b.state == KT_BLOCK_ALLOCATED && !x->old && !reported) {
            naive_error(m, KT_ERR_OVERLAP, ev, x);
            reported = true;
        }
        if (x->b.state == KT_BLOCK_ALLOCATED) {
            naive_account_lose(m, &x->b);
        }
        add_history(m, x);
        g_array_remove_index(m->blocks, x - naive_nth(m, 0));
    }
}

void naive_set_freed(Naive *m, NaiveBlock *x, const KtEvent *ev)
{
    naive_account_free(m, &x->b, ev->cpu);
    x->old = false;
    x->b.state = KT_BLOCK_FREED;
    x->b.free_us = ev->us;
    x->b.free_stack = ev->stack;
    x->b.free_task = ev->task;
    x->b.free_cpu = ev->cpu;
    x->b.free_hook = ev->hook;
    x->b.removed = kt_event_removes(ev);
}

/* Split a block: the second one begins @len bytes after its start. */
static void split(Naive *m, unsigned i, uint64_t len)
{
    NaiveBlock rest = *naive_nth(m, i);
    KtBlock before = rest.b;

    rest.b.va += len;
    rest.b.requested = rest.b.actual = kt_block_len(&rest.b) - len;
    rest.b.rcu_queued = false;
    rest.b.rcu_us = 0;
    rest.b.rcu_stack.v = 0;
    rest.reported = 0;
    naive_nth(m, i)->b.requested = naive_nth(m, i)->b.actual = len;
    naive_account_change(m, &before, &naive_nth(m, i)->b, &rest.b);
    m->totals.splits++;
    m->split = true;
    g_array_append_val(m->blocks, rest);
}

/* Return the first block in [@lo, @hi] that ended, by a removal if @ev is none,
 * otherwise by a free. */
static NaiveBlock *first_ended(const Naive *m, bool pages, uint64_t lo,
                               uint64_t hi, const KtEvent *ev)
{
    NaiveBlock *best = NULL;

    for (unsigned i = 0; i < m->blocks->len; i++) {
        NaiveBlock *x = naive_nth(m, i);

        if (x->pages == pages && x->b.va <= hi && naive_last(x) >= lo &&
            x->b.state == KT_BLOCK_FREED &&
            x->b.removed != kt_event_removes(ev) &&
            (!best || x->b.va < best->b.va)) {
            best = x;
        }
    }
    return best;
}

bool naive_free_range(Naive *m, bool pages, uint64_t lo, uint64_t hi,
                      const KtEvent *ev)
{
    NaiveBlock *gone;
    bool any = false;

    while ((gone = first_ended(m, pages, lo, hi, ev))) {
        add_history(m, gone);
        g_array_remove_index(m->blocks, gone - naive_nth(m, 0));
        any = true;
    }

    /* the array grows meanwhile; its new entries are visited too */
    for (unsigned i = 0; i < m->blocks->len; i++) {
        NaiveBlock *x = naive_nth(m, i);

        if (x->pages != pages || x->b.state == KT_BLOCK_FREED || x->b.va > hi ||
            naive_last(x) < lo) {
            continue;
        }
        any = true;
        if (naive_last(x) > hi) {
            split(m, i, hi - x->b.va + 1);
        }
        x = naive_nth(m, i);
        if (x->b.va < lo) {
            split(m, i, lo - x->b.va);
        } else {
            naive_set_freed(m, x, ev);
        }
    }
    return any;
}

/* ---- events ------------------------------------------------------------- */

static void naive_alloc(Naive *m, const KtEvent *ev)
{
    NaiveBlock x = {
        .b = {
            .va = ev->va, .requested = ev->size,
            .actual = ev->actual ? ev->actual : ev->size,
            .alloc_us = ev->us, .alloc_stack = ev->stack,
            .alloc_task = ev->task, .gfp = ev->gfp, .cache = ev->cache,
            .hook = ev->hook, .alloc_cpu = ev->cpu,
            .state = KT_BLOCK_ALLOCATED, .layer = ev->layer,
        },
        .pages = ev->layer == KT_LAYER_PAGES,
        .old = m->blind,
    };

    if (ev->layer == KT_LAYER_NONE || ev->layer >= KT_LAYER__COUNT) {
        return;
    }
    if (ev->flags & KT_EVF_IF_NEW && naive_find(m, x.pages, ev->va) &&
        naive_find(m, x.pages, ev->va)->b.state == KT_BLOCK_ALLOCATED) {
        return;
    }
    if (ev->flags & KT_EVF_TAKE) {
        naive_free_range(m, x.pages, ev->va, naive_last(&x), ev);
    }
    retire_all(m, x.pages, ev->va, naive_last(&x), ev);
    naive_account_alloc(m, &x.b);
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
    case KT_FAMILY_KMALLOC:
        return layer == KT_LAYER_KMALLOC || layer == KT_LAYER_LARGE;
    case KT_FAMILY_ZONE:
        return layer == KT_LAYER_CACHE;
    default:
        return true;
    }
}

/* Returns: the kind of error, or -1 if there is none. */
static int what_is_wrong(const Naive *m, const KtEvent *ev, const NaiveBlock *x)
{
    if (!x) {
        return KT_ERR_INVALID_FREE;
    }
    if (x->b.va != ev->va) {
        return x->b.state == KT_BLOCK_FREED ? KT_ERR_INVALID_FREE :
                                              KT_ERR_INTERIOR_FREE;
    }
    if (x->b.state == KT_BLOCK_FREED) {
        return ev->flags & KT_EVF_SLAB_READ &&
               ev->family == KT_FAMILY_KFREE && x->b.cache.v &&
               x->b.cache.v != ev->cache.v &&
               (x->b.layer == KT_LAYER_KMALLOC ||
                x->b.layer == KT_LAYER_CACHE) ? KT_ERR_INVALID_FREE :
               KT_ERR_DOUBLE_FREE;
    }
    if (!family_fits(ev->family, x->b.layer)) {
        return KT_ERR_WRONG_FAMILY;
    }
    if ((ev->family == KT_FAMILY_CACHE || ev->family == KT_FAMILY_ZONE) &&
        ev->cache.v && x->b.cache.v && ev->cache.v != x->b.cache.v) {
        return KT_ERR_WRONG_CACHE;
    }
    if (ev->flags & KT_EVF_SIZED && ev->size != x->b.requested) {
        return KT_ERR_WRONG_SIZE;
    }
    return -1;
}

bool naive_in_doubt(const Naive *m, const NaiveBlock *x)
{
    return x->old || (m->unseen && x->b.state == KT_BLOCK_FREED);
}

static bool freed_so(const NaiveBlock *x, const KtEvent *ev)
{
    return x->b.state == KT_BLOCK_FREED && x->b.free_stack.v == ev->stack.v &&
           x->b.free_task.v == ev->task.v;
}

/* Is the free of a freed block covered by another event? */
static bool is_covered(NaiveBlock *x, const KtEvent *ev)
{
    bool vfree = ev->family == KT_FAMILY_VFREE;

    if (vfree && ev->flags & KT_EVF_AGAIN && freed_so(x, ev)) {
        return true;
    }
    if (!x->reported || (vfree && ev->flags & KT_EVF_QUEUES &&
                         !(ev->flags & KT_EVF_MAYBE_WORKER))) {
        return false;
    }
    x->reported--;
    return true;
}

/* Is the block free after a wrong call? The families of Linux keep a block of
 * another family. */
static bool is_freed_by(int wrong, const KtEvent *ev, const NaiveBlock *x)
{
    switch (wrong) {
    case KT_ERR_WRONG_FAMILY:
        return ev->family == KT_FAMILY_KMALLOC || ev->family == KT_FAMILY_ZONE;
    case KT_ERR_WRONG_CACHE:
        return !(ev->flags & KT_EVF_STRICT);
    case KT_ERR_INTERIOR_FREE:
        return (ev->family == KT_FAMILY_KFREE &&
                x->b.layer == KT_LAYER_LARGE) ||
               (ev->family == KT_FAMILY_VFREE &&
                x->b.layer == KT_LAYER_VMALLOC && ev->va % 4096 == 0);
    default:
        return x->b.va == ev->va;
    }
}

/* NULL and error pointers: an error, but only one if queued and then freed. */
static void naive_free_nothing(Naive *m, const KtEvent *ev)
{
    if (ev->flags & KT_EVF_AGAIN) {
        return;
    }
    if (ev->kind == KT_EV_FREE && m->queued_nothing) {
        m->queued_nothing--;
        return;
    }
    m->queued_nothing += ev->kind == KT_EV_RCU_QUEUE;
    m->totals.stray++;
    naive_error(m, KT_ERR_INVALID_FREE, ev, NULL);
}

/* The live pages that are freed instead of a block; NULL if they are those of a
 * slab. */
static NaiveBlock *live_pages(const Naive *m, const KtEvent *ev)
{
    NaiveBlock *x = naive_find(m, true, ev->va);

    return x && x->b.state == KT_BLOCK_ALLOCATED && !x->old &&
           !(ev->flags & KT_EVF_SLAB_READ && ev->cache.v) ? x : NULL;
}

/* The block that is freed. If its pages have a new owner, it is not meant. */
static NaiveBlock *block_of(const Naive *m, bool pages, const KtEvent *ev)
{
    NaiveBlock *x = naive_find(m, pages, ev->va), *owner = live_pages(m, ev);

    return x && x->b.state == KT_BLOCK_FREED && owner &&
           owner->b.alloc_us > x->b.alloc_us ? NULL : x;
}

static void naive_free_event(Naive *m, const KtEvent *ev)
{
    NaiveBlock *x = block_of(m, false, ev), *owner = live_pages(m, ev);
    bool starts = x && x->b.va == ev->va;
    bool live = x && x->b.state == KT_BLOCK_ALLOCATED;
    bool doubt;
    int wrong;

    if (starts && !live && is_covered(x, ev)) {
        return;
    }
    if (starts && live && ev->family == KT_FAMILY_VFREE &&
        ev->flags & KT_EVF_WORKER && x->b.layer != KT_LAYER_VMALLOC &&
        !x->b.rcu_queued) {
        return;
    }
    if (starts && live && !x->b.cache.v && !(ev->flags & KT_EVF_SLAB_READ) &&
        (x->b.layer == KT_LAYER_KMALLOC || x->b.layer == KT_LAYER_CACHE)) {
        KtBlock before = x->b;

        x->b.cache = ev->cache;
        naive_account_cache(m, &before, &x->b);
    }
    wrong = what_is_wrong(m, ev, x);
    doubt = wrong == KT_ERR_INVALID_FREE && !starts ?
            !m->complete || m->gap : wrong >= 0 && naive_in_doubt(m, x);
    if (doubt) {
        m->unknown_frees++;
        m->totals.stray++;
    } else if (wrong == KT_ERR_INVALID_FREE && owner &&
               (ev->family == KT_FAMILY_KFREE ||
                ev->family == KT_FAMILY_VFREE)) {
        naive_error(m, owner->b.va == ev->va ? KT_ERR_WRONG_FAMILY :
                  KT_ERR_INTERIOR_FREE, ev, owner);
        m->misfreed = owner->b.va;
    } else if (wrong >= 0) {
        m->totals.stray += wrong == KT_ERR_INVALID_FREE;
        naive_error(m, wrong, ev, x);
    }
    if (live && (doubt ? starts : is_freed_by(wrong, ev, x))) {
        naive_set_freed(m, x, ev);
        if (ev->family == KT_FAMILY_VFREE && ev->flags & KT_EVF_QUEUES) {
            x->reported = MIN(x->reported + 1, UINT8_MAX);
        }
    }
}

static void naive_queue(Naive *m, const KtEvent *ev)
{
    NaiveBlock *x = block_of(m, ev->layer == KT_LAYER_PAGES, ev);

    if (!x || x->b.va != ev->va ||
        (ev->flags & KT_EVF_AGAIN && freed_so(x, ev))) {
        return;
    }
    if (x->b.state == KT_BLOCK_ALLOCATED && !x->b.rcu_queued) {
        x->b.rcu_queued = true;
        x->b.rcu_us = ev->us;
        x->b.rcu_stack = ev->stack;
    } else if (!naive_in_doubt(m, x)) {
        naive_error(m, KT_ERR_DOUBLE_FREE, ev, x);
        x->reported = MIN(x->reported + 1, UINT8_MAX);
    }
}

static void naive_resize(Naive *m, const KtEvent *ev)
{
    bool pages = ev->layer == KT_LAYER_PAGES;
    NaiveBlock *x = naive_find(m, pages, ev->va);
    NaiveBlock grown;

    if (!x || x->b.va != ev->va || x->b.state == KT_BLOCK_FREED) {
        return;
    }
    grown = *x;
    grown.b.requested = ev->size;
    naive_account_change(m, &x->b, &grown.b, NULL);
    m->totals.resizes++;
    g_array_remove_index(m->blocks, x - naive_nth(m, 0));
    retire_all(m, pages, ev->va, naive_last(&grown), ev);
    g_array_append_val(m->blocks, grown);
}

void naive_gap(Naive *m)
{
    m->gap = true;
    for (unsigned i = 0; i < m->blocks->len; i++) {
        naive_nth(m, i)->old = true;
    }
}

void naive_event(Naive *m, const KtEvent *ev)
{
    m->events++;
    switch (ev->kind) {
    case KT_EV_ALLOC:
        naive_alloc(m, ev);
        break;
    case KT_EV_FREE:
        if (ev->family == KT_FAMILY_PAGES) {
            naive_free_pages(m, ev);
        } else if (!kt_is_memory(ev->va)) {
            naive_free_nothing(m, ev);
        } else {
            naive_free_event(m, ev);
        }
        break;
    case KT_EV_RCU_QUEUE:
        if (!kt_is_memory(ev->va)) {
            naive_free_nothing(m, ev);
        } else {
            naive_queue(m, ev);
        }
        break;
    case KT_EV_RESIZE:
        naive_resize(m, ev);
        break;
    case KT_EV_DESTROY:
        naive_destroy(m, ev);
        break;
    case KT_EV_ACCESS:
        naive_access(m, ev);
        break;
    case KT_EV_GAP:
        naive_gap(m);
        m->unseen |= (ev->flags & (KT_EVF_UNSEEN | KT_EVF_BLIND)) != 0;
        m->blind |= (ev->flags & KT_EVF_BLIND) != 0;
        break;
    }
    naive_account_peaks(m);
}

void naive_forget(Naive *m)
{
    g_array_set_size(m->blocks, 0);
    g_array_set_size(m->history, 0);
    g_array_set_size(m->errors, 0);
    g_array_set_size(m->accounts, 0);
    m->totals = (KtTotals) { 0 };
    memset(m->backing, 0, sizeof(m->backing));
    m->queued_nothing = m->destroyed = 0;
    m->misfreed = 0;
    m->split = false;
}

unsigned naive_live(const Naive *m)
{
    unsigned n = 0;

    for (unsigned i = 0; i < m->blocks->len; i++) {
        n += naive_nth(m, i)->b.state == KT_BLOCK_ALLOCATED;
    }
    return n;
}
