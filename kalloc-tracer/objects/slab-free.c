/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Is an object free: see slab-free.h. Each cache in turn:
 *
 *     the objects that are asked for     a table by address
 *     walk the lists of the cache        marks those that it passes
 *     objects without a mark             not free, if all lists were read whole
 */
#include "kalloc-tracer/objects/slab-free.h"
#include "kalloc-tracer/objects/slab-internal.h"

/** struct Ask - the state for one cache. @wanted: address of an object -> was
 *  it on a list; @broken: a list was not read to its end */
typedef struct Ask {
    GHashTable *wanted;
    bool broken;
} Ask;

static void on_object(void *opaque, const KtSlabList *l, const KtFreeObject *f)
{
    Ask *a = opaque;
    gpointer key;

    if (g_hash_table_lookup_extended(a->wanted, &f->va, &key, NULL)) {
        g_hash_table_insert(a->wanted, key, GINT_TO_POINTER(true));
    }
}

/* After these two the whole list was walked all the same. */
static void on_problem(void *opaque, const KtSlabProblem *p)
{
    Ask *a = opaque;

    a->broken |= p->kind != KT_SLAB_COUNT && p->kind != KT_SLAB_LENGTH;
}

/* Return the object that is asked for, 0 if the slab already answers. */
static uint64_t find_object(const KtSlabs *s, const KtSlabCache *c,
                            KtFreeQuestion *q)
{
    KtSlab slab;
    uint32_t slot;

    q->answer = KT_UNKNOWN;
    if (!kt_slabs_slab_of(s, q->va, &slab)) {
        return 0;
    }
    if (!slab.is_slab || slab.cache != q->cache) {
        q->answer = KT_YES;
        return 0;
    }
    slot = kt_slab_len(s, c, &slab) ? kt_slab_slot_around(c, &slab, q->va) :
                                      KT_NO_SLOT;
    return slot == KT_NO_SLOT ? 0 : kt_slab_object(c, &slab, slot);
}

/* A kernel with KASAN keeps freed objects for a while, on lists of its own. */
static bool keeps_freed(const KtSlabs *s)
{
    GsSymbol sym;

    return gs_kernel_lookup(s->o.kernel, "kasan_quarantine_put", &sym);
}

/* Walk the lists of a cache. @object: by question, 0: it is not asked */
static void ask_cache(KtSlabs *s, const KtSlabCache *c, KtFreeQuestion *q,
                      uint64_t *object, unsigned n)
{
    static const KtSlabOps ops = {
        .object = on_object, .problem = on_problem,
    };
    g_autoptr(GHashTable) wanted = g_hash_table_new(gs_number_hash,
                                                    g_int64_equal);
    Ask a = { .wanted = wanted };
    bool known = kt_slabs_knows_cpus(s) && !keeps_freed(s);

    for (unsigned i = 0; i < n; i++) {
        object[i] = q[i].cache == c->va ? find_object(s, c, &q[i]) : 0;
        if (object[i]) {
            q[i].object = object[i];
            g_hash_table_insert(wanted, &object[i], NULL);
        }
    }
    if (!g_hash_table_size(wanted)) {
        return;
    }
    known &= kt_slabs_walk(s, c, &ops, &a);
    for (unsigned i = 0; i < n; i++) {
        if (object[i]) {
            q[i].answer = g_hash_table_lookup(wanted, &object[i]) ? KT_YES :
                          known && !a.broken ? KT_NO : KT_UNKNOWN;
        }
    }
}

/* Return true if an earlier question is about the same cache. */
static bool is_asked(const KtFreeQuestion *q, unsigned i)
{
    for (unsigned k = 0; k < i; k++) {
        if (q[k].cache == q[i].cache) {
            return true;
        }
    }
    return false;
}

void kt_slabs_ask_free(KtSlabs *s, KtFreeQuestion *question, unsigned n)
{
    g_autofree uint64_t *object = g_new(uint64_t, n);
    KtSlabCache cache;

    for (unsigned i = 0; i < n; i++) {
        if (is_asked(question, i)) {
            continue;
        }
        if (kt_slabs_cache(s, question[i].cache, &cache)) {
            ask_cache(s, &cache, question, object, n);
            continue;
        }
        for (unsigned k = i; k < n; k++) {
            if (question[k].cache == question[i].cache) {
                question[k].answer = KT_UNKNOWN;
            }
        }
    }
}
