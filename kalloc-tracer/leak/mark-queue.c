/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Queue of the mark phase: see mark-internal.h. */
#include "kalloc-tracer/leak/mark-internal.h"

#include <glib.h>

/* Each level has a word more than it needs: find_group() may start at the
 * number after the last one. */
void kt_mark_queue_init(KtMarkQueue *q, uint32_t n)
{
    uint64_t words = n;

    q->group = 0;
    for (unsigned l = 0; l < KT_MARK_QUEUE_LEVELS; l++) {
        words = words / 64 + 1;
        q->level[l] = g_new0(uint64_t, words);
    }
}

void kt_mark_queue_deinit(KtMarkQueue *q)
{
    for (unsigned l = 0; l < KT_MARK_QUEUE_LEVELS; l++) {
        g_clear_pointer(&q->level[l], g_free);
    }
}

static inline uint64_t bits_from(const KtMarkQueue *q, unsigned level,
                                 uint32_t i)
{
    return q->level[level][i / 64] >> i % 64;
}

/* Find the first group from @i on that is not empty. Go up until a level has a
 * set bit from there on, then down to the group. */
static bool find_group(const KtMarkQueue *q, uint32_t i, uint32_t *group)
{
    unsigned l = 1;

    while (l < KT_MARK_QUEUE_LEVELS && !bits_from(q, l, i)) {
        i = i / 64 + 1;
        l++;
    }
    if (l == KT_MARK_QUEUE_LEVELS) {
        return false;
    }
    i += __builtin_ctzll(bits_from(q, l, i));
    while (--l) {
        i = i * 64 + __builtin_ctzll(q->level[l][i]);
    }
    *group = i;
    return true;
}

uint64_t kt_mark_queue_pop(KtMarkQueue *q, uint32_t *first)
{
    uint32_t i;
    uint64_t bits;

    if (!find_group(q, q->group, &i) && !find_group(q, 0, &i)) {
        return 0;
    }
    q->group = i;
    *first = i * KT_MARK_QUEUE_GROUP;
    bits = q->level[0][i];
    q->level[0][i] = 0;
    for (unsigned l = 1; l < KT_MARK_QUEUE_LEVELS && !q->level[l - 1][i]; l++) {
        q->level[l][i / 64] &= ~(1ull << i % 64);
        i /= 64;
    }
    return bits;
}
