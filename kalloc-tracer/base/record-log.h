/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ring of traced events.
 *
 * Entry number n is in slot n % size. Example: a ring of 4 after the entries 1
 * to 6; 1 and 2 were overwritten:
 *
 *     slot      0    1    2    3
 *             +----+----+----+----+
 *             | 4  | 5  | 6  | 3  |     first = 3, last = 6
 *             +----+----+----+----+
 *
 * No lock: the tracer's lock is held.
 */
#ifndef KT_RECORD_LOG_H
#define KT_RECORD_LOG_H

#include "kalloc-tracer/api/kt-trace.h"

/**
 * struct KtTraceRing - the ring
 * @slot: (owned) @size entries; NULL: no ring was allocated yet
 * @begin: number of the first entry of this trace
 * @first: number of the oldest entry; @last + 1 if there is none
 * @last: number of the newest entry
 */
typedef struct KtTraceRing {
    KtTraced *slot;
    uint64_t size;
    uint64_t begin, first, last;
} KtTraceRing;

/** kt_trace_ring_begin() - Make the ring empty, with @size slots, at least 1.
 *  Numbers go on. Return false, with nothing changed, if there is no memory. */
bool kt_trace_ring_begin(KtTraceRing *r, uint64_t size);
/** kt_trace_ring_deinit() - Free the slots. */
void kt_trace_ring_deinit(KtTraceRing *r);

/** kt_trace_ring_add() - Add an entry to a ring with slots. Return true if an
 *  older one was overwritten. */
bool kt_trace_ring_add(KtTraceRing *r, const KtTraced *entry);

/** kt_trace_ring_read() - As kt_query_trace(). */
uint64_t kt_trace_ring_read(const KtTraceRing *r, uint64_t after, unsigned max,
                            GArray *out, uint64_t *missing);

#endif /* KT_RECORD_LOG_H */
