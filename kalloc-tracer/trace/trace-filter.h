/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Filter of the live trace: does an event pass?
 *
 * Names of tasks and caches, and frames of stacks, are compared once for each
 * id, because ids never change their meaning. Example: --cache kmalloc-64
 *
 *     event of cache 9    first time: name of 9 is "kmalloc-64": yes, stored
 *     event of cache 9    yes
 *
 * No lock: the tracer's lock is held.
 */
#ifndef KT_TRACE_FILTER_H
#define KT_TRACE_FILTER_H

#include "kalloc-tracer/api/kt-trace.h"

typedef struct KtTraceFilter KtTraceFilter;

/** kt_trace_filter_new() - Make a filter (owned). @t: (borrowed) has the names
 *  and stacks of ids; @spec: (copied). */
KtTraceFilter *kt_trace_filter_new(KtTracer *t, const KtTraceSpec *spec);
void kt_trace_filter_free(KtTraceFilter *f);

/** kt_trace_filter_bytes() - Return the memory that the filter of @spec
 *  needs. */
uint64_t kt_trace_filter_bytes(const KtTraceSpec *spec);

/** kt_trace_filter_passes() - Return true if the event of @entry passes. A gap
 *  always does: events of any task may be missing there. */
bool kt_trace_filter_passes(KtTraceFilter *f, const KtTraced *entry);

#endif /* KT_TRACE_FILTER_H */
