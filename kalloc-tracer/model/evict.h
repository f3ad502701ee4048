/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a model evicts when the memory limit is reached: past lives first, the
 * oldest before the others; then freed blocks, in the order of their frees. A
 * live block is never evicted: if nothing else is left, new blocks are not
 * kept.
 *
 * No lock: the tracer's lock is held.
 */
#ifndef KT_EVICT_H
#define KT_EVICT_H

#include <stdbool.h>

typedef struct KtModel KtModel;

/** kt_evict_for_block() - make room for a block and its place in a map. Return
 *  false if there is nothing left to evict. */
bool kt_evict_for_block(KtModel *m);

/** kt_evict_for_others() - evict past lives until other threads have room for
 *  backtraces, tasks and symbols, which cannot evict anything themselves. Call
 *  it after each batch of events. */
void kt_evict_for_others(KtModel *m);

#endif /* KT_EVICT_H */
