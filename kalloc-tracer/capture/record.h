/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Record: turns entries and returns of hooked functions into events. This is
 * the hot path.
 *
 *     entry of kfree()            entry of __kmalloc()
 *          |                           |  return site: *(sp) is hooked
 *          |                           |  pending call: (sp, ra) -> size, gfp
 *          |                           v
 *          |                      ... the function runs; tasks may sleep ...
 *          |                           |
 *          |                           v  a block at the return site begins
 *          |                      pending call found by (sp, ra)
 *          |                      result register = the new block
 *          v                           v
 *     KT_EV_FREE                  KT_EV_ALLOC      -> kt_tracer_push()
 *
 * capture.c calls these functions in the execution callbacks, on the vCPU's own
 * thread. They take the lock of one bucket of pending calls for a moment, and
 * sometimes try the tracer's lock (see kt_tracer_push()).
 */
#ifndef KT_RECORD_H
#define KT_RECORD_H

#include "kalloc-tracer/calls/calls.h"
#include "kalloc-tracer/capture/capture.h"
#include "kalloc-tracer/capture/pending-calls.h"
#include "kalloc-tracer/kernel/guest.h"
#include "kalloc-tracer/kernel/printk-log.h"
#include "kalloc-tracer/hooks/hooks.h"
#include "kalloc-tracer/kernel/struct-page.h"
#include "kalloc-tracer/hooks/profile.h"
#include "kalloc-tracer/capture/return-sites.h"
#include "kalloc-tracer/capture/vcpu.h"

/** struct KtFreeDelay - what delayed frees need, see capture-internal.h */
typedef struct KtFreeDelay KtFreeDelay;

/** struct KtReplayStop - where a replay stops, see replay-stop.h */
typedef struct KtReplayStop KtReplayStop;

/** struct KtAccessWatch - what access checks watch, see capture-internal.h */
typedef struct KtAccessWatch KtAccessWatch;

/**
 * struct KtBoot - the data on one boot; published when it is complete
 * @row: rows of @hooks, by id: one load instead of a call
 * @inner_records: (atomic) by id: this KT_HOOK_OUTER function calls another
 *               hook for its blocks, and that hook records them
 * @unseen: (atomic) an allocating call was dropped and a gap with
 *               KT_EVF_UNSEEN was pushed for it
 * @put_pages: (atomic) vmap() was called with VM_MAP_PUT_PAGES
 * @pages: NULL if the page allocator is not traced
 * @log: NULL: the kernel's log is not read (log=off)
 * @replaced: addresses that the guest's tracers write over return addresses
 * @jiffies, @gone: of the last command: jiffies_64; another kernel runs. See
 *               kernel-presence.c
 */
typedef struct KtBoot {
    KtHookRow row[256];
    bool inner_records[256];
    bool unseen;
    bool put_pages;
    KtHooks *hooks;
    KtGuest *guest;
    KtStructPages *pages;
    KtPrintkLog *log;
    uint64_t replaced[2];
    uint64_t jiffies;
    bool gone;
} KtBoot;

/** enum KtImageStep - what the guest has done with its hibernation image */
typedef enum KtImageStep {
    KT_IMAGE_SAVED,         /* the image has the memory of now */
    KT_IMAGE_LOADS,         /* it is about to replace all memory */
    KT_IMAGE_NOT_LOADED,    /* it could not */
} KtImageStep;

/**
 * struct KtShared - what the callbacks of all vCPUs use
 * @profile: NULL for Linux
 * @kernel: the running kernel
 * @kexec: called if the kernel is about to start another one
 * @image: called if the guest hibernates, or wakes
 * @moments: called when a module is loaded or unloaded
 * @access: NULL: no access is checked. Changed while no vCPU executes, or
 *         before the boot is published
 * @delay: NULL: frees are not delayed. Changed likewise
 * @stop: NULL: this is no replay that can stop at events. Set before the VM
 *        runs
 */
