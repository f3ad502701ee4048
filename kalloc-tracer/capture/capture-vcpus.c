/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vCPUs come and go. Called by QEMU's callbacks, on the thread of the vCPU; the
 * capture's lock is taken here.
 */
#include "kalloc-tracer/capture/capture-internal.h"
#include "kalloc-tracer/tracer/tracer.h"

void kt_capture_add_vcpu(KtCapture *c, unsigned index)
{
    if (index >= c->max_vcpus || !c->finder) {
        return;
    }
    g_mutex_lock(&c->lock);
    /* QEMU -daemonize forks before it makes vCPUs; threads start after that. */
    if (!c->applying) {
        __atomic_store_n(&c->applying, true, __ATOMIC_RELEASE);
        kt_tracer_start(c->shared.tracer);
    }
    kt_budget_charge(kt_tracer_budget(c->shared.tracer), KT_MEM_FIXED,
                     KT_BUDGET_VCPU);
    if (!kt_vcpu_init(&c->vcpu[index], index, c->arch)) {
        qemu_plugin_outs("ka: QEMU does not have all registers that ka needs "
                         "for this guest: nothing is traced\n");
    } else if (c->boot) {
        kt_vcpu_set_kernel(&c->vcpu[index], c->shared.kernel);
    }
    g_mutex_unlock(&c->lock);
}

void kt_capture_remove_vcpu(KtCapture *c, unsigned index)
{
    if (index >= c->max_vcpus) {
        return;
    }
    g_mutex_lock(&c->lock);
    if (c->vcpu[index].shown) {
        kt_budget_release(kt_tracer_budget(c->shared.tracer), KT_MEM_FIXED,
                          KT_BUDGET_VCPU);
        kt_vcpu_unplug(&c->vcpu[index]);
    }
    g_mutex_unlock(&c->lock);
}
