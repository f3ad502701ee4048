/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Walk over live blocks: see commands.h. */

#include "monitor-cmds/commands/commands.h"

static bool visit_block(const KtBlock *b, void *opaque)
{
    McBlockWalk *w = opaque;

    if (w->resumed && b->va <= w->behind) {
        return true;
    }
    /* the next batch starts after this address, so all blocks of one address
     * must be in the same batch */
    if (w->visits >= MC_BATCH_VISITS && b->va != w->last) {
        w->stopped = true;
        return false;
    }
    w->visits++;
    w->last = b->va;
    w->visit(w->opaque, b);
    return true;
}

void mc_block_walk_batch(McBlockWalk *w, KtTracer *t)
{
    w->visits = 0;
    w->stopped = false;
    kt_query_range(t, w->resumed ? w->behind + 1 : 0, UINT64_MAX, visit_block,
                   w);
    w->resumed = true;
    w->behind = w->last;
}
