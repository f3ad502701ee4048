/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A walk over all live blocks in batches: the tracer's lock is held for one
 * batch. One thread. */
#ifndef MC_BLOCK_WALK_H
#define MC_BLOCK_WALK_H

#include "kalloc-tracer/kt.h"

/**
 * struct McBlockWalk - @visit, @opaque: called for each block, by address
 * @behind: the last address that is done, if @resumed
 * @resumed: a batch is done
 * @stopped: there are more blocks
 * @last, @visits: of the batch that is walked
 */
typedef struct McBlockWalk {
    void (*visit)(void *opaque, const KtBlock *b);
    void *opaque;
    uint64_t behind, last;
    unsigned visits;
    bool resumed, stopped;
} McBlockWalk;

/** mc_block_walk_batch() - visit the next blocks; between kt_query_begin() and
 *  kt_query_end() */
void mc_block_walk_batch(McBlockWalk *w, KtTracer *t);

#endif /* MC_BLOCK_WALK_H */
