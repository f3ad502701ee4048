/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Record: what a hooked function's entry and return mean, as events. The hot
 * path, on the vCPU's own thread; takes no lock but a bucket's of the calls
 * under way, and the tracer's now and then.
 */
#ifndef KT_RECORD_H
#define KT_RECORD_H

#include "kalloc-tracer/capture/pending-calls.h"
#include "kalloc-tracer/kernel/guest.h"
#include "kalloc-tracer/hooks/hooks.h"
#include "kalloc-tracer/kernel/struct-page.h"
#include "kalloc-tracer/hooks/profile.h"
#include "kalloc-tracer/capture/return-sites.h"
#include "kalloc-tracer/capture/vcpu.h"

/**
 * struct KtBoot - what is known of one boot; published when complete
 * @row: of @hooks, by id
 * @inner_tells: (atomic) KT_HOOK_OUTER functions, by id, that call other hooks
 *               for blocks of their layer
 * @unseen: (atomic) a call was lost that will hand out memory, as was told
 */
typedef struct KtBoot {
    KtHookRow row[256];
    bool inner_tells[256];
    bool unseen;
    KtHooks *hooks;
    KtGuest *guest;
    KtStructPages *pages; /* NULL: the page allocator is not traced */
} KtBoot;

/** struct KtShared - what all vCPUs work on; @profile: NULL for Linux */
typedef struct KtShared {
    KtTracer *tracer;
    const KtProfile *profile;
    GsKernel *kernel;
    KtReturnSites *sites;
    KtPendingCalls *calls;
    void (*kexec)(void);        /* the kernel is left for another */
} KtShared;

/**
 * struct KtHookCall - one callback, and what its events have in common
 * @c, @boot, @v: (borrowed) where it happens
 * @insns_left: instructions of the block that have not run, for the clock
 * @pages: it is of the page allocator
 * @have_stack: @ev has its backtrace, task and time already
 * @ra: where the call returns to; @sp_after: the stack pointer there
 * @wrapper: the outermost wrapper that made the call
 * @told, @told_layer: the block that a call with this return told of; one that
 *        entered it by a jump has the same (5.10's __kmalloc() and
 *        kmalloc_order_trace())
 */
typedef struct KtHookCall {
    const KtShared *c;
    KtBoot *boot;
    KtVcpu *v;
    unsigned insns_left;
    bool pages;
    bool have_stack;
    uint64_t ra, sp_after;
    uint64_t told;
    KtLayer told_layer;
    KtHookId wrapper;
    KtEvent ev;
} KtHookCall;

/** kt_record_enter() - the hooked function @id is entered. */
GS_HOT void kt_record_enter(KtHookCall *m, KtHookId id);

/** kt_record_skip() - it is while nothing is recorded: seen is only what later
 *  events need to be told rightly. */
void kt_record_skip(KtHookCall *m, KtHookId id);

/** kt_record_leave() - @call has returned; @m has its ra and sp_after. */
GS_HOT void kt_record_leave(KtHookCall *m, const KtPendingCall *call);

#endif /* KT_RECORD_H */
