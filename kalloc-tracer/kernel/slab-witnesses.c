/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What calls of __slab_free() say of the struct pages: see witnesses.h.
 *
 * Such calls are rare early in the boot, so a few witnesses must do. Whatever
 * place they find has to lead from new objects to their caches besides, see
 * witnesses.h.
 */
#include "kalloc-tracer/kernel/witnesses.h"

#define WITNESSES_LEAST 4
#define KERNEL_HALF     (1ull << 63)

/* 56: without MEMCG, not aligned; 80: KMSAN. */
const uint32_t kt_page_sizes[KT_PAGE_SIZES] = { 64, 56, 72, 80, 96, 128 };

static KtSlabBase base_of(const KtSlabWitnesses *w, uint64_t slab,
                          uint64_t object, unsigned size, unsigned order)
{
    uint64_t first = (object >> w->page_shift) & ~((1ull << order) - 1);

    return (KtSlabBase) {
        .struct_page = kt_page_sizes[size],
        .base = slab - first * kt_page_sizes[size],
    };
}

static bool has(const KtSlabBase *all, unsigned n, const KtSlabBase *b)
{
    for (unsigned i = 0; i < n; i++) {
        if (all[i].struct_page == b->struct_page && all[i].base == b->base) {
            return true;
        }
    }
    return false;
}

/* List the bases that the witness votes for, each once. */
static unsigned list(const KtSlabWitnesses *w, uint64_t slab, uint64_t object,
                     KtSlabBase out[KT_SLAB_BASES])
{
    unsigned n = 0;

    for (unsigned size = 0; size < KT_PAGE_SIZES; size++) {
        for (unsigned order = 0; order < KT_SLAB_ORDERS; order++) {
            out[n] = base_of(w, slab, object, size, order);
            n += !has(out, n, &out[n]);
        }
    }
    return n;
}

static void keep(KtSlabWitnesses *w, const KtSlabBase *votes, unsigned n)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < w->n; i++) {
        if (has(votes, n, &w->at[i])) {
            w->at[kept++] = w->at[i];
        }
    }
    w->n = kept;
    w->contradicted = !kept;
}

void kt_slab_witnesses_freed(KtSlabWitnesses *w, uint64_t slab,
                             uint64_t object)
{
    uint64_t page = object >> w->page_shift;
    KtSlabBase votes[KT_SLAB_BASES];
    unsigned n;

    if (w->contradicted || page == w->last || slab < KERNEL_HALF ||
        object < KERNEL_HALF) {
        return;
    }
    w->last = page;
    n = list(w, slab, object, votes);
    if (w->seen++) {
        keep(w, votes, n);
        return;
    }
    for (w->n = 0; w->n < n; w->n++) {
        w->at[w->n] = votes[w->n];
    }
}

const KtSlabBase *kt_slab_witnesses_learned(const KtSlabWitnesses *w)
{
    return w->n == 1 && w->seen >= WITNESSES_LEAST ? &w->at[0] : 0;
}
