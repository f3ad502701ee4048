/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Record: calls of a kernel without types whose arguments are known
 * (KT_ROLE_WITNESS_*). They are no events; they say where a struct has a
 * member, see guest-learn.h. On the vCPU's own thread. Calls that create a
 * cache are followed with types, too: the cache may have another name than was
 * asked for.
 *
 * A hook whose member is known has nothing more to say: its code is translated
 * anew, without the callback.
 */
#include "kalloc-tracer/capture/record-internal.h"

static bool learns(const KtHookCall *m, KtHookId id)
{
    return kt_guest_learns(m->boot->guest, m->boot->row[id.v].role);
}

void kt_record_await_witness(KtHookCall *m, const KtHookRow *hook, KtHookId id)
{
    const KtPendingCall call = {
        .sp = m->sp_after,
        .ra = m->ra,
        .hook = id,
        .size = kt_vcpu_arg(m->v, hook->size),
        .ptr = kt_vcpu_pointer(m->v, hook->array),
        .cache = kt_vcpu_pointer(m->v, hook->cache == KT_NO_ARG ? hook->ptr :
                                                                  hook->cache),
        .gfp = kt_guest_witness_clock(m->boot->guest),
    };

    if (learns(m, id)) {
        kt_record_await(m, &call);
    }
}

static void end_hook(KtHookCall *m, KtHookId id)
{
    if (!learns(m, id)) {
        qemu_plugin_invalidate_vaddr(kt_hooks_va(m->boot->hooks, id));
    }
}

void kt_record_enter_switch(KtHookCall *m, const KtHookRow *hook, KtHookId id)
{
    if (learns(m, id)) {
        kt_guest_task_switch(m->boot->guest, kt_vcpu_reg(m->v, GS_REG_BASE),
                             kt_vcpu_pointer(m->v, hook->ptr));
        end_hook(m, id);
    }
}

void kt_record_enter_thread(KtHookCall *m, const KtHookRow *hook, KtHookId id)
{
    if (learns(m, id)) {
        kt_guest_thread(m->boot->guest, m->sp_after,
                        kt_vcpu_pointer(m->v, hook->array));
    }
}

void kt_record_enter_wake(KtHookCall *m, const KtHookRow *hook, KtHookId id)
{
    if (learns(m, id)) {
        kt_guest_new_task(m->boot->guest, m->sp_after,
                          kt_vcpu_pointer(m->v, hook->ptr),
                          kt_vcpu_reg(m->v, GS_REG_BASE));
        end_hook(m, id);
    }
}

void kt_record_enter_slab(KtHookCall *m, const KtHookRow *hook, KtHookId id)
{
    if (learns(m, id)) {
        kt_guest_slab_freed(m->boot->guest, kt_vcpu_pointer(m->v, hook->ptr),
                            kt_vcpu_pointer(m->v, hook->array));
        end_hook(m, id);
    }
}

/* A cache was created, or an older one that is like it has another name. */
static void record_alias(KtHookCall *m, const KtPendingCall *call,
                         uint64_t cache)
{
    char name[KT_ALIAS_NAME_MAX];
    uint32_t size = 0;

    if (kt_guest_alias(m->boot->guest, cache, call->ptr, name)) {
        kt_record_complete(m);
        kt_guest_object_size(m->boot->guest, cache, &size);
        kt_cache_alias_add(m->c->tracer, &(KtCacheAlias) {
            .cache_va = cache, .name = name, .object_size = size,
            .stack = m->ev.stack, .task = m->ev.task, .us = m->ev.us });
    }
}

static void cache_made(KtHookCall *m, const KtPendingCall *call,
                       uint64_t cache, bool in_place)
{
    kt_guest_cache_made(m->boot->guest, &(KtCacheMade) {
        .cache = cache, .name = call->ptr, .size = call->size,
        .since = call->gfp, .in_place = in_place,
    });
}

void kt_record_return_cache(KtHookCall *m, const KtPendingCall *call,
                            uint64_t result)
{
    cache_made(m, call, result, false);
    record_alias(m, call, result);
}

void kt_record_return_boot_cache(KtHookCall *m, const KtPendingCall *call,
                                 uint64_t result)
{
    cache_made(m, call, call->cache, true);
}

void kt_record_return_name(KtHookCall *m, const KtPendingCall *call,
                           uint64_t result)
{
    kt_guest_task_named(m->boot->guest, call->cache, call->ptr);
    end_hook(m, call->hook);
}

void kt_record_return_clone(KtHookCall *m, const KtPendingCall *call,
                            uint64_t result)
{
    kt_guest_cloned(m->boot->guest, m->sp_after, result);
    end_hook(m, call->hook);
}

/* ---- code that comes and goes -------------------------------------------- */
/*
 * Record: code that is loaded and unloaded. Modules, BPF programs, another
 * kernel, and hibernation images. On the vCPU's own thread.
 */

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

/* swsusp_save() returns 0 if the image is complete. */
void kt_record_return_image_save(KtHookCall *m, const KtPendingCall *call,
                                 uint64_t result)
{
    if (!(result & UINT32_MAX)) {
        m->c->image(KT_IMAGE_SAVED);
    }
}

void kt_record_enter_image_load(KtHookCall *m, const KtHookRow *hook,
                                KtHookId id)
{
    m->c->image(KT_IMAGE_LOADS);
    kt_record_await_return(m, hook, id);
}

void kt_record_return_image_load(KtHookCall *m, const KtPendingCall *call,
                                 uint64_t result)
{
    m->c->image(KT_IMAGE_NOT_LOADED);
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
