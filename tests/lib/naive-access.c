/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The naive model: accesses that may be errors. */
#include "tests/lib/naive-model.h"

#define NEAR 256u

/* Each stack of naive-run.c has this first frame. */
static uint64_t pc_of(KtStackId stack)
{
    return 0x100 * stack.v;
}

/* The live block nearest in front of @at, if only freed ones lie between, and
 * not more than NEAR bytes in front of @bad. */
static const NaiveBlock *neighbour(const Naive *m, uint64_t at, uint64_t bad)
{
    for (unsigned i = 0; i < 32 && at; i++) {
        const NaiveBlock *best = NULL;

        for (unsigned k = 0; k < m->blocks->len; k++) {
            const NaiveBlock *x = naive_nth(m, k);

            if (!x->pages && x->b.va < at && (!best || x->b.va > best->b.va)) {
                best = x;
            }
        }
        if (!best || bad - (best->b.va + best->b.requested) > NEAR) {
            return NULL;
        }
        if (best->b.state == KT_BLOCK_ALLOCATED) {
            return best->old ? NULL : best;
        }
        at = best->b.va;
    }
    return NULL;
}

/* The live block nearest behind @bad, likewise. */
static const NaiveBlock *behind(const Naive *m, uint64_t bad)
{
    uint64_t at = bad;

    for (unsigned i = 0; i < 32; i++) {
        const NaiveBlock *best = NULL;

        for (unsigned k = 0; k < m->blocks->len; k++) {
            const NaiveBlock *x = naive_nth(m, k);

            if (!x->pages && x->b.va > at && (!best || x->b.va < best->b.va)) {
                best = x;
            }
        }
        if (!best || best->b.va - bad > NEAR) {
            return NULL;
        }
        if (best->b.state == KT_BLOCK_ALLOCATED) {
            return best->old ? NULL : best;
        }
        at = best->b.va;
    }
    return NULL;
}

/* Add the nearer one of both, which can be NULL. */
static void beside(KtErrorAccess *to, uint64_t bad, const NaiveBlock *before,
                   const NaiveBlock *after)
{
    uint64_t left = before ? bad - (before->b.va + before->b.requested) :
                             NEAR + 1;
    uint64_t right = after ? after->b.va - bad : NEAR + 1;
    const NaiveBlock *n = left <= right ? before : after;

    if (n) {
        to->has_neighbour = true;
        to->behind = n == after;
        to->distance = (uint16_t)MIN(left, right);
        to->neighbour = (KtNeighbour) {
            n->b.va, n->b.requested, n->b.alloc_us, n->b.alloc_stack,
            n->b.alloc_task, n->b.cache,
        };
    }
}

static bool is_same(const KtError *a, const KtError *b)
{
    return a->kind == b->kind && a->access.pc == b->access.pc &&
           (a->has_block ? a->block.alloc_stack.v : 0) ==
           (b->has_block ? b->block.alloc_stack.v : 0) &&
           (a->has_block ? a->block.free_stack.v : 0) ==
           (b->has_block ? b->block.free_stack.v : 0);
}

static KtError *earlier(const Naive *m, const KtError *e)
{
    for (unsigned i = m->errors->len; i; i--) {
        KtError *x = &g_array_index(m->errors, KtError, i - 1);

        if (is_same(x, e)) {
            return x;
        }
    }
    return NULL;
}

static uint64_t earliest(const KtEvent *ev)
{
    return ev->us > ev->gfp ? ev->us - ev->gfp : 0;
}

static bool is_other(const KtBlock *b, const KtEvent *ev)
{
    if (!ev->cache.v) {
        return false;
    }
    if (b->layer != KT_LAYER_KMALLOC && b->layer != KT_LAYER_CACHE) {
        return true;
    }
    return b->cache.v && b->cache.v != ev->cache.v;
}

/* @x: (nullable) the block that has the bad byte, or had it */
static void add(Naive *m, KtErrorKind kind, const KtEvent *ev, uint64_t bad,
                const NaiveBlock *x, uint64_t from)
{
    const NaiveBlock *n = kind == KT_ERR_OUT_OF_BOUNDS ? NULL :
                          neighbour(m, from, bad);
    KtError *e, *same;

    naive_error(m, kind, ev, x);
    e = &g_array_index(m->errors, KtError, m->errors->len - 1);
    e->access = (KtErrorAccess) {
        .pc = pc_of(ev->stack), .offset = bad - (x ? x->b.va : ev->va),
        .count = 1, .last_us = ev->us, .flags = ev->flags & 3,
    };
    beside(&e->access, bad, n,
           kind == KT_ERR_FREE_SLOT ? behind(m, bad) : NULL);
    m->errors->len--;
    same = earlier(m, e);
    if (!same) {
        m->errors->len++;
        return;
    }
    same->access.count++;
    same->access.last_us = MAX(same->access.last_us, ev->us);
    same->access.offset = MAX(same->access.offset, e->access.offset);
}

