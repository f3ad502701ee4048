/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Open calls: watched calls that have not returned. QEMU-free.
 *
 * The key is that of pending-calls.h: (stack pointer after the return, return
 * address). An entry has the whole record, which becomes a call record at the
 * return.
 *
 * All vCPU threads add and remove at the same time; a bucket has a spin lock.
 * Entries come from a list of each vCPU.
 */
#ifndef KT_OPEN_CALLS_H
#define KT_OPEN_CALLS_H

#include "kalloc-tracer/api/kt-calls.h"
#include "kalloc-tracer/base/budget.h"

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

#endif /* KT_OPEN_CALLS_H */
