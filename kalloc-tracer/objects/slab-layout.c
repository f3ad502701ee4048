/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Layout of the slab allocator's structs: slab-internal.h. Pure functions of
 * the kernel's types. */
#include "kalloc-tracer/objects/slab-internal.h"

#include <string.h>

#define STRUCT_PAGE_MIN 32u

/* Without these, slabs are not shown. */
static const KtMember needed[] = {
    KT_M_CACHE_NAME, KT_M_CACHE_SIZE, KT_M_CACHE_OBJECT_SIZE,
    KT_M_CACHE_OFFSET, KT_M_CACHE_OO, KT_M_CACHE_MIN, KT_M_CACHE_NODES,
    KT_M_SLAB_CACHE, KT_M_SLAB_FREELIST, KT_M_SLAB_LIST, KT_M_PAGE_HEAD,
    KT_M_NODE_PARTIAL,
};

static bool find_members(KtSlabLayout *at, const GsKernel *k, GError **errp)
{
    kt_layout_init(&at->layout, k);
    for (unsigned i = 0; i < G_N_ELEMENTS(needed); i++) {
        if (!kt_slab_has(at, needed[i])) {
            g_set_error(errp, GS_ERROR, GS_ERROR_UNSUPPORTED,
                        "the types of this kernel have no %s; its slabs are "
                        "not shown", kt_member_names(needed[i]));
            return false;
        }
    }
    return true;
}

/* ---- bit fields ---------------------------------------------------------- */

/* A kernel without the bit field has it in the word `counters`, at @bit. */
static bool find_bits(const KtSlabLayout *at, const GsKernel *k,
                      const char *name, KtSlabBits in_word, KtSlabBits *out)
{
    static const char *const types[] = { "slab", "page" };

    for (unsigned i = 0; i < G_N_ELEMENTS(types); i++) {
        if (gs_kernel_bit_field(k, types[i], name, &out->bit, &out->bits) &&
            out->bits <= 32) {
            return true;
        }
    }
    if (!kt_slab_has(at, KT_M_SLAB_COUNTERS)) {
        return false;
    }
    in_word.bit += at->layout.at[KT_M_SLAB_COUNTERS] * 8;
    *out = in_word;
    return true;
}

static bool find_counters(KtSlabLayout *at, const GsKernel *k, GError **errp)
{
    if (find_bits(at, k, "inuse", (KtSlabBits) { 0, 16 }, &at->inuse) &&
        find_bits(at, k, "objects", (KtSlabBits) { 16, 15 }, &at->objects) &&
        find_bits(at, k, "frozen", (KtSlabBits) { 31, 1 }, &at->frozen)) {
        return true;
    }
    g_set_error(errp, GS_ERROR, GS_ERROR_UNSUPPORTED,
                "the types of this kernel do not say where a slab counts its "
                "objects");
    return false;
}

/* ---- pages --------------------------------------------------------------- */

/* PGTY_slab (from 6.12) is a value of the top byte of page_type; PG_slab (to
 * 6.9) a bit of the flags. In between PG_slab is no number of a bit. */
static void find_mark(KtSlabLayout *at, const GsKernel *k)
{
    int64_t v;

    if (kt_slab_has(at, KT_M_PAGE_TYPE) &&
        gs_kernel_enum_value(k, "PGTY_slab", &v) && v > 0 && v < 256) {
        at->mark = KT_MARK_TYPE;
        at->mark_value = v;
    } else if (kt_slab_has(at, KT_M_PAGE_FLAGS) &&
               gs_kernel_enum_value(k, "PG_slab", &v) && v >= 0 && v < 64) {
        at->mark = KT_MARK_FLAG;
        at->mark_value = v;
    }
}

static bool is_in(uint32_t at, uint32_t size, uint32_t bytes)
{
    return at <= bytes && size <= bytes - at;
}

/* All members of a slab are read from a copy of its struct page. */
static bool fits_page(const KtSlabLayout *at)
{
    const KtSlabBits bits[] = { at->inuse, at->objects, at->frozen };

    for (unsigned m = KT_M_SLAB_CACHE; m <= KT_M_PAGE_FLAGS; m++) {
        if (kt_slab_has(at, m) &&
            !is_in(at->layout.at[m], at->layout.size[m], at->struct_page)) {
            return false;
        }
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(bits); i++) {
        if (!is_in(bits[i].bit / 8, 8, at->struct_page)) {
            return false;
        }
    }
    return true;
}

