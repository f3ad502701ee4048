/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Model: its life, its memory, and its counters; see model.h. With the tracer's
 * lock held.
 */
#include "kalloc-tracer/model/model.h"

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
