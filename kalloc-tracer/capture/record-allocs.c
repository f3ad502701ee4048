/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Record: allocations of the slab allocator, vmalloc and percpu memory. On the
 * vCPU's own thread; part of the hot path.
 */
#include "kalloc-tracer/capture/record-internal.h"

#define VM_MAP_PUT_PAGES 0x200ull       /* include/linux/vmalloc.h */

/* ---- entries ------------------------------------------------------------- */

GS_HOT
void kt_record_await_return(KtHookCall *m, const KtHookRow *hook, KtHookId id)
{
    KtPendingCall call = {
        .sp = m->sp_after,
        .ra = m->ra,
        .hook = id,
        .size = kt_vcpu_arg(m->v, hook->count == KT_NO_ARG ? hook->size :
                                                             hook->count),
        .ptr = kt_vcpu_pointer(m->v, hook->array == KT_NO_ARG ? hook->ptr :
                                                                hook->array),
        .cache = kt_vcpu_pointer(m->v, hook->cache),
        .gfp = kt_vcpu_arg(m->v, hook->gfp),
    };

    if (hook->flags & KT_HOOK_PUT_PAGES) {
        if (!(call.ptr & VM_MAP_PUT_PAGES)) {
            return;
        }
        call.size = (call.size & UINT32_MAX)
                    << kt_guest_page_shift(m->boot->guest);
        __atomic_store_n(&m->boot->put_pages, true, __ATOMIC_RELAXED);
    }
    kt_record_await(m, &call);
}

void kt_record_enter_realloc(KtHookCall *m, const KtHookRow *hook, KtHookId id)
{
    kt_record_enter_free_outer(m, hook, id);
    kt_record_await_return(m, hook, id);
}

/* ---- sizes --------------------------------------------------------------- */

/*
 * Layer, requested size and reserved size of a new block.
 *
 *   layer     reserved bytes
 *   kmalloc   from the object to the end of its slot, by the slab cache, which
 *             the slab page names
 *   large     the next power of two pages
 *   cache     the same, by the kmem_cache that the call named
 *   vmalloc   whole pages
 *
 * A profile's hooks have a rule instead (hook-table.h).
 */
static uint64_t round_up_pages(const KtGuest *g, uint64_t size)
{
    uint64_t page = 1ull << kt_guest_page_shift(g);

    return (size + page - 1) & -page;
}

/* kmalloc() gets such blocks from the page allocator: powers of two pages. */
static uint64_t large_size(const KtGuest *g, uint64_t size)
{
    uint64_t actual = 1ull << kt_guest_page_shift(g);

    while (actual < size && actual < 1ull << 40) {
        actual <<= 1;
    }
    return actual;
}

/* The cache is not known. Let the call say what it can of the struct. */
static void learn_cache(KtHookCall *m, const KtPendingCall *call,
                        uint64_t cache_va, uint64_t va)
{
    KtGuest *g = m->boot->guest;

    kt_guest_object_made(g, cache_va, va);
    if (m->ev.layer == KT_LAYER_KMALLOC) {
        kt_guest_kmalloc_made(g, call->cache, call->size);
    }
    kt_vcpu_count(m->v, KT_CNT_CACHE_UNKNOWN, 1);
}

