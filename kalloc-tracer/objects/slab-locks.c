/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Locks of the slab allocator, see slab-locks.h.
 *
 * A list of slabs and its length change under the lock of the node; those of a
 * barn under the lock of the barn. The list and the counters of a slab change
 * together, in one instruction; or under the slab's own lock, a bit of its
 * flags; in debug caches under the lock of the node.
 *
 * A spinlock is a word that is 0 if it is free, or has two numbers that are
 * equal then. With PREEMPT_RT it is a mutex, whose owner is NULL.
 */
#include "kalloc-tracer/objects/slab-locks.h"

#define FLAG_LOCKED 1u          /* PG_locked, in all versions */

/** struct Lock - where a lock is in a struct; @size 0: this kernel has none */
typedef struct Lock {
    uint32_t at, size;
} Lock;

/** struct Asking - the question while nodes are visited */
typedef struct Asking {
    const KtSlabs *s;
    Lock node, barn;
    bool held;
} Asking;

static Lock find_lock(const KtSlabs *s, const char *type, const char *name)
{
    static const char *const words[] = {
        "rlock.raw_lock", "raw_lock", "lock.owner",
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        g_autofree char *path = g_strdup_printf("%s.%s", name, words[i]);
        Lock lock;

        if (gs_kernel_member(s->o.kernel, type, path, &lock.at, &lock.size) &&
            (lock.size == 4 || lock.size == 8)) {
            return lock;
        }
    }
    return (Lock) { 0, 0 };
}

static bool is_held(const KtSlabs *s, uint64_t va, Lock lock)
{
    bool tickets = gs_kernel_arch(s->o.kernel)->spinlock ==
                   GS_SPINLOCK_TICKETS;
    uint64_t v;

    if (!lock.size || !kt_objects_number(&s->o, va + lock.at, lock.size, &v)) {
        return false;
    }
    return lock.size == 4 && tickets ? v >> 16 != (v & 0xffff) : v != 0;
}

static void ask_node(void *opaque, unsigned number, uint64_t node,
                     uint64_t barn)
{
    Asking *a = opaque;

    a->held |= node && is_held(a->s, node, a->node);
    a->held |= barn && is_held(a->s, barn, a->barn);
}

static bool is_slab_locked(const KtSlabs *s, const KtSlab *slab)
{
    uint64_t flags;

    return kt_slabs_member(s, slab->va, KT_M_PAGE_FLAGS, &flags) &&
           flags & FLAG_LOCKED;
}

KtAnswer kt_slab_is_locked(const KtSlabs *s, const KtSlabCache *c,
                           const KtSlab *slab)
{
    Asking a = {
        .s = s, .node = find_lock(s, "kmem_cache_node", "list_lock"),
        .barn = find_lock(s, "node_barn", "lock"),
    };

    if (!a.node.size) {
        return KT_UNKNOWN;
    }
    kt_slabs_foreach_node(s, c, ask_node, &a);
    return a.held || (slab && is_slab_locked(s, slab)) ? KT_YES : KT_NO;
}
