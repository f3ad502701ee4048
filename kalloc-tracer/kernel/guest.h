/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the hot path reads of the guest: the current task, whether it is in
 * an interrupt, kmem_caches, and which cache an object's slab page is of.
 * QEMU-free: memory comes through a KtView.
 */
#ifndef KT_GUEST_H
#define KT_GUEST_H

#include "kalloc-tracer/kt.h"
#include "kalloc-tracer/hooks/profile.h"
#include "kalloc-tracer/snapshot/snapshot.h"

/** KtView - host view of guest RAM on the vCPU's own thread; NULL when @va is
 *  not plain readable RAM; @avail bytes up to the end of the page. */
typedef const void *(*KtView)(uint64_t va, size_t *avail);
/** kt_view_read() - copy bytes, across pages; false if any is not RAM. */
GS_HOT bool kt_view_read(KtView view, uint64_t va, void *buf, size_t len);

typedef struct KtGuest KtGuest;

/**
 * kt_guest_new() - find offsets and variables in one kernel's BTF and symbols
 * @k: (borrowed) with its slide set
 * @t: (borrowed) interns tasks and caches
 *
 * What the kernel does not tell (no BTF, unknown member) stays unknown: the
 * functions below then return 0.
 */
KtGuest *kt_guest_new(const GsKernel *k, KtTracer *t, KtView view);
void kt_guest_free(KtGuest *g);
/** kt_guest_set_caches() - it is a kernel of which only that is known; before
 *  any other call. */
void kt_guest_set_caches(KtGuest *g, const KtCacheLayout *at);

/** struct KtGuestCache - a kmem_cache: its address, and what was read of it */
typedef struct KtGuestCache {
    uint64_t va;
    uint32_t size, object_size;
    KtCacheId id;
} KtGuestCache;

#define KT_GUEST_CACHES 64

/** struct KtGuestCpu - one vCPU's memory of what it read last; zeroed for a
 *  new boot */
typedef struct KtGuestCpu {
    uint64_t task_va;
    uint32_t pid;
    char comm[16];
    KtTaskId task;
    KtGuestCache cache[KT_GUEST_CACHES];
    unsigned cache_epoch;
} KtGuestCpu;

/** kt_guest_read() - kt_view_read() of its memory. */
GS_HOT bool kt_guest_read(const KtGuest *g, uint64_t va, void *buf, size_t len);
GS_HOT bool kt_guest_u64(const KtGuest *g, uint64_t va, uint64_t *out);

/* @base: what GS_REG_BASE holds. */
/** struct KtTaskAt - a task, and where in the host's memory what is read of
 *  it is, NULL where that is not in one page; good for a callback */
typedef struct KtTaskAt {
    uint64_t va;
    const char *pid, *comm;
} KtTaskAt;

/** kt_guest_find_task() - find the current task of a vCPU, and begin to load
 *  what kt_guest_task() will read; @at: (out) */
GS_HOT void kt_guest_find_task(const KtGuest *g, uint64_t base, KtTaskAt *at);
/** kt_guest_task() - its id, 0 unknown. */
GS_HOT KtTaskId kt_guest_task(KtGuest *g, KtGuestCpu *cpu, const KtTaskAt *at);
/** kt_guest_in_interrupt() - the kernel's in_interrupt(), false if unknown. */
bool kt_guest_in_interrupt(KtGuest *g, uint64_t base);

/** kt_guest_cache() - the kmem_cache at @cache_va, (borrowed until the next
 *  call on @cpu) or NULL if it is unknown. */
GS_HOT const KtGuestCache *kt_guest_cache(KtGuest *g, KtGuestCpu *cpu,
                                          uint64_t cache_va);
/** kt_guest_object_size() - bytes that a caller may use of an object of the
 *  kmem_cache at @cache_va now: they grow when another cache is merged into
 *  it (__kmem_cache_alias() in mm/slub.c). False if it cannot be read. */
GS_HOT bool kt_guest_object_size(const KtGuest *g, uint64_t cache_va,
                                 uint32_t *size);
/** kt_guest_cache_of() - kmem_cache whose slab page holds @object, 0 unknown;
 *  meaningful only for an object known to be from a slab. */
GS_HOT uint64_t kt_guest_cache_of(KtGuest *g, uint64_t object);
/**
 * kt_guest_find_direct_map() - try an object that was just allocated
 * @cache_va: the kmem_cache it is from
 *
 * Where the kernel does not say where its struct pages are, that is found by
 * the one of such an object.
 */
GS_HOT void kt_guest_find_direct_map(KtGuest *g, uint64_t object,
                                     uint64_t cache_va);
/** kt_guest_direct_map() - return the addresses of page frame 0's struct page,
 *  and of its memory in the direct map. False if they are not known yet. */
bool kt_guest_direct_map(KtGuest *g, uint64_t *vmemmap, uint64_t *page_offset);
/** kt_guest_has_direct_map() - is that known already? Any thread. */
bool kt_guest_has_direct_map(const KtGuest *g);
/** kt_guest_slab() - does the kernel tell which slab @object is in? @cache is
 *  that of its page: an id, 0 when it is none that was seen before. */
GS_HOT bool kt_guest_slab(KtGuest *g, KtGuestCpu *cpu, uint64_t object,
                          KtCacheId *cache);
/** kt_guest_object_freed() - tell of an object freed to @cache: a kmem_cache
 *  that is freed itself is forgotten. */
GS_HOT void kt_guest_object_freed(KtGuest *g, KtCacheId cache, uint64_t object);

/** kt_guest_sheaf() - the array of the struct slab_sheaf whose rcu_head is at
 *  @head, false if unknown or unreadable. */
bool kt_guest_sheaf(const KtGuest *g, uint64_t head, uint64_t *objects,
                    uint32_t *n);
/** kt_guest_page_shift() - log2 of the size of a page. */
GS_HOT unsigned kt_guest_page_shift(const KtGuest *g);
/** kt_guest_large_above() - kmalloc serves more than that from pages. */
GS_HOT uint64_t kt_guest_large_above(const KtGuest *g);

/** kt_guest_pack() - what was learned of the guest, into a stream behind
 *  kt_snapshot_pack()'s. */
void kt_guest_pack(KtGuest *g, GsOut *p);
/** kt_guest_unpack() - into a new @g; @s: (borrowed) installed. */
void kt_guest_unpack(KtGuest *g, GsBytes *u, const KtSnapshot *s);

#endif /* KT_GUEST_H */
