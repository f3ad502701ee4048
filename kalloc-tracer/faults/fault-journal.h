/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Faults in the journal (KT_FRAME_FAULTS), both directions. kt_faults_save() of
 * api/kt-faults.h writes them; replay/ reads them.
 *
 *     frame:   flags (1), rules, records
 *     rules:   count; of each: number, times, action, flags, what, and of
 *              condition, value, module and task those that flags announces
 *     records: count; of each: its rule in the frame (from 0), us (a step from
 *              the record before), hash (8), n, times, value, size, flags,
 *              chance, cut, cpu, function ("": that of the record before),
 *              arguments, task, stack
 *
 * All numbers are varints, all strings have their length before them. A frame
 * has the rules that its records name, so it needs no other frame. Task and
 * stack are written as tracer/frame-ids.h says.
 *
 * One thread reads. The functions for one frame are pure, on a tracer that is
 * not read at the same time.
 */
#ifndef KT_FAULT_JOURNAL_H
#define KT_FAULT_JOURNAL_H

#include "guest-symbols/base/bytes.h"
#include "kalloc-tracer/faults/faults-internal.h"

/* Records of a frame, at most. */
#define KT_FAULT_FRAME_RECORDS 1024u

/** struct KtFaultBatch - content of a frame. @full: the log is full; @records:
 *  of kt_fault_records_new(); @names: names of functions, if the frame was
 *  read */
typedef struct KtFaultBatch {
    bool full;
    GPtrArray *records;
    GStringChunk *names;
} KtFaultBatch;

void kt_fault_batch_init(KtFaultBatch *b);
void kt_fault_batch_deinit(KtFaultBatch *b);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(KtFaultBatch, kt_fault_batch_deinit)

/** kt_fault_frame_write() - Append the records of @b, which are @t's, to
 *  @out. */
void kt_fault_frame_write(KtTracer *t, const KtFaultBatch *b, GsOut *out);
/**
 * kt_fault_frame_read() - Read a frame
 * @t: gets tasks and stacks
 * @k: (nullable) knows when the stacks were taken
 * @b: (out) initialised; names of functions are borrowed from it
 *
 * The bytes are untrusted; what cannot be printed in a string becomes "?".
 * Returns: false if they are malformed.
 */
bool kt_fault_frame_read(KtTracer *t, const GsKernel *k, GsBytes *in,
                         KtFaultBatch *b);

/**
 * kt_faults_replay() - Append the records of a frame to a tracer's log
 * @k: (nullable) knows when the stacks were taken
 * @until_us: records of later calls are skipped
 *
 * The bytes are untrusted. Records beyond KT_FAULT_LOG_MAX are dropped: no
 * writer has them. Returns: false if the bytes make no sense.
 */
bool kt_faults_replay(KtTracer *t, const GsKernel *k, GsBytes *in,
                      uint64_t until_us);

#endif /* KT_FAULT_JOURNAL_H */
