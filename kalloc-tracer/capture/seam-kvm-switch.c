/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * While recording is off, only breakpoints that are kept (KT_AT_KEPT) are in
 * the guest. If call points change then, all are, until one is hit: QEMU plants
 * on a vCPU's thread only.
 */
#include "kalloc-tracer/capture/seam-kvm-internal.h"

#include "kalloc-tracer/tracer/tracer.h"

static bool is_followed(void *boot, KtHookId id)
{
    return kt_role_does(((const KtBoot *)boot)->row[id.v].role, KT_DOES_FOLLOW);
}

/*
 * No vCPU executes. Calls that are in an allocator now are not followed: while
 * recording is off nobody sees their returns. Those that are when it is
 * switched on are not known, and may return memory that was freed since.
 */
static void follow_switch(void *opaque)
{
    const KtEvent gap = { .kind = KT_EV_GAP, .flags = KT_EVF_UNSEEN };
    KtCapture *c = opaque;
    KtBoot *boot = kt_capture_boot(c);
    bool on = kt_tracer_is_on(c->shared.tracer);

    if (!boot || on == !kt_kvm.off) {
        return;
    }
    kt_kvm.off = !on;
    __atomic_store_n(&kt_kvm.resumed, on, __ATOMIC_RELAXED);
    if (on) {
        kt_tracer_push(c->shared.tracer, 0, &gap);
    } else {
        kt_pending_calls_filter(c->shared.calls, is_followed, boot);
    }
    kt_breakpoints_enable(on);
}

/* A cache can have been destroyed, and another one made at its address. */
void kt_kvm_resume(KtCapture *c)
{
    const KtBoot *boot = kt_capture_boot(c);

    if (__atomic_exchange_n(&kt_kvm.resumed, false, __ATOMIC_ACQ_REL) && boot) {
        kt_guest_check_caches(boot->guest);
    }
}

void kt_kvm_on_switch(void *opaque)
{
    KtCapture *c = opaque;

    if (__atomic_load_n(&c->applying, __ATOMIC_ACQUIRE)) {
        qemu_plugin_request_exclusive(follow_switch, c);
    }
}
