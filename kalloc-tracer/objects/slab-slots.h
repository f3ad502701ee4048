/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Free slots of one slab, while the guest runs: the objects that the allocator
 * hands out next. For the shadow of access checks, which marks slots that
 * nobody owns.
 *
 *     to 6.19     the list of the CPU that allocates from the slab
 *     from 6.18   the sheaves of the CPUs
 *     all         the slab's own list
 *
 * The lists of other CPUs change meanwhile. A list whose first object is
 * another one after the walk is not used. So each object was free at some
 * moment of the walk; another vCPU may own it since.
 */
#ifndef KT_SLAB_SLOTS_H
#define KT_SLAB_SLOTS_H

#include "kalloc-tracer/api/kt-slabs.h"

/** KtFreeSlotFn - called with the address of a free object of @cache. */
typedef void (*KtFreeSlotFn)(void *opaque, const KtSlabCache *cache,
                             uint64_t va);
/**
 * kt_slabs_free_slots() - call @fn for the free objects of the slab that
 * contains @va
 *
 * Several threads may use one @s for this, if its VM reads for all of them.
 * Returns: false if the slab, or one of its lists, could not be read; @fn may
 * have been called for others.
 */
bool kt_slabs_free_slots(const KtSlabs *s, uint64_t va, KtFreeSlotFn fn,
                         void *opaque);

/* ---- one slot ------------------------------------------------------------ */
/*
 * Is an object free, by the allocator's own lists? For access checks, which ask
 * it of blocks that ka has as freed (`ka access on --verify`).
 *
 *     on a list of a CPU, of a slab, in a sheaf, in a barn       free
 *     its slab is gone, or the page is another cache's slab      free
 *     on none of them                                            not free
 *     a list is wrong, or cannot be read; KASAN or KFENCE
 *       keeps freed objects; the CPUs' lists are not found       unknown
 *
 * Not free is also what a vCPU that was stopped inside the allocator has in its
 * hands. Ask again later.
 */

/**
 * struct KtFreeQuestion - is it free?
 * @va: an address in the object
 * @cache: address of the kmem_cache that it was freed to
 * @answer: (out)
 * @object: (out) its first byte, 0 if unknown
 */
typedef struct KtFreeQuestion {
    uint64_t va, cache;
    KtAnswer answer;
    uint64_t object;
} KtFreeQuestion;

/** kt_slabs_ask_free() - Answer @n questions. Each cache is walked once. Call
 *  while no vCPU executes. */
void kt_slabs_ask_free(KtSlabs *s, KtFreeQuestion *question, unsigned n);

#endif /* KT_SLAB_SLOTS_H */