/* The life of that address that began last, of those that ended. */
static const KtBlock *last_life(const Naive *m, uint64_t va)
{
    const KtBlock *best = NULL;

    for (unsigned pages = 0; pages < 2; pages++) {
        for (unsigned i = m->history->len; i; i--) {
            const KtBlock *b = &g_array_index(m->history, KtBlock, i - 1);

            if ((b->layer == KT_LAYER_PAGES) == pages && va >= b->va &&
                va <= naive_end(b->va, kt_block_len(b))) {
                best = !best || b->alloc_us > best->alloc_us ? b : best;
                break;
            }
        }
    }
    return best;
}

/* A part of a freed block was allocated again; this is the rest. */
static void rest_of_block(Naive *m, const KtEvent *ev, uint64_t bad)
{
    const KtBlock *b = last_life(m, bad);
    bool store = ev->flags & KT_EVF_WRITE && !(ev->flags & KT_EVF_RANGE);

    if (!b && m->complete && !m->evicted) {
        m->disagreed++;
    } else if (!b || b->state != KT_BLOCK_FREED || is_other(b, ev) ||
               (store && b->free_us >= earliest(ev))) {
        m->unjudged++;
    } else {
        NaiveBlock x = { .b = *b };

        add(m, KT_ERR_USE_AFTER_FREE, ev, bad, &x, bad);
    }
}

static void no_block(Naive *m, const KtEvent *ev, uint64_t bad, uint64_t from)
{
    if (m->gap || m->unseen || m->blind || ev->flags & KT_EVF_UNSURE) {
        m->unjudged++;
    } else if (ev->flags & KT_EVF_FREE_SLOT) {
        add(m, KT_ERR_FREE_SLOT, ev, bad, NULL, from);
    } else {
        rest_of_block(m, ev, bad);
    }
}

/* Another vCPU freed or allocated the block, perhaps after the store. */
static bool may_precede(const NaiveBlock *x, const KtEvent *ev)
{
    bool freed = x->b.state == KT_BLOCK_FREED;

    if (!(ev->flags & KT_EVF_WRITE) || ev->flags & KT_EVF_RANGE) {
        return false;
    }
    return freed ? x->b.free_cpu != ev->cpu && x->b.free_us >= earliest(ev) :
                   x->b.alloc_cpu != ev->cpu && x->b.alloc_us >= earliest(ev);
}

void naive_access(Naive *m, const KtEvent *ev)
{
    uint64_t bad = ev->va + ev->actual < ev->va ? UINT64_MAX :
                   ev->va + ev->actual;
    const NaiveBlock *x = naive_find(m, false, bad);
    const NaiveBlock *pages = naive_find(m, true, bad);
    bool freed;

    if (pages && pages->b.state == KT_BLOCK_FREED &&
        (!x || (x->b.state == KT_BLOCK_FREED &&
                pages->b.alloc_us > x->b.alloc_us))) {
        x = pages;
    }
    if (!x || (ev->flags & KT_EVF_FREE_SLOT && is_other(&x->b, ev) &&
               x->b.state == KT_BLOCK_FREED)) {
        no_block(m, ev, bad, x ? x->b.va : bad);
        return;
    }
    freed = x->b.state == KT_BLOCK_FREED;
    if (x->old || is_other(&x->b, ev) || may_precede(x, ev) ||
        (freed && (m->unseen || m->blind || ev->flags & KT_EVF_UNSURE))) {
        m->unjudged++;
    } else if (freed) {
        add(m, KT_ERR_USE_AFTER_FREE, ev, bad, x, x->b.va);
    } else if (bad - x->b.va >= x->b.requested) {
        add(m, KT_ERR_OUT_OF_BOUNDS, ev, bad, x, x->b.va);
    } else if (x->b.alloc_us >= earliest(ev)) {
        m->unjudged++;
    } else {
        m->disagreed++;
    }
}