typedef struct KtShared {
    KtTracer *tracer;
    const KtProfile *profile;
    GsKernel *kernel;
    KtReturnSites *sites;
    KtPendingCalls *calls;
    KtCallPoints *points;
    KtCalls *watched;
    void (*kexec)(void);
    void (*image)(KtImageStep step);
    KtMoments moments;
    KtAccessWatch *access;
    KtFreeDelay *delay;
    KtReplayStop *stop;
} KtShared;

/**
 * struct KtHookCall - one callback, and what its events have in common
 * @c, @boot, @v: (borrowed)
 * @insns_left: instructions of the translated block that have not run yet; the
 *        virtual clock counts them already
 * @pages: the hook is of the page allocator
 * @have_stack: @ev has its backtrace, task and time
 * @ra: the call's return address
 * @sp_after: the stack pointer after the return
 * @wrapper: the outermost wrapper that made the call, 0 for none
 * @recorded, @recorded_layer: the last block that a call with this return
 *        recorded, and its layer. A function that jumps to another one returns
 *        together with it and has the same result: in 5.10, __kmalloc() jumps
 *        to kmalloc_order_trace(). Such a block is recorded once
 * @ev: the event that is being made
 */
typedef struct KtHookCall {
    const KtShared *c;
    KtBoot *boot;
    KtVcpu *v;
    unsigned insns_left;
    bool pages;
    bool have_stack;
    uint64_t ra, sp_after;
    uint64_t recorded;
    KtLayer recorded_layer;
    KtHookId wrapper;
    KtEvent ev;
} KtHookCall;

/** How the callback of a call ends. */
typedef enum KtLeaveHow {
    KT_LEAVE_NOT,               /* the call goes on */
    KT_LEAVE_RETURN,            /* the call has returned */
    KT_LEAVE_STOP,              /* the VM stops; then the entry is repeated */
} KtLeaveHow;

/** struct KtLeave - @to: the address at which the vCPU continues */
typedef struct KtLeave {
    KtLeaveHow how;
    uint64_t to;
} KtLeave;

/** kt_record_enter() - Record that the hooked function @id is entered. */
GS_HOT void kt_record_enter(KtHookCall *m, KtHookId id);

/** kt_record_enter_site() - Record that the instruction of @site calls its
 *  hooked function. @wanted: false: as kt_record_skip() */
void kt_record_enter_site(KtHookCall *m, const KtHookSite *site, bool wanted);

/** kt_record_skip() - As kt_record_enter() while recording is off: record no
 *  event, but keep what later events depend on. */
void kt_record_skip(KtHookCall *m, KtHookId id);

/** kt_record_point() - Record that a call point is entered; set @m->ra and
 *  @m->sp_after. Returns: false if the return address cannot be read. */
GS_HOT bool kt_record_point(KtHookCall *m, const KtCallPoint *point);

/** kt_record_log_found() - Read the log of a kernel that was just found. On a
 *  vCPU's thread. */
void kt_record_log_found(KtBoot *boot);
/** kt_record_point_return() - Record that the calls of call points that return
 *  to @m->ra have returned. Returns: false if there are none. */
GS_HOT bool kt_record_point_return(KtHookCall *m);
/** kt_record_point_failed() - Record that the call that was just entered does
 *  not run: fault rule @rule makes it return @value. */
void kt_record_point_failed(KtHookCall *m, KtPointId point, uint64_t value,
                            uint16_t rule);

/** kt_record_return() - Record that @call has returned. @m->ra and @m->sp_after
 *  are set. */
GS_HOT void kt_record_return(KtHookCall *m, const KtPendingCall *call);

/** kt_record_is_recorded() - Return true if an entry or return of functions of
 *  @role does anything. */
bool kt_record_is_recorded(KtRole role);
/** kt_record_awaits_return() - Return true if a return of theirs does. */
bool kt_record_awaits_return(KtRole role);

#endif /* KT_RECORD_H */
