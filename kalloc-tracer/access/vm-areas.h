/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Areas of vmalloc(): a second shadow, for the bytes behind what was asked for.
 *
 * Whole pages are mapped, so the end of the last one is memory that nobody
 * asked for. An access behind it, or after vfree(), is a fault in the guest.
 * So only the last pages have codes:
 *
 *     vmalloc(0x1f38)   page 0          page 1           guard
 *                       unknown         live | slack     not mapped
 *                                       ^from            ^end
 *
 * vfree() makes them unknown again, because vmap() and others use the addresses
 * next, without an event. A free has no size, so a tree by start has @from and
 * @end of each area that has slack.
 *
 * The kernel looks for the lowest free address, so all areas are near each
 * other. The shadow is made for 2 TiB round the first area; other areas are not
 * checked. In the last 2 TiB of addresses are the kernel and its modules, no
 * other areas.
 *
 * Threads: any. kt_vm_areas_shadow() has no lock, the rest takes one.
 */
#ifndef KT_VM_AREAS_H
#define KT_VM_AREAS_H

#include "kalloc-tracer/access/shadow.h"

#include <pthread.h>

/**
 * struct KtVmAreas - the shadow of areas. Visible for kt_vm_areas_shadow()
 * only, which is called at many accesses of the guest.
 *
 * @shadow: (atomic, nullable)
 * @lock: of the rest
 * @tree: areas that have slack, by start
 * @budget: (nullable, borrowed)
 */
typedef struct KtVmAreas {
    KtShadow *shadow;
    pthread_mutex_t lock;
    GTree *tree;
    KtBudget *budget;
} KtVmAreas;

/** kt_vm_areas_new() - (owned) Make it without areas. @budget: (nullable,
 *  borrowed, must outlive it) is charged for host memory. */
KtVmAreas *kt_vm_areas_new(KtBudget *budget);
void kt_vm_areas_free(KtVmAreas *a);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtVmAreas, kt_vm_areas_free)

/** kt_vm_areas_shadow() - (nullable, borrowed) Return the shadow; NULL before
 *  the first area that has slack. */
static inline const KtShadow *kt_vm_areas_shadow(const KtVmAreas *a)
{
    return __atomic_load_n(&a->shadow, __ATOMIC_ACQUIRE);
}

/** What became of an area. */
typedef enum KtAreaResult {
    KT_AREA_OK,         /* its slack is checked, or it has none */
    KT_AREA_NO_MEMORY,  /* there is no memory for the shadow */
    KT_AREA_OUTSIDE,    /* it is far from the first one */
} KtAreaResult;

/**
 * kt_vm_areas_set() - an area was handed out, or has another size
 * @size: bytes that were asked for
 * @page: bytes of a page, a power of two
 * @resized: it has the same pages as before
 */
KtAreaResult kt_vm_areas_set(KtVmAreas *a, uint64_t va, uint64_t size,
                             uint64_t page, bool resized);
/** kt_vm_areas_freed() - the area at @va, if one is known there, is about to be
 *  released. */
void kt_vm_areas_freed(KtVmAreas *a, uint64_t va);
/** kt_vm_areas_clear() - Drop all areas. No other thread may use @a
 *  meanwhile. */
void kt_vm_areas_clear(KtVmAreas *a);

#endif /* KT_VM_AREAS_H */
