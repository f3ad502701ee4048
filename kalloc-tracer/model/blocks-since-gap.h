/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Blocks that were allocated after the last gap, for blocks.c only.
 *
 * A gap sets KtRec.old in all blocks. A dirty bitmap says which can still be
 * new: one bit per 64 records, set when a record of the group is allocated.
 * A gap visits only the groups whose bit is set, and clears the bits. Each
 * visit is paid for by an earlier allocation, so gaps cost O(1) amortised per
 * event, however often a guest has them.
 */
#ifndef KT_BLOCKS_SINCE_GAP_H
#define KT_BLOCKS_SINCE_GAP_H

#include "kalloc-tracer/model/blocks.h"

#include <string.h>

#define GROUP_SHIFT 6
#define WORD_SHIFT  (GROUP_SHIFT + 6)       /* records of a word's groups */

/* Make room for the bit of record @index. */
static inline void young_reserve(KtBlocks *b, uint32_t index)
{
    uint32_t n = MAX(64, b->n_young);

    if (G_LIKELY(index >> WORD_SHIFT < b->n_young)) {
        return;
    }
    while (n <= index >> WORD_SHIFT) {
        n *= 2;
    }
    kt_budget_charge(b->budget, KT_MEM_BLOCKS,
                     (uint64_t)(n - b->n_young) * sizeof(*b->young));
    b->young = g_renew(uint64_t, b->young, n);
    memset(b->young + b->n_young, 0, (n - b->n_young) * sizeof(*b->young));
    b->n_young = n;
}

static inline void young_deinit(KtBlocks *b)
{
    kt_budget_release(b->budget, KT_MEM_BLOCKS,
                      (uint64_t)b->n_young * sizeof(*b->young));
    g_free(b->young);
}

static inline void young_add(KtBlocks *b, uint32_t index)
{
    b->young[index >> WORD_SHIFT] |= 1ull << (index >> GROUP_SHIFT & 63);
}

/* Set @old in all records of a group, also released ones: kt_blocks_set()
 * clears it. Return their number. */
static inline uint64_t age_group(KtBlocks *b, uint64_t group)
{
    uint64_t first = MAX(group << GROUP_SHIFT, 1);
    uint64_t end = MIN((group + 1) << GROUP_SHIFT, b->rec.used);

    for (uint64_t i = first; i < end; i++) {
        kt_rec(b, i)->old = 1;
    }
    return end - first;
}

#endif /* KT_BLOCKS_SINCE_GAP_H */
