/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Call ring: the newest call records of one vCPU. QEMU-free.
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
 * reader holds it while it copies at most KT_CALL_RING_COPY bytes.
 */
#ifndef KT_CALL_RING_H
#define KT_CALL_RING_H

#include "kalloc-tracer/api/kt-calls.h"

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

#endif /* KT_CALL_RING_H */
