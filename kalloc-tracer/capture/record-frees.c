/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Record: frees of the slab allocator, vmalloc and percpu memory, and caches
 * that are destroyed. On the vCPU's own thread; part of the hot path.
 */
#include "kalloc-tracer/capture/record-internal.h"

/* ---- no memory ----------------------------------------------------------- */

/*
 * Frees of what is no memory: NULL, ZERO_SIZE_PTR and error pointers.
 *
 * kfree_sensitive(), krealloc() and others read the block before they free it.
 * At an error pointer the kernel mostly dies in that read:
 *
 *     kfree_sensitive(ERR_PTR(-EPERM))    free of the error pointer
 *       ksize()                           oops: kfree() is never called
 *
 * If the guest has memory at the physical address that belongs to the error
 * pointer (some 2 GiB), kfree() follows, and is the same error. It is called
 * from the first function, or that function jumps to it: then stack pointer and
 * return address are the same.
 */
void kt_record_enter_free_outer(KtHookCall *m, const KtHookRow *hook,
                                KtHookId id)
{
    uint64_t va = kt_vcpu_pointer(m->v, hook->ptr);
    bool frees = hook->self_frees && hook->role == KT_ROLE_FREE_OUTER &&
                 kt_is_memory(va);
    KtHookRow kind = *hook;

    if (frees) {
        kt_record_free(m, hook, id, va, (KtCacheId) { 0 }, 0);
    }
    if (va < KT_ERROR_POINTER) {
        return;
    }
    kind.family = KT_FAMILY_KFREE;
    kind.size = KT_NO_ARG;          /* krealloc(): the new size */
    kt_record_free(m, &kind, id, va, (KtCacheId) { 0 }, 0);
    m->v->misused = (KtMisuse) { m->sp_after, m->ra, va };
}

static bool is_same_misuse(KtHookCall *m, const KtHookRow *hook, uint64_t va)
{
    const KtMisuse *last = &m->v->misused;
    KtRole caller = m->boot->row[kt_record_free_site(m).v].role;

    return hook->role == KT_ROLE_FREE &&
           (caller == KT_ROLE_FREE_OUTER || caller == KT_ROLE_REALLOC ||
            (last->va == va && last->sp == m->sp_after && last->ra == m->ra));
}

/*
 * Return true if the function ignores @va, which is no memory. All but
 * kmem_cache_free() ignore NULL. vfree() warns of ZERO_SIZE_PTR, and nothing
 * ignores an error pointer. Arrays can have NULLs.
 */
static bool may_free_nothing(const KtHookCall *m, const KtHookRow *hook,
                             uint64_t va)
{
    if (m->c->profile) {
        return true;
    }
    if (va >= KT_ERROR_POINTER) {
        return false;
    }
    return hook->role != KT_ROLE_FREE ||
           (hook->family == KT_FAMILY_VFREE ? !va :
                                              hook->family != KT_FAMILY_CACHE);
}

/* Return true if the free of @va, which is no memory, is an error that is not
 * recorded yet. Count a right one. */
static bool frees_nothing(KtHookCall *m, const KtHookRow *hook, uint64_t va)
{
    if (may_free_nothing(m, hook, va)) {
        kt_vcpu_count(m->v, KT_CNT_FREE_NULL, 1);
        return false;
    }
    return va < KT_ERROR_POINTER || !is_same_misuse(m, hook, va);
}

KtHookId kt_record_free_site(KtHookCall *m)
{
    unsigned i = m->ra % G_N_ELEMENTS(m->v->free_site);

    return kt_hooks_wrapper_cached(m->boot->hooks, &m->v->free_site[i], m->ra,
                               m->pages);
}

/* If the function frees in any case, the block waits no more. */
static void not_delayed(KtHookCall *m, const KtHookRow *hook, uint64_t va)
{
    if (G_UNLIKELY(m->c->delay) && !(hook->flags & KT_HOOK_DELAYABLE)) {
        kt_delay_free_done(m, va);
    }
}

