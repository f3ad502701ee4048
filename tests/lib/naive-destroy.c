/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The naive model: caches that are destroyed with objects left. */
#include "tests/lib/naive-model.h"

typedef struct Left {
    uint32_t stack;
    const NaiveBlock *first;
    uint64_t n;
} Left;

static int by_address(const void *a, const void *b)
{
    uint64_t x = (*(NaiveBlock *const *)a)->b.va;
    uint64_t y = (*(NaiveBlock *const *)b)->b.va;

    return x < y ? -1 : x > y;
}

/* An error for each of the first 16 stacks, by address, that allocated objects
 * of the cache. */
void naive_destroy(Naive *m, const KtEvent *ev)
{
    g_autoptr(GPtrArray) sorted = g_ptr_array_new();
    Left left[16];
    unsigned n = 0;
    KtEvent each = *ev;

    for (unsigned i = 0; i < m->blocks->len; i++) {
        NaiveBlock *x = naive_nth(m, i);

        if (!x->pages && !x->old && x->b.state == KT_BLOCK_ALLOCATED &&
            ev->cache.v && x->b.cache.v == ev->cache.v) {
            g_ptr_array_add(sorted, x);
        }
    }
    g_ptr_array_sort(sorted, by_address);
    for (unsigned i = 0; i < sorted->len && m->destroyed < 256; i++) {
        const NaiveBlock *x = sorted->pdata[i];
        unsigned k = 0;

        while (k < n && left[k].stack != x->b.alloc_stack.v) {
            k++;
        }
        if (k == n && n < 16) {
            left[n++] = (Left) { x->b.alloc_stack.v, x };
        }
        if (k < n) {
            left[k].n++;
        }
    }
    m->destroyed += ev->cache.v != 0;
    for (unsigned i = 0; i < n; i++) {
        each.size = left[i].n;
        naive_error(m, KT_ERR_OBJECTS_LEFT, &each, left[i].first);
    }
    if (!n) {
        each.size = 0;
        naive_error(m, KT_ERR_OBJECTS_LEFT, &each, NULL);
    }
}
