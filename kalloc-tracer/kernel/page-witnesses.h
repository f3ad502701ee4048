/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * KtPageWitnesses: learns how the cache of an object is found from its page, in
 * a kernel that has no types:
 *
 *     object -> its struct page -> the slab's first struct page -> kmem_cache
 *              (direct map)      (compound_head)             (slab_cache)
 *
 * A witness is an object that was just allocated from a known cache. It votes
 * for each layout that leads from the object to that cache: places of the
 * direct map, sizes of struct page, offsets of both members.
 *
 * Guest memory is read through the view only. The caller has the lock.
 */
#ifndef KT_PAGE_WITNESSES_H
#define KT_PAGE_WITNESSES_H

#include "guest-symbols/gs.h"
#include "kalloc-tracer/kernel/guest.h"
#include "kalloc-tracer/kernel/votes.h"

/**
 * struct KtPageLayout - how the cache of an object is found
 * @map: the direct map
 * @tag_bits: of pointers, see gs_untag()
 * @page_shift: log2 of the bytes of a page
 * @struct_page: sizeof(struct page)
 * @page_head, @slab_cache: offsets of the members
 */
typedef struct KtPageLayout {
    GsDirectMap map;
    uint64_t tag_bits;
    unsigned page_shift;
    uint32_t struct_page;
    uint32_t page_head, slab_cache;
} KtPageLayout;

/** kt_page_layout_cache() - follow a layout from an object to its cache.
 *  @is_tail: (out, nullable) the object is not in the slab's first page.
 *  Returns: 0 if a step is not readable. */
GS_HOT uint64_t kt_page_layout_cache(const KtPageLayout *at, KtView view,
                                     uint64_t object, bool *is_tail);

/**
 * struct KtPageWitnesses
 * @at: where the kernel's variables on the direct map are
 * @votes: for layouts, by number
 * @tails: witnesses that are not in their slab's first page
 * @last_page: number of the last witness's page
 * @learned, @layout: the votes have decided
 * @heads: not yet, but all layouts that are left agree with @layout but for
 *         page_head. Bit n: it may be word n; 0: they differ
 */
typedef struct KtPageWitnesses {
    KtView view;
    GsDirectMapAt at;
    KtVotes votes;
    unsigned tails;
    uint64_t last_page;
    bool learned;
    uint8_t heads;
    KtPageLayout layout;
} KtPageWitnesses;

/** KT_PAGE_LAYOUTS - more layouts than any kernel has: the numbers in @votes
 *  are below it */
#define KT_PAGE_LAYOUTS (GS_DIRECT_MAP_MAX * 10 * KT_PAGE_SIZES * 64)

/** kt_page_witnesses_resume() - continue with @votes and @heads of a
 *  snapshot. */
void kt_page_witnesses_resume(KtPageWitnesses *w);
/** kt_page_witnesses_object() - @object of @cache was allocated. */
void kt_page_witnesses_object(KtPageWitnesses *w, uint64_t cache,
                              uint64_t object);

#endif /* KT_PAGE_WITNESSES_H */
