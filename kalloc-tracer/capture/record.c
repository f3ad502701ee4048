/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Record: entries and returns of the slab allocator, vmalloc, percpu memory,
 * and modules; see record.h.
 *
 * Order. A free is recorded at the function's entry, before the allocator can
 * hand the memory out again. An allocation is recorded at the return, when the
 * caller owns the memory. So if one vCPU frees a block and another one gets the
 * same memory, the free comes first in the journal, too:
 *
 *     vCPU 0   kfree(p) entry  -> FREE p        (seq 10)
 *     vCPU 1                    kmalloc() return -> ALLOC p   (seq 11)
 */
#include "kalloc-tracer/capture/record-internal.h"

#define BULK_MAX        4096            /* most pointers read of a bulk call */
#define VM_MAP_PUT_PAGES 0x200ull       /* include/linux/vmalloc.h */

/* ---- entries ------------------------------------------------------------ */

static inline void use_true_return(KtHookCall *m)
{
    const uint64_t *replaced = m->boot->replaced;

    if (G_UNLIKELY(m->ra == replaced[0] || m->ra == replaced[1])) {
        kt_record_true_return(m);
    }
}

/* The return address is on the stack (x86) or in the link register. It is a
 * tracer's if a function that the guest traces ends with a jump to the hooked
 * one. */
bool kt_record_find_return(KtHookCall *m)
{
    uint64_t sp = kt_vcpu_reg(m->v, GS_REG_SP);
    size_t avail;
    const void *at;

    m->sp_after = sp;
    if (m->v->reg[GS_REG_LINK]) {
        m->ra = kt_vcpu_reg(m->v, GS_REG_LINK);
        use_true_return(m);
        return true;
    }
    m->sp_after += sizeof(m->ra);
    kt_pending_calls_expect(m->c->calls, m->sp_after);
    at = qemu_plugin_vaddr_to_host(sp, &avail);
    if (!at || avail < sizeof(m->ra)) {
        return false;
    }
    memcpy(&m->ra, at, sizeof(m->ra));
    use_true_return(m);
    return true;
}

KtHookId kt_record_free_site(KtHookCall *m)
{
    unsigned i = m->ra % G_N_ELEMENTS(m->v->free_site);

    return kt_hooks_wrapper_cached(m->boot->hooks, &m->v->free_site[i], m->ra,
                               m->pages);
}

GS_HOT
void kt_record_free(KtHookCall *m, const KtHookRow *hook, KtHookId id,
                    uint64_t va, KtCacheId cache, uint8_t flags)
{
    if (!kt_is_memory(va) && !kt_record_frees_nothing(m, hook, va)) {
        return;
    }
    m->wrapper = kt_record_free_site(m);
    kt_record_complete(m);
    m->ev.family = hook->family;
    m->ev.cache = cache;
    m->ev.flags = flags | kt_record_unsure(hook) |
                  (hook->flags & KT_HOOK_STRICT ? KT_EVF_STRICT : 0);
    if (hook->size != KT_NO_ARG) {
        m->ev.size = kt_vcpu_arg(m->v, hook->size);
        m->ev.flags |= KT_EVF_SIZED;
    }
    if (hook->family == KT_FAMILY_KFREE &&
        kt_guest_slab(m->boot->guest, &m->v->seen, va, &m->ev.cache)) {
        m->ev.flags |= KT_EVF_SLAB_READ;
    }
    kt_record_push(m, KT_EV_FREE, id, va);
    kt_guest_object_freed(m->boot->guest, cache, va);
    kt_record_not_delayed(m, hook, va);
}

void kt_record_queue(KtHookCall *m, KtHookId id, uint64_t va, uint8_t flags)
{
    if (va <= KT_ZERO_SIZE_PTR) {
        kt_vcpu_count(m->v, KT_CNT_FREE_NULL, 1);
        return;
    }
    m->wrapper = kt_record_free_site(m);
    kt_record_complete(m);
    m->ev.flags = flags;
    kt_record_push(m, KT_EV_RCU_QUEUE, id, va);
}

static KtCacheId cache_arg(KtHookCall *m, const KtHookRow *hook)
{
    uint64_t va = kt_vcpu_pointer(m->v, hook->cache);
    const KtGuestCache *c = kt_guest_cache(m->boot->guest, &m->v->seen, va);

    return c ? c->id : (KtCacheId) { 0 };
}

