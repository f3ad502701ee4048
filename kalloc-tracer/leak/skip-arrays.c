/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Skip the arrays of free objects of SLAB, an allocator of kernels to 6.7
 * (mm/slab.c). Each cache has one array for each CPU, and may have one for each
 * node, and one for each pair of nodes:
 *
 *     kmem_cache
 *       cpu_cache (__percpu) --> array_cache
 *       node[n] --> kmem_cache_node
 *                     shared --> array_cache
 *                     alien  --> [n] --> alien_cache { lock, ac: array_cache }
 *
 *     array_cache { avail, limit, ..., entry[limit] }
 *                                      | entry[avail..]: stale, the objects are
 *                                      | in use elsewhere
 *
 * Stale entries would keep alive every object that was allocated from the
 * array, so all entries are skipped. An array is a block of its own, and is
 * believed only if its entries fit in that block.
 */
#include "kalloc-tracer/leak/leak-internal.h"

#include <string.h>

#define NODES_MAX 64u

/*
 * struct Arrays - state of the search
 * @at: offsets of members
 * @nodes: nodes of the machine
 * @caches: addresses of kmem_caches
 * @found: numbers of the blocks that are arrays
 */
typedef struct Arrays {
    KtLiveSet *w;
    const uint32_t *at;
    unsigned nodes;
    GHashTable *caches, *found;
} Arrays;

static bool has_arrays(const KtLayout *l)
{
    return kt_layout_has(l, KT_M_CACHE_ARRAYS) &&
           kt_layout_has_all(l, KT_M_ARRAY_AVAIL, KT_M_ARRAY_ENTRY);
}

/* ---- one array ----------------------------------------------------------- */

/* Return true if the memory at @va can be a struct array_cache: its numbers fit
 * together, and its entries fit in @bytes. */
static bool is_array(const Arrays *a, uint64_t va, uint64_t bytes)
{
    uint32_t avail = kt_live_set_u32(a->w, va + a->at[KT_M_ARRAY_AVAIL]);
    uint32_t limit = kt_live_set_u32(a->w, va + a->at[KT_M_ARRAY_LIMIT]);

    return limit && avail <= limit &&
           a->at[KT_M_ARRAY_ENTRY] + 8ull * limit <= bytes;
}

/* The same for each CPU. */
static bool is_percpu_array(const Arrays *a, const KtLiveBlock *b)
{
    for (unsigned cpu = 0; cpu < a->w->offset->len; cpu++) {
        if (!is_array(a, kt_live_set_of_cpu(a->w, b->va, cpu), b->len)) {
            return false;
        }
    }
    return a->w->offset->len;
}

/* Skip the entries of the array in the block at @va, if it is one. @lead: bytes
 * in the block before the array_cache */
static void skip_array(Arrays *a, uint64_t va, uint32_t lead, bool percpu)
{
    const KtLiveBlock *b = kt_live_set_find(a->w, va);
    uint32_t entry = lead + a->at[KT_M_ARRAY_ENTRY], block;

    if (!b || (b->layer == KT_LAYER_PERCPU) != percpu || b->len <= lead ||
        !(percpu ? is_percpu_array(a, b) :
                   is_array(a, va + lead, b->len - lead))) {
        return;
    }
    block = kt_live_set_index(a->w, b);
    if (g_hash_table_add(a->found, GUINT_TO_POINTER(block))) {
        g_array_append_val(a->w->sheaf, ((KtLiveSheaf) { block, entry }));
        kt_marker_skip(a->w->scan, block, entry, b->len);
    }
}

/* ---- the arrays of a cache ----------------------------------------------- */

/* Return the word of member @m of the struct at @va, 0 if it is unknown. */
static uint64_t word_of(const Arrays *a, uint64_t va, KtMember m)
{
    uint64_t word;

    return a->at[m] != KT_NO_MEMBER &&
                   kt_live_set_load(a->w, va + a->at[m], &word) ? word : 0;
}

static void skip_aliens(Arrays *a, uint64_t table)
{
    uint64_t alien;

    for (unsigned i = 0; table && i < a->nodes; i++) {
        if (kt_live_set_load(a->w, table + i * 8, &alien) && alien) {
            skip_array(a, alien, a->at[KT_M_ALIEN_ARRAY], false);
        }
    }
}

static void skip_cache(Arrays *a, uint64_t cache)
{
    uint64_t node;

    skip_array(a, word_of(a, cache, KT_M_CACHE_ARRAYS), 0, true);
    for (unsigned i = 0; i < a->nodes; i++) {
        if (!kt_live_set_load(a->w,
                              cache + a->at[KT_M_CACHE_NODES] + i * 8,
                              &node) || !node) {
            continue;
        }
        skip_array(a, word_of(a, node, KT_M_NODE_SHARED), 0, false);
        if (a->at[KT_M_ALIEN_ARRAY] != KT_NO_MEMBER) {
            skip_aliens(a, word_of(a, node, KT_M_NODE_ALIEN));
        }
    }
}

/* ---- all caches ---------------------------------------------------------- */

static void add_cache(Arrays *a, uint64_t va)
{
    g_hash_table_add(a->caches, g_memdup2(&va, sizeof(va)));
}

/* Collect the caches that the tracer knows, and all objects of the cache
 * "kmem_cache": others may have been merged, or have no objects yet. */
static void find_caches(Arrays *a)
{
    g_autofree uint8_t *is_cache = g_new0(uint8_t, UINT16_MAX + 1);
    KtCacheInfo info;

    for (unsigned id = 1; id <= UINT16_MAX &&
         kt_tracer_cache(a->w->tracer, (KtCacheId) { id }, &info); id++) {
        is_cache[id] = !strcmp(info.name, "kmem_cache");
        add_cache(a, info.va);
    }
    for (uint32_t i = 0; i < a->w->live->len; i++) {
        const KtLiveBlock *b = kt_live_set_block(a->w, i);

        if (is_cache[b->cache.v]) {
            add_cache(a, b->va);
        }
    }
}

static unsigned count_nodes(const KtLiveSet *w)
{
    const KtLayout *l = &w->layout;
    uint64_t ids = kt_live_set_symbol(w, "nr_node_ids");
    unsigned n = kt_layout_has(l, KT_M_CACHE_NODES) ?
                     l->size[KT_M_CACHE_NODES] / 8 : 0;

    n = MIN(n, NODES_MAX);
    return ids ? MIN(n, kt_live_set_u32(w, ids)) : MIN(n, 1);
}

static gint by_block(gconstpointer a, gconstpointer b)
{
    const KtLiveSheaf *x = a, *y = b;

    return (x->block > y->block) - (x->block < y->block);
}

void kt_skip_arrays(KtLiveSet *w)
{
    g_autoptr(GHashTable) caches = g_hash_table_new_full(
        gs_number_hash, g_int64_equal, g_free, NULL);
    g_autoptr(GHashTable) found = g_hash_table_new(NULL, NULL);
    Arrays a = { .w = w, .at = w->layout.at, .nodes = count_nodes(w),
                 .caches = caches, .found = found };
    GHashTableIter iter;
    gpointer va;

    if (!has_arrays(&w->layout)) {
        return;
    }
    find_caches(&a);
    g_hash_table_iter_init(&iter, caches);
    while (g_hash_table_iter_next(&iter, &va, NULL) && !w->ended) {
        skip_cache(&a, *(const uint64_t *)va);
    }
    g_array_sort(w->sheaf, by_block);
}
