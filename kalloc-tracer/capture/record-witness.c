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

static void await_witness(KtHookCall *m, const KtHookRow *hook, KtHookId id)
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

    kt_record_await(m, &call);
}

static void end_hook(KtHookCall *m, KtHookId id)
{
    if (!kt_guest_learns(m->boot->guest, m->boot->row[id.v].role)) {
        qemu_plugin_invalidate_vaddr(kt_hooks_va(m->boot->hooks, id));
    }
}

void kt_record_witness_enter(KtHookCall *m, const KtHookRow *hook, KtHookId id)
{
    KtGuest *g = m->boot->guest;
    uint64_t base = kt_vcpu_reg(m->v, GS_REG_BASE);

    if (!kt_guest_learns(g, hook->role)) {
        return;
    }
    switch (hook->role) {
    case KT_ROLE_WITNESS_SWITCH:
        kt_guest_task_switch(g, base, kt_vcpu_pointer(m->v, hook->ptr));
        end_hook(m, id);
        break;
    case KT_ROLE_WITNESS_THREAD:
        kt_guest_thread(g, m->sp_after, kt_vcpu_pointer(m->v, hook->array));
        break;
    case KT_ROLE_WITNESS_WAKE:
        kt_guest_new_task(g, m->sp_after, kt_vcpu_pointer(m->v, hook->ptr),
                          base);
        end_hook(m, id);
        break;
    case KT_ROLE_WITNESS_SLAB:
        kt_guest_slab_freed(g, kt_vcpu_pointer(m->v, hook->ptr),
                            kt_vcpu_pointer(m->v, hook->array));
        end_hook(m, id);
        break;
    default:
        await_witness(m, hook, id);
        break;
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

void kt_record_witness_return(KtHookCall *m, const KtPendingCall *call,
                              uint64_t result)
{
    KtGuest *g = m->boot->guest;
    KtRole role = m->boot->row[call->hook.v].role;

    switch (role) {
    case KT_ROLE_WITNESS_NAME:
        kt_guest_task_named(g, call->cache, call->ptr);
        end_hook(m, call->hook);
        break;
    case KT_ROLE_WITNESS_CLONE:
        kt_guest_cloned(g, m->sp_after, result);
        end_hook(m, call->hook);
        break;
    default:
        kt_guest_cache_made(g, &(KtCacheMade) {
            .cache = role == KT_ROLE_WITNESS_CACHE ? result : call->cache,
            .name = call->ptr, .size = call->size, .since = call->gfp,
            .in_place = role == KT_ROLE_WITNESS_BOOT_CACHE,
        });
        if (role == KT_ROLE_WITNESS_CACHE) {
            record_alias(m, call, result);
        }
        break;
    }
}
