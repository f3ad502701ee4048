/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Queue of the mark phase (mark.h): numbers of blocks that were reached but not
 * scanned yet. For mark.c only; one thread.
 *
 * The queue is a set in number order, not a list. Numbers are sorted by
 * address, so neighbours in memory are scanned together and few guest pages
 * are read twice. Popping goes around: after the last group comes the first.
 *
 *     level 2   1 bit for each word of level 1 that is not 0
 *     level 1   1 bit for each word of level 0 that is not 0
 *     level 0   1 bit for each block; one word is a group of 64 blocks
 *
 * So the next non-empty group is found in a few steps up and down, O(levels).
 * Host memory: one bit a block, and 1/63 more.
 */
#ifndef KT_MARK_QUEUE_H
#define KT_MARK_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#define KT_MARK_QUEUE_GROUP   64    /* blocks that are popped together */
#define KT_MARK_QUEUE_LEVELS  6     /* at most GROUP to the power of LEVELS
                                     * blocks */

/**
 * struct KtMarkQueue - a set of block numbers
 * @level: bitmaps as drawn above
 * @group: the group that was popped last
 */
typedef struct KtMarkQueue {
    uint64_t *level[KT_MARK_QUEUE_LEVELS];
    uint32_t group;
} KtMarkQueue;

/** kt_mark_queue_init() - make an empty queue for numbers below @n. */
void kt_mark_queue_init(KtMarkQueue *q, uint32_t n);
void kt_mark_queue_deinit(KtMarkQueue *q);

/** kt_mark_queue_add() - add number @i; no effect if it is queued. */
static inline void kt_mark_queue_add(KtMarkQueue *q, uint32_t i)
{
    bool first = true;

    for (unsigned l = 0; first && l < KT_MARK_QUEUE_LEVELS; l++, i /= 64) {
        uint64_t *word = &q->level[l][i / 64];

        first = !*word;
        *word |= 1ull << i % 64;
    }
}

/** kt_mark_queue_pop() - remove the next group. @first: (out) its first number.
 *  A group that got new numbers is popped again at once. Returns: bit n is
 *  set for number @first + n; 0 if the queue is empty. */
uint64_t kt_mark_queue_pop(KtMarkQueue *q, uint32_t *first);

#endif /* KT_MARK_QUEUE_H */
