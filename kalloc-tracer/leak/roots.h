/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Roots of a leak scan: memory in use that belongs to no block. Functions
 * kt_roots_*() add such memory to a KtLiveSet. Functions kt_skip_*() exclude
 * words that look like pointers but keep no block alive.
 *
 * Called by collect.c, in the thread of the monitor command, while the VM is
 * stopped. No locks. What a kernel's types or symbols do not describe is not
 * added; if it may refer to blocks, it is listed in KtLiveSet.missing.
 */
#ifndef KT_ROOTS_H
#define KT_ROOTS_H

#include "kalloc-tracer/leak/live-set.h"

/** kt_roots_find_percpu() - read __per_cpu_offset into @w->offset, one entry a
 *  CPU. Call before blocks of per-CPU memory are added to @w->scan. */
void kt_roots_find_percpu(KtLiveSet *w);
/** kt_roots_find() - find all roots: fill @w->region, @w->registers,
 *  @w->code and @w->pages. Calls all functions below. */
void kt_roots_find(KtLiveSet *w);
/** kt_roots_find_stacks() - add the used part of each task's stack, and of
 *  each CPU's interrupt stack. Blocks that are stacks become opaque. */
void kt_roots_find_stacks(KtLiveSet *w);
/** kt_roots_find_percpu_chunks() - add allocated per-CPU memory that is no
 *  known block, and alias the pages of all per-CPU memory. */
void kt_roots_find_percpu_chunks(KtLiveSet *w);
/** kt_roots_find_code() - fill @w->code: pointers to blocks in the kernel's
 *  instructions. Without the symbols of its code there are none. */
void kt_roots_find_code(KtLiveSet *w);
/** kt_roots_find_percpu_refs() - let words of struct percpu_ref refer to their
 *  block, though they have flag bits. */
void kt_roots_find_percpu_refs(KtLiveSet *w);

/** kt_skip_big_pages() - skip hugetlb pages and the memory of crashkernel=.
 *  @w->pages must not be NULL. */
void kt_skip_big_pages(KtLiveSet *w);
/** kt_skip_kmemleak() - skip the records of the kernel's own leak detector
 *  (CONFIG_DEBUG_KMEMLEAK): each has the address of a block. */
void kt_skip_kmemleak(KtLiveSet *w);
/** kt_skip_members() - skip the members that skip-members.def lists. */
void kt_skip_members(KtLiveSet *w);
/** kt_skip_sheaves() - skip the arrays of free objects in struct slab_sheaf,
 *  and list them in @w->sheaf. */
void kt_skip_sheaves(KtLiveSet *w);
/** kt_skip_kfree_rcu() - skip the pages that kfree_rcu() keeps in reserve.
 *  @w->pages must not be NULL. */
void kt_skip_kfree_rcu(KtLiveSet *w);

#endif /* KT_ROOTS_H */
