/* SPDX-License-Identifier: GPL-2.0-or-later */
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
#ifndef KT_SLAB_FREE_H
#define KT_SLAB_FREE_H

#include "kalloc-tracer/api/kt-slabs.h"

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

#endif /* KT_SLAB_FREE_H */
