/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a model gives up when there is no memory: past lives first, the oldest
 * first; then blocks that were freed and not reused, the one freed first
 * first. A block that is allocated is never given up. No locking: the
 * tracer's lock covers it.
 */
#ifndef KT_EVICT_H
#define KT_EVICT_H

#include <stdbool.h>

typedef struct KtModel KtModel;

/** kt_evict_for_block() - make room for another block or its place in a map.
 *  Returns: false when there is nothing left to give up. */
bool kt_evict_for_block(KtModel *m);

/** kt_evict_for_others() - past lives make room for what other threads take,
 *  who cannot ask for it: backtraces, names, symbols. After each batch. */
void kt_evict_for_others(KtModel *m);

#endif /* KT_EVICT_H */
