/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Model: its life, its memory, and its counters; see model.h. With the tracer's
 * lock held.
 */
#include "kalloc-tracer/model/model.h"
#include "kalloc-tracer/model/model-internal.h"

KtModel *kt_model_new(KtCounters *counters, KtBudget *budget,
                      const KtDepot *stacks, uint64_t history_bytes)
{
    KtModel *m = g_new0(KtModel, 1);

    for (unsigned i = 0; i < KT_MAP__COUNT; i++) {
        kt_map_init(&m->map[i]);
        kt_map_charge(&m->map[i], budget, KT_MEM_BLOCKS);
    }
    kt_blocks_init(&m->blocks, budget);
    kt_errors_init(&m->errors, budget);
    kt_accounts_init(&m->accounts, budget, stacks);
    m->history = kt_history_new(history_bytes, budget);
    m->counters = counters;
    m->budget = budget;
    return m;
}

void kt_model_free(KtModel *m)
{
    if (!m) {
        return;
    }
    for (unsigned i = 0; i < KT_MAP__COUNT; i++) {
        kt_map_deinit(&m->map[i]);
    }
    kt_blocks_deinit(&m->blocks);
    kt_errors_deinit(&m->errors);
    kt_accounts_deinit(&m->accounts);
    kt_history_free(m->history);
    g_free(m);
}

void kt_model_retire(KtModel *m)
{
    kt_errors_deinit(&m->errors);
    kt_errors_init(&m->errors, m->budget);
    kt_accounts_end(&m->accounts);
    kt_history_free(m->history);
    m->history = kt_history_new(0, m->budget);
    m->history_evicted = 0;
}

uint64_t kt_model_bytes(const KtModel *m)
{
    uint64_t sum = kt_blocks_bytes(&m->blocks);

    for (unsigned i = 0; i < KT_MAP__COUNT; i++) {
        sum += kt_map_bytes(&m->map[i]);
    }
    return sum;
}

void kt_model_publish(KtModel *m)
{
    uint64_t evicted = kt_history_evicted(m->history);

    m->count[KT_CNT_EVICT_HISTORY] += evicted - m->history_evicted;
    m->history_evicted = evicted;
    for (unsigned i = 0; i < KT_CNT__COUNT; i++) {
        if (m->count[i]) {
            kt_counters_add(m->counters, i, m->count[i]);
            m->count[i] = 0;
        }
    }
}

void kt_model_count_forgotten(KtModel *m)
{
    m->count[KT_CNT_FORGOTTEN] += m->live_blocks + m->freed_blocks +
                                  kt_history_rows(m->history);
    kt_model_publish(m);
}

/* ---- eviction ------------------------------------------------------------ */
/*
 * Eviction: see model-internal.h. The model calls it when a record cannot be
 * allocated,
 * and at the end of a batch of events. What is evicted is counted.
 *
 * Each call evicts several blocks, or frees a piece of memory for thousands,
 * so an event pays a small, constant share.
 */

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
