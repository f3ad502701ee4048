/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files record*.c share. All functions run on the vCPU's own
 * thread. */
#ifndef KT_RECORD_INTERNAL_H
#define KT_RECORD_INTERNAL_H

#include "kalloc-tracer/kernel/guest-learn.h"
#include "kalloc-tracer/kernel/load-code.h"
#include "kalloc-tracer/capture/record.h"
#include "kalloc-tracer/faults/fault-rules.h"

/** kt_record_complete() - Fill in backtrace, task, time and vCPU of @m->ev. The
 *  first call of a callback does the work; later calls return at once. */
GS_HOT void kt_record_complete(KtHookCall *m);
/** KT_BULK_MAX - most pointers that are read of a bulk call */
#define KT_BULK_MAX 4096

/** kt_record_untag() - Return an address in a form with its tag, and put the
 *  tag into the event. */
static inline uint64_t kt_record_untag(KtHookCall *m, uint64_t va)
{
    m->ev.tag = kt_vcpu_tag(m->v, va);
    return kt_vcpu_untag(m->v, va);
}

/** kt_record_read_untagged() - Read an address from an array, as
 *  kt_record_untag() returns it. */
static inline bool kt_record_read_untagged(KtHookCall *m, uint64_t at,
                                           uint64_t *va)
{
    if (!kt_guest_u64(m->boot->guest, at, va)) {
        return false;
    }
    *va = kt_record_untag(m, *va);
    return true;
}

/** kt_record_find_return() - Set @m->ra and @m->sp_after at the entry of a
 *  function. Returns: false if the return address cannot be read. */
GS_HOT bool kt_record_find_return(KtHookCall *m);
/** kt_record_true_return() - Set @m->ra to the true return address, if a tracer
 *  of the guest replaced it and its records have the true one. */
void kt_record_true_return(KtHookCall *m);
/** kt_record_event() - Complete @m->ev and push it. */
void kt_record_event(KtHookCall *m, KtEventKind kind, KtHookId hook,
                     uint64_t va);
/** kt_access_watch_push() - Push @m->ev, and change the shadow of access checks
 *  by it. Only if accesses are checked (watch-shadow.c). */
void kt_access_watch_push(KtHookCall *m);
/** kt_access_watch_missed() - Say that a call is not recorded: the shadow may
 *  be wrong. */
void kt_access_watch_missed(KtAccessWatch *w);

/** kt_access_watch_module() - Say that a module was just added to the kernel,
 *  or is about to be dropped: soon, while no vCPU executes, code is found anew
 *  if access checks are about this module (watch-code.c). */
void kt_access_watch_module(const KtAccessWatch *w, const GsKernel *k,
                            uint64_t module_va);

/** kt_delay_free() - Delay the free of @va, whose event was recorded, if it may
 *  wait: change the arguments of the call. Only if frees are delayed
 *  (delay-free.c). @hook: a KT_HOOK_DELAYABLE one */
void kt_delay_free(KtHookCall *m, const KtHookRow *hook, uint64_t va);
/** kt_delay_free_done() - Say that the call frees @va in any case. Only if
 *  frees are delayed. */
void kt_delay_free_done(KtHookCall *m, uint64_t va);
/** kt_delay_free_drop() - Say that the kmem_cache at @cache_va is destroyed.
 *  Only if frees are delayed. */
void kt_delay_free_drop(KtHookCall *m, uint64_t cache_va);

/** kt_replay_stop_count() - Count @m->ev, which was pushed: the VM may have to
 *  stop at it (replay-stop.c). Only if this is a replay. */
void kt_replay_stop_count(const KtHookCall *m);

/** kt_record_push() - Push @m->ev, which kt_record_complete() has filled. If
 *  the call came through a wrapper, the event names the wrapper. */
static inline void kt_record_push(KtHookCall *m, KtEventKind kind,
                                  KtHookId hook, uint64_t va)
{
    m->ev.kind = kind;
    m->ev.hook = m->wrapper.v ? m->wrapper : hook;
    m->ev.va = va;
    if (G_UNLIKELY(m->c->access)) {
        kt_access_watch_push(m);
    } else {
        kt_tracer_push(m->c->tracer, m->v->index, &m->ev);
    }
    if (G_UNLIKELY(m->c->stop)) {
        kt_replay_stop_count(m);
    }
}

/** kt_record_drop() - Count an event that cannot be recorded; push a gap. */
void kt_record_drop(KtHookCall *m, KtCounter why);
/** kt_record_drop_call() - Drop a call between its entry and its return, as
 *  record.c explains. @hands_out: it returns memory. */
