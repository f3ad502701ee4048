/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pairs of numbers as keys of a GHashTable: the first member of its entries, so
 * that a pair alone finds an entry. Pure functions.
 */
#ifndef KT_PAIR_H
#define KT_PAIR_H

#include "guest-symbols/gs.h"

typedef struct KtPair {
    uint64_t a, b;
} KtPair;

/** kt_pair_hash() - Return the hash of a KtPair. Numbers of the guest cannot
 *  make collisions at will. */
static inline guint kt_pair_hash(gconstpointer key)
{
    const KtPair *p = key;
    uint64_t both = p->a ^ (p->b << 48 | p->b >> 16);

    return gs_number_hash(&both);
}

static inline gboolean kt_pair_equal(gconstpointer x, gconstpointer y)
{
    const KtPair *p = x, *q = y;

    return p->a == q->a && p->b == q->b;
}

#endif /* KT_PAIR_H */
