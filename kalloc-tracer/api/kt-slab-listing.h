/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the lists of a cache say of its slabs, slab by slab and slot by slot.
 * Made by a walk (kt-slabs.h). Full slabs are on no list: the map of blocks has
 * them. Used by one thread; takes the tracer's lock for the map.
 */
#ifndef KT_API_SLAB_LISTING_H
#define KT_API_SLAB_LISTING_H

#include "kalloc-tracer/api/kt-slabs.h"

/**
 * struct KtSlabSum - numbers of a cache
 * @kernel: slabs and objects as the kernel counts them
 * @listed: slabs on lists
 * @free: objects on lists; @rcu: those that still wait for RCU, not in @free
 * @partial_free: objects that are not in use, of slabs on the partial lists of
 *                nodes; /proc/slabinfo counts all others as active
 */
typedef struct KtSlabSum {
    KtSlabNumbers kernel;
    uint64_t listed, free, rcu, partial_free;
} KtSlabSum;

/** kt_slab_sum_object() - count an object of a walk. */
void kt_slab_sum_object(KtSlabSum *sum, const KtSlabList *l);
/** kt_slab_sum_slab() - count a slab of a walk. */
void kt_slab_sum_slab(KtSlabSum *sum, const KtSlabList *l, const KtSlab *slab);

/** kt_slabs_map_id() - find a cache among those that events named. Caches of
 *  early boot moved since: they are found by name, if only one has it. False if
 *  there is none. */
bool kt_slabs_map_id(const KtSlabs *s, const KtSlabCache *c, KtCacheId *id);
/** kt_slabs_in_kfence() - return true if the address can be in KFENCE's pool,
 *  whose length is not known. Its objects lie in no slab, though their struct
 *  pages say so. */
bool kt_slabs_in_kfence(const KtSlabs *s, uint64_t va);

/** struct KtSlabSlot - a slot; @listed: the object is at @position of the list
 *  @kind of @number */
typedef struct KtSlabSlot {
    bool listed;
    KtSlabListKind kind;
    unsigned number;
    uint64_t position;
} KtSlabSlot;

/** struct KtListedSlab - a slab; @listed: it is on the list @kind of @number;
 *  @slot: @slab.objects of them */
typedef struct KtListedSlab {
    KtSlab slab;
    bool listed;
    KtSlabListKind kind;
    unsigned number;
    KtSlabSlot slot[];
} KtListedSlab;

typedef struct KtSlabListing KtSlabListing;

/** kt_slab_listing_new() - (owned) walk the lists of a cache. @s, @c: borrowed
 *  while it exists */
KtSlabListing *kt_slab_listing_new(KtSlabs *s, const KtSlabCache *c);
void kt_slab_listing_free(KtSlabListing *l);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtSlabListing, kt_slab_listing_free)
/** kt_slab_listing_get() - (borrowed) return what is known of a slab of the
 *  cache, which may be on no list. Its kt_slab_len() is not 0. */
const KtListedSlab *kt_slab_listing_get(KtSlabListing *l, const KtSlab *slab);
/** kt_slab_listing_add_map() - add the slabs that have blocks in the map. */
void kt_slab_listing_add_map(KtSlabListing *l);
/** kt_slab_listing_slabs() - (owned) return all slabs (borrowed KtListedSlab),
 *  by address. */
GPtrArray *kt_slab_listing_slabs(KtSlabListing *l);

#endif /* KT_API_SLAB_LISTING_H */
