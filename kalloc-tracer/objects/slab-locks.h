/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Locks of the slab allocator: was a vCPU stopped while it changed numbers?
 * For slab*.c of this room.
 */
#ifndef KT_SLAB_LOCKS_H
#define KT_SLAB_LOCKS_H

#include "kalloc-tracer/objects/slab-internal.h"

/** kt_slab_is_locked() - find out whether a vCPU holds a lock of the cache's
 *  nodes and barns, or of the slab (nullable). Returns: KT_UNKNOWN if this
 *  kernel has no such lock, because it is for one CPU, or keeps it
 *  elsewhere. */
KtAnswer kt_slab_is_locked(const KtSlabs *s, const KtSlabCache *c,
                           const KtSlab *slab);

#endif /* KT_SLAB_LOCKS_H */
