/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counters of `ka stat`: any thread may add at any time, without a lock.
 *
 * There are 16 copies of each counter, and a thread adds to one of them, so
 * that vCPUs do not share a cache line. Reading sums the copies.
 */
#ifndef KT_COUNTERS_H
#define KT_COUNTERS_H

#include "kalloc-tracer/api/kt-types.h"

typedef struct KtCounters KtCounters;

KtCounters *kt_counters_new(void);
void kt_counters_free(KtCounters *c);
/** kt_counters_add() - add to a counter. */
void kt_counters_add(KtCounters *c, KtCounter id, uint64_t n);
/** kt_counters_set() - set a counter. No other thread may add to it
 *  meanwhile. */
void kt_counters_set(KtCounters *c, KtCounter id, uint64_t n);
/** kt_counters_get() - return the sum of all copies. */
uint64_t kt_counters_get(const KtCounters *c, KtCounter id);

#endif /* KT_COUNTERS_H */
