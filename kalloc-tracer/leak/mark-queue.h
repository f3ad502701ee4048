/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Grey blocks of a scan (mark.h), those that were reached and not looked at so
 * far, by number. For mark.c only.
 *
 * They are taken in the order of their numbers, round and round, which is
 * mostly that of addresses. When the turn of one comes its neighbours are
 * mostly grey as well, so that few pages are read twice.
 *
 * Host memory: a bit for each block, and a 63rd as much again.
 */
#ifndef KT_MARK_QUEUE_H
#define KT_MARK_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#define KT_MARK_QUEUE_GROUP   64    /* blocks that are popped together */
#define KT_MARK_QUEUE_LEVELS  6     /* at most GROUP to the power of LEVELS
                                     * blocks */

/**
 * struct KtMarkQueue - a set of numbers
 * @level: a bit for each number, then a bit for each word of these that is not
 *         0, and so on up to one word
 * @group: that was taken last
 */
typedef struct KtMarkQueue {
    uint64_t *level[KT_MARK_QUEUE_LEVELS];
    uint32_t group;
} KtMarkQueue;

/** kt_mark_queue_init() - for numbers below @n; none is in it. */
void kt_mark_queue_init(KtMarkQueue *q, uint32_t n);
void kt_mark_queue_deinit(KtMarkQueue *q);

/** kt_mark_queue_add() - @i is, from now on. */
static inline void kt_mark_queue_add(KtMarkQueue *q, uint32_t i)
{
    bool first = true;

    for (unsigned l = 0; first && l < KT_MARK_QUEUE_LEVELS; l++, i /= 64) {
        uint64_t *word = &q->level[l][i / 64];

        first = !*word;
        *word |= 1ull << i % 64;
    }
}

/** kt_mark_queue_pop() - a group's numbers leave the set: a bit for each, from
 *  @first on. The next group that has some, and the last one is the next if it
 *  has some again. Returns: 0 when there is none. */
uint64_t kt_mark_queue_pop(KtMarkQueue *q, uint32_t *first);

#endif /* KT_MARK_QUEUE_H */
