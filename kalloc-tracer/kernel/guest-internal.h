/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inside of a KtGuest, for the files guest*.c of this room only. */
#ifndef KT_GUEST_INTERNAL_H
#define KT_GUEST_INTERNAL_H

#include "kalloc-tracer/kernel/guest.h"
#include "guest-symbols/gs.h"
#include "kalloc-tracer/kernel/guest-learn.h"

#define UNKNOWN         KT_NO_MEMBER

/* Softirq bits of preempt_count, see include/linux/preempt.h. */
#define IN_SOFTIRQ      0x0000ff00u

/**
 * struct KtGuestLayout - offsets in a kernel's structs, UNKNOWN if it has no
 * such member, and addresses of variables, 0 if there are none
 * @base_is_task: GS_REG_BASE has the current task, not the per-CPU base
 * @current_task, @preempt_count: per-CPU offsets; unused if @base_is_task
 * @percpu_mask: of the per-CPU base; 0: they are addresses (no SMP)
 * @softirq_unknown: the kernel has @task_softirq, but nobody knows where
 * @in_interrupt: bits of preempt_count that mean "in interrupt"
 * @cache_left_pad: bytes between the begin of a slot and its object
 * @size_bytes: bytes of members @cache_object_size, @cache_size and
 *              @cache_left_pad
 * @page_head: in struct page: compound_head or compound_info
 * @page_heads: (atomic) @page_head is one of these words, but it is not known
 *              which; 0: it is known
 * @slab_cache: in struct slab, in struct page before 5.17
 * @sheaf_head, @sheaf_size, @sheaf_objects: in struct slab_sheaf
 * @has_pages: @page_head, @slab_cache and @direct_map are known
 * @page_shift: log2 of the bytes of a page
 */
typedef struct KtGuestLayout {
    bool base_is_task;
    bool softirq_unknown;
    uint64_t current_task;
    uint64_t preempt_count;
    uint64_t percpu_mask;
    uint32_t in_interrupt;
    uint32_t task_pid, task_comm, task_softirq, task_preempt;
    uint32_t cache_name, cache_object_size, cache_size, cache_left_pad;
    unsigned size_bytes;
    uint32_t page_head;
    uint8_t page_heads;
    uint32_t slab_cache;
    uint32_t sheaf_head, sheaf_size, sheaf_objects;
    bool has_pages;
    GsDirectMapAt direct_map;
    unsigned page_shift;
} KtGuestLayout;

/* "kmem_cache" and "kmem_cache_node" */
#define KT_BOOT_CACHES 2

/*
 * struct KtGuest
 * @at: offsets; after kt_guest_new() and kt_guest_set_caches() only @learner
 *      changes them, from UNKNOWN to a value
 * @learner: NULL: the kernel has types
 * @fit: (nullable) of types that are from a file
 * @from_profile: the kernel is not Linux
 * @tag_bits: of its pointers, see gs_untag()
 * @vmemmap, @page_offset: (atomic) the direct map, 0 until it is known;
 *                         @page_offset is stored last, with release
 * @lock: protects the members below, except @cache_epoch
 * @caches: address of a kmem_cache -> id
 * @boot_cache: ids of the static caches of early boot
 * @boot_copy: the address that each was copied to, 0 if it was not yet
 * @kmem_cache: id of the cache "kmem_cache", whose objects are caches
 * @cache_epoch: (atomic) grows when a cache is destroyed: each KtGuestCpu must
 *               be cleared
 */
struct KtGuest {
    KtGuestLayout at;
    KtLearner *learner;
    KtTypesFit *fit;
    bool from_profile;
    uint64_t tag_bits;
    const GsKernel *kernel;
    KtTracer *tracer;
    KtView view;
    uint64_t vmemmap, page_offset;
    GMutex lock;
    GHashTable *caches;
    KtCacheId boot_cache[KT_BOOT_CACHES];
    uint64_t boot_copy[KT_BOOT_CACHES];
    KtCacheId kmem_cache;
    unsigned cache_epoch;
};

/** kt_guest_find_layout() - find offsets and variables in @k's types and
 *  symbols. A member that the kernel lacks is UNKNOWN, a variable 0. */
void kt_guest_find_layout(KtGuestLayout *at, const GsKernel *k);

/** kt_guest_current() - find the current task of a vCPU; false if unknown.
 *  @base: value of GS_REG_BASE */
bool kt_guest_current(const KtGuest *g, uint64_t base, uint64_t *task);

/** kt_guest_set_direct_map() - publish the direct map. */
void kt_guest_set_direct_map(KtGuest *g, const GsDirectMap *direct_map);
/** KT_PAGE_HEADS - bits of KtGuestLayout.page_heads */
#define KT_PAGE_HEADS 8
/** kt_guest_possible_caches() - list what kt_guest_cache_of() would return for
 *  each word that may be the head of a page; 0 for what is unreadable. Returns:
 *  how many there are; 0 if the head is known, or the direct map is not. */
unsigned kt_guest_possible_caches(KtGuest *g, uint64_t object,
                                  uint64_t cache[KT_PAGE_HEADS]);
/** kt_guest_learn_pages() - @object of @cache_va was allocated, and the direct
 *  map is not known. */
void kt_guest_learn_pages(KtGuest *g, uint64_t object, uint64_t cache_va);

/** kt_learner_new() - (owned, nullable) create the learner of a new guest; NULL
 *  if its layout is complete. */
KtLearner *kt_learner_new(const KtGuest *g);
void kt_learner_free(KtLearner *l);
/** kt_learner_freed() - @object is about to be freed. */
void kt_learner_freed(KtLearner *l, uint64_t object);

#endif /* KT_GUEST_INTERNAL_H */
