/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Eviction: see evict.h. The model calls it when a record cannot be allocated,
 * and at the end of a batch of events. What is evicted is counted.
 *
 * Each call evicts several blocks, or frees a piece of memory for thousands,
 * so an event pays a small, constant share.
 */
#include "kalloc-tracer/model/evict.h"

#include "kalloc-tracer/model/model.h"

/* Freed blocks that are evicted at once. */
#define SOME_BLOCKS 16

static void evict_block(KtModel *m, uint32_t index)
{
    const KtRec *r = kt_rec(&m->blocks, index);
    KtMapId map = r->layer == KT_LAYER_PAGES ? KT_MAP_PAGES : KT_MAP_MAIN;
    uint64_t va = r->va;

    kt_blocks_unset(&m->blocks, index);
    kt_map_remove(&m->map[map], va);
    kt_blocks_release(&m->blocks, index);
    m->freed_blocks--;
    m->count[KT_CNT_EVICT_FREED]++;
}

static bool evict_freed(KtModel *m)
{
    uint32_t index = kt_blocks_oldest(&m->blocks);

    if (!index) {
        return false;
    }
    for (unsigned i = 0; i < SOME_BLOCKS && index; i++) {
        evict_block(m, index);
        index = kt_blocks_oldest(&m->blocks);
    }
    return true;
}

bool kt_evict_for_block(KtModel *m)
{
    uint64_t piece = kt_pool_chunk_bytes(&m->blocks.end) +
                     kt_pool_chunk_bytes(&m->blocks.rec);
    uint64_t lack = kt_budget_lack(m->budget, KT_MEM_BLOCKS, piece);

    return (lack && kt_history_shrink(m->history, lack)) || evict_freed(m);
}

void kt_evict_for_others(KtModel *m)
{
    uint64_t lack = kt_budget_lack(m->budget, KT_MEM_HISTORY, 0);

    if (G_UNLIKELY(lack)) {
        kt_history_shrink(m->history, lack);
    }
}
