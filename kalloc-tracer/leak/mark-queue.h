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
#ifndef KT_MARKER_GREY_H
#define KT_MARKER_GREY_H

#include <stdbool.h>
#include <stdint.h>

#define KT_GREY_GROUP   64      /* blocks that are taken together */
#define KT_GREY_LEVELS  6       /* KT_GREY_GROUP to the power of that: no more
                                 * blocks can be */

/**
 * struct KtMarkQueue - a set of numbers
 * @level: a bit for each number, then a bit for each word of these that is not
 *         0, and so on up to one word
 * @group: that was taken last
 */
typedef struct KtMarkQueue {
    uint64_t *level[KT_GREY_LEVELS];
    uint32_t group;
} KtMarkQueue;

/** kt_mark_queue_init() - for numbers below @n; none is in it. */
void kt_mark_queue_init(KtMarkQueue *g, uint32_t n);
void kt_mark_queue_deinit(KtMarkQueue *g);

/** kt_mark_queue_add() - @i is, from now on. */
static inline void kt_mark_queue_add(KtMarkQueue *g, uint32_t i)
{
    bool first = true;

    for (unsigned l = 0; first && l < KT_GREY_LEVELS; l++, i /= 64) {
        uint64_t *word = &g->level[l][i / 64];

        first = !*word;
        *word |= 1ull << i % 64;
    }
}

/** kt_mark_queue_take() - a group's numbers leave the set: a bit for each, from
 *  @first on. The next group that has some, and the last one is the next if it
 *  has some again. Returns: 0 when there is none. */
uint64_t kt_mark_queue_take(KtMarkQueue *g, uint32_t *first);

#endif /* KT_MARKER_GREY_H */