static bool find_page(KtSlabLayout *at, const GsKernel *k, GError **errp)
{
    find_mark(at, k);
    at->page_shift = gs_kernel_page_shift(k);
    if (gs_kernel_type_size(k, "page", &at->struct_page) &&
        at->struct_page >= STRUCT_PAGE_MIN && at->struct_page % 8 == 0 &&
        at->struct_page <= KT_STRUCT_PAGE_MAX && fits_page(at)) {
        return true;
    }
    g_set_error(errp, GS_ERROR, GS_ERROR_UNSUPPORTED,
                "the types of this kernel do not say how its struct page is "
                "laid out");
    return false;
}

/* ---- caches -------------------------------------------------------------- */

static bool find_cache(KtSlabLayout *at, const GsKernel *k, GError **errp)
{
    at->node_step = 8;
    gs_kernel_type_size(k, "kmem_cache_per_node_ptrs", &at->node_step);
    at->n_nodes = at->layout.size[KT_M_CACHE_NODES] / MAX(at->node_step, 8);
    for (unsigned m = KT_M_CACHE_NAME; m < KT_M_CACHE_NODES; m++) {
        if (kt_slab_has(at, m)) {
            at->cache_bytes = MAX(at->cache_bytes,
                                  at->layout.at[m] + at->layout.size[m]);
        }
    }
    if (at->cache_bytes <= KT_CACHE_BYTES_MAX && at->n_nodes) {
        return true;
    }
    g_set_error(errp, GS_ERROR, GS_ERROR_UNSUPPORTED,
                "the types of this kernel do not say how its struct "
                "kmem_cache is laid out");
    return false;
}

/* Return (static) why the lists of an allocator that is not SLUB are not
 * shown. */
static const char *why_not(const GsKernel *k)
{
    uint32_t size;

    return kt_member(k, KT_M_CACHE_ARRAYS) != KT_NO_MEMBER ?
               "the allocator is SLAB, not SLUB: its lists of free objects "
               "are not shown" :
           gs_kernel_type_size(k, "slob_block", &size) ?
               "the allocator is SLOB, not SLUB: its pages are shared by all "
               "caches, and have no list of one cache" :
               "SLAB or SLOB, not SLUB: its lists are not shown";
}

/* Is it an allocator whose lists are known? */
static bool is_slub(const GsKernel *k, GError **errp)
{
    const char *why = NULL;

    if (!gs_kernel_has_types(k)) {
        why = "this kernel has no types (CONFIG_DEBUG_INFO_BTF): its slabs "
              "are not shown; see types=FILE";
    } else if (kt_member(k, KT_M_CACHE_OFFSET) == KT_NO_MEMBER) {
        why = why_not(k);
    } else if (kt_member(k, KT_M_VIRTUAL_HEAD) != KT_NO_MEMBER) {
        why = "slabs are in virtual memory (SLAB_VIRTUAL), and have no struct "
              "page: their lists are not shown";
    }
    if (why) {
        g_set_error(errp, GS_ERROR, GS_ERROR_UNSUPPORTED, "%s", why);
    }
    return !why;
}

bool kt_slab_layout_init(KtSlabLayout *at, const GsKernel *k, GError **errp)
{
    *at = (KtSlabLayout) { .mark = KT_MARK_NONE };
    return is_slub(k, errp) && find_members(at, k, errp) &&
           find_counters(at, k, errp) && find_page(at, k, errp) &&
           find_cache(at, k, errp);
}

uint64_t kt_slab_pick(const KtSlabLayout *at, const uint8_t *copy,
                      KtMember m)
{
    uint64_t v = 0;

    if (!kt_slab_has(at, m)) {
        return 0;
    }
    memcpy(&v, copy + at->layout.at[m], MIN(at->layout.size[m], sizeof(v)));
    return GUINT64_FROM_LE(v);
}

uint32_t kt_slab_pick_bits(const uint8_t *copy, KtSlabBits b)
{
    uint64_t v;

    memcpy(&v, copy + b.bit / 8, sizeof(v));
    return GUINT64_FROM_LE(v) >> b.bit % 8 & ((1ull << b.bits) - 1);
}

