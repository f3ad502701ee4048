/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Model: what the events of one boot make: blocks, past lives, errors, sums.
 *
 * There are two maps. Pages of the page allocator lie under the slabs and
 * vmalloc areas that are made of them, so page blocks have a map of their own.
 * All other layers share one. Blocks of one map never overlap.
 *
 * The tracer makes a model for each boot, and applies events to it. No lock:
 * the tracer's lock is held.
 */
#ifndef KT_MODEL_H
#define KT_MODEL_H

#include "kalloc-tracer/api/kt-event.h"
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
 * struct KtObserver - sees each event before it is applied
 * @fn: @index is the block that contains the event's address, as it is before
 *      the event; 0: none. With the tracer's lock; it must not change @m
 * @opaque: (borrowed)
 */
typedef struct KtObserver {
    void (*fn)(void *opaque, const KtModel *m, const KtEvent *ev,
               uint32_t index);
    void *opaque;
} KtObserver;

/**
 * struct KtModel - one boot
 * @counters: (borrowed)
 * @count: what is to be added to @counters at the end of a batch
 * @budget: (borrowed) what memory is charged to
 * @full: the last new block was not kept
 * @complete: the first allocation of the boot was recorded
 * @gap: events were not recorded
 * @unseen: a dropped call may have handed out memory, so a second free of a
 *          freed block may be right
 * @queued_nothing: kfree_rcu() queued what is no memory; so many frees are
 *          still to come
 * @misfreed: the last pages that kfree() or vfree() was reported for; what
 *            this call frees of them is no second error
 * @destroyed: events KT_EV_DESTROY whose objects were looked for
 * @blind: any block may have been freed unseen at any time: each new block is
 *         old at once (KtRec)
 * @observer: (borrowed, nullable)
 */
struct KtModel {
    KtMap map[KT_MAP__COUNT];
    KtBlocks blocks;
    KtHistory *history;
    KtErrors errors;
    KtAccounts accounts;
    KtCounters *counters;
    uint64_t count[KT_CNT__COUNT];
    /* These three are apart on purpose: next to each other the compiler
     * updates two with one vector store, which each following load waits
     * for. */
    uint64_t live_blocks;
    KtBudget *budget;
    uint64_t live_bytes;
    uint64_t misfreed;
    uint64_t history_evicted;   /* rows that are in @counters already */
    uint32_t queued_nothing;
    uint32_t destroyed;
    bool full;
    bool complete;
    bool gap;
    bool unseen;
    bool blind;
    uint64_t freed_blocks;
    const KtObserver *observer;
};

/** kt_model_new() - make an empty boot (owned). @history_bytes: as in struct
 *  KtConfig; the rest is borrowed; @stacks is nullable. */
KtModel *kt_model_new(KtCounters *counters, KtBudget *budget,
                      const KtDepot *stacks, uint64_t history_bytes);
void kt_model_free(KtModel *m);

/** kt_model_apply() - apply @n events in order. Their contents are
 *  untrusted. */
void kt_model_apply(KtModel *m, const KtEvent *ev, unsigned n);

/** kt_model_publish() - add @count to the counters. kt_model_apply() does so
 *  itself. */
void kt_model_publish(KtModel *m);
/** kt_model_count_forgotten() - count the blocks and past lives, which the
 *  caller is about to drop. */
void kt_model_count_forgotten(KtModel *m);
/** kt_model_retire() - keep only the blocks: the boot ended. */
void kt_model_retire(KtModel *m);

/** kt_model_find() - Return the block that owns @va, live or freed; 0: none. An
 *  address in a slab belongs to the object, not to the pages of the slab.
 *  @earlier: set to a freed block at @va if the owner is pages that were handed
 *  out later; else to 0. */
uint32_t kt_model_find(const KtModel *m, uint64_t va, uint32_t *earlier);

/** kt_model_bytes() - return the host memory of blocks and maps. */
uint64_t kt_model_bytes(const KtModel *m);

/** kt_model_who() - return the accounts that a block counts in. */
static inline KtWho kt_model_who(const KtRec *r)
{
    return (KtWho) { r->stack, r->task, r->cache, r->layer };
}

/** kt_model_amount() - return the bytes that a block counts with. */
static inline KtAmount kt_model_amount(const KtModel *m, uint32_t index)
{
    return (KtAmount) {
        kt_blocks_requested(&m->blocks, index),
        kt_blocks_len(&m->blocks, index),
    };
}

#endif /* KT_MODEL_H */
