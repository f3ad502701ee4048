/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counters that any thread may add to at any time.
 *
 * Each thread adds to one of a few copies, so that vCPUs do not fight for
 * one cache line; a reader sums the copies.
 */
#ifndef KT_COUNTERS_H
#define KT_COUNTERS_H

#include "kalloc-tracer/api/kt-types.h"

typedef struct KtCounters KtCounters;

KtCounters *kt_counters_new(void);
void kt_counters_free(KtCounters *c);
void kt_counters_add(KtCounters *c, KtCounter id, uint64_t n);
/** kt_counters_set() - nobody else adds to @id meanwhile. */
void kt_counters_set(KtCounters *c, KtCounter id, uint64_t n);
uint64_t kt_counters_get(const KtCounters *c, KtCounter id);

#endif /* KT_COUNTERS_H */
