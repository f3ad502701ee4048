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

/* If the block is a struct percpu_ref_data, which has @size bytes, read the
 * word of its percpu_ref. */
static bool read_word(const KtLiveSet *w, uint32_t size,
                      const KtLiveBlock *b, uint64_t *word)
{
    const uint32_t *at = w->layout.at;
    uint64_t ref, data;

    return b->layer == KT_LAYER_KMALLOC && b->requested == size &&
           kt_live_set_load(w, b->va + at[KT_M_PERCPU_DATA_REF], &ref) && ref &&
           kt_live_set_load(w, ref + at[KT_M_PERCPU_REF_DATA], &data) &&
           data == b->va &&
           kt_live_set_load(w, ref + at[KT_M_PERCPU_REF_COUNT], word);
}

void kt_roots_find_percpu_refs(KtLiveSet *w)
{
    uint32_t size;

    if (!kt_layout_has_all(&w->layout, KT_M_PERCPU_DATA_REF,
                           KT_M_PERCPU_REF_DATA) ||
        !gs_kernel_type_size(w->plan->kernel, "percpu_ref_data", &size)) {
        return;
    }
    for (uint32_t i = 0; i < w->live->len && !w->ended; i++) {
        const KtLiveBlock *of;
        uint64_t word;

        if (!read_word(w, size, kt_live_set_block(w, i), &word) ||
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
