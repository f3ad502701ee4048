/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The frame writer: makes frames and appends them to the file.
 *
 * For journal.c only, on one thread at a time.
 */
#ifndef KT_FRAME_WRITER_H
#define KT_FRAME_WRITER_H

#include "kalloc-tracer/api/kt-tracer.h"
#include "kalloc-tracer/base/counters.h"
#include "kalloc-tracer/base/depot.h"
#include "kalloc-tracer/base/tasks-and-caches.h"
#include "kalloc-tracer/hooks/hook-table.h"
#include "kalloc-tracer/journal/journal-format.h"

typedef struct KtFrameWriter KtFrameWriter;

/** kt_frame_writer_new() - make a writer (owned) that appends to @fd, from
 *  KT_HEAD_BYTES on. Everything is borrowed. If writing fails,
 *  KT_CNT_JOURNAL_LOST is counted in @counters. */
KtFrameWriter *kt_frame_writer_new(int fd, const KtDepot *stacks,
                                   const KtTasksCaches *names,
                                   const KtHookTable *hooks,
                                   KtCounters *counters);
void kt_frame_writer_free(KtFrameWriter *o);

/** kt_frame_writer_events() - write a frame of at most KT_RUN_EVENTS events,
 *  after the definitions of what they name. Events that cannot be written are
 *  dropped, which a gap frame says later. */
void kt_frame_writer_events(KtFrameWriter *o, const KtEvent *ev, unsigned n);
/** kt_frame_writer_add() - write a frame of one section. If that is not
 *  possible it is kept, and written before the next frame. If more than 64 MiB
 *  have to be kept, nothing is written any more: the file stays without an
 *  end, and all later events are dropped. */
void kt_frame_writer_add(KtFrameWriter *o, KtFrameKind kind,
                         const GByteArray *data);
/** kt_frame_writer_end() - write the index and the tail. Nothing may follow. */
void kt_frame_writer_end(KtFrameWriter *o);
/** kt_frame_writer_dropped() - return how many events the file will never have.
 *  Any thread. */
uint64_t kt_frame_writer_dropped(const KtFrameWriter *o);

/** kt_write_at() - write all @len bytes; return false, with errno, if that is
 *  not possible. */
bool kt_write_at(int fd, const void *data, size_t len, uint64_t offset);

#endif /* KT_FRAME_WRITER_H */
