/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Owners: which lost blocks are lost only because another one is. A report
 * shows the owner, and counts what it holds.
 *
 *     A --> B --> C      A owns all three: nothing but A leads to B and C
 *     A --> B --> A      a ring: the block at the lowest address owns both
 *
 * Called by leak-scan.c, in the thread of the monitor command.
 */
#ifndef KT_OWNERS_H
#define KT_OWNERS_H

#include "kalloc-tracer/leak/live-set.h"

/**
 * kt_owners_find() - find the owner of each lost block
 * @w: its blocks are marked, the unreached ones scanned
 * @r: reads the guest's memory
 *
 * Returns: (owned) by block, the number of its owner: of itself if no other
 * block owns it, or if it is reached.
 */
uint32_t *kt_owners_find(KtLiveSet *w, KtReader *r);

#endif /* KT_OWNERS_H */