/* ---- free pointers ------------------------------------------------------- */
/*
 * Free pointers, and how this kernel encodes them. Each
 * KtSlabs decides once, by the lists of many slabs, so that a corrupt list
 * does not matter.
 */

/* Lists that decide, and caches and slabs that are tried to find them. */
#define LISTS_ENOUGH    16u
#define CACHES_MAX      512u
#define SLABS_MAX       4u

uint64_t kt_free_pointer(KtFreeForm form, uint64_t random, uint64_t at,
                         uint64_t stored)
{
    switch (form) {
    case KT_FREE_XOR:
        return stored ^ random ^ at;
    case KT_FREE_XOR_SWAP:
        return stored ^ random ^ GUINT64_SWAP_LE_BE(at);
    default:
        return stored;
    }
}

/** struct Votes - @fits: lists that each form explains; @lists: all of them */
typedef struct Votes {
    KtSlabs *s;
    const KtSlabCache *c;
    unsigned lists, fits[KT_FREE__COUNT];
} Votes;

/* Does the slab's list consist of as many slots as it should in this form, and
 * then end? */
static bool explains(const Votes *v, const KtSlab *slab, KtFreeForm form)
{
    const KtSlabCache *c = v->c;
    uint64_t at = slab->freelist, stored;

    for (uint32_t n = slab->objects - slab->inuse; n; n--) {
        if (kt_slab_slot(c, slab, at) == KT_NO_SLOT ||
            !kt_objects_number(&v->s->o, at + c->offset, 8, &stored)) {
            return false;
        }
        at = gs_untag(v->s->tag_bits,
                      kt_free_pointer(form, c->random, at + c->offset,
                                      stored));
    }
    return !at;
}

static void vote(Votes *v, const KtSlab *slab)
{
    v->lists++;
    for (unsigned form = 0; form < KT_FREE__COUNT; form++) {
        v->fits[form] += explains(v, slab, form);
    }
}

/* Let the first slabs on the list of partial slabs vote. */
static void vote_node(void *opaque, unsigned number, uint64_t node,
                      uint64_t barn)
{
    Votes *v = opaque;
    const KtSlabLayout *at = &v->s->at;
    uint64_t head = node + at->layout.at[KT_M_NODE_PARTIAL], link;
    KtSlab slab;

    if (!node || !kt_slabs_pointer(v->s, head, &link)) {
        return;
    }
    for (unsigned i = 0; i < SLABS_MAX && link != head; i++) {
        if (!kt_slabs_slab(v->s, link - at->layout.at[KT_M_SLAB_LIST], &slab) ||
            !slab.is_slab || slab.cache != v->c->va) {
            return;
        }
        if (kt_slab_len(v->s, v->c, &slab) && slab.inuse < slab.objects) {
            vote(v, &slab);
        }
        link = slab.link;
    }
}

static KtFreeForm winner(const Votes *v)
{
    KtFreeForm best = KT_FREE_PLAIN;

    for (unsigned form = 1; form < KT_FREE__COUNT; form++) {
        best = v->fits[form] > v->fits[best] ? form : best;
    }
    return v->fits[best] * 2 > v->lists ? best : KT_FREE_UNKNOWN;
}

static KtFreeForm find_form(KtSlabs *s)
{
    g_autoptr(GArray) caches = kt_slabs_caches(s);
    Votes v = { .s = s };
    KtSlabCache c;

    for (unsigned i = 0; i < MIN(caches->len, CACHES_MAX) &&
         v.lists < LISTS_ENOUGH; i++) {
        if (kt_slabs_cache(s, g_array_index(caches, uint64_t, i), &c)) {
            v.c = &c;
            kt_slabs_foreach_node(s, &c, vote_node, &v);
        }
    }
    return v.lists ? winner(&v) : KT_FREE_XOR_SWAP;
}

KtFreeForm kt_slabs_form(KtSlabs *s)
{
    if (!s->has_form) {
        s->form = kt_slab_has(&s->at, KT_M_CACHE_RANDOM) ? find_form(s) :
                                                            KT_FREE_PLAIN;
        s->has_form = true;
    }
    return s->form;
}