GS_HOT
void kt_record_free(KtHookCall *m, const KtHookRow *hook, KtHookId id,
                    uint64_t va, KtCacheId cache, uint8_t flags)
{
    if (!kt_is_memory(va) && !frees_nothing(m, hook, va)) {
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
    not_delayed(m, hook, va);
}

/* Record that @va was queued and will be freed. */
static void queue(KtHookCall *m, KtHookId id, uint64_t va, uint8_t flags)
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

/* ---- vfree() ------------------------------------------------------------- */

/*
 * vfree() in an interrupt only queues the area. Since 6.3 the kernel's worker
 * then calls vfree() again for it:
 *
 *     interrupt   vfree(p) -> vfree_atomic(p)     queues p
 *     worker      delayed_vfree_work() -> vfree(p)    frees p
 *
 * One of the two calls of vfree() must be the free, and the other none. Which
 * one depends on two answers: is this an interrupt, and does the kernel call
 * vfree() again? Each can be unknown: the first without types or per-CPU
 * variables, the second without the symbol of the worker.
 *
 *     again  interrupt   vfree()                     vfree_atomic()
 *     no     any         free                        free
 *     yes    no          free                        queue
 *     yes    yes         no event                    queue
 *     yes    unknown     free, QUEUES                queue, AGAIN
 *     unknown  no        free, MAYBE_WORKER          free, QUEUES, ...
 *     unknown  other     free, QUEUES, MAYBE_WORKER  free, QUEUES, ...
 *
 * If the interrupt is unknown, the first call is the free. That is early, but
 * not wrong: nobody can get the area before the worker ran. The call of the
 * worker (WORKER) is then the second half of the same free, and the model
 * ignores it. If the worker is unknown, any call of vfree() may be that second
 * half; the model ignores one for each free that may have queued, and counts
 * it as not judged.
 */
static KtAnswer in_interrupt(const KtHookCall *m)
{
    return kt_guest_in_interrupt(m->boot->guest,
                                 kt_vcpu_reg(m->v, GS_REG_BASE));
}

/* @may_queue: the call may be in an interrupt */
static uint8_t vfree_flags(const KtHookCall *m, KtAnswer again, bool may_queue)
{
    uint8_t flags = may_queue ? KT_EVF_QUEUES : 0;

    if (again == KT_UNKNOWN) {
        return flags | KT_EVF_MAYBE_WORKER;
    }
    if (again == KT_YES && kt_hooks_is_vfree_worker(m->boot->hooks, m->ra)) {
        return KT_EVF_WORKER;           /* a worker is no interrupt */
    }
    return again == KT_YES ? flags : 0;
}

static void enter_vfree(KtHookCall *m, const KtHookRow *hook, KtHookId id,
                        uint64_t va, KtAnswer again)
{
    KtAnswer interrupt = again == KT_NO ? KT_NO : in_interrupt(m);

    if (again != KT_YES || interrupt != KT_YES) {
        kt_record_free(m, hook, id, va, (KtCacheId) { 0 },
                       vfree_flags(m, again, interrupt != KT_NO));
    }
}

/* If vfree() is the caller and its entry was an event, this call is part of
 * that. vfree() may also jump here: then only the backtrace shows that it is
 * the same call, and the model compares it (KT_EVF_AGAIN). */
static void enter_vfree_atomic(KtHookCall *m, const KtHookRow *hook,
                               KtHookId id, uint64_t va, KtAnswer again)
{
    bool was_event = again != KT_YES || in_interrupt(m) != KT_YES;
    uint8_t flags = was_event ? KT_EVF_AGAIN : 0;

    if (was_event && kt_hooks_is_vfree(m->boot->hooks, m->ra)) {
        return;
    }
    if (again == KT_YES) {
        queue(m, id, va, flags | kt_record_unsure(hook));
    } else {
        kt_record_free(m, hook, id, va, (KtCacheId) { 0 },
                       again == KT_NO ? 0 :
                       flags | vfree_flags(m, again, true));
    }
}

static void record_vfree(KtHookCall *m, const KtHookRow *hook, KtHookId id,
                     uint64_t va)
{
    KtAnswer again = kt_hooks_vfree_called_again(m->boot->hooks);

    if (hook->flags & KT_HOOK_DEFERRED) {
        enter_vfree_atomic(m, hook, id, va, again);
    } else {
        enter_vfree(m, hook, id, va, again);
    }
}

/* ---- entries ------------------------------------------------------------- */

static KtCacheId cache_arg(KtHookCall *m, const KtHookRow *hook)
{
    uint64_t va = kt_vcpu_pointer(m->v, hook->cache);
    const KtGuestCache *c = kt_guest_cache(m->boot->guest, &m->v->seen, va);

    return c ? c->id : (KtCacheId) { 0 };
}

GS_HOT
void kt_record_enter_free(KtHookCall *m, const KtHookRow *hook, KtHookId id)
{
    uint64_t va = kt_record_untag(m, kt_vcpu_arg(m->v, hook->ptr));

    if (hook->flags & (KT_HOOK_DEFERRED | KT_HOOK_NOT_IN_IRQ)) {
        record_vfree(m, hook, id, va);
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

        if (i == KT_BULK_MAX ||
            !kt_record_read_untagged(m, array + 8 * i, &va)) {
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
    uint64_t ptr = kt_record_untag(m, kt_vcpu_arg(m->v, hook->ptr));
    uint8_t tag = m->ev.tag;
    uint64_t head = kt_record_untag(m, kt_vcpu_arg(m->v, hook->array));

    if ((hook->flags & KT_HOOK_INSTEAD) && ptr >= 4096) {
        return;                 /* a callback */
    }
    m->ev.tag = ptr < 4096 ? m->ev.tag : tag;
    queue(m, id, ptr < 4096 ? head - ptr : ptr,
                    kt_record_unsure(hook));
}

/* ---- caches -------------------------------------------------------------- */

/* If frees are delayed, none of the cache's blocks wait any more. */
void kt_record_enter_destroy(KtHookCall *m, const KtHookRow *hook, KtHookId id)
{
    if (m->c->delay) {
        kt_delay_free_drop(m, kt_vcpu_pointer(m->v, hook->cache));
    }
    kt_record_await_return(m, hook, id);
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
