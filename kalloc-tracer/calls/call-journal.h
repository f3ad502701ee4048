/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Calls in the journal (KT_FRAME_CALLS), both directions. kt_calls_save() of
 * api/kt-calls.h writes them; replay/ reads them.
 *
 *     frame:  flags (1), number of vCPUs, points, [plans,] records, under way
 *     points: count; of each: number, name, module, bytes of its prototype and
 *             these bytes (gs_prototype_pack()); 0 bytes: not known
 *     plans:  with KT_CALL_FRAME_DEREFS; count; of each: number, bytes of it
 *             and these bytes (deref-plan.c)
 *     records, under way: count; of each: start, result, caller (steps from the
 *             record before), took, point, flags, cpu, return cpu, rule,
 *             arguments (count, words), extra (count, bytes), task, stack
 *
 * All numbers are varints. A frame defines the points and the plans of --deref
 * that its records name, so it needs no other frame. "Under way" are the calls
 * that had not returned when the frame was made; they replace those of the
 * frame before.
 *
 * Threads: writing any, a lock of its own; reading one. The functions for one
 * frame are pure, on a tracer that is not read at the same time.
 */
#ifndef KT_CALL_JOURNAL_H
#define KT_CALL_JOURNAL_H

#include "guest-symbols/base/bytes.h"
#include "kalloc-tracer/kt.h"

/* Flag of a frame: `ka calls clear`. All records before it were dropped. */
#define KT_CALL_FRAME_CLEAR 1u
/* Records of the frame have values of --deref. */
#define KT_CALL_FRAME_DEREFS 2u
/* Calls under way in a frame, at most. */
#define KT_CALL_FRAME_OPEN 4096u

/** struct KtCallBatch - content of a frame: records as call-records.h has them,
 *  one after another */
typedef struct KtCallBatch {
    uint8_t flags;
    unsigned n_cpus;
    GByteArray *records, *under_way;
} KtCallBatch;

void kt_call_batch_init(KtCallBatch *b);
void kt_call_batch_deinit(KtCallBatch *b);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(KtCallBatch, kt_call_batch_deinit)

/** kt_call_frame_write() - Append the calls of @b, which are @t's, to @out. */
void kt_call_frame_write(KtTracer *t, const KtCallBatch *b, GsOut *out);
/**
 * kt_call_frame_read() - Read a frame
 * @t: gets points, tasks and stacks
 * @k: (nullable) knows when the return addresses were taken
 * @b: (out) initialised
 *
 * The bytes are untrusted. Returns: false if they are malformed.
 */
bool kt_call_frame_read(KtTracer *t, const GsKernel *k, GsBytes *in,
                        KtCallBatch *b);

/** KtCallSaver - which calls are in the journal already */
typedef struct KtCallSaver KtCallSaver;

KtCallSaver *kt_call_saver_new(void);
void kt_call_saver_free(KtCallSaver *s);

/** kt_call_saver_lock() - Wait until no thread writes calls, which borrows the
 *  names of points. Until kt_call_saver_unlock() none begins. */
void kt_call_saver_lock(KtCallSaver *s);
void kt_call_saver_unlock(KtCallSaver *s);

/** kt_calls_save_clear() - Write to the journal that all records were
 *  dropped. */
void kt_calls_save_clear(KtTracer *t);
/**
 * kt_calls_replay() - Read a frame of calls into a tracer
 * @until_us: calls that begin later are skipped
 * @bytes: of the file, which bounds the memory for records
 *
 * The bytes are untrusted. Returns: false if they make no sense.
 */
bool kt_calls_replay(KtTracer *t, const GsKernel *k, GsBytes *in,
                     uint64_t until_us, uint64_t bytes);

#endif /* KT_CALL_JOURNAL_H */
