/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Live bytes by cache over time, of a journal that is being read.
 *
 * Between two frames of the journal the bytes are followed by events alone:
 *
 *     frame 1      | frame 2      |          the tracer has applied ...
 *     + + - + - -  | + - - + +    |
 *     by events     compared       compared
 *
 * At the end of each frame they are compared with the accounts of ka, which
 * know more: a block was freed unseen, or in parts. What differs is corrected.
 * The accounts also know the greatest value of each cache, so a counter of one
 * cache has exactly this peak. One thread.
 */
#ifndef MC_LIVE_BYTES_H
#define MC_LIVE_BYTES_H

#include "monitor-cmds/export/timeline.h"

typedef struct McLiveBytes McLiveBytes;

/** mc_live_bytes_new() - (owned) begin. @t: (borrowed) the tracer of the
 *  replay; @sums: (borrowed for the call) the sums by cache of the end */
McLiveBytes *mc_live_bytes_new(KtTracer *t, const McHeapProfile *sums);
void mc_live_bytes_free(McLiveBytes *l);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(McLiveBytes, mc_live_bytes_free)

/** mc_live_bytes_restart() - drop everything: the sums of ka begin anew.
 *  @loaded: they are those of a VM state, which the tracer has. */
void mc_live_bytes_restart(McLiveBytes *l, bool loaded);
/** mc_live_bytes_event() - follow an event. @us: its time, not less than that
 *  of the last one */
void mc_live_bytes_event(McLiveBytes *l, const KtEvent *ev, uint64_t us);
/** mc_live_bytes_compare() - compare with the tracer, which has applied all
 *  events that were followed. Takes its lock. */
void mc_live_bytes_compare(McLiveBytes *l, uint64_t us);
/** mc_live_bytes_end() - move the counters to @t; only free @l then. */
void mc_live_bytes_end(McLiveBytes *l, McTimeline *t);

#endif /* MC_LIVE_BYTES_H */