/* Return an address in a form with its tag, and put the tag into the event. */
static uint64_t untag(KtHookCall *m, uint64_t va)
{
    m->ev.tag = kt_vcpu_tag(m->v, va);
    return kt_vcpu_untag(m->v, va);
}

/* Read an address from an array, as untag() returns it. */
static bool read_untagged(KtHookCall *m, uint64_t at, uint64_t *va)
{
    if (!kt_guest_u64(m->boot->guest, at, va)) {
        return false;
    }
    *va = untag(m, *va);
    return true;
}

GS_HOT
void kt_record_enter_free(KtHookCall *m, const KtHookRow *hook, KtHookId id)
{
    uint64_t va = untag(m, kt_vcpu_arg(m->v, hook->ptr));

    if (hook->flags & (KT_HOOK_DEFERRED | KT_HOOK_NOT_IN_IRQ)) {
        kt_record_vfree(m, hook, id, va);
        return;
    }
    kt_record_free(m, hook, id, va, cache_arg(m, hook), 0);
    if (G_UNLIKELY(m->c->delay) && hook->flags & KT_HOOK_DELAYABLE) {
        kt_delay_free(m, hook, va);
    }
}

void kt_record_skip_free(KtHookCall *m, const KtHookRow *hook, KtHookId id)
{
    kt_guest_object_freed(m->boot->guest, cache_arg(m, hook),
                          kt_vcpu_pointer(m->v, hook->ptr));
}

static void free_array(KtHookCall *m, const KtHookRow *hook, KtHookId id,
                       uint64_t array, uint64_t n, KtCacheId cache)
{
    for (uint64_t i = 0; i < n; i++) {
        uint64_t va;

        if (i == BULK_MAX || !read_untagged(m, array + 8 * i, &va)) {
            kt_record_drop(m, KT_CNT_BULK_UNREADABLE);
            return;
        }
        kt_record_free(m, hook, id, va, cache, 0);
    }
}

void kt_record_enter_free_bulk(KtHookCall *m, const KtHookRow *hook,
                               KtHookId id)
{
    KtHookRow kind = *hook;

    /* kfree_bulk() passes no cache: the objects can be of any cache. */
    if (!kt_vcpu_pointer(m->v, hook->cache)) {
        kind.family = KT_FAMILY_KFREE;
    }
    free_array(m, &kind, id, kt_vcpu_pointer(m->v, hook->array),
               kt_vcpu_arg(m->v, hook->count), cache_arg(m, hook));
}

void kt_record_enter_free_sheaf(KtHookCall *m, const KtHookRow *hook,
                                KtHookId id)
{
    uint64_t array;
    uint32_t n;

    if (!kt_guest_sheaf(m->boot->guest, kt_vcpu_pointer(m->v, hook->ptr),
                        &array, &n)) {
        kt_record_drop(m, KT_CNT_BULK_UNREADABLE);
        return;
    }
    free_array(m, hook, id, array, n, (KtCacheId) { 0 });
}

/* The callback gets an address in the block; the model finds the block. */
static void free_inside(KtHookCall *m, const KtHookRow *hook, KtHookId id,
                        uint8_t flags)
{
    kt_record_free(m, hook, id, kt_vcpu_pointer(m->v, hook->ptr),
                   (KtCacheId) { 0 }, KT_EVF_INSIDE | flags);
}

void kt_record_enter_free_inside(KtHookCall *m, const KtHookRow *hook,
                                 KtHookId id)
{
    free_inside(m, hook, id, 0);
}

/* vunmap() may free a block only if vmap() made blocks. */
void kt_record_enter_unmap(KtHookCall *m, const KtHookRow *hook, KtHookId id)
{
    bool made = __atomic_load_n(&m->boot->put_pages, __ATOMIC_RELAXED);

    free_inside(m, hook, id, KT_EVF_UNMAP | (made ? KT_EVF_OWNED : 0));
}

/*
 * Since 6.2 the call is kvfree_call_rcu(head, ptr). Before (commit
 * 04a522b7da3d) the second argument was the offset of the rcu_head in the
 * block, or, without a head, the block itself. An offset is less than a page.
 */