static void set_slab_size(KtHookCall *m, const KtPendingCall *call,
                          uint64_t cache_va, uint64_t va)
{
    KtGuest *g = m->boot->guest;
    const KtGuestCache *c = kt_guest_cache(g, &m->v->seen, cache_va);
    uint32_t now;

    if (!c) {
        learn_cache(m, call, cache_va, va);
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
        cache = cache ? cache : kt_guest_object_cache(g, va);
        G_GNUC_FALLTHROUGH;
    case KT_LAYER_CACHE:
        kt_guest_find_direct_map(g, va, call->cache);
        set_slab_size(m, call, cache, va);
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

/* Fill in the sizes by the profile: by its rule, or by the cache. */
static void set_profile_sizes(KtHookCall *m, const KtPendingCall *call,
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

static void record_sizes(KtHookCall *m, const KtPendingCall *call, uint64_t va)
{
    const KtHookRow *hook = &m->boot->row[call->hook.v];

    m->ev.size = call->size;
    m->ev.actual = 0;
    m->ev.cache = (KtCacheId) { 0 };
    if (hook->sizes) {
        set_profile_sizes(m, call, hook);
    } else {
        set_sizes(m, call, hook->layer, va);
    }
}

/*
 * Since 6.15 __kvmalloc_node() has the slab path of __kmalloc_node() inlined.
 * It still calls other hooks for large blocks and for vmalloc, and these record
 * their blocks. So only a block in a slab page is its own. Without BTF the slab
 * page cannot be read; then the event carries KT_EVF_IF_NEW, and the model
 * ignores it if another hook has recorded the block.
 */
static bool outer_allocated(KtHookCall *m, const KtPendingCall *call,
                           uint64_t va)
{
    KtGuest *g = m->boot->guest;
    bool has_direct_map = kt_guest_has_direct_map(g);

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
    m->ev.flags = has_direct_map ? 0 : KT_EVF_IF_NEW;
    return !has_direct_map;
}

/* ---- returns ------------------------------------------------------------- */

/* Return true if an earlier call showed that the function calls another hook
 * for its blocks, and that hook records them. */
static bool is_recorded_by_inner(const KtHookCall *m, KtHookId id)
{
    return __atomic_load_n(&m->boot->inner_records[id.v], __ATOMIC_RELAXED);
}

/* Hook @id called a hook of the same layer, or jumped to it. If @id is a
 * KT_HOOK_OUTER one, the inner hook records its blocks from now on. */
static void set_inner_records(KtHookCall *m, KtHookId id, KtLayer layer)
{
    const KtHookRow *hook = &m->boot->row[id.v];

    if (id.v && hook->layer == layer && (hook->flags & KT_HOOK_OUTER)) {
        __atomic_store_n(&m->boot->inner_records[id.v], true, __ATOMIC_RELAXED);
    }
}

static void push_alloc(KtHookCall *m, const KtPendingCall *call, uint64_t va,
                       uint8_t flags)
{
    kt_record_complete(m);
    m->ev.gfp = call->gfp;
    m->ev.flags = flags | kt_record_unsure(&m->boot->row[call->hook.v]);
    record_sizes(m, call, va);
    kt_record_push(m, KT_EV_ALLOC, call->hook, va);
}

GS_HOT
void kt_record_return_alloc(KtHookCall *m, const KtPendingCall *call,
                            uint64_t va)
{
    const KtHookRow *hook = &m->boot->row[call->hook.v];
    bool outer = hook->flags & KT_HOOK_OUTER;
    bool again = m->recorded == va;
    KtLayer recorded_layer = m->recorded_layer;

    set_inner_records(m, m->wrapper, hook->layer);
    m->recorded = va;
    m->recorded_layer = hook->layer;
    if (outer && is_recorded_by_inner(m, call->hook)) {
        return;
    }
    if (!kt_is_memory(va)) {
        kt_vcpu_count(m->v, va == KT_ZERO_SIZE_PTR ? KT_CNT_ZERO_SIZE
                                                   : KT_CNT_ALLOC_FAILED, 1);
    } else if (again) {
        set_inner_records(m, call->hook, recorded_layer);
    } else if (!outer) {
        push_alloc(m, call, va, 0);
    } else if (outer_allocated(m, call, va)) {
        push_alloc(m, call, va, m->ev.flags);
    }
}

/* A bulk call allocates all or none (mm/slub.c). It returns the number of
 * blocks, since 7.1 a bool. */
static uint64_t bulk_count(uint64_t result, uint64_t wanted)
{
    bool all = (result & UINT32_MAX) == wanted || (result & 0xff) == 1;

    return all ? wanted : 0;
}

void kt_record_return_alloc_bulk(KtHookCall *m, const KtPendingCall *call,
                                 uint64_t result)
{
    uint64_t n = bulk_count(result, call->size);

    if (!n) {
        kt_vcpu_count(m->v, KT_CNT_ALLOC_FAILED, 1);
    }
    for (uint64_t i = 0; i < n; i++) {
        uint64_t va;

        if (i == KT_BULK_MAX ||
            !kt_record_read_untagged(m, call->ptr + 8 * i, &va)) {
            kt_record_drop(m, KT_CNT_BULK_UNREADABLE);
            return;
        }
        kt_record_return_alloc(m, call, va);
    }
}

/* Mostly kmalloc() and kfree() record that the block moved. If the function
 * calls neither (hooks-calls.c), it freed the old block unless it failed. */
static void record_move(KtHookCall *m, const KtPendingCall *call,
                        const KtHookRow *hook, uint64_t result)
{
    KtHookRow kind = *hook;

    kind.size = KT_NO_ARG;              /* the new size */
    if (hook->self_frees && result && kt_is_memory(call->ptr)) {
        kt_record_free(m, &kind, call->hook, call->ptr, (KtCacheId) { 0 }, 0);
    }
    if (hook->self_allocs && kt_is_memory(result)) {
        push_alloc(m, call, result, KT_EVF_IF_NEW);
    }
}

void kt_record_return_realloc(KtHookCall *m, const KtPendingCall *call,
                              uint64_t result)
{
    const KtHookRow *hook = &m->boot->row[call->hook.v];

    if (result != call->ptr) {      /* moved, freed, new, or failed */
        record_move(m, call, hook, result);
        return;
    }
    if (!kt_is_memory(result)) {
        return;
    }
    kt_record_complete(m);
    m->ev.size = call->size;
    kt_record_push(m, KT_EV_RESIZE, call->hook, result);
}
