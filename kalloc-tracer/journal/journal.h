/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Journal: every event, in order, and what it takes to answer from the file
 * as the tracer does. docs/journal.md describes the file.
 *
 * Who appends holds the tracer's lock and pays for a copy; a thread of the
 * journal's own packs and writes. Until that is started, and after it was
 * stopped, who appends does that, too.
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

/** kt_journal_open() - (owned) begin the file @config->journal anew; the rest
 *  is borrowed. @counters: gets KT_CNT_JOURNAL_LOST when writing fails. */
KtJournal *kt_journal_open(const KtConfig *config, const KtDepot *stacks,
                           const KtTasksCaches *names,
                           const KtHookTable *hooks, KtCounters *counters,
                           GError **errp);
/** kt_journal_close() - write what is buffered and the index, and close. */
void kt_journal_close(KtJournal *j);
/** kt_journal_end() - the same, without freeing: what is appended from now on
 *  is counted as lost. */
void kt_journal_end(KtJournal *j);

/** kt_journal_start() - pack and write on a thread of its own from now on. */
void kt_journal_start(KtJournal *j);
/** kt_journal_stop() - when it has written what it has, end that thread. */
void kt_journal_stop(KtJournal *j);

/** kt_journal_promise() - events up to number @seq will follow. Should the
 *  process be killed first, the file tells how many are missing. */
void kt_journal_promise(KtJournal *j, uint64_t seq);
/** kt_journal_events() - append. */
void kt_journal_events(KtJournal *j, const KtEvent *ev, unsigned n);
/** kt_journal_control() - append what became of the boot. */
void kt_journal_control(KtJournal *j, KtControl control, uint32_t value);
/** kt_journal_add_frame() - append a frame; @data is taken. */
void kt_journal_add_frame(KtJournal *j, KtFrameKind kind, GByteArray *data);
/** kt_journal_flush() - have what is buffered written.
 *  @wait: return when it is in the file */
void kt_journal_flush(KtJournal *j, bool wait);

#endif /* KT_JOURNAL_H */