void kt_record_enter_rcu_queue(KtHookCall *m, const KtHookRow *hook,
                               KtHookId id)
{
    uint64_t ptr = untag(m, kt_vcpu_arg(m->v, hook->ptr));
    uint8_t tag = m->ev.tag;
    uint64_t head = untag(m, kt_vcpu_arg(m->v, hook->array));

    if ((hook->flags & KT_HOOK_INSTEAD) && ptr >= 4096) {
        return;                 /* a callback */
    }
    m->ev.tag = ptr < 4096 ? m->ev.tag : tag;
    kt_record_queue(m, id, ptr < 4096 ? head - ptr : ptr,
                    kt_record_unsure(hook));
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
    kt_record_moment(m, KT_MOMENT_UNLOAD, module);
    kt_tracer_drop_module(m->c->tracer, m->c->kernel, module);
}

void kt_record_enter_kexec(KtHookCall *m, const KtHookRow *hook, KtHookId id)
{
    m->c->kexec();
}

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

/* If frees are delayed, none of the cache's blocks wait any more. */
void kt_record_enter_destroy(KtHookCall *m, const KtHookRow *hook, KtHookId id)
{
    if (m->c->delay) {
        kt_delay_free_drop(m, kt_vcpu_pointer(m->v, hook->cache));
    }
    kt_record_await_return(m, hook, id);
}

/* What an entry and a return of each role do: ROW(role, enter, return). NULL:
 * nothing. */
#define ROLES(ROW) \
    ROW(ALLOC, kt_record_await_return, kt_record_return_alloc) \
    ROW(ALLOC_BULK, kt_record_await_return, kt_record_return_alloc_bulk) \
    ROW(REALLOC, kt_record_enter_realloc, kt_record_return_realloc) \
    ROW(FREE, kt_record_enter_free, NULL, .skip = kt_record_skip_free) \
    ROW(FREE_BULK, kt_record_enter_free_bulk, NULL) \
    ROW(FREE_SHEAF, kt_record_enter_free_sheaf, NULL) \
    ROW(FREE_INSIDE, kt_record_enter_free_inside, NULL) \
    ROW(UNMAP, kt_record_enter_unmap, NULL) \
    ROW(RCU_QUEUE, kt_record_enter_rcu_queue, NULL) \
    ROW(FREE_OUTER, kt_record_enter_free_outer, NULL) \
    ROW(WRAPPER, NULL, NULL) \
    ROW(MODULE_ADD, kt_record_await_return, kt_record_return_module_add) \
    ROW(MODULE_DROP, kt_record_enter_module_drop, NULL) \
    ROW(BPF_ADD, kt_record_enter_bpf_add, NULL) \
    ROW(KEXEC, kt_record_enter_kexec, NULL) \
    ROW(SETUP, NULL, NULL) \
    ROW(CACHE_DESTROY, kt_record_enter_destroy, kt_record_return_destroy) \
    ROW(LOG, kt_record_enter_log, kt_record_return_log) \
    ROW(WITNESS_CACHE, kt_record_await_witness, kt_record_return_cache) \
    ROW(WITNESS_BOOT_CACHE, kt_record_await_witness, \
        kt_record_return_boot_cache) \
    ROW(WITNESS_NAME, kt_record_await_witness, kt_record_return_name) \
    ROW(WITNESS_THREAD, kt_record_enter_thread, NULL) \
    ROW(WITNESS_SWITCH, kt_record_enter_switch, NULL) \
    ROW(WITNESS_WAKE, kt_record_enter_wake, NULL) \
    ROW(WITNESS_SLAB, kt_record_enter_slab, NULL) \
    ROW(WITNESS_CLONE, kt_record_await_witness, kt_record_return_clone) \
    ROW(PAGE_ALLOC, kt_record_await_pages, kt_record_return_pages) \
    ROW(PAGE_BULK, kt_record_await_page_bulk, kt_record_return_page_bulk) \
    ROW(PAGE_ISOLATE, kt_record_await_pages, kt_record_return_isolated) \
    ROW(PAGE_MIGRATE, kt_record_await_pages, kt_record_return_folio) \
    ROW(PAGE_CONTIG, kt_record_await_pages, kt_record_return_page_range) \
    ROW(PAGE_FREE, kt_record_enter_page_free, NULL) \
    ROW(PAGE_FREE_BATCH, kt_record_enter_page_batch, NULL) \
    ROW(PAGE_FREE_LIST, kt_record_enter_page_list, NULL) \
    ROW(PAGE_OUTER, kt_record_enter_page_put, NULL) \
    ROW(PAGE_WRAPPER, NULL, NULL)

