/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Calls of hooked functions that have not returned yet. QEMU-free.
 *
 * A call is known by the stack pointer it was made with and its return
 * address, not by its vCPU or order: tasks sleep and migrate inside the
 * allocator, and interrupts nest.
 */
#ifndef KT_CALLS_H
#define KT_CALLS_H

#include "kalloc-tracer/base/budget.h"
#include "kalloc-tracer/kt.h"
#include "guest-symbols/base/stream.h"
#include "kalloc-tracer/base/id-map.h"

/**
 * struct KtPendingCall - a call under way
 * @sp: the stack pointer when it has returned
 * @ra: the return address
 * @size: requested bytes; for a bulk call the capacity of the array
 * @ptr: pointer argument: the array of a bulk call, krealloc's old pointer
 * @cache: struct kmem_cache of the call, 0 none
 */
typedef struct KtPendingCall {
    uint64_t sp;
    uint64_t ra;
    uint64_t size;
    uint64_t ptr;
    uint64_t cache;
    uint32_t gfp;
    KtHookId hook;
} KtPendingCall;

typedef struct KtPendingCalls KtPendingCalls;

KtPendingCalls *kt_pending_calls_new(void);
void kt_pending_calls_free(KtPendingCalls *c);
/** kt_pending_calls_charge() - before the first call: @budget (borrowed) is
 *  where memory is taken for tasks that sleep in the allocator. */
void kt_pending_calls_charge(KtPendingCalls *c, KtBudget *budget);

/**
 * kt_pending_calls_push() - a hooked function was entered; any vCPU thread
 * @stale: (out) older calls found to have been abandoned: their place on the
 *         stack is in use again
 *
 * Returns: false when there was no room: the oldest call of the bucket was
 * given up for this one.
 */
GS_HOT bool kt_pending_calls_push(KtPendingCalls *c, const KtPendingCall *call,
                                  unsigned *stale);

/** kt_pending_calls_expect() - calls with that stack pointer are pushed or
 *  popped soon: what is needed first is loaded meanwhile. */
GS_HOT void kt_pending_calls_expect(const KtPendingCalls *c, uint64_t sp);

/**
 * kt_pending_calls_pop() - a return site was reached; any vCPU thread
 * @out: (out) the newest call made with that stack pointer and return address
 *
 * To be called until it returns less than 2: a hooked function that was
 * entered by a jump from another one shares its return.
 *
 * Returns: how many such calls there were, with @out.
 */
GS_HOT unsigned kt_pending_calls_pop(KtPendingCalls *c, uint64_t sp,
                                     uint64_t ra, KtPendingCall *out);

/** kt_pending_calls_pending() - how many are under way. */
unsigned kt_pending_calls_pending(KtPendingCalls *c);
/** kt_pending_calls_check() - (owned, nullable) what is wrong in the table,
 *  beside those who push and pop. See kt_tracer_add_check(). @calls: a
 *  KtPendingCalls */
char *kt_pending_calls_check(void *calls, KtCheckReport *report);
/** kt_pending_calls_clear() - a new boot. */
void kt_pending_calls_clear(KtPendingCalls *c);

/** kt_pending_calls_pack() - each of them, older ones of a stack pointer first;
 *  nobody pushes or pops meanwhile. */
void kt_pending_calls_pack(KtPendingCalls *c, GsOut *p);
/** kt_pending_calls_unpack() - push what that wrote, but for calls of hooks
 *  that are not here; @ids: of the snapshot, whose hooks they name. Returns:
 *  how many were lost for want of room. */
unsigned kt_pending_calls_unpack(KtPendingCalls *c, GsBytes *u,
                                 const KtIdMap *ids);

#endif /* KT_CALLS_H */
