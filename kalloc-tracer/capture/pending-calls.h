/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pending calls: calls of hooked functions that have not returned yet.
 * QEMU-free.
 *
 *     entry of a hook -> push (sp, ra, arguments)
 *     return site     -> pop by (sp, ra)
 *
 * The key of a call is (stack pointer after the return, return address). The
 * vCPU and the order of entry cannot be the key: a task can sleep in the
 * allocator and continue on another vCPU, and interrupts nest.
 *
 * All vCPU threads push and pop at the same time.
 */
#ifndef KT_PENDING_CALLS_H
#define KT_PENDING_CALLS_H

#include "kalloc-tracer/base/budget.h"
#include "kalloc-tracer/kt.h"
#include "guest-symbols/base/stream.h"
#include "kalloc-tracer/base/id-map.h"

/**
 * struct KtPendingCall - a call that has not returned
 * @sp: the stack pointer after the return
 * @ra: the return address
 * @size: requested bytes; for a bulk call, the capacity of the array
 * @ptr: the pointer argument: the array of a bulk call, or krealloc()'s block
 * @cache: the struct kmem_cache argument, 0 for none
 * @gfp: GFP flags
 * @hook: the function
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
/** kt_pending_calls_charge() - Charge the table, and lists that grow later, to
 *  @budget (borrowed). Call once, before the first push. */
void kt_pending_calls_charge(KtPendingCalls *c, KtBudget *budget);

/**
 * kt_pending_calls_push() - Add a call at its entry
 * @call: (copied)
 * @stale: (out) number of older calls that were removed because they will never
 *         return: their place on the stack is in use again
 *
 * Any vCPU thread; takes the lock of one bucket.
 *
 * Returns: false if there was no memory, and the oldest call of the bucket was
 * dropped instead. @call is added in any case.
 */
GS_HOT bool kt_pending_calls_push(KtPendingCalls *c, const KtPendingCall *call,
                                  unsigned *stale);

/** kt_pending_calls_expect() - Prefetch the bucket of a stack pointer, shortly
 *  before a push or pop. */
GS_HOT void kt_pending_calls_expect(const KtPendingCalls *c, uint64_t sp);

/**
 * kt_pending_calls_pop() - Remove the newest call with that key, at its return
 * @out: (out) the call; unchanged if there is none
 *
 * Several calls can have one key: if a hooked function ends with a jump to
 * another one, both return at once. So call this until it returns less than 2.
 *
 * Any vCPU thread; takes the lock of one bucket.
 *
 * Returns: the number of calls that had the key, @out included.
 */
GS_HOT unsigned kt_pending_calls_pop(KtPendingCalls *c, uint64_t sp,
                                     uint64_t ra, KtPendingCall *out);

/** kt_pending_calls_find() - Copy the newest call with that key to @out,
 *  without removing it. Any thread; takes the lock of one bucket. Returns:
 *  false if there is none. */
bool kt_pending_calls_find(KtPendingCalls *c, uint64_t sp, uint64_t ra,
                           KtPendingCall *out);
/** kt_pending_calls_pending() - Return the number of calls. Any thread. */
unsigned kt_pending_calls_pending(KtPendingCalls *c);
/** kt_pending_calls_check() - (owned, nullable) Return one line on what is
 *  wrong in the table, NULL if nothing is. @calls: a KtPendingCalls. Any
 *  thread, while others push and pop. See kt_tracer_add_check(). */
char *kt_pending_calls_check(void *calls, KtCheckReport *report);
/** kt_pending_calls_clear() - Remove all calls, for a new boot. */
void kt_pending_calls_clear(KtPendingCalls *c);

/** kt_pending_calls_filter() - Remove all calls of hooks that @keep does not
 *  want. No other thread uses the table. */
void kt_pending_calls_filter(KtPendingCalls *c,
                             bool (*keep)(void *opaque, KtHookId hook),
                             void *opaque);

/** kt_pending_calls_pack() - Write all calls; those with one stack pointer from
 *  the oldest on. No other thread uses the table. */
void kt_pending_calls_pack(KtPendingCalls *c, GsOut *p);
/** kt_pending_calls_unpack() - Push the calls that kt_pending_calls_pack()
 *  wrote, except those of hooks that this table does not have. @ids: (borrowed)
 *  translates the ids of hooks. Returns: the number of calls that were dropped
 *  for lack of memory. */
unsigned kt_pending_calls_unpack(KtPendingCalls *c, GsBytes *u,
                                 const KtIdMap *ids);

#endif /* KT_PENDING_CALLS_H */