/* @skip: what an entry does while recording is off */
typedef struct RoleOps {
    KtRecordEnter *enter, *skip;
    KtRecordReturn *leave;
} RoleOps;

static const RoleOps ops[KT_ROLE__COUNT] = {
#define ROW(id, at_entry, at_return, ...) [KT_ROLE_##id] = { \
    .enter = at_entry, .leave = at_return, ##__VA_ARGS__ },
    ROLES(ROW)
};

#define ROLE_BIT(id, ...) + (1ull << KT_ROLE_##id)
G_STATIC_ASSERT((0 ROLES(ROLE_BIT)) == (1ull << KT_ROLE__COUNT) - 1);

/* Return true if the call is no event because of its caller. */
static bool is_inner(const KtHookCall *m, const KtHookRow *hook)
{
    return kt_hook_row_undoes(hook, m->ra) ||
           ((hook->flags & (KT_HOOK_INNER | KT_HOOK_SETUP | KT_HOOK_UNDO)) &&
            kt_hooks_is_inner(m->boot->hooks, hook, m->ra));
}

void kt_record_enter(KtHookCall *m, KtHookId id)
{
    const KtHookRow *hook = &m->boot->row[id.v];

    if (!kt_record_find_return(m)) {
        kt_record_drop_call(m, KT_CNT_CALL_UNREADABLE,
                            kt_role_does(hook->role, KT_DOES_ALLOCATE));
        return;
    }
    gs_unwind_expect(m->v->unwinder, m->ra);
    m->pages = hook->pages;
    if ((m->pages || !is_inner(m, hook)) && ops[hook->role].enter) {
        ops[hook->role].enter(m, hook, id);
    }
}

/*
 * Two things are kept up while recording is off. A call may still be inside the
 * allocator when recording is switched on, and then return memory that was
 * freed after the gap: so allocating calls are followed. A kmem_cache may be
 * freed and another one made at the same address: so cached caches are dropped.
 */
void kt_record_skip(KtHookCall *m, KtHookId id)
{
    const KtHookRow *hook = &m->boot->row[id.v];

    if (m->c->access) {
        kt_access_watch_missed(m->c->access);
    }
    if (kt_role_does(hook->role, KT_DOES_ALLOCATE)) {
        kt_record_enter(m, id);
    } else if (ops[hook->role].skip) {
        ops[hook->role].skip(m, hook, id);
    }
}

/* ---- returns ------------------------------------------------------------ */

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
    kt_record_sizes(m, call, va);
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
    } else if (kt_record_outer_allocated(m, call, va)) {
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

        if (i == BULK_MAX || !read_untagged(m, call->ptr + 8 * i, &va)) {
            kt_record_drop(m, KT_CNT_BULK_UNREADABLE);
            return;
        }
        kt_record_return_alloc(m, call, va);
    }
}

void kt_record_return_realloc(KtHookCall *m, const KtPendingCall *call,
                              uint64_t result)
{
    if (result != call->ptr || !kt_is_memory(result)) {
        return;             /* moved: kmalloc() and kfree() are recorded */
    }
    kt_record_complete(m);
    m->ev.size = call->size;
    kt_record_push(m, KT_EV_RESIZE, call->hook, result);
}

/* The cache stays, so it can still be read. */
void kt_record_return_destroy(KtHookCall *m, const KtPendingCall *call,
                              uint64_t result)
{
    const KtGuestCache *c = kt_guest_cache(m->boot->guest, &m->v->seen,
                                           call->cache);

    if (result & UINT32_MAX) {
        kt_record_complete(m);
        m->ev.cache = c ? c->id : (KtCacheId) { 0 };
        kt_record_push(m, KT_EV_DESTROY, call->hook, call->cache);
    }
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
    kt_record_moment(m, KT_MOMENT_LOAD, call->ptr);
}

void kt_record_return(KtHookCall *m, const KtPendingCall *call)
{
    const KtHookRow *hook = &m->boot->row[call->hook.v];
    uint64_t result = untag(m, kt_vcpu_reg(m->v, GS_REG_RESULT));

    m->pages = hook->pages;
    if (ops[hook->role].leave) {
        ops[hook->role].leave(m, call, result);
    }
}
