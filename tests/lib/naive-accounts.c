/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The naive model's accounts: an array with linear search. Single-threaded. */
#include "tests/lib/naive-model.h"

/* Return the upper bound of the size class of @asked. */
static uint64_t size_key(uint64_t asked)
{
    if (asked <= 8) {
        return asked;
    }
    for (uint64_t from = 8;; from *= 2) {
        for (unsigned quarter = 1; quarter <= 4; quarter++) {
            uint64_t end = from + from / 4 * quarter;

            if (asked <= end || end < from) {
                return end;
            }
        }
    }
}

uint64_t naive_key(const KtBlock *b, KtBy by)
{
    switch (by) {
    case KT_BY_CALLER:
        return b->alloc_stack.v * 0x100;
    case KT_BY_STACK:
        return b->alloc_stack.v;
    case KT_BY_CACHE:
        return b->cache.v ? 100u + b->cache.v : b->layer;
    case KT_BY_TASK:
        return b->alloc_task.v;
    default:
        return size_key(b->requested);
    }
}

NaiveAccount *naive_account(Naive *m, KtBy by, uint64_t key)
{
    NaiveAccount one = { .by = by, .key = key };

    for (unsigned i = 0; i < m->accounts->len; i++) {
        NaiveAccount *x = &g_array_index(m->accounts, NaiveAccount, i);

        if (x->by == by && x->key == key) {
            return x;
        }
    }
    g_array_append_val(m->accounts, one);
    return &g_array_index(m->accounts, NaiveAccount, m->accounts->len - 1);
}

/* Were the block's pages allocated for another layer? The first block of a
 * stack decides for all of them. */
static bool is_backing(Naive *m, const KtBlock *b)
{
    uint32_t stack = b->alloc_stack.v;
    bool pages = b->layer == KT_LAYER_PAGES;

    if (!m->backing[stack]) {
        m->backing[stack] = pages && m->code_known && stack == NAIVE_BACKING ?
                            1 : -1;
        m->totals.backing_unknown += pages && (!stack || !m->code_known);
    }
    return m->backing[stack] > 0;
}

static KtAccount *of(Naive *m, const KtBlock *b, unsigned by)
{
    if (is_backing(m, b) && by == KT_BY_CACHE) {
        return &naive_account(m, by, NAIVE_BACKING_KEY)->a;
    }
    if (is_backing(m, b) && by != KT_BY_STACK) {
        return &m->nowhere;
    }
    return by == KT_BY__COUNT ? &m->totals.sum :
           &naive_account(m, by, naive_key(b, by))->a;
}

void naive_account_alloc(Naive *m, const KtBlock *b)
{
    for (unsigned by = 0; by <= KT_BY__COUNT; by++) {
        KtAccount *a = of(m, b, by);

        a->allocs++;
        a->asked += b->requested;
        a->reserved += kt_block_len(b);
    }
}

void naive_account_free(Naive *m, const KtBlock *b, unsigned cpu)
{
    for (unsigned by = 0; by <= KT_BY__COUNT; by++) {
        KtAccount *a = of(m, b, by);

        a->frees++;
        a->freed_asked += b->requested;
        a->freed_reserved += kt_block_len(b);
        a->cross += b->alloc_cpu != cpu;
    }
}

void naive_account_lose(Naive *m, const KtBlock *b)
{
    naive_account_free(m, b, b->alloc_cpu);
    m->totals.lost++;
    m->totals.lost_asked += b->requested;
    m->totals.lost_reserved += kt_block_len(b);
}

/* Count the allocation of a block in its account, or remove it if @back. */
static void retell(Naive *m, const KtBlock *b, KtBy by, bool back)
{
    KtAccount *a = of(m, b, by);

    a->allocs += back ? -1 : 1;
    a->asked += back ? -b->requested : b->requested;
    a->reserved += back ? -kt_block_len(b) : kt_block_len(b);
}

static void add_bytes(KtAccount *a, uint64_t grown, uint64_t shrunk,
                      uint64_t long_grown, uint64_t long_shrunk)
{
    a->asked += grown;
    a->freed_asked += shrunk;
    a->reserved += long_grown;
    a->freed_reserved += long_shrunk;
}

static uint64_t beyond(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

void naive_account_change(Naive *m, const KtBlock *before,
                          const KtBlock *after, const KtBlock *second)
{
    const KtBlock *last = second ? second : after;
    uint64_t now = after->requested + (second ? second->requested : 0);
    uint64_t len = kt_block_len(after) + (second ? kt_block_len(second) : 0);
    uint64_t was = before->requested, was_len = kt_block_len(before);

    for (unsigned by = 0; by <= KT_BY__COUNT; by++) {
        if (by == KT_BY_SIZE) {
            continue;
        }
        of(m, before, by)->allocs += second != NULL;
        add_bytes(of(m, before, by), beyond(now, was), beyond(was, now),
                  beyond(len, was_len), beyond(was_len, len));
    }
    retell(m, before, KT_BY_SIZE, true);
    retell(m, after, KT_BY_SIZE, false);
    if (second) {
        retell(m, second, KT_BY_SIZE, false);
    } else {
        m->totals.grown += beyond(now, was);
        m->totals.shrunk += beyond(was, now);
    }
    add_bytes(of(m, last, KT_BY_SIZE), beyond(was, now), beyond(was, now),
              beyond(was_len, len), beyond(was_len, len));
}

void naive_account_cache(Naive *m, const KtBlock *before,
                         const KtBlock *after)
{
    retell(m, before, KT_BY_CACHE, true);
    retell(m, after, KT_BY_CACHE, false);
    naive_account_peaks(m);
}

static void note_peak(KtAccount *a)
{
    a->peak = MAX(a->peak, a->reserved - a->freed_reserved);
}

void naive_account_peaks(Naive *m)
{
    for (unsigned i = 0; i < m->accounts->len; i++) {
        note_peak(&g_array_index(m->accounts, NaiveAccount, i).a);
    }
    note_peak(&m->totals.sum);
}
