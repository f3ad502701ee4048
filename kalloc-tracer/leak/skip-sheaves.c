/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Skip the objects of sheaves. A sheaf is an array of a cache's free objects
 * that a CPU allocates from (struct slab_sheaf in mm/slub.c, since 6.18):
 *
 *     slab_sheaf { ..., cache, ..., size, objects[sheaf_capacity] }
 *                                         |  objects[size..]: stale, the
 *                                         |  objects are in use elsewhere
 *
 * Stale entries would keep alive every object that was allocated from the
 * sheaf, so the whole array is skipped. A block is a sheaf if its requested
 * size is that of a sheaf of some cache, and its member `cache` points to a
 * cache with sheaves of that size.
 */
#include "kalloc-tracer/leak/roots.h"

#include <string.h>

typedef struct Sheaves {
    KtLiveSet *w;
    const uint32_t *at;             /* of members */
    KtCacheId caches;               /* id of the cache "kmem_cache" */
    GHashTable *size;               /* bytes of sheaves, of all caches */
} Sheaves;

static bool has_members(const KtLayout *l)
{
    return kt_layout_has(l, KT_M_SHEAF_CACHE) &&
           kt_layout_has(l, KT_M_SHEAF_OBJECTS) &&
           kt_layout_has(l, KT_M_CACHE_CAPACITY);
}

static bool find_caches(Sheaves *s)
{
    KtCacheInfo info;

    for (unsigned id = 1; id <= UINT16_MAX &&
         kt_tracer_cache(s->w->tracer, (KtCacheId) { id }, &info); id++) {
        if (!strcmp(info.name, "kmem_cache")) {
            s->caches.v = id;
            return true;
        }
    }
    return false;
}

/* Return the bytes of a sheaf of the cache at @va, 0 if it has no sheaves. */
static uint64_t sheaf_size(const Sheaves *s, uint64_t va)
{
    uint64_t word;
    uint32_t capacity;

    if (!kt_live_set_load(s->w, va + s->at[KT_M_CACHE_CAPACITY], &word)) {
        return 0;
    }
    capacity = word;
    return capacity ? s->at[KT_M_SHEAF_OBJECTS] + 8 * (uint64_t)capacity : 0;
}

static void find_sizes(Sheaves *s)
{
    for (uint32_t i = 0; i < s->w->live->len && !s->w->ended; i++) {
        const KtLiveBlock *b = kt_live_set_block(s->w, i);
        uint64_t size = b->cache.v == s->caches.v ? sheaf_size(s, b->va) : 0;

        if (size) {
            g_hash_table_add(s->size, g_memdup2(&size, sizeof(size)));
        }
    }
}

static bool is_sheaf(const Sheaves *s, const KtLiveBlock *b)
{
    const KtLiveBlock *cache;
    uint64_t va;

    if (!g_hash_table_contains(s->size, &b->requested) ||
        !kt_live_set_load(s->w, b->va + s->at[KT_M_SHEAF_CACHE], &va)) {
        return false;
    }
    cache = kt_live_set_find(s->w, va);
    return cache && cache->cache.v == s->caches.v &&
           sheaf_size(s, va) == b->requested;
}

void kt_skip_sheaves(KtLiveSet *w)
{
    g_autoptr(GHashTable) size = g_hash_table_new_full(gs_number_hash,
                                                       g_int64_equal, g_free,
                                                       NULL);
    Sheaves s = { .w = w, .at = w->layout.at, .size = size };
    uint32_t objects = s.at[KT_M_SHEAF_OBJECTS];

    if (!has_members(&w->layout) || !find_caches(&s)) {
        return;
    }
    find_sizes(&s);
    for (uint32_t i = 0; i < w->live->len && !w->ended; i++) {
        const KtLiveBlock *b = kt_live_set_block(w, i);

        if (is_sheaf(&s, b)) {
            g_array_append_val(w->sheaf, ((KtLiveSheaf) { i, objects }));
            kt_marker_skip(w->scan, i, objects, b->requested);
        }
    }
}
