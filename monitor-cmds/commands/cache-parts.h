/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Blocks that belong to a kmem_cache: the kernel allocated them in the same
 * call that made the cache. Examples: its name, its entries in sysfs, its part
 * for each CPU. A listing counts them at the line of the cache. For the
 * listings; one thread, without the tracer's lock.
 */
#ifndef MC_CACHE_PARTS_H
#define MC_CACHE_PARTS_H

#include "monitor-cmds/output/format.h"

typedef struct McCacheParts McCacheParts;

/** mc_cache_parts_new() - (owned) an empty set of caches. @k names the frames
 *  of stacks; both are borrowed. */
McCacheParts *mc_cache_parts_new(KtTracer *t, const GsKernel *k);
void mc_cache_parts_free(McCacheParts *p);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(McCacheParts, mc_cache_parts_free)

/** mc_cache_parts_add() - add @b if it is a kmem_cache; do nothing else. */
void mc_cache_parts_add(McCacheParts *p, const KtBlock *b);
/** mc_cache_parts_find() - return the address of the kmem_cache that @b belongs
 *  to, its own if it is one; 0 if there is none. */
uint64_t mc_cache_parts_find(McCacheParts *p, const KtBlock *b);

#endif /* MC_CACHE_PARTS_H */
