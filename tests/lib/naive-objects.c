/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The naive model: objects that lie in pages. */
#include "tests/lib/naive-model.h"

NaiveBlock *naive_next_object(const Naive *m, uint64_t va)
{
    NaiveBlock *best = NULL;

    for (unsigned i = 0; i < m->blocks->len; i++) {
        NaiveBlock *x = naive_nth(m, i);

        if (!x->pages && x->b.va >= va && (!best || x->b.va < best->b.va)) {
            best = x;
        }
    }
    return best;
}

bool naive_is_live_object(const NaiveBlock *x)
{
    return x->b.state == KT_BLOCK_ALLOCATED && !x->old &&
           x->b.layer <= KT_LAYER_CACHE;
}

NaiveBlock *naive_first_object(Naive *m, uint64_t va, uint64_t last)
{
    NaiveBlock *x = naive_next_object(m, va);

    for (unsigned i = 0; i < 8 && x && x->b.va <= last; i++) {
        if (naive_is_live_object(x)) {
            return x;
        }
        x = x->b.va < UINT64_MAX ? naive_next_object(m, x->b.va + 1) : NULL;
    }
    return NULL;
}