void kt_record_drop_call(KtHookCall *m, KtCounter why, bool hands_out);
/** kt_record_await() - Make @m->ra a return site and store @call until it
 *  returns. Drops the call if one of the tables is full. */
GS_HOT void kt_record_await(KtHookCall *m, const KtPendingCall *call);
/** kt_record_add_point_site() - Make @m->ra a return site of call points that
 *  is ready. Returns: false if the table is full. */
GS_HOT bool kt_record_add_point_site(KtHookCall *m);
/** kt_record_module() - Find or drop the call points of a module that was added
 *  or is about to be unloaded, and record that its session begins or ends. Has
 *  access checks find their code anew. */
void kt_record_module(KtHookCall *m, uint64_t module_va, bool added);
/** kt_record_free_site() - Return the wrapper that a free is called from, 0 for
 *  none. */
GS_HOT KtHookId kt_record_free_site(KtHookCall *m);

/** kt_record_unsure() - Return KT_EVF_UNSURE if events of that row need it. */
static inline uint8_t kt_record_unsure(const KtHookRow *hook)
{
    return hook->flags & KT_HOOK_UNSURE ? KT_EVF_UNSURE : 0;
}

/** kt_record_free() - Record the free of @va, with KT_EVF_* @flags. NULL is
 *  only counted. @cache: the cache that the caller named, or 0 */
GS_HOT void kt_record_free(KtHookCall *m, const KtHookRow *hook, KtHookId id,
                           uint64_t va, KtCacheId cache, uint8_t flags);

/** KtRecordEnter - record an entry of the hooked function @id; @m has the
 *  return address, and the call is an event of its own */
typedef void KtRecordEnter(KtHookCall *m, const KtHookRow *hook, KtHookId id);
/** KtRecordReturn - record the return of @call with @result, without its tag */
typedef void KtRecordReturn(KtHookCall *m, const KtPendingCall *call,
                            uint64_t result);

/* Operations of the roles, for the table of record.c. */
KtRecordEnter kt_record_enter_free, kt_record_enter_free_bulk,
    kt_record_enter_free_sheaf, kt_record_enter_free_inside,
    kt_record_enter_free_outer, kt_record_enter_unmap,
    kt_record_enter_rcu_queue, kt_record_skip_free;
KtRecordEnter kt_record_await_return, kt_record_enter_realloc;
KtRecordReturn kt_record_return_alloc, kt_record_return_alloc_bulk,
    kt_record_return_realloc;
KtRecordEnter kt_record_enter_destroy, kt_record_enter_module_drop,
    kt_record_enter_bpf_add, kt_record_enter_kexec,
    kt_record_enter_image_load;
KtRecordReturn kt_record_return_destroy, kt_record_return_module_add,
    kt_record_return_image_save, kt_record_return_image_load;
KtRecordEnter kt_record_enter_log;
KtRecordReturn kt_record_return_log;
KtRecordEnter kt_record_await_witness, kt_record_enter_thread,
    kt_record_enter_switch, kt_record_enter_wake, kt_record_enter_slab;
KtRecordReturn kt_record_return_cache, kt_record_return_boot_cache,
    kt_record_return_name, kt_record_return_clone;
KtRecordEnter kt_record_await_pages, kt_record_await_page_bulk,
    kt_record_enter_page_free, kt_record_enter_page_batch,
    kt_record_enter_page_list, kt_record_enter_page_put,
    kt_record_enter_page_remove, kt_record_enter_page_managed;
KtRecordReturn kt_record_return_pages, kt_record_return_page_bulk,
    kt_record_return_isolated, kt_record_return_folio,
    kt_record_return_page_range, kt_record_return_page_offline,
    kt_record_return_page_exchange;

/* ---- faults -------------------------------------------------------------- */
/*
 * Inject faults: make a call of a call point return at once, or stop the VM at
 * it. See inject-fault.c.
 */

/** kt_inject_fault() - Decide about the call that @m is about, at the entry of
 *  @point; set the registers if the call fails. @m->ra and @m->sp_after are
 *  set. */
KtLeave kt_inject_fault(KtHookCall *m, const KtCallPoint *point);

/** kt_leave_call() - End the callback: continue at @leave.to. Does not return.
 *  The caller holds no lock and owns nothing. */
G_NORETURN void kt_leave_call(KtLeave leave);

#endif /* KT_RECORD_INTERNAL_H */
