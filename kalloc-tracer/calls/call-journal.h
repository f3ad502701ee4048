/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Calls in the journal. kt_calls_save() of api/kt-calls.h writes them; replay/
 * reads them.
 *
 * Threads: writing any, a lock of its own; reading one.
 */
#ifndef KT_CALL_JOURNAL_H
#define KT_CALL_JOURNAL_H

#include "guest-symbols/base/bytes.h"
#include "kalloc-tracer/kt.h"

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
