/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Free pointers, and how this kernel encodes them: see free-pointer.h. Each
 * KtSlabs decides once, by the lists of many slabs, so that a corrupt list
 * does not matter.
 */
#include "kalloc-tracer/objects/slab-internal.h"

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
