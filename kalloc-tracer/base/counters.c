/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counters: see counters.h. Relaxed atomics: a sum that is read while threads
 * add is a value that the counter had at some time in between.
 */
#include "kalloc-tracer/base/counters.h"

#define SHARDS 16

typedef struct Shard {
    uint64_t n[KT_CNT__COUNT];
    char pad[64];           /* keeps two shards off one cache line */
} Shard;

struct KtCounters {
    Shard shard[SHARDS];
};

static unsigned my_shard(void)
{
    static unsigned next;
    static __thread unsigned mine;

    if (!mine) {
        mine = 1 + __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED) % SHARDS;
    }
    return mine - 1;
}

KtCounters *kt_counters_new(void)
{
    return g_new0(KtCounters, 1);
}

void kt_counters_free(KtCounters *c)
{
    g_free(c);
}

void kt_counters_add(KtCounters *c, KtCounter id, uint64_t n)
{
    if ((unsigned)id < KT_CNT__COUNT) {
        __atomic_fetch_add(&c->shard[my_shard()].n[id], n, __ATOMIC_RELAXED);
    }
}

uint64_t kt_counters_get(const KtCounters *c, KtCounter id)
{
    uint64_t sum = 0;

    if ((unsigned)id >= KT_CNT__COUNT) {
        return 0;
    }
    for (unsigned i = 0; i < SHARDS; i++) {
        sum += __atomic_load_n(&c->shard[i].n[id], __ATOMIC_RELAXED);
    }
    return sum;
}

void kt_counters_set(KtCounters *c, KtCounter id, uint64_t n)
{
    kt_counters_add(c, id, n - kt_counters_get(c, id));
}
