/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Call records: the rings of all vCPUs, the calls under way, and how often each
 * point was entered. QEMU-free.
 *
 * Memory is allocated by kt_call_records_open(), when the first function is
 * watched. vCPU threads write; any thread reads.
 */
#ifndef KT_CALL_RECORDS_H
#define KT_CALL_RECORDS_H

#include "kalloc-tracer/base/budget.h"
#include "kalloc-tracer/calls/open-calls.h"

typedef struct KtCallRecords KtCallRecords;

/** kt_call_records_new() - (owned) Make an object without rings. @budget:
 *  (borrowed, nullable) */
KtCallRecords *kt_call_records_new(KtBudget *budget);
void kt_call_records_free(KtCallRecords *r);
/** kt_call_records_configure() - Set the bytes of all rings, 0: none, and the
 *  number of vCPUs. */
void kt_call_records_configure(KtCallRecords *r, uint64_t bytes,
                               unsigned n_cpus);
/** kt_call_records_set_uncharged() - Do not charge the budget: for the calls of
 *  a journal. Before kt_call_records_open(). */
void kt_call_records_set_uncharged(KtCallRecords *r);
/** kt_call_records_open() - Allocate the rings, if they are not. @errp: the
 *  option is calls=0, or the memory limit is reached. Returns: false on
 *  error. */
bool kt_call_records_open(KtCallRecords *r, GError **errp);

/** kt_call_records_calls() - (borrowed, nullable) Return the calls under way;
 *  NULL until kt_call_records_open(). Any thread, lock free. */
KtOpenCalls *kt_call_records_calls(const KtCallRecords *r);
/** kt_call_records_enter() - Count an entry of a point at time @ns, on the
 *  thread of vCPU @cpu. */
GS_HOT void kt_call_records_enter(KtCallRecords *r, unsigned cpu, KtPointId id,
                                  uint64_t ns);
/** kt_call_records_put() - Add a record to the ring of @call->cpu, on the
 *  thread of that vCPU. Returns: how many old records were dropped. */
GS_HOT unsigned kt_call_records_put(KtCallRecords *r, const KtCall *call,
                                    const uint64_t *args,
                                    const uint8_t *extra);

/** kt_call_records_entered() - Return how often a point was entered. @since_ns:
 *  (out) when for the first time */
uint64_t kt_call_records_entered(const KtCallRecords *r, KtPointId id,
                                 uint64_t *since_ns);
/** kt_call_records_last_ns() - Return when a point was entered last. */
uint64_t kt_call_records_last_ns(const KtCallRecords *r);
/** kt_call_records_stats() - Read the sizes, except .recorded and .dropped. */
void kt_call_records_stats(const KtCallRecords *r, KtCallsStats *out);
/** kt_call_records_rings() - Return the number of rings, 0: they are not
 *  allocated. */
unsigned kt_call_records_rings(const KtCallRecords *r);
/** kt_call_records_read() - As kt_call_ring_read(). */
bool kt_call_records_read(KtCallRecords *r, unsigned ring, uint64_t *seq,
                          uint64_t max, GByteArray *out, uint64_t *lost);
/** kt_call_records_under_way() - Append the calls that have not returned, as
 *  records. */
void kt_call_records_under_way(KtCallRecords *r, GByteArray *out);
/** kt_call_records_set_under_way() - Set them, for the calls of a journal.
 *  @calls: (copied) records */
void kt_call_records_set_under_way(KtCallRecords *r, const GByteArray *calls);
/** kt_call_records_list() - List the records in @bytes (owned) in the order of
 *  their entries. A call that is there as under way and as a record is one. */
KtCallList kt_call_records_list(GByteArray *bytes);
/** kt_call_records_copy() - (owned) Copy all records, and the calls under
 *  way. */
GByteArray *kt_call_records_copy(KtCallRecords *r);
/** kt_call_records_clear() - Drop all records. */
void kt_call_records_clear(KtCallRecords *r);
/** kt_call_records_end_boot() - Drop all records, calls under way and counts of
 *  entries. No vCPU executes. */
void kt_call_records_end_boot(KtCallRecords *r);

#endif /* KT_CALL_RECORDS_H */
