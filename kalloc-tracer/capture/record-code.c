/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Record: code that is loaded and unloaded. Modules, BPF programs, and another
 * kernel. On the vCPU's own thread.
 */
#include "kalloc-tracer/capture/record-internal.h"

static void record_moment(KtHookCall *m, KtMoment moment, uint64_t module_va)
{
    GsModule module;

    if (m->c->moments.fn &&
        gs_kernel_module(m->c->kernel, module_va, &module)) {
        kt_moment(&m->c->moments, moment, module.name);
    }
}

static void save_module(KtHookCall *m, uint64_t va, bool added)
{
    if (added) {
        kt_record_module(m, va, true);
        kt_tracer_save_module(m->c->tracer, m->c->kernel, va);
    } else {
        kt_vcpu_count(m->v, KT_CNT_MODULES_FAILED, 1);
    }
}

void kt_record_enter_bpf_add(KtHookCall *m, const KtHookRow *hook, KtHookId id)
{
    uint64_t ksym = kt_vcpu_pointer(m->v, hook->ptr);

    save_module(m, ksym,
                kt_load_code(m->c->tracer, m->c->kernel, m->boot->guest,
                             gs_kernel_add_bpf, ksym));
}

void kt_record_enter_module_drop(KtHookCall *m, const KtHookRow *hook,
                                 KtHookId id)
{
    uint64_t module = kt_vcpu_pointer(m->v, hook->ptr);

    kt_record_module(m, module, false);
    record_moment(m, KT_MOMENT_UNLOAD, module);
    kt_tracer_drop_module(m->c->tracer, m->c->kernel, module);
}

void kt_record_enter_kexec(KtHookCall *m, const KtHookRow *hook, KtHookId id)
{
    m->c->kexec();
}

void kt_record_return_module_add(KtHookCall *m, const KtPendingCall *call,
                                 uint64_t result)
{
    const GsModuleFile file = {
        .header = call->cache,
        .sections = kt_vcpu_untag(m->v, call->size),
    };

    save_module(m, call->ptr,
                kt_load_module(m->c->tracer, m->c->kernel, m->boot->guest,
                               call->ptr, &file));
    record_moment(m, KT_MOMENT_LOAD, call->ptr);
}
