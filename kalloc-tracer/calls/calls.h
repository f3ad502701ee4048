/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a tracer has for calls: a part of it (see boot-part.h). kt-calls.h has
 * what commands use.
 */
#ifndef KT_CALLS_H
#define KT_CALLS_H

#include "kalloc-tracer/calls/call-journal.h"
#include "kalloc-tracer/calls/call-points.h"
#include "kalloc-tracer/calls/call-records.h"
#include "kalloc-tracer/calls/watch.h"
#include "kalloc-tracer/kt.h"

/** struct KtCalls - call points, the records of their calls, and which of these
 *  are in the journal; all owned. @plans: those of --deref. @layout: of the
 *  kernel that runs. @budget: (borrowed, nullable) */
typedef struct KtCalls {
    KtCallPoints *points;
    KtCallRecords *records;
    KtCallSaver *saver;
    KtDerefTable *plans;
    KtCallLayout layout;
    KtBudget *budget;
} KtCalls;

/** kt_tracer_calls() - (borrowed for the tracer's life) Return them. Any
 *  thread. */
KtCalls *kt_tracer_calls(KtTracer *t);
/** kt_calls_begin_boot() - Resolve all requests in a kernel that was found. @k:
 *  (borrowed until kt_calls_end_boot()) */
void kt_calls_begin_boot(KtCalls *c, const GsKernel *k);
/** kt_calls_end_boot() - Drop all points and records; requests stay. No vCPU
 *  executes. */
void kt_calls_end_boot(KtCalls *c);
/** kt_calls_reclaim() - Free sets of points that are no longer published. If no
 *  function is watched any more, also drop the calls under way: their records
 *  are not wanted, and nobody awaits their returns. No vCPU executes. */
void kt_calls_reclaim(KtCalls *c);
/** kt_calls_open() - (borrowed, nullable) Return the calls under way; NULL if
 *  no function is watched. Any thread, lock free. */
GS_HOT KtOpenCalls *kt_calls_open(const KtCalls *c);
/** kt_calls_module() - Find the points of the module that was just added as
 *  @module_va, or drop those of one that is about to be unloaded if not
 *  @added. Returns: true if the calls of this module are watched by name, so
 *  that a session begins or ends. */
bool kt_calls_module(KtCalls *c, const GsKernel *k, uint64_t module_va,
                     bool added);

#endif /* KT_CALLS_H */
