/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Holders: for each of several blocks in use, the word that refers to it most
 * surely. `ka leak module` says by this why a block is no leak.
 *
 * Called by kt_leak_classify(), in the thread of the monitor command.
 */
#ifndef KT_HOLDERS_H
#define KT_HOLDERS_H

#include "kalloc-tracer/leak/live-set.h"

/**
 * kt_holders_find() - set holder and among of the blocks that are kept
 * @w: its blocks are marked
 * @blocks: (inout) KtReached, sorted by address
 *
 * Takes the tracer's lock to copy the blocks that refer. Returns: false if the
 * search had to end; all blocks are unknown then.
 */
bool kt_holders_find(KtLiveSet *w, GArray *blocks);

#endif /* KT_HOLDERS_H */
