/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * References with flag bits: struct percpu_ref (lib/percpu-refcount.c, since
 * 5.10).
 *
 *     struct percpu_ref             struct percpu_ref_data
 *     +------------------+          +-----------+
 *     | percpu_count_ptr |<---------| ref       |
 *     | data             |--------->| ...       |
 *     +------------------+          +-----------+
 *
 * percpu_count_ptr is the address of a per-CPU block. While the count is
 * atomic, or the object dies, bits 0 and 1 are set. Most per-CPU blocks have
 * small numbers as addresses, of which only the exact one counts
 * (KT_MARKERF_EXACT). So each such word is added to its block.
 */
#include "kalloc-tracer/leak/roots.h"

#define FLAGS 3ull

typedef struct Layout {
    uint32_t size, ref, count, data;
} Layout;

static bool find_layout(const GsKernel *k, Layout *at)
{
    return gs_kernel_type_size(k, "percpu_ref_data", &at->size) &&
           gs_kernel_member(k, "percpu_ref_data", "ref", &at->ref, NULL) &&
           gs_kernel_member(k, "percpu_ref", "percpu_count_ptr", &at->count,
                            NULL) &&
           gs_kernel_member(k, "percpu_ref", "data", &at->data, NULL);
}

/* If the block is a struct percpu_ref_data, read the word of its percpu_ref. */
static bool read_word(const KtLiveSet *w, const Layout *at,
                      const KtLiveBlock *b, uint64_t *word)
{
    uint64_t ref, data;

    return b->layer == KT_LAYER_KMALLOC && b->requested == at->size &&
           kt_live_set_load(w, b->va + at->ref, &ref) && ref &&
           kt_live_set_load(w, ref + at->data, &data) && data == b->va &&
           kt_live_set_load(w, ref + at->count, word);
}

void kt_roots_find_percpu_refs(KtLiveSet *w)
{
    Layout at;

    if (!find_layout(w->plan->kernel, &at)) {
        return;
    }
    for (uint32_t i = 0; i < w->live->len && !w->ended; i++) {
        const KtLiveBlock *of;
        uint64_t word;

        if (!read_word(w, &at, kt_live_set_block(w, i), &word) ||
            !(word & FLAGS)) {
            continue;
        }
        of = kt_live_set_find(w, word & ~FLAGS);
        if (of && of->layer == KT_LAYER_PERCPU &&
            kt_live_set_is_exact(w, of->va)) {
            kt_marker_also(w->scan, kt_live_set_index(w, of), word);
        }
    }
}
