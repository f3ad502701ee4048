/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Record frees of what is no memory: NULL, ZERO_SIZE_PTR and error pointers.
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
 *
 * On the vCPU's own thread.
 */
#include "kalloc-tracer/capture/record-internal.h"

void kt_record_enter_free_outer(KtHookCall *m, const KtHookRow *hook,
                                KtHookId id)
{
    uint64_t va = kt_vcpu_pointer(m->v, hook->ptr);
    KtHookRow kind = *hook;

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

bool kt_record_frees_nothing(KtHookCall *m, const KtHookRow *hook, uint64_t va)
{
    if (may_free_nothing(m, hook, va)) {
        kt_vcpu_count(m->v, KT_CNT_FREE_NULL, 1);
        return false;
    }
    return va < KT_ERROR_POINTER || !is_same_misuse(m, hook, va);
}
