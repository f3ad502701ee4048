/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Free slots of one slab: see slab-slots.h.
 *
 * Everything is untrusted. A list is used only if it consists of slots of the
 * slab, ends, and has no more objects than the slab has slots. That also finds
 * how free pointers are encoded: in another form a list leads nowhere.
 */
#include "kalloc-tracer/objects/slab-slots.h"
#include "kalloc-tracer/objects/slab-internal.h"

/* A sheaf with more objects is not one. */
#define SHEAF_MAX 4096u

/** struct Slots - the state; @list: room for the objects of one list */
typedef struct Slots {
    const KtSlabs *s;
    KtSlabCache cache;
    KtSlab slab;
    uint64_t *list;
    KtFreeSlotFn fn;
    void *opaque;
} Slots;

/* ---- lists --------------------------------------------------------------- */

/* Copy the list from @first on. Return false if it is none in this form. @n:
 * (out) its objects */
static bool copy_list(Slots *w, KtFreeForm form, uint64_t first, uint32_t *n)
{
    uint64_t va = first, at, stored;

    for (*n = 0; va; ++*n) {
        at = va + w->cache.offset;
        if (*n == w->slab.objects ||
            kt_slab_slot(&w->cache, &w->slab, va) == KT_NO_SLOT ||
            !kt_objects_number(&w->s->o, at, sizeof(stored), &stored)) {
            return false;
        }
        w->list[*n] = va;
        va = gs_untag(w->s->tag_bits,
                      kt_free_pointer(form, w->cache.random, at, stored));
    }
    return true;
}

static bool copy_in_any_form(Slots *w, uint64_t first, uint32_t *n)
{
    return (w->cache.hardened &&
            (copy_list(w, KT_FREE_XOR_SWAP, first, n) ||
             copy_list(w, KT_FREE_XOR, first, n))) ||
           copy_list(w, KT_FREE_PLAIN, first, n);
}

/* Report the objects of the list that begins with the word @head of the
 * structure at @va. Return false if it cannot be read, or changes. */
static bool report_list(Slots *w, uint64_t va, KtMember head)
{
    uint64_t first, now;
    uint32_t n;

    if (!kt_slabs_link(w->s, va, head, &first) ||
        !copy_in_any_form(w, first, &n) ||
        !kt_slabs_link(w->s, va, head, &now) || now != first) {
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        w->fn(w->opaque, &w->cache, w->list[i]);
    }
    return true;
}

/* ---- CPUs ---------------------------------------------------------------- */

static bool report_active(Slots *w, const KtSlabCpu *cpu)
{
    uint64_t at = w->cache.cpu_slab + cpu->offset, slab;

    return !kt_slabs_link(w->s, at, KT_M_CPU_SLAB, &slab) ||
           slab != w->slab.va || report_list(w, at, KT_M_CPU_FREELIST);
}

/* Report the objects of a sheaf that are of this slab. */
static bool report_sheaf(Slots *w, uint64_t sheaf)
{
    uint64_t at = sheaf + w->s->at.layout.at[KT_M_SHEAF_OBJECTS], cache, n, now;
    g_autofree uint64_t *object = NULL;

    if (!kt_slabs_link(w->s, sheaf, KT_M_SHEAF_CACHE, &cache) ||
        cache != w->cache.va ||
        !kt_slabs_member(w->s, sheaf, KT_M_SHEAF_SIZE, &n) ||
        n > MIN(w->cache.sheaf_capacity, SHEAF_MAX)) {
        return false;
    }
    object = g_new(uint64_t, n + 1);
    if ((n && !kt_objects_read(&w->s->o, at, object, n * sizeof(*object))) ||
        !kt_slabs_member(w->s, sheaf, KT_M_SHEAF_SIZE, &now) || now != n) {
        return false;
    }
    for (uint64_t i = 0; i < n; i++) {
        uint64_t va = gs_untag(w->s->tag_bits, GUINT64_FROM_LE(object[i]));

        if (kt_slab_slot(&w->cache, &w->slab, va) != KT_NO_SLOT) {
            w->fn(w->opaque, &w->cache, va);
        }
    }
    return true;
}

static bool report_sheaves(Slots *w, const KtSlabCpu *cpu)
{
    static const KtMember member[] = {
        KT_M_SHEAVES_MAIN, KT_M_SHEAVES_SPARE,
    };
    uint64_t at = w->cache.cpu_sheaves + cpu->offset, sheaf;
    bool ok = true;

    for (unsigned i = 0; i < G_N_ELEMENTS(member); i++) {
        if (kt_slabs_link(w->s, at, member[i], &sheaf) && sheaf) {
            ok &= report_sheaf(w, sheaf);
        }
    }
    return ok;
}

static bool report_cpus(Slots *w)
{
    bool ok = true;

    for (unsigned i = 0; i < w->s->cpus->len; i++) {
        const KtSlabCpu *cpu = &g_array_index(w->s->cpus, KtSlabCpu, i);

        if (w->cache.cpu_slab) {
            ok &= report_active(w, cpu);
        }
        if (w->cache.cpu_sheaves && w->cache.sheaf_capacity) {
            ok &= report_sheaves(w, cpu);
        }
    }
    return ok;
}

/* ---- all ----------------------------------------------------------------- */

bool kt_slabs_free_slots(const KtSlabs *s, uint64_t va, KtFreeSlotFn fn,
                         void *opaque)
{
    Slots w = { .s = s, .fn = fn, .opaque = opaque };
    g_autofree uint64_t *list = NULL;
    bool ok;

    if (!kt_slabs_slab_of(s, va, &w.slab) || !w.slab.is_slab ||
        !kt_slabs_cache(s, w.slab.cache, &w.cache) ||
        !kt_slab_len(s, &w.cache, &w.slab)) {
        return false;
    }
    w.list = list = g_new(uint64_t, w.slab.objects);
    ok = report_cpus(&w);
    return report_list(&w, w.slab.va, KT_M_SLAB_FREELIST) && ok;
}

/* ---- one slot ------------------------------------------------------------ */
/*
 * Is an object free: see slab-slots.h. Each cache in turn:
 *
 *     the objects that are asked for     a table by address
 *     walk the lists of the cache        marks those that it passes
 *     objects without a mark             not free, if all lists were read whole
 */

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
