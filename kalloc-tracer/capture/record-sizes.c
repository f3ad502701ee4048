/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Record: which layer a new block is of, what was asked for, and what the
 * allocator reserved. Part of the hot path, see record.c.
 */
#include "kalloc-tracer/capture/record-internal.h"

static uint64_t round_up_pages(const KtGuest *g, uint64_t size)
{
    uint64_t page = 1ull << kt_guest_page_shift(g);

    return (size + page - 1) & -page;
}

/* The page allocator hands out powers of two. */
static uint64_t large_size(const KtGuest *g, uint64_t size)
{
    uint64_t actual = 1ull << kt_guest_page_shift(g);

    while (actual < size && actual < 1ull << 40) {
        actual <<= 1;
    }
    return actual;
}

static void set_slab_size(KtHookCall *m, uint64_t cache_va)
{
    KtGuest *g = m->boot->guest;
    const KtGuestCache *c = kt_guest_cache(g, &m->v->seen, cache_va);
    uint32_t now;

    if (!c) {
        kt_vcpu_count(m->v, KT_CNT_CACHE_UNKNOWN, 1);
        return;
    }
    m->ev.cache = c->id;
    m->ev.actual = c->size;
    if (m->ev.layer == KT_LAYER_CACHE) {
        m->ev.size = kt_guest_object_size(g, cache_va, &now) &&
            now <= c->size ? now : c->object_size;
    }
}

static void set_sizes(KtHookCall *m, const KtPendingCall *call, KtLayer layer,
                      uint64_t va)
{
    KtGuest *g = m->boot->guest;
    uint64_t cache = call->cache;

    if (layer == KT_LAYER_KMALLOC && !cache &&
        call->size > kt_guest_large_above(g)) {
        layer = KT_LAYER_LARGE;
    }
    m->ev.layer = layer;
    switch (layer) {
    case KT_LAYER_KMALLOC:
        cache = cache ? cache : kt_guest_cache_of(g, va);
        G_GNUC_FALLTHROUGH;
    case KT_LAYER_CACHE:
        kt_guest_find_direct_map(g, va, call->cache);
        set_slab_size(m, cache);
        break;
    case KT_LAYER_LARGE:
        m->ev.actual = large_size(g, call->size);
        break;
    case KT_LAYER_VMALLOC:
        m->ev.actual = round_up_pages(g, call->size);
        break;
    default:
        break;
    }
}

/* As a profile says: the allocator's rule, or what the cache tells. */
static void set_told_sizes(KtHookCall *m, const KtPendingCall *call,
                           const KtHookRow *hook)
{
    const KtGuestCache *c = kt_guest_cache(m->boot->guest, &m->v->seen,
                                           call->cache);

    m->ev.layer = hook->layer;
    m->ev.size = hook->size == KT_NO_ARG ? hook->sizes->fixed : call->size;
    m->ev.actual = kt_reserve_rule_bytes(hook->sizes, m->ev.size);
    if (!c) {
        kt_vcpu_count(m->v, KT_CNT_CACHE_UNKNOWN, call->cache != 0);
        return;
    }
    m->ev.cache = c->id;
    if (c->size) {
        m->ev.actual = c->size;
    }
    if (c->size && hook->size == KT_NO_ARG && !hook->sizes->fixed) {
        m->ev.size = c->object_size;
    }
}

void kt_record_sizes(KtHookCall *m, const KtPendingCall *call, uint64_t va)
{
    const KtHookRow *hook = &m->boot->row[call->hook.v];

    m->ev.size = call->size;
    m->ev.actual = 0;
    m->ev.cache = (KtCacheId) { 0 };
    if (hook->sizes) {
        set_told_sizes(m, call, hook);
    } else {
        set_sizes(m, call, hook->layer, va);
    }
}

/*
 * kvmalloc() of memory that is no slab's, or too large for one, calls another
 * hook also where it has the code for slabs inside (since 6.15). Where a slab
 * cannot be told (no BTF), the model knows whether another hook told of it.
 */
bool kt_record_outer_tells(KtHookCall *m, const KtPendingCall *call,
                           uint64_t va)
{
    KtGuest *g = m->boot->guest;
    bool can_tell = kt_guest_has_direct_map(g);

    m->ev.flags = 0;
    if (m->boot->row[call->hook.v].layer != KT_LAYER_KMALLOC) {
        return true;
    }
    if (call->size > kt_guest_large_above(g)) {
        return false;
    }
    if (kt_guest_cache_of(g, va)) {
        return true;
    }
    m->ev.flags = can_tell ? 0 : KT_EVF_IF_NEW;
    return !can_tell;
}
