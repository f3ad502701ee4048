/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * History: past lives of addresses, newest first, oldest dropped first.
 *
 * A ring of 47-byte rows with a hash index: a row is registered under
 * (level, start >> shift of the level), where the level is the smallest whose
 * granule is not smaller than the block; so a block lies in two granules of
 * its level at most, and an address is looked up under two keys a level.
 * A row links to the one registered before it in its bucket. Overwritten
 * rows are known by their age, so that nothing is ever unlinked.
 *
 * No locking: the tracer's lock covers it.
 */
#ifndef KT_HISTORY_H
#define KT_HISTORY_H

#include "kalloc-tracer/api/kt-types.h"
#include "kalloc-tracer/base/budget.h"
#include "kalloc-tracer/model/blocks.h"

typedef struct KtHistory KtHistory;

/** kt_history_new() - (owned) a history of at most @bytes of host memory.
 *  @budget: (borrowed, nullable) where they are taken as it grows. */
KtHistory *kt_history_new(uint64_t bytes, KtBudget *budget);
void kt_history_free(KtHistory *h);

/** kt_history_add() - @b ended. Kept are its place, sizes, times, layer,
 *  cache, allocating stack and task, and its free stack; of a block that
 *  kfree_rcu() queued its rcu stack, else its free task.
 *  Returns: false when a row was dropped: another for it, or itself. */
bool kt_history_add(KtHistory *h, const KtBlock *b);

/** kt_history_touch() - start to load what adding a block of @len bytes at
 *  @va will need. */
void kt_history_touch(const KtHistory *h, uint64_t va, uint64_t len);

/** kt_history_find() - past lives that contained @va, newest first. */
void kt_history_find(const KtHistory *h, uint64_t va, KtBlockFn fn,
                     void *opaque);

/** kt_history_foreach() - all past lives, oldest first, until @fn returns
 *  false. */
void kt_history_foreach(const KtHistory *h, KtBlockFn fn, void *opaque);
/** kt_history_some() - at most @n of them, from number *@at on, which moves;
 *  0 is the oldest. Returns: false when there are no more. */
bool kt_history_some(const KtHistory *h, uint64_t *at, unsigned n,
                     KtBlockFn fn, void *opaque);
/** kt_history_renumber() - give every past life other ids. */
void kt_history_renumber(KtHistory *h, const KtRenumber *to);
/** kt_history_shrink() - drop the oldest rows until @bytes went back to the
 *  system, or all. Returns: how many bytes did. */
uint64_t kt_history_shrink(KtHistory *h, uint64_t bytes);
/** kt_history_evicted() - rows that were dropped, or not kept, so far. */
uint64_t kt_history_evicted(const KtHistory *h);

uint64_t kt_history_rows(const KtHistory *h);
/** kt_history_bytes() - host memory of the rows so far and the index. */
uint64_t kt_history_bytes(const KtHistory *h);

#endif /* KT_HISTORY_H */
