/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Model: what the events of one boot make: blocks, past lives, errors.
 *
 * Two maps: page-allocator blocks lie under the slabs and vmalloc areas made
 * of them, so they have a map of their own; all other layers share one, in
 * which no two blocks overlap. No locking: the tracer's lock covers it.
 */
#ifndef KT_MODEL_H
#define KT_MODEL_H

#include "kalloc-tracer/api/kt-types.h"
#include "kalloc-tracer/base/budget.h"
#include "kalloc-tracer/base/counters.h"
#include "kalloc-tracer/model/accounts.h"
#include "kalloc-tracer/model/blocks.h"
#include "kalloc-tracer/model/errors.h"
#include "kalloc-tracer/model/history.h"
#include "kalloc-tracer/model/map.h"

typedef struct KtModel KtModel;

typedef enum KtMapId {
    KT_MAP_PAGES,
    KT_MAP_MAIN,
    KT_MAP__COUNT
} KtMapId;

/**
 * struct KtModel - one boot
 * @counters: (borrowed) where events and drops are counted
 * @count: what is not yet added to them
 * @budget: (borrowed) where memory is taken
 * @full: the last new block was not kept
 * @complete: the first allocation of the boot was seen
 * @gap: events went unrecorded since
 * @unseen: so may what is freed now be handed out: a call was lost that had
 *          not returned
 */
struct KtModel {
    KtMap map[KT_MAP__COUNT];
    KtBlocks blocks;
    KtHistory *history;
    KtErrors errors;
    KtAccounts accounts;
    KtCounters *counters;
    uint64_t count[KT_CNT__COUNT];
    /* The three sizes are apart, or the compiler would update two at once
     * and wait for them to be stored as one each time. */
    uint64_t live_blocks;
    KtBudget *budget;
    uint64_t live_bytes;
    uint64_t history_evicted;   /* of it, counted */
    bool full;
    bool complete;
    bool gap;
    bool unseen;
    uint64_t freed_blocks;
};

/** kt_model_new() - (owned) an empty boot; @history_bytes as in struct
 *  KtConfig, the rest is borrowed. @stacks: (nullable) the backtraces. */
KtModel *kt_model_new(KtCounters *counters, KtBudget *budget,
                      const KtDepot *stacks, uint64_t history_bytes);
void kt_model_free(KtModel *m);

/** kt_model_apply() - @n events, in order. Any contents are survived. */
void kt_model_apply(KtModel *m, const KtEvent *ev, unsigned n);

/** kt_model_publish() - what it counted without an event, to where events
 *  are counted. */
void kt_model_publish(KtModel *m);
/** kt_model_count_forgotten() - count the blocks and past lives, which the
 *  caller is about to drop. */
void kt_model_count_forgotten(KtModel *m);
/** kt_model_retire() - the boot ended: only its blocks are kept. */
void kt_model_retire(KtModel *m);

/** kt_model_bytes() - host memory of blocks and maps. */
uint64_t kt_model_bytes(const KtModel *m);

/** kt_model_who() - who a block is accounted to; kt_model_amount() - its
 *  bytes. */
static inline KtWho kt_model_who(const KtRec *r)
{
    return (KtWho) { r->stack, r->task, r->cache, r->layer };
}

static inline KtAmount kt_model_amount(const KtModel *m, uint32_t index)
{
    return (KtAmount) {
        kt_blocks_requested(&m->blocks, index),
        kt_blocks_len(&m->blocks, index),
    };
}

#endif /* KT_MODEL_H */
