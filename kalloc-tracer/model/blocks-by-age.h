/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The order in which blocks were freed, for blocks.c only.
 *
 * Evicting needs the block that was freed first. The order is a list through
 * the pool KtBlocks.age, whose records have the numbers of the KtEnds. Without
 * a memory limit nothing is evicted, and there is no list.
 */
#ifndef KT_BLOCKS_BY_AGE_H
#define KT_BLOCKS_BY_AGE_H

#include "kalloc-tracer/model/blocks.h"

static inline KtLink *age_at(const KtBlocks *b, uint32_t end)
{
    return kt_pool_at(&b->age, end);
}

/* Add the block of @end as the newest. */
static inline void age_add(KtBlocks *b, uint32_t end)
{
    if (!b->bounded) {
        return;
    }
    while (b->age.used <= end) {
        kt_pool_alloc(&b->age);     /* reserved */
    }
    *age_at(b, end) = (KtLink) { .prev = b->newest };
    if (b->newest) {
        age_at(b, b->newest)->next = end;
    } else {
        b->oldest = end;
    }
    b->newest = end;
}

static inline void age_remove(KtBlocks *b, uint32_t end)
{
    const KtLink *link;

    if (!b->bounded) {
        return;
    }
    link = age_at(b, end);
    if (link->prev) {
        age_at(b, link->prev)->next = link->next;
    } else {
        b->oldest = link->next;
    }
    if (link->next) {
        age_at(b, link->next)->prev = link->prev;
    } else {
        b->newest = link->prev;
    }
}

#endif /* KT_BLOCKS_BY_AGE_H */
