/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Record: entries of vfree() and vfree_atomic().
 *
 * vfree() in an interrupt only queues the area. Since 6.3 the kernel's worker
 * then calls vfree() again for it:
 *
 *     interrupt   vfree(p) -> vfree_atomic(p)     queues p
 *     worker      delayed_vfree_work() -> vfree(p)    frees p
 *
 * One of the two calls of vfree() must be the free, and the other none. Which
 * one depends on two answers: is this an interrupt, and does the kernel call
 * vfree() again? Each can be unknown: the first without types or per-CPU
 * variables, the second without the symbol of the worker.
 *
 *     again  interrupt   vfree()                     vfree_atomic()
 *     no     any         free                        free
 *     yes    no          free                        queue
 *     yes    yes         no event                    queue
 *     yes    unknown     free, QUEUES                queue, AGAIN
 *     unknown  no        free, MAYBE_WORKER          free, QUEUES, ...
 *     unknown  other     free, QUEUES, MAYBE_WORKER  free, QUEUES, ...
 *
 * If the interrupt is unknown, the first call is the free. That is early, but
 * not wrong: nobody can get the area before the worker ran. The call of the
 * worker (WORKER) is then the second half of the same free, and the model
 * ignores it. If the worker is unknown, any call of vfree() may be that second
 * half; the model ignores one for each free that may have queued, and counts
 * it as not judged.
 *
 * On the vCPU's own thread.
 */
#include "kalloc-tracer/capture/record-internal.h"

static KtAnswer in_interrupt(const KtHookCall *m)
{
    return kt_guest_in_interrupt(m->boot->guest,
                                 kt_vcpu_reg(m->v, GS_REG_BASE));
}

/* @may_queue: the call may be in an interrupt */
static uint8_t vfree_flags(const KtHookCall *m, KtAnswer again, bool may_queue)
{
    uint8_t flags = may_queue ? KT_EVF_QUEUES : 0;

    if (again == KT_UNKNOWN) {
        return flags | KT_EVF_MAYBE_WORKER;
    }
    if (again == KT_YES && kt_hooks_is_vfree_worker(m->boot->hooks, m->ra)) {
        return KT_EVF_WORKER;           /* a worker is no interrupt */
    }
    return again == KT_YES ? flags : 0;
}

static void enter_vfree(KtHookCall *m, const KtHookRow *hook, KtHookId id,
                        uint64_t va, KtAnswer again)
{
    KtAnswer interrupt = again == KT_NO ? KT_NO : in_interrupt(m);

    if (again != KT_YES || interrupt != KT_YES) {
        kt_record_free(m, hook, id, va, (KtCacheId) { 0 },
                       vfree_flags(m, again, interrupt != KT_NO));
    }
}

/* If vfree() is the caller and its entry was an event, this call is part of
 * that. vfree() may also jump here: then only the backtrace shows that it is
 * the same call, and the model compares it (KT_EVF_AGAIN). */
static void enter_vfree_atomic(KtHookCall *m, const KtHookRow *hook,
                               KtHookId id, uint64_t va, KtAnswer again)
{
    bool was_event = again != KT_YES || in_interrupt(m) != KT_YES;
    uint8_t flags = was_event ? KT_EVF_AGAIN : 0;

    if (was_event && kt_hooks_is_vfree(m->boot->hooks, m->ra)) {
        return;
    }
    if (again == KT_YES) {
        kt_record_queue(m, id, va, flags | kt_record_unsure(hook));
    } else {
        kt_record_free(m, hook, id, va, (KtCacheId) { 0 },
                       again == KT_NO ? 0 :
                       flags | vfree_flags(m, again, true));
    }
}

void kt_record_vfree(KtHookCall *m, const KtHookRow *hook, KtHookId id,
                     uint64_t va)
{
    KtAnswer again = kt_hooks_vfree_called_again(m->boot->hooks);

    if (hook->flags & KT_HOOK_DEFERRED) {
        enter_vfree_atomic(m, hook, id, va, again);
    } else {
        enter_vfree(m, hook, id, va, again);
    }
}
