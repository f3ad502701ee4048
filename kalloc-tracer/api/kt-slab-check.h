/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compare the lists of free objects with the map. Implemented in objects/.
 *
 *     kernel        map: live   queued by      freed   never
 *                               kfree_rcu()            allocated
 *     on a list     LIVE        EARLY          ok      ok
 *     rcu sheaf     LIVE        ok             ok      FOREIGN
 *     in use        ok          ok             transit transit
 *
 * LIVE is no false alarm, wherever a vCPU stands: a free is recorded before the
 * kernel lists the object, an allocation after it was taken off. An object can
 * be in transit, in use for the kernel but not in the map: a call is under way,
 * or the kernel keeps the object (a prefilled sheaf, KASAN's quarantine).
 */
#ifndef KT_API_SLAB_CHECK_H
#define KT_API_SLAB_CHECK_H

#include "kalloc-tracer/api/kt-slabs.h"

/** What was found: the rows of slab-problems.def, with the same values, then
 *  those of slab-findings.def. */
typedef enum KtSlabFindingKind {
#define KT_SLAB_PROBLEM(id, name, text) KT_FOUND_##id,
#include "kalloc-tracer/api/slab-problems.def"
#define KT_SLAB_FINDING(id, name, text) KT_FOUND_##id,
#include "kalloc-tracer/api/slab-findings.def"
    KT_FOUND__COUNT
} KtSlabFindingKind;
const char *kt_slab_finding_name(KtSlabFindingKind kind);
const char *kt_slab_finding_text(KtSlabFindingKind kind);

/**
 * struct KtSlabFinding - something that is wrong
 * @cache: the cache whose list it is
 * @list, @number: the list, and its CPU or node
 * @position: of the object on that list; KT_NO_COUNT: not known
 * @slab: memory of the slab; 0: unknown
 * @slot, @object: the slot; if its free pointer is wrong, the slot that has
 *                 it; KT_NO_SLOT, 0: none
 * @value, @expected: as in KtSlabProblem
 * @has_block, @block: what the map has at @object
 * @has_below, @below: the same of the slot below, whose owner could have
 *                     written beyond its end
 */
typedef struct KtSlabFinding {
    KtSlabFindingKind kind;
    KtSlabCache cache;
    KtSlabListKind list;
    unsigned number;
    uint64_t position;
    uint64_t slab;
    uint32_t slot;
    uint64_t object;
    uint64_t value, expected;
    bool has_block, has_below;
    KtBlock block, below;
} KtSlabFinding;

/**
 * struct KtSlabReport - the result of a check
 * @findings: (owned) KtSlabFinding
 * @dropped: findings above KT_SLAB_FINDINGS_MAX; counted in `ka stat`, too
 * @caches, @slabs, @objects: that were checked; slabs and objects on lists
 * @transit: objects of these slabs that are in use for the kernel and not in
 *           the map; and numbers that a vCPU was about to change
 * @unsure: contradictions that are no findings for the reason @why
 * @why: (nullable, static)
 * @unreadable: caches whose numbers make no sense
 * @no_cpus: the lists of CPUs are not checked: it is not known where they are
 * @no_form: it is not known how free pointers are stored: only sheaves are
 *           checked
 * @us: host time
 */
typedef struct KtSlabReport {
    GArray *findings;
    uint64_t dropped;
    uint64_t caches, slabs, objects;
    uint64_t transit, unsure, unreadable;
    const char *why;
    bool no_cpus, no_form;
    uint64_t us;
} KtSlabReport;
#define KT_SLAB_FINDINGS_MAX 10000u

/**
 * kt_slab_check() - check the lists of all caches, or of some
 * @o: with a VM that stands
 * @cache: (nullable) name of a cache, may contain * and ?
 * @out: (out) free it with kt_slab_report_clear()
 * @errp: the VM runs, slabs cannot be shown, no vCPU maps the kernel's memory,
 *        or there is no such cache
 *
 * Call it on the thread of monitor commands, not between kt_query_begin() and
 * kt_query_end(). It takes the tracer's lock for one cache at a time.
 */
bool kt_slab_check(const KtObjects *o, const char *cache, KtSlabReport *out,
                   GError **errp);
void kt_slab_report_clear(KtSlabReport *r);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(KtSlabReport, kt_slab_report_clear)

/* ---- listing ------------------------------------------------------------- */
/*
 * What the lists of a cache say of its slabs, slab by slab and slot by slot.
 * Made by a walk (kt-slabs.h). Full slabs are on no list: the map of blocks has
 * them. Used by one thread; takes the tracer's lock for the map.
 */

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

#endif /* KT_API_SLAB_CHECK_H */
