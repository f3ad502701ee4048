/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * KtGuest: what the event path reads from a running Linux kernel for each
 * event: the current task, whether the CPU is in an interrupt, kmem_caches, and
 * the cache of an object's slab page.
 *
 * Created by capture/ when the kernel is found, and freed at the next boot.
 * QEMU-free: memory comes through a KtView.
 *
 * Threads: functions with a KtGuestCpu run in the thread of that vCPU. Others
 * may be called in any vCPU thread at once. The offsets do not change after
 * kt_guest_new(); the table of caches has its own lock.
 */
#ifndef KT_GUEST_H
#define KT_GUEST_H

#include "kalloc-tracer/kt.h"
#include "kalloc-tracer/base/id-map.h"
#include "kalloc-tracer/hooks/profile.h"
#include "kalloc-tracer/kernel/types-fit.h"
#include "guest-symbols/base/stream.h"

/** KtView - return the host address of guest memory at @va, NULL if it is not
 *  plain readable RAM. Call in the thread of the vCPU whose page tables are
 *  meant. @avail: (out) bytes up to the end of the page */
typedef const void *(*KtView)(uint64_t va, size_t *avail);
/** kt_view_read() - copy @len bytes, also across pages; false if any of them is
 *  not RAM. */
GS_HOT bool kt_view_read(KtView view, uint64_t va, void *buf, size_t len);

typedef struct KtGuest KtGuest;

/**
 * kt_guest_new() - find offsets and variables in a kernel's BTF and symbols
 * @k: (borrowed) its slide is set
 * @t: (borrowed) interns tasks and caches
 * @view: guest memory
 *
 * What the kernel does not describe (no BTF, no such member) stays unknown: the
 * functions below return 0, NULL or false for it.
 *
 * Returns: (owned) the guest.
 */
KtGuest *kt_guest_new(const GsKernel *k, KtTracer *t, KtView view);
void kt_guest_free(KtGuest *g);
/** kt_guest_set_caches() - use the offsets of a kernel profile: the kernel is
 *  not Linux, and only its caches are known. Call before any other function. */
void kt_guest_set_caches(KtGuest *g, const KtCacheLayout *at);

/** kt_guest_check_types() - compare what is read with what is known, as long
 *  as @fit is open. @fit: (borrowed) Call before any other function. */
void kt_guest_check_types(KtGuest *g, KtTypesFit *fit);
/** kt_guest_drop_types() - work out again where members are, and drop the
 *  caches that were read: the kernel's types have changed. No vCPU executes;
 *  the caller clears each KtGuestCpu. */
void kt_guest_drop_types(KtGuest *g);

/**
 * struct KtGuestCache - a kmem_cache: its address, and what was read of it
 * @size: bytes from an object to the end of its slot
 */
typedef struct KtGuestCache {
    uint64_t va;
    uint32_t size, object_size;
    KtCacheId id;
} KtGuestCache;

#define KT_GUEST_CACHES 64

/**
 * struct KtGuestCpu - cache of one vCPU: the task and caches it read last
 * @task_va, @pid, @comm, @task: the last task, and its id
 * @cache: direct-mapped by address
 * @cache_epoch: value of KtGuest.cache_epoch for which @cache is valid
 *
 * Clear it with zeros at a new boot.
 */
typedef struct KtGuestCpu {
    uint64_t task_va;
    uint32_t pid;
    char comm[16];
    KtTaskId task;
    KtGuestCache cache[KT_GUEST_CACHES];
    unsigned cache_epoch;
} KtGuestCpu;

/** kt_guest_read() - copy guest memory; false if it is not readable. */
GS_HOT bool kt_guest_read(const KtGuest *g, uint64_t va, void *buf, size_t len);
/** kt_guest_u64() - read a word; false if it is not readable. */
GS_HOT bool kt_guest_u64(const KtGuest *g, uint64_t va, uint64_t *out);
/** kt_guest_pointer() - read a word that is an address; its tag is removed.
 *  False if it is not readable. */
GS_HOT bool kt_guest_pointer(const KtGuest *g, uint64_t va, uint64_t *out);

/**
 * struct KtTaskAt - addresses of a task
 * @va: its task_struct in the guest
 * @pid, @comm: host addresses of both members; NULL if they are not in one
 *              page. Valid until the callback of QEMU returns
 */
typedef struct KtTaskAt {
    uint64_t va;
    const char *pid, *comm;
} KtTaskAt;

/** kt_guest_find_task() - find the current task of a vCPU, and prefetch what
 *  kt_guest_task() reads. @base: value of GS_REG_BASE; @at: (out) */
GS_HOT void kt_guest_find_task(const KtGuest *g, uint64_t base, KtTaskAt *at);
/** kt_guest_task() - read and intern the task. Returns: its id, 0 if
 *  unknown. */
GS_HOT KtTaskId kt_guest_task(KtGuest *g, KtGuestCpu *cpu, const KtTaskAt *at);
/** kt_guest_task_members() - return the offsets of pid and comm in struct
 *  task_struct, 0 for what is not known (yet). Any thread. */
