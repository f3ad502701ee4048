/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Blocks of kmem_caches: see commands.h.
 *
 * Two blocks are allocated in the same call of kmem_cache_create() if the
 * frames outside of that function are the same:
 *
 *     kmem_cache_alloc()      kstrdup()
 *     create_cache()          sysfs_slab_add()
 *     kmem_cache_create()     kmem_cache_create()
 *     ------------------------------------------------  outside:
 *     init+0x33[mod]          init+0x33[mod]
 *     do_one_initcall()       do_one_initcall()
 *
 * A loop that makes several caches has one such call; all that was allocated in
 * it belongs to the first of them.
 */
#include "monitor-cmds/commands/commands.h"

#include <string.h>

/* Part of the names of functions that make a cache, in all kernels. */
#define CREATE "kmem_cache_create"

/*
 * @outside: id of a stack -> the frames outside (GBytes), NULL if no function
 *           of it makes a cache
 * @cache: frames outside -> address of the kmem_cache
 */
struct McCacheParts {
    KtTracer *t;
    const GsKernel *k;
    GHashTable *outside;
    GHashTable *cache;
};

static void unref_bytes(gpointer p)
{
    if (p) {
        g_bytes_unref(p);
    }
}

McCacheParts *mc_cache_parts_new(KtTracer *t, const GsKernel *k)
{
    McCacheParts *p = g_new0(McCacheParts, 1);

    p->t = t;
    p->k = k;
    p->outside = g_hash_table_new_full(NULL, NULL, NULL, unref_bytes);
    p->cache = g_hash_table_new_full(g_bytes_hash, g_bytes_equal,
                                     unref_bytes, g_free);
    return p;
}

void mc_cache_parts_free(McCacheParts *p)
{
    if (p) {
        g_hash_table_unref(p->outside);
        g_hash_table_unref(p->cache);
        g_free(p);
    }
}

static bool makes_cache(const McCacheParts *p, const McStack *s, unsigned i)
{
    g_autoptr(GString) name = g_string_new(NULL);
    McFrame f = mc_frame(s, i);

    mc_put_pc(name, p->k, &f);
    return strstr(name->str, CREATE);
}

/* Return (owned, nullable) the frames outside of the outermost function that
 * makes a cache. */
static GBytes *find_outside(const McCacheParts *p, KtStackId id)
{
    McStack s = mc_stack(p->t, id);
    unsigned from = s.n;

    while (from && !makes_cache(p, &s, from - 1)) {
        from--;
    }
    return !from || from == s.n ?
               NULL :
               g_bytes_new(s.pc + from, (s.n - from) * sizeof(*s.pc));
}

static GBytes *outside_of(McCacheParts *p, KtStackId id)
{
    gpointer key = GUINT_TO_POINTER(id.v), frames;

    if (!g_hash_table_lookup_extended(p->outside, key, NULL, &frames)) {
        frames = find_outside(p, id);
        g_hash_table_insert(p->outside, key, frames);
    }
    return frames;
}

static bool is_cache(const McCacheParts *p, const KtBlock *b)
{
    KtCacheInfo cache;

    return b->layer == KT_LAYER_CACHE &&
           kt_tracer_cache(p->t, b->cache, &cache) &&
           !strcmp(cache.name, "kmem_cache");
}

void mc_cache_parts_add(McCacheParts *p, const KtBlock *b)
{
    GBytes *frames = is_cache(p, b) ? outside_of(p, b->alloc_stack) : NULL;

    if (frames && !g_hash_table_contains(p->cache, frames)) {
        g_hash_table_insert(p->cache, g_bytes_ref(frames),
                            g_memdup2(&b->va, sizeof(b->va)));
    }
}

uint64_t mc_cache_parts_find(McCacheParts *p, const KtBlock *b)
{
    const uint64_t *va;
    GBytes *frames;

    if (!g_hash_table_size(p->cache)) {
        return 0;
    }
    frames = outside_of(p, b->alloc_stack);
    va = frames ? g_hash_table_lookup(p->cache, frames) : NULL;
    return !va ? 0 : is_cache(p, b) ? b->va : *va;
}
