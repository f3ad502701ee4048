/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The checker of a tracer: when it is examined, and what was found. */
#ifndef KT_CHECKER_H
#define KT_CHECKER_H

#include "kalloc-tracer/capture/pending-calls.h"
#include "kalloc-tracer/kt.h"

typedef struct KtChecker KtChecker;

/**
 * kt_checker_new() - (owned) checks at run time
 * @fn: (nullable) is told of the first violation of each rule, on the thread
 *      that found it, with the tracer's lock held
 */
KtChecker *kt_checker_new(KtCheckFn fn, void *opaque);
void kt_checker_free(KtChecker *c);

/** kt_checker_run() - a part of it, and all of it where that is due; the
 *  tracer's lock is held. */
void kt_checker_run(KtTracer *t);

/** kt_tracer_set_calls() - (borrowed for the tracer's life) the table of calls
 *  under way; before kt_tracer_start(). */
void kt_tracer_set_calls(KtTracer *t, KtPendingCalls *calls);

#endif /* KT_CHECKER_H */
