/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Model: a kmem_cache that was destroyed with objects left; see model.h. With
 * the tracer's lock held.
 *
 * The kernel says so itself, with a warning: this is not a guess. The objects
 * stay live, because nobody can free them any more. There is an error for each
 * stack that allocated some of them, and no more than STACKS_MAX.
 */
#include "kalloc-tracer/model/model-internal.h"

/* Errors of one call. */
#define STACKS_MAX 16
/* Calls whose objects are looked for in a boot. Each search visits all blocks,
 * and a hostile guest can make as many calls as it likes. */
#define SEARCHES_MAX 256

/* The objects of one stack: the one with the lowest address, and how many. */
typedef struct Objects {
    uint32_t stack, first;
    uint64_t n;
} Objects;

static void add_object(Objects *of, unsigned *n, uint32_t stack, uint32_t index)
{
    unsigned i = 0;

    while (i < *n && of[i].stack != stack) {
        i++;
    }
    if (i == STACKS_MAX) {
        return;
    }
    if (i == *n) {
        of[(*n)++] = (Objects) { .stack = stack, .first = index };
    }
    of[i].n++;
}

/* Find the live objects of a cache, by stack. Return the number of stacks. A
 * block from before a gap may have been freed in the gap. */
static unsigned find_objects(const KtModel *m, uint16_t cache, Objects *of)
{
    KtMapIter it = kt_map_seek(&m->map[KT_MAP_MAIN], 0);
    KtMapEntry e;
    unsigned n = 0;

    while ((e = kt_map_next(&m->map[KT_MAP_MAIN], &it)).val) {
        const KtRec *r = kt_rec(&m->blocks, e.val);

        if (r->cache == cache && !r->freed && !r->old) {
            add_object(of, &n, r->stack, e.val);
        }
    }
    return n;
}

void kt_model_destroy(KtModel *m, const KtEvent *ev)
{
    Objects of[STACKS_MAX];
    KtEvent each = *ev;
    unsigned n = 0;

    kt_model_count(m, KT_CNT_EV_DESTROY);
    if (ev->cache.v && m->destroyed < SEARCHES_MAX) {
        m->destroyed++;
        n = find_objects(m, ev->cache.v, of);
    }
    for (unsigned i = 0; i < n; i++) {
        each.size = of[i].n;
        kt_model_add_error(m, KT_ERR_OBJECTS_LEFT, &each, of[i].first);
    }
    if (!n) {
        each.size = 0;
        kt_model_add_error(m, KT_ERR_OBJECTS_LEFT, &each, 0);
    }
}
