/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The writing end of a journal: frames made and appended to the file.
 *
 * For journal.c only, on one thread at a time.
 */
#ifndef KT_JOURNAL_OUT_H
#define KT_JOURNAL_OUT_H

#include "kalloc-tracer/api/kt-tracer.h"
#include "kalloc-tracer/base/counters.h"
#include "kalloc-tracer/base/depot.h"
#include "kalloc-tracer/base/tasks-and-caches.h"
#include "kalloc-tracer/hooks/hook-table.h"
#include "kalloc-tracer/journal/journal-format.h"

typedef struct KtFrameWriter KtFrameWriter;

/** kt_frame_writer_new() - (owned) appends to @fd from KT_HEAD_BYTES on; all is
 *  borrowed. @counters gets KT_CNT_JOURNAL_LOST when writing fails. */
KtFrameWriter *kt_frame_writer_new(int fd, const KtDepot *stacks,
                                   const KtTasksCaches *names,
                                   const KtHookTable *hooks,
                                   KtCounters *counters);
void kt_frame_writer_free(KtFrameWriter *o);

/** kt_frame_writer_events() - at most KT_RUN_EVENTS, and what they name
 *  first. */
void kt_frame_writer_events(KtFrameWriter *o, const KtEvent *ev, unsigned n);
/** kt_frame_writer_add() - a frame of one section; what cannot be written is
 *  kept, and tried again before the next frame. Beyond 64 MiB the file is
 *  given up: it is not ended, and all events from there on are lost. */
void kt_frame_writer_add(KtFrameWriter *o, KtFrameKind kind,
                         const GByteArray *data);
/** kt_frame_writer_end() - the index and the tail; nothing follows. */
void kt_frame_writer_end(KtFrameWriter *o);
/** kt_frame_writer_dropped() - events that the file will never have; any
 *  thread. */
uint64_t kt_frame_writer_dropped(const KtFrameWriter *o);

/** kt_write_at() - all of it, or false and errno. */
bool kt_write_at(int fd, const void *data, size_t len, uint64_t offset);

#endif /* KT_JOURNAL_OUT_H */