void kt_guest_task_members(const KtGuest *g, uint32_t *pid, uint32_t *comm);
/** kt_guest_in_interrupt() - evaluate the kernel's in_interrupt() for a vCPU.
 *  @base: value of GS_REG_BASE. Returns: KT_UNKNOWN if a word that decides
 *  cannot be read. */
KtAnswer kt_guest_in_interrupt(KtGuest *g, uint64_t base);

/** kt_guest_cache() - find or read the kmem_cache at @cache_va. Returns:
 *  (borrowed until the next call with @cpu) NULL if it is unreadable. */
GS_HOT const KtGuestCache *kt_guest_cache(KtGuest *g, KtGuestCpu *cpu,
                                          uint64_t cache_va);
/** kt_guest_object_size() - read the object_size of a kmem_cache: bytes that a
 *  caller may use. It grows if the kernel merges another cache into this one
 *  (__kmem_cache_alias() in mm/slub.c). False if it is unreadable. */
GS_HOT bool kt_guest_object_size(const KtGuest *g, uint64_t cache_va,
                                 uint32_t *size);
/** kt_guest_alias() - return true if the kmem_cache at @cache_va has another
 *  name than the text at @asked: it was merged. @name: (out) that text, bytes
 *  of the guest. */
bool kt_guest_alias(const KtGuest *g, uint64_t cache_va, uint64_t asked,
                    char name[KT_ALIAS_NAME_MAX]);
/** kt_guest_cache_of() - return the address of the kmem_cache of the slab page
 *  that contains @object, 0 if unknown. The result is meaningful only if the
 *  object is known to be from a slab. */
GS_HOT uint64_t kt_guest_cache_of(KtGuest *g, uint64_t object);
/** kt_guest_object_cache() - the same for an object that was just allocated
 *  from a slab. So words of struct page that lead to no kmem_cache are not its
 *  head, which may decide before the head is known. */
GS_HOT uint64_t kt_guest_object_cache(KtGuest *g, uint64_t object);
/**
 * kt_guest_find_direct_map() - find the direct map by a new object
 * @object: an object that was just allocated
 * @cache_va: its kmem_cache
 *
 * On arm64 and riscv64 no variable says where the direct map and the struct
 * pages are. Of the possible places, the right one leads from the object to
 * its cache. No effect if they are known.
 */
GS_HOT void kt_guest_find_direct_map(KtGuest *g, uint64_t object,
                                     uint64_t cache_va);
/** kt_guest_direct_map() - return the addresses of page frame 0's struct page,
 *  and of its memory in the direct map. False if they are not known yet. */
bool kt_guest_direct_map(KtGuest *g, uint64_t *vmemmap, uint64_t *page_offset);
/** kt_guest_memory_of() - return the address of a struct page's memory while
 *  the direct map is not known, 0 if unknown (gs_direct_map_by_page()). These
 *  are some 30 calls at the begin of a boot, so nothing is kept. */
uint64_t kt_guest_memory_of(KtGuest *g, uint64_t page);
/** kt_guest_knows_direct_map() - return true if kt_guest_direct_map() does not
 *  need guest memory for its answer. Any thread. */
bool kt_guest_knows_direct_map(const KtGuest *g);
/** kt_guest_has_direct_map() - return true if the direct map is known, and the
 *  members of struct page. If so, kt_guest_cache_of() returns 0 only for a page
 *  that is no slab. Any thread. */
bool kt_guest_has_direct_map(const KtGuest *g);
/** kt_guest_slab() - find the cache of the page that contains @object. @cache:
 *  (out) its id, 0 if the page is no slab of a known cache. Returns: false if
 *  struct pages cannot be read, or do not say which. */
GS_HOT bool kt_guest_slab(KtGuest *g, KtGuestCpu *cpu, uint64_t object,
                          KtCacheId *cache);
/** kt_guest_object_freed() - handle the free of an object of @cache. If the
 *  object is itself a kmem_cache, remove that cache from the table. */
GS_HOT void kt_guest_object_freed(KtGuest *g, KtCacheId cache,
                                  uint64_t object);
/** kt_guest_check_caches() - read names and sizes of all caches of the table
 *  again, and remove those that have others now: frees were not seen for a
 *  time. */
void kt_guest_check_caches(KtGuest *g);

/** kt_guest_sheaf() - find the array of objects of the struct slab_sheaf whose
 *  rcu_head is at @head. @objects, @n: (out) its address and length. False if
 *  unknown or unreadable. */
bool kt_guest_sheaf(const KtGuest *g, uint64_t head, uint64_t *objects,
                    uint32_t *n);
/** kt_guest_page_shift() - return log2 of the bytes of a page. */
GS_HOT unsigned kt_guest_page_shift(const KtGuest *g);
/** kt_guest_large_above() - return the size in bytes above which kmalloc() uses
 *  the page allocator. */
GS_HOT uint64_t kt_guest_large_above(const KtGuest *g);

/** kt_guest_pack() - write the table of caches and the direct map to a stream,
 *  after kt_snapshot_pack(). */
void kt_guest_pack(KtGuest *g, GsOut *p);
/** kt_guest_unpack() - into a new @g; @ids: of a
 *  snapshot that is installed. */
void kt_guest_unpack(KtGuest *g, GsBytes *u, const KtIdMap *ids);

#endif /* KT_GUEST_H */
