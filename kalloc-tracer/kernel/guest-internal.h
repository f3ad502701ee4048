/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inside of a KtGuest, for the files guest*.c of this room only. */
#ifndef KT_GUEST_INTERNAL_H
#define KT_GUEST_INTERNAL_H

#include "kalloc-tracer/kernel/guest.h"
#include "kalloc-tracer/kernel/direct-map.h"

#define UNKNOWN         KT_NO_MEMBER

/* Softirq bits of preempt_count, see include/linux/preempt.h. */
#define IN_SOFTIRQ      0x0000ff00u

typedef struct KtGuestLayout {
    bool base_is_task;
    uint64_t current_task;      /* percpu offsets, unless @base_is_task */
    uint64_t preempt_count;
    uint32_t in_interrupt;      /* its bits */
    uint32_t task_pid, task_comm, task_softirq, task_preempt;
    uint32_t cache_name, cache_object_size, cache_size;
    unsigned size_bytes;                /* of the latter two */
    uint32_t page_head;                 /* struct page */
    uint32_t slab_cache;                /* struct slab, or page before 5.17 */
    uint32_t sheaf_head, sheaf_size, sheaf_objects;     /* slab_sheaf */
    bool has_pages;                     /* these two, and @linear */
    KtDirectMapAt direct_map;
    unsigned page_shift;
} KtGuestLayout;

#define KT_BOOT_CACHES 2

struct KtGuest {
    KtGuestLayout at;
    bool from_profile;                  /* not Linux */
    const GsKernel *kernel;
    KtTracer *tracer;
    KtView view;
    uint64_t vmemmap, page_offset;      /* 0 until they are known */
    GMutex lock;
    GHashTable *caches;                 /* kmem_cache va -> id */
    KtCacheId boot_cache[KT_BOOT_CACHES];   /* static ones of early boot */
    uint64_t boot_copy[KT_BOOT_CACHES]; /* where they were copied to, or 0 */
    KtCacheId kmem_cache;               /* the cache of kmem_caches */
    unsigned cache_epoch;               /* bumped when an id is dropped */
};

/** kt_guest_find_layout() - find offsets and variables in @k's types and
 *  symbols. A member that the kernel lacks is UNKNOWN, a variable 0. */
void kt_guest_find_layout(KtGuestLayout *at, const GsKernel *k);

#endif /* KT_GUEST_INTERNAL_H */
