/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * While it boots, the kernel patches its own text. It patches returns, too, and
 * first compares them with what the compiler made. So there are no breakpoints
 * on returns until the kernel has set alternatives_patched:
 *
 *     alternative_instructions()            remove all returns
 *       apply_returns(), ...
 *       alternatives_smp_module_add()       plan and plant anew, if the guest
 *                                           has one CPU: it calls kzalloc()
 *       alternatives_patched = 1
 *     the next entry of a hook              or here
 */
#include "kalloc-tracer/capture/seam-kvm-internal.h"

#include "kalloc-tracer/tracer/tracer.h"

/* Return true if the kernel has yet to patch its text. */
static bool is_to_be_patched(const KtBoot *boot, const GsKernel *k)
{
    GsSymbol done;
    int32_t value = 1;

    return gs_kernel_lookup(k, "alternatives_patched", &done) &&
           kt_guest_read(boot->guest, done.va, &value, sizeof(value)) &&
           !value;
}

/* Returns that are patched without our knowledge would be wrong in the guest:
 * none is seen then until the kernel is done. */
static void plan_patching(const KtKvmPlan *p)
{
    if (kt_kvm_plan_entry(p, "alternative_instructions", KT_AT_PATCHING)) {
        kt_kvm_plan_entry(p, "alternatives_smp_module_add", KT_AT_PATCHED);
    } else {
        kt_kvm.patching = true;
    }
}

void kt_kvm_begin_patching(void)
{
    kt_breakpoints_remove(KT_AT_RETURNS | KT_AT_PATCHING);
    kt_kvm.patching = true;
}

/* The lock is held. */
void kt_kvm_begin_boot(const KtCapture *c, KtBoot *boot)
{
    KtKvmPlan p = { boot, c->shared.kernel, &kt_kvm.hooks, 0 };

    kt_kvm.off = !kt_tracer_is_on(c->shared.tracer);
    kt_kvm_plan_all(c, boot);
    if (is_to_be_patched(boot, p.k)) {
        plan_patching(&p);
    }
    kt_kvm_plant(&p);
    if (kt_kvm.patching) {
        kt_breakpoints_remove(KT_AT_RETURNS);
    }
}

static void end_patching(KtCapture *c)
{
    KtBoot *boot = kt_capture_boot(c);
    KtKvmPlan p = { boot, c->shared.kernel, &kt_kvm.hooks, 0 };

    if (boot && kt_capture_trylock(c)) {
        kt_kvm_clear();
        kt_kvm_plan_all(c, boot);
        kt_kvm_plant(&p);
        kt_capture_unlock(c);
    }
}

void kt_kvm_look_patched(KtCapture *c, uint32_t use)
{
    const KtBoot *boot = kt_capture_boot(c);

    if (use & KT_AT_PATCHED ||
        (boot && !is_to_be_patched(boot, c->shared.kernel))) {
        end_patching(c);
    }
}
