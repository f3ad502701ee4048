/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * History: past lives, that is blocks whose memory was allocated again.
 *
 * The model adds them, queries and the self-check read them. It is a ring of
 * rows of 47 bytes: if it is full, the oldest row is evicted. A hash index
 * finds the rows that contained an address. history-rows.h draws both.
 *
 * No lock: the tracer's lock is held.
 */
#ifndef KT_HISTORY_H
#define KT_HISTORY_H

#include "kalloc-tracer/api/kt-types.h"
#include "kalloc-tracer/base/budget.h"
#include "kalloc-tracer/model/blocks.h"

typedef struct KtHistory KtHistory;

/**
 * kt_history_new() - make an empty history
 * @bytes: host memory, at most
 * @budget: (borrowed, nullable) charged as the history grows
 *
 * Returns: (owned)
 */
KtHistory *kt_history_new(uint64_t bytes, KtBudget *budget);
void kt_history_free(KtHistory *h);

/**
 * kt_history_add() - add a block whose memory was allocated again
 *
 * The row has the address, sizes, times, layer, cache, the stack and task of
 * the allocation, and the stack of the free. If kfree_rcu() queued the block it
 * has that stack too, else the task of the free.
 *
 * Returns: false if a row was evicted to make room, or there was no memory for
 * this one.
 */
bool kt_history_add(KtHistory *h, const KtBlock *b);

/** kt_history_touch() - prefetch what kt_history_add() of a block of @len bytes
 *  at @va will need. */
void kt_history_touch(const KtHistory *h, uint64_t va, uint64_t len);

/** kt_history_find() - call @fn for the past lives that contained @va, the
 *  newest first, those of pages and of objects in one order; false ends it. */
void kt_history_find(const KtHistory *h, uint64_t va, KtBlockFn fn,
                     void *opaque);
/**
 * kt_history_newest() - find the newest past life that contained @va
 * @rows: (in, out) rows that may be read; 0 afterwards: they were not enough
 *
 * Returns: false if there is none, or the rows were not enough.
 */
bool kt_history_newest(const KtHistory *h, uint64_t va, unsigned *rows,
                       KtBlock *out);

/** kt_history_foreach() - call @fn for all past lives, the oldest first; false
 *  ends it. */
void kt_history_foreach(const KtHistory *h, KtBlockFn fn, void *opaque);
/** kt_history_some() - call @fn for at most @n past lives. @at: (in, out)
 *  number to continue at; 0: the oldest. Return false if there are no more. */
bool kt_history_some(const KtHistory *h, uint64_t *at, unsigned n,
                     KtBlockFn fn, void *opaque);
/** kt_history_renumber() - replace the ids in all past lives. */
void kt_history_renumber(KtHistory *h, const KtRenumber *to);
/** kt_history_shrink() - evict the oldest rows until @bytes of memory are
 *  returned to the host, or no row is left. Return how many bytes were. */
uint64_t kt_history_shrink(KtHistory *h, uint64_t bytes);
/** kt_history_evicted() - return how many rows were evicted, or not kept. */
uint64_t kt_history_evicted(const KtHistory *h);

/** kt_history_rows() - return the number of past lives. */
uint64_t kt_history_rows(const KtHistory *h);
/** kt_history_bytes() - return the host memory of rows and index. */
uint64_t kt_history_bytes(const KtHistory *h);

#endif /* KT_HISTORY_H */
