/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * KtSlabWitnesses: learns where the struct pages are, in an x86-64 kernel whose
 * bases are random (RANDOMIZE_MEMORY) and have no symbol.
 *
 * A witness is a call of __slab_free(cache, slab, object). It has an object and
 * the struct page of the first page of its slab:
 *
 *     slab = base + n * sizeof(struct page)
 *     n    = the first page's address >> page_shift
 *
 * @base is where the struct page of address 0 would be: the direct map and the
 * memory map are random, but their difference is all that is needed. The slab
 * begins at the object's page, rounded down to as many pages as the slab has.
 *
 * Neither that number nor the size of struct page is known. So a witness votes
 * for the base that each combination gives, and only the right one gets the
 * vote of every witness:
 *
 *     size of struct page     pages of the slab     base
 *     56                      1                     ffffd1ec1f0a3e40
 *     64                      1                     ffffcf3c00000000  <- right
 *     64                      2                     ffffcf3c00000040
 *
 * Pure functions; the caller has the lock.
 */
#ifndef KT_SLAB_WITNESSES_H
#define KT_SLAB_WITNESSES_H

#include <stdbool.h>
#include <stdint.h>

/** kt_page_sizes - the sizes that struct page can have */
#define KT_PAGE_SIZES   6
extern const uint32_t kt_page_sizes[KT_PAGE_SIZES];

/** KT_SLAB_ORDERS - a slab has at most 2^(KT_SLAB_ORDERS - 1) pages */
#define KT_SLAB_ORDERS  6
#define KT_SLAB_BASES   (KT_PAGE_SIZES * KT_SLAB_ORDERS)

/** struct KtSlabBase - a possible place of the struct pages */
typedef struct KtSlabBase {
    uint32_t struct_page;
    uint64_t base;
} KtSlabBase;

/**
 * struct KtSlabWitnesses - the votes
 * @page_shift: log2 of the bytes of a page
 * @at: the @n candidates
 * @seen: witnesses that voted
 * @last: page of the last one; the next one must be in another page
 * @contradicted: no candidate is left
 */
typedef struct KtSlabWitnesses {
    unsigned page_shift;
    KtSlabBase at[KT_SLAB_BASES];
    unsigned n, seen;
    uint64_t last;
    bool contradicted;
} KtSlabWitnesses;

/** kt_slab_witnesses_freed() - __slab_free(..., @slab, @object) is entered. */
void kt_slab_witnesses_freed(KtSlabWitnesses *w, uint64_t slab,
                             uint64_t object);
/** kt_slab_witnesses_learned() - (borrowed, nullable) return the place, if it
 *  is known. */
const KtSlabBase *kt_slab_witnesses_learned(const KtSlabWitnesses *w);

#endif /* KT_SLAB_WITNESSES_H */
