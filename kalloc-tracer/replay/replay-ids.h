/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Translation of a journal's ids of backtraces, tasks and caches to ids of the
 * tracer that the journal is read into. For replay.c.
 *
 * The file is not trusted: an id that is not defined is refused, and there are
 * no more definitions than a file of its size can have.
 *
 * Threads: one at a time, no locks.
 */
#ifndef KT_REPLAY_IDS_H
#define KT_REPLAY_IDS_H

#include "guest-symbols/base/bytes.h"
#include "kalloc-tracer/hooks/hook-table.h"

typedef struct KtReplayIds KtReplayIds;

/** kt_replay_ids_new() - Create a translation from the ids of a file of @bytes
 *  to ids of @t, which is borrowed. Returns: (owned). */
KtReplayIds *kt_replay_ids_new(KtTracer *t, uint64_t bytes);
void kt_replay_ids_free(KtReplayIds *ids);

/** kt_replay_ids_define() - Read all definitions of one frame. Returns: false
 *  if they make no sense. */
bool kt_replay_ids_define(KtReplayIds *ids, const GsKernel *k, GsBytes *in);
/** kt_replay_ids_translate() - Replace the ids in @ev. Returns: false if one is
 *  not defined. */
bool kt_replay_ids_translate(const KtReplayIds *ids, KtEvent *ev);

/**
 * kt_replay_ids_hooks() - Set @table to the names in a journal's frame
 *
 * Ids of hooks in events are rows of the table of the ka that wrote the
 * journal. @table keeps its rows if the frame has the same names. Otherwise
 * names that were borrowed from it become invalid.
 *
 * Returns: false if the frame is malformed.
 */
bool kt_replay_ids_hooks(KtHookTable *table, GsBytes *in);

#endif /* KT_REPLAY_IDS_H */
