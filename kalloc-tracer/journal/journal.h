/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Journal: the file of all events, and of what queries need besides them.
 * docs/journal.md describes it.
 *
 *     tracer --events, frames--> queue --> writer thread --> file
 *
 * Whoever appends holds the tracer's lock, and only copies. The writer thread
 * encodes, packs and writes. Before kt_journal_start(), and after
 * kt_journal_stop(), whoever appends does that itself.
 *
 * If the run is repeatable (KtConfig), the file must not depend on when
 * somebody flushes. Then a frame of events ends when it is full, in front of
 * another frame, and at each second of the guest.
 */
#ifndef KT_JOURNAL_H
#define KT_JOURNAL_H

#include "kalloc-tracer/api/kt-tracer.h"
#include "kalloc-tracer/base/counters.h"
#include "kalloc-tracer/base/depot.h"
#include "kalloc-tracer/base/tasks-and-caches.h"
#include "kalloc-tracer/hooks/hook-table.h"
#include "kalloc-tracer/journal/journal-format.h"

typedef struct KtJournal KtJournal;

/**
 * kt_journal_open() - create the file @config->journal
 * @stacks, @names, @hooks: (borrowed) what ids in events stand for
 * @counters: (borrowed) KT_CNT_JOURNAL_LOST is counted if writing fails
 * @errp: the file cannot be created
 *
 * Returns: (owned) NULL on error.
 */
KtJournal *kt_journal_open(const KtConfig *config, const KtDepot *stacks,
                           const KtTasksCaches *names,
                           const KtHookTable *hooks, KtCounters *counters,
                           GError **errp);
/** kt_journal_close() - write everything and the index, close the file, and
 *  free @j. NULL is fine. */
void kt_journal_close(KtJournal *j);
/** kt_journal_end() - write everything and the index, and close the file.
 *  Events that are appended later are dropped, and counted. */
void kt_journal_end(KtJournal *j);

/** kt_journal_start() - start the writer thread. */
void kt_journal_start(KtJournal *j);
/** kt_journal_stop() - wait until the writer thread has written everything, and
 *  join it. */
void kt_journal_stop(KtJournal *j);

/** kt_journal_promise() - say in the file that events up to number @seq will
 *  follow. If the process is killed before, a reader knows how many are
 *  missing. */
void kt_journal_promise(KtJournal *j, uint64_t seq);
/** kt_journal_events() - append events (copied). */
void kt_journal_events(KtJournal *j, const KtEvent *ev, unsigned n);
/** kt_journal_control() - append a control frame. */
void kt_journal_control(KtJournal *j, KtControl control, uint32_t value);
/** kt_journal_add_frame() - append a frame. @data becomes the journal's. */
void kt_journal_add_frame(KtJournal *j, KtFrameKind kind, GByteArray *data);
/** kt_journal_flush() - hand everything to the writer thread; in a repeatable
 *  run, whole frames only. @wait: return when it is in the file */
void kt_journal_flush(KtJournal *j, bool wait);
/** kt_journal_settle() - end the frame, and return when the writer thread has
 *  packed it. */
void kt_journal_settle(KtJournal *j);

#endif /* KT_JOURNAL_H */
