/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The numbers that a journal has for backtraces, tasks and caches, and what
 * they are in the tracer that it is read into. For replay.c.
 *
 * Nothing of the file is believed: numbers are those that a tracer hands out,
 * and there are no more definitions than a file of its size can have. No
 * locks: one thread at a time.
 */
#ifndef KT_REPLAY_IDS_H
#define KT_REPLAY_IDS_H

#include "guest-symbols/base/bytes.h"
#include "kalloc-tracer/kt.h"

typedef struct KtReplayIds KtReplayIds;

/** kt_replay_ids_new() - (owned) of a file of @bytes; @t is borrowed. */
KtReplayIds *kt_replay_ids_new(KtTracer *t, uint64_t bytes);
void kt_replay_ids_free(KtReplayIds *ids);

/** kt_replay_ids_define() - all of one frame's definitions; false if they
 *  make no sense. */
bool kt_replay_ids_define(KtReplayIds *ids, GsBytes *in);
/** kt_replay_ids_translate() - what @ev names, from the file's numbers to the
 *  tracer's; false if one is not defined. */
bool kt_replay_ids_translate(const KtReplayIds *ids, KtEvent *ev);

#endif /* KT_REPLAY_IDS_H */
