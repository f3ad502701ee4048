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

#include "kalloc-tracer/api/kt-calls.h"
#include "kalloc-tracer/base/budget.h"

/* ---- the ring of a vCPU: its newest records (call-ring.c) ---------------- *
 *
 *     tail                                   head
 *      |                                      |
 *      v                                      v
 *     [KtCall|args|extra][KtCall|args|extra]   (bytes, modulo the capacity)
 *
 * Each record has a number, so a reader can tell if what it wants to read next
 * was overwritten. The position of each 256th number is kept.
 *
 * Threads: the vCPU writes, others read. A spin lock protects the ring; a
 * reader holds it while it copies at most KT_CALL_RING_COPY bytes. */

#define KT_CALL_RING_COPY 65536u

typedef struct KtCallRing KtCallRing;

/** kt_call_ring_new() - (owned) Make a ring of @bytes, at least 4 KiB. */
KtCallRing *kt_call_ring_new(uint64_t bytes);
void kt_call_ring_free(KtCallRing *r);

/** kt_call_ring_put() - Add a record; the oldest ones are dropped if there is
 *  no room. @args: @call->n_args words; @extra: @call->n_extra bytes.
 *  @call->seq is ignored, the ring sets it. Returns: how many were dropped. */
GS_HOT unsigned kt_call_ring_put(KtCallRing *r, const KtCall *call,
                                 const uint64_t *args, const uint8_t *extra);
/**
 * kt_call_ring_read() - Append whole records to @out, in the order of their
 * returns
 * @seq: (in, out) number of the first record that is wanted; then of the first
 *       one that was not read. The first record of a ring has number 0
 * @max: records, at most
 * @lost: (in, out) grows by the records from @seq on that were replaced
 *        unread; those that kt_call_ring_clear() dropped are not counted
 *
 * Returns: false if there are no more.
 */
bool kt_call_ring_read(KtCallRing *r, uint64_t *seq, uint64_t max,
                       GByteArray *out, uint64_t *lost);
/** kt_call_ring_clear() - Drop all records. */
void kt_call_ring_clear(KtCallRing *r);
/** kt_call_ring_count() - Return the number of records that are kept. */
uint64_t kt_call_ring_count(KtCallRing *r);

/** kt_call_bytes() - Return the bytes of a record with all that follows. */
static inline uint64_t kt_call_bytes(const KtCall *call)
{
    return sizeof(*call) + call->n_args * 8ull +
           ((call->n_extra + 7ull) & ~7ull);
}

/** kt_call_view() - Return the parts of a record that lies at @at. */
static inline KtCallView kt_call_view(const uint8_t *at)
{
    const KtCall *call = (const KtCall *)at;
    const uint64_t *args = (const uint64_t *)(at + sizeof(*call));

    return (KtCallView) { call, args, (const uint8_t *)(args + call->n_args) };
}

/* ---- calls that have not returned (open-calls.c) ------------------------- *
 *
 * The key is that of pending-calls.h: (stack pointer after the return, return
 * address). An entry has the whole record, which becomes a call record at the
 * return.
 *
 * All vCPU threads add and remove at the same time; a bucket has a spin lock.
 * Entries come from a list of each vCPU. */

/**
 * struct KtOpenCall - a call
 * @next: (private to the table)
 * @sp: the stack pointer after the return; the return address is @call.caller
 * @site: the address of the return site; it differs from @call.caller if a
 *        tracer of the guest replaced the return address
 * @undecided: the result decides whether the call is wanted
 * @call: without result and duration
 */
typedef struct KtOpenCall {
    struct KtOpenCall *next;
    uint64_t sp, site;
    bool undecided;
    KtCall call;
    uint64_t args[KT_CALL_ARGS_MAX];
    uint8_t extra[KT_CALL_EXTRA_MAX];
} KtOpenCall;

typedef struct KtOpenCalls KtOpenCalls;

/** kt_open_calls_new() - (owned) Make an empty table. @budget: (borrowed,
 *  nullable) is charged for entries. */
KtOpenCalls *kt_open_calls_new(KtBudget *budget, unsigned n_cpus);
void kt_open_calls_free(KtOpenCalls *o);
/** kt_open_calls_bytes() - Return the host memory of an empty table. */
uint64_t kt_open_calls_bytes(unsigned n_cpus);

/** kt_open_calls_get() - (nullable) Return an unused entry, on the thread of
 *  vCPU @cpu; NULL if there is no memory. */
GS_HOT KtOpenCall *kt_open_calls_get(KtOpenCalls *o, unsigned cpu);
/** kt_open_calls_put() - Return an entry, which is in no bucket, to the list of
 *  vCPU @cpu, on its thread. */
GS_HOT void kt_open_calls_put(KtOpenCalls *o, unsigned cpu, KtOpenCall *c);

/** kt_open_calls_add() - Add a call. Returns: (owned, nullable) calls, linked
 *  by @next, that will never return: their place on the stack is in use
 *  again. */
GS_HOT KtOpenCall *kt_open_calls_add(KtOpenCalls *o, KtOpenCall *c);
/** kt_open_calls_remove() - Remove all calls of that key. Returns: (owned,
 *  nullable) them, linked by @next, the newest first. */
GS_HOT KtOpenCall *kt_open_calls_remove(KtOpenCalls *o, uint64_t sp,
                                        uint64_t site);
/** kt_open_calls_remove_point() - The same for the newest call of one point. */
KtOpenCall *kt_open_calls_remove_point(KtOpenCalls *o, uint64_t sp,
                                       uint64_t site, KtPointId point);

/** kt_open_calls_foreach() - Call @fn for a copy of each call, without lock. */
void kt_open_calls_foreach(KtOpenCalls *o,
                           void (*fn)(const KtOpenCall *c, void *opaque),
                           void *opaque);
/** kt_open_calls_count() - Return the number of calls. */
unsigned kt_open_calls_count(KtOpenCalls *o);
/** kt_open_calls_clear() - Remove all calls. No vCPU executes. */
void kt_open_calls_clear(KtOpenCalls *o);

/* ---- all of them --------------------------------------------------------- */

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
