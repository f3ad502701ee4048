/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Find the caches of the running kernel.
 *
 * A struct kmem_cache is an object of the cache "kmem_cache", which is so
 * itself. So each cache proves that it is one:
 *
 *     cache --> its slab --> kmem_cache --> its slab --> kmem_cache
 *
 * Candidates are the caches that events named, those of slabs with blocks if
 * there is no other, and the kernel's list of caches, which needs no head: any
 * cache leads to all others.
 */
#include "kalloc-tracer/objects/slab-internal.h"
#include "kalloc-tracer/api/kt-slabs.h"

#define CACHES_MAX 16384u
/* Blocks that are looked at to find a cache. */
#define BLOCKS_MAX 4096u

/** struct Finding - @all: the address of "kmem_cache"; @found: a set of
 *  addresses (owned keys) */
typedef struct Finding {
    KtSlabs *s;
    uint64_t all;
    GHashTable *found;
} Finding;

static bool add_cache(Finding *f, uint64_t va)
{
    uint64_t all = kt_slabs_cache_of(f->s, va);

    if (!f->all && all && kt_slabs_cache_of(f->s, all) == all) {
        f->all = all;
    }
    if (!all || all != f->all ||
        g_hash_table_size(f->found) >= CACHES_MAX) {
        return false;
    }
    g_hash_table_add(f->found, g_memdup2(&va, sizeof(va)));
    return true;
}

static void add_named(Finding *f)
{
    KtTracer *t = f->s->o.tracer;
    KtCacheInfo info;

    for (unsigned i = 1; i <= UINT16_MAX &&
         kt_tracer_cache(t, (KtCacheId) { i }, &info); i++) {
        if (!info.destroyed) {
            add_cache(f, info.va);
        }
    }
}

static bool append_va(const KtBlock *b, void *opaque)
{
    GArray *va = opaque;

    g_array_append_val(va, b->va);
    return va->len < BLOCKS_MAX;
}

/* Add the caches of the first blocks of the map. */
static void add_of_blocks(Finding *f)
{
    KtTracer *t = f->s->o.tracer;
    g_autoptr(GArray) va = g_array_new(FALSE, FALSE, sizeof(uint64_t));

    kt_query_begin(t);
    kt_query_range(t, f->s->page_offset, UINT64_MAX, append_va, va);
    kt_query_end(t);
    for (unsigned i = 0; i < va->len; i++) {
        add_cache(f, kt_slabs_cache_of(f->s, g_array_index(va, uint64_t, i)));
    }
}

/* Walk the list from "kmem_cache" on. The head of the list is no cache. */
static void add_listed(Finding *f)
{
    const KtSlabs *s = f->s;
    uint32_t at = s->at.layout.at[KT_M_CACHE_LIST];
    uint64_t link = f->all + at;

    for (unsigned n = 0; n < CACHES_MAX; n++) {
        if (!kt_slabs_pointer(s, link, &link) || link == f->all + at) {
            return;
        }
        add_cache(f, link - at);
    }
}

GArray *kt_slabs_caches(KtSlabs *s)
{
    g_autoptr(GHashTable) found = g_hash_table_new_full(
        gs_number_hash, g_int64_equal, g_free, NULL);
    GArray *caches = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    Finding f = { .s = s, .found = found };
    GHashTableIter i;
    gpointer va;

    add_named(&f);
    if (!f.all) {
        add_of_blocks(&f);
    }
    if (f.all) {
        add_cache(&f, f.all);
    }
    if (f.all && kt_slab_has(&s->at, KT_M_CACHE_LIST)) {
        add_listed(&f);
    }
    g_hash_table_iter_init(&i, found);
    while (g_hash_table_iter_next(&i, &va, NULL)) {
        g_array_append_val(caches, *(uint64_t *)va);
    }
    g_array_sort(caches, kt_objects_order);
    return caches;
}

/* ---- names --------------------------------------------------------------- */

static const struct {
    const char *owner, *name, *parts;
} lists[KT_SLAB_LIST__COUNT] = {
#define KT_SLAB_LIST(id, owner, name, parts) \
    [KT_SLAB_LIST_##id] = { owner, name, parts },
#include "kalloc-tracer/api/slab-lists.def"
};

static const struct {
    const char *name, *text;
} problems[KT_SLAB_PROBLEM__COUNT] = {
#define KT_SLAB_PROBLEM(id, name, text) [KT_SLAB_##id] = { name, text },
#include "kalloc-tracer/api/slab-problems.def"
};

const char *kt_slab_list_owner(KtSlabListKind kind)
{
    return lists[kind].owner;
}

const char *kt_slab_list_name(KtSlabListKind kind)
{
    return lists[kind].name;
}

const char *kt_slab_list_parts(KtSlabListKind kind)
{
    return lists[kind].parts;
}

const char *kt_slab_problem_name(KtSlabProblemKind kind)
{
    return problems[kind].name;
}

const char *kt_slab_problem_text(KtSlabProblemKind kind)
{
    return problems[kind].text;
}
