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
#include "kalloc-tracer/snapshot/snapshot.h"

/**
 * struct KtCall - a call under way
 * @sp: the stack pointer when it has returned
 * @ra: the return address
 * @size: requested bytes; for a bulk call the capacity of the array
 * @ptr: pointer argument: the array of a bulk call, krealloc's old pointer
 * @cache: struct kmem_cache of the call, 0 none
 */
typedef struct KtCall {
    uint64_t sp;
    uint64_t ra;
    uint64_t size;
    uint64_t ptr;
    uint64_t cache;
    uint32_t gfp;
    KtHookId hook;
} KtCall;

typedef struct KtCalls KtCalls;

KtCalls *kt_calls_new(void);
void kt_calls_free(KtCalls *c);
/** kt_calls_charge() - before the first call: @budget (borrowed) is where
 *  memory is taken for tasks that sleep in the allocator. */
void kt_calls_charge(KtCalls *c, KtBudget *budget);

/**
 * kt_calls_push() - a hooked function was entered; any vCPU thread
 * @stale: (out) older calls found to have been abandoned: their place on the
 *         stack is in use again
 *
 * Returns: false when there was no room: the oldest call of the bucket was
 * given up for this one.
 */
GS_HOT bool kt_calls_push(KtCalls *c, const KtCall *call, unsigned *stale);

/** kt_calls_expect() - calls with that stack pointer are pushed or popped
 *  soon: what is needed first is loaded meanwhile. */
GS_HOT void kt_calls_expect(const KtCalls *c, uint64_t sp);

/**
 * kt_calls_pop() - a return site was reached; any vCPU thread
 * @out: (out) the newest call made with that stack pointer and return address
 *
 * To be called until it returns less than 2: a hooked function that was
 * entered by a jump from another one shares its return.
 *
 * Returns: how many such calls there were, with @out.
 */
GS_HOT unsigned kt_calls_pop(KtCalls *c, uint64_t sp, uint64_t ra,
                             KtCall *out);

/** kt_calls_pending() - how many are under way. */
unsigned kt_calls_pending(KtCalls *c);
/** kt_calls_check() - (owned, nullable) what is wrong in the table, beside
 *  those who push and pop. @n: (out) calls looked at. */
char *kt_calls_check(KtCalls *c, uint64_t *n);
/** kt_calls_clear() - a new boot. */
void kt_calls_clear(KtCalls *c);

/** kt_calls_pack() - each of them, older ones of a stack pointer first;
 *  nobody pushes or pops meanwhile. */
void kt_calls_pack(KtCalls *c, GsPack *p);
/** kt_calls_unpack() - push what that wrote, but for calls of hooks that are
 *  not here; @s: (borrowed) whose hooks they name. Returns: how many
 *  were lost for want of room. */
unsigned kt_calls_unpack(KtCalls *c, GsUnpack *u, const KtSnapshot *s);

#endif /* KT_CALLS_H */
