/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Slabs of a cache with the place of each slot on the lists of free objects:
 * see api/kt-slab-check.h. A table by the address of the struct slab, which
 * a walk fills; the walk has checked all numbers.
 */
#include "kalloc-tracer/objects/slab-internal.h"
#include "kalloc-tracer/api/kt-slab-check.h"

#include <string.h>

/* Blocks that are visited under one hold of the tracer's lock. */
#define BATCH 65536u
/* Objects of KFENCE's pool, at most; each has two pages. */
#define KFENCE_MAX 65536ull

/** struct KtSlabListing - @slabs: KtListedSlab (owned), by KtSlab.va */
struct KtSlabListing {
    KtSlabs *s;
    const KtSlabCache *c;
    GHashTable *slabs;
};

/* ---- numbers ------------------------------------------------------------- */

void kt_slab_sum_object(KtSlabSum *sum, const KtSlabList *l)
{
    if (l->kind == KT_SLAB_LIST_RCU) {
        sum->rcu++;
    } else {
        sum->free++;
    }
}

void kt_slab_sum_slab(KtSlabSum *sum, const KtSlabList *l, const KtSlab *slab)
{
    sum->listed++;
    if (l->kind == KT_SLAB_LIST_NODE_PARTIAL) {
        sum->partial_free += slab->objects - slab->inuse;
    }
}

bool kt_slabs_map_id(const KtSlabs *s, const KtSlabCache *c, KtCacheId *id)
{
    KtCacheInfo info;
    unsigned named = 0;

    for (unsigned i = 1; i <= UINT16_MAX &&
         kt_tracer_cache(s->o.tracer, (KtCacheId) { i }, &info); i++) {
        if (info.destroyed || (info.va != c->va &&
                               strcmp(info.name, c->name))) {
            continue;
        }
        *id = (KtCacheId) { i };
        if (info.va == c->va) {
            return true;
        }
        named++;
    }
    return named == 1;
}

bool kt_slabs_in_kfence(const KtSlabs *s, uint64_t va)
{
    uint64_t pool;

    return kt_objects_variable(&s->o, "__kfence_pool", 8, &pool) && pool &&
           va - gs_untag(s->tag_bits, pool) <
               KFENCE_MAX * 2 << s->at.page_shift;
}

/* ---- the table ----------------------------------------------------------- */

static KtListedSlab *get_slab(KtSlabListing *l, const KtSlab *slab)
{
    KtListedSlab *e = g_hash_table_lookup(l->slabs, &slab->va);

    if (!e) {
        e = g_malloc0(sizeof(*e) + slab->objects * sizeof(e->slot[0]));
        e->slab = *slab;
        g_hash_table_insert(l->slabs, &e->slab.va, e);
    }
    return e;
}

static void on_object(void *opaque, const KtSlabList *list,
                      const KtFreeObject *f)
{
    KtListedSlab *e = get_slab(opaque, f->slab);

    e->slot[f->slot] = (KtSlabSlot) { true, list->kind, list->number,
                                      f->position };
}

static void on_slab(void *opaque, const KtSlabList *list, const KtSlab *slab)
{
    KtListedSlab *e = get_slab(opaque, slab);

    e->listed = true;
    e->kind = list->kind;
    e->number = list->number;
}

KtSlabListing *kt_slab_listing_new(KtSlabs *s, const KtSlabCache *c)
{
    static const KtSlabOps ops = { .object = on_object, .slab = on_slab };
    KtSlabListing *l = g_new0(KtSlabListing, 1);

    l->s = s;
    l->c = c;
    l->slabs = g_hash_table_new_full(gs_number_hash, g_int64_equal, NULL,
                                     g_free);
    kt_slabs_walk(s, c, &ops, l);
    return l;
}

void kt_slab_listing_free(KtSlabListing *l)
{
    if (l) {
        g_hash_table_unref(l->slabs);
        g_free(l);
    }
}

const KtListedSlab *kt_slab_listing_get(KtSlabListing *l, const KtSlab *slab)
{
    return get_slab(l, slab);
}

static int by_address(const void *a, const void *b)
{
    uint64_t x = (*(const KtListedSlab *const *)a)->slab.base;
    uint64_t y = (*(const KtListedSlab *const *)b)->slab.base;

    return (x > y) - (x < y);
}

GPtrArray *kt_slab_listing_slabs(KtSlabListing *l)
{
    GPtrArray *slabs = g_ptr_array_new();
    GHashTableIter i;
    gpointer e;

    g_hash_table_iter_init(&i, l->slabs);
    while (g_hash_table_iter_next(&i, NULL, &e)) {
        g_ptr_array_add(slabs, e);
    }
    g_ptr_array_sort(slabs, by_address);
    return slabs;
}

/* ---- the map ------------------------------------------------------------- */

/** struct Pages - pages with blocks that may be of the cache @id; @next: where
 *  to go on; @left: blocks that may still be visited */
typedef struct Pages {
    KtCacheId id;
    unsigned shift;
    GArray *va;
    uint64_t last;
    uint64_t next;
    unsigned left;
} Pages;

static bool add_page(const KtBlock *b, void *opaque)
{
    Pages *p = opaque;
    uint64_t page = b->va >> p->shift << p->shift;

    if ((b->cache.v == p->id.v || !b->cache.v) &&
        (b->layer == KT_LAYER_KMALLOC || b->layer == KT_LAYER_CACHE) &&
        page != p->last) {
        p->last = page;
        g_array_append_val(p->va, b->va);
    }
    p->next = b->va + 1;
    return --p->left;
}

static void add_slab_of(KtSlabListing *l, uint64_t va)
{
    KtSlab slab;

    if (kt_slabs_slab_of(l->s, va, &slab) && slab.is_slab &&
        slab.cache == l->c->va && kt_slab_len(l->s, l->c, &slab)) {
        get_slab(l, &slab);
    }
}

void kt_slab_listing_add_map(KtSlabListing *l)
{
    KtTracer *t = l->s->o.tracer;
    g_autoptr(GArray) va = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    Pages p = { .shift = l->s->at.page_shift, .va = va, .last = 1 };

    kt_slabs_map_id(l->s, l->c, &p.id);
    do {
        p.left = BATCH;
        kt_query_begin(t);
        kt_query_range(t, p.next, UINT64_MAX, add_page, &p);
        kt_query_end(t);
    } while (!p.left);
    for (unsigned i = 0; i < va->len; i++) {
        add_slab_of(l, g_array_index(va, uint64_t, i));
    }
}
