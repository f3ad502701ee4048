/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The words of events and the members that all formats print of them, in one
 * order. Called by the formatters, without the tracer's lock.
 */
#include "monitor-cmds/output/format.h"

static const char *name_at(const char *const *names, unsigned n, unsigned i)
{
    return i < n && names[i] ? names[i] : "?";
}

const char *mc_event_name(KtEventKind kind)
{
    static const char *const names[] = {
        [KT_EV_ALLOC] = "alloc", [KT_EV_FREE] = "free",
        [KT_EV_RESIZE] = "resize", [KT_EV_RCU_QUEUE] = "rcu",
        [KT_EV_GAP] = "gap", [KT_EV_DESTROY] = "destroy",
        [KT_EV_ACCESS] = "access",
    };

    return name_at(names, G_N_ELEMENTS(names), kind);
}

const char *mc_family_name(KtFamily family)
{
    static const char *const names[] = {
        "any", "kfree", "cache", "vfree", "percpu", "pages", "kmalloc",
        "zone",
    };

    return name_at(names, G_N_ELEMENTS(names), family);
}

void mc_walk_event(McOut *o, const KtEvent *ev, const McWalk *walk)
{
    KtCacheInfo cache;
    char comm[17];
    uint32_t pid;

    if (ev->kind == KT_EV_ALLOC) {
        walk->word(o, "layer", kt_layer_name(ev->layer));
    } else if (ev->kind == KT_EV_FREE) {
        walk->word(o, "family", mc_family_name(ev->family));
    } else if (ev->kind == KT_EV_ACCESS) {
        walk->word(o, "access", ev->flags & KT_EVF_WRITE ? "w" : "r");
    }
    if (kt_tracer_cache(o->ctx->tracer, ev->cache, &cache)) {
        walk->word(o, "cache", cache.name);
    }
    if (kt_tracer_task(o->ctx->tracer, ev->task, &pid, comm)) {
        walk->word(o, "comm", comm);
        walk->number(o, "pid", pid);
    }
    walk->number(o, "cpu", ev->cpu);
    walk->word(o, "hook", kt_tracer_hook_name(o->ctx->tracer, ev->hook));
}

void mc_walk_traced(McOut *o, const KtTracedBlock *b, const McWalk *walk)
{
    KtCacheInfo cache;
    char comm[17];
    uint32_t pid;

    if (!b->known) {
        return;
    }
    walk->number(o, "block_size", b->size);
    walk->word(o, "block_layer", kt_layer_name(b->layer));
    if (kt_tracer_cache(o->ctx->tracer, b->cache, &cache)) {
        walk->word(o, "block_cache", cache.name);
    }
    if (kt_tracer_task(o->ctx->tracer, b->task, &pid, comm)) {
        walk->word(o, "block_comm", comm);
        walk->number(o, "block_pid", pid);
    }
}
