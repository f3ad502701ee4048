/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inside of a KtGuest, for guest.c and guest-snapshot.c. */
#ifndef KT_GUEST_INSIDE_H
#define KT_GUEST_INSIDE_H

#include "kalloc-tracer/kernel/guest.h"
#include "kalloc-tracer/kernel/direct-map.h"

typedef struct Layout {
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
} Layout;

#define KT_BOOT_CACHES 2

struct KtGuest {
    Layout at;
    bool told;                          /* by a profile: not Linux */
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

#endif /* KT_GUEST_INSIDE_H */
