/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Grey blocks: see mark-queue.h. */
#include "kalloc-tracer/leak/mark-queue.h"

#include <glib.h>

/* Each level has room for what is behind its last, too. */
void kt_mark_queue_init(KtMarkQueue *g, uint32_t n)
{
    uint64_t words = n;

    g->group = 0;
    for (unsigned l = 0; l < KT_GREY_LEVELS; l++) {
        words = words / 64 + 1;
        g->level[l] = g_new0(uint64_t, words);
    }
}

void kt_mark_queue_deinit(KtMarkQueue *g)
{
    for (unsigned l = 0; l < KT_GREY_LEVELS; l++) {
        g_clear_pointer(&g->level[l], g_free);
    }
}

static inline uint64_t bits_from(const KtMarkQueue *g, unsigned level,
                                 uint32_t i)
{
    return g->level[level][i / 64] >> i % 64;
}

/* The first group from @i on that is not empty: up to the level that knows of
 * one, then down to it. */
static bool find_group(const KtMarkQueue *g, uint32_t i, uint32_t *group)
{
    unsigned l = 1;

    while (l < KT_GREY_LEVELS && !bits_from(g, l, i)) {
        i = i / 64 + 1;
        l++;
    }
    if (l == KT_GREY_LEVELS) {
        return false;
    }
    i += __builtin_ctzll(bits_from(g, l, i));
    while (--l) {
        i = i * 64 + __builtin_ctzll(g->level[l][i]);
    }
    *group = i;
    return true;
}

uint64_t kt_mark_queue_take(KtMarkQueue *g, uint32_t *first)
{
    uint32_t i;
    uint64_t bits;

    if (!find_group(g, g->group, &i) && !find_group(g, 0, &i)) {
        return 0;
    }
    g->group = i;
    *first = i * KT_GREY_GROUP;
    bits = g->level[0][i];
    g->level[0][i] = 0;
    for (unsigned l = 1; l < KT_GREY_LEVELS && !g->level[l - 1][i]; l++) {
        g->level[l][i / 64] &= ~(1ull << i % 64);
        i /= 64;
    }
    return bits;
}
