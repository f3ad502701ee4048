/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Areas of vmalloc(): see vm-areas.h. */
#include "kalloc-tracer/access/vm-areas.h"

#define TIB ((uint64_t)1 << 40)
#define WINDOW (2 * TIB)
/* No guest has so much memory. */
#define AREA_MAX TIB

/* An area that has slack: in [from, end), where whole pages are. */
typedef struct Area {
    uint64_t va;
    uint64_t from;
    uint64_t end;
} Area;

/* Host memory of an area: itself, and the node of the tree. */
#define AREA_BYTES (sizeof(Area) + 48)

static int compare(const void *a, const void *b, void *opaque)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

KtVmAreas *kt_vm_areas_new(KtBudget *budget)
{
    KtVmAreas *a = g_new0(KtVmAreas, 1);

    pthread_mutex_init(&a->lock, NULL);
    a->tree = g_tree_new_full(compare, NULL, NULL, g_free);
    a->budget = budget;
    return a;
}

static void release_areas(KtVmAreas *a)
{
    kt_budget_release(a->budget, KT_MEM_SHADOW,
                      (uint64_t)g_tree_nnodes(a->tree) * AREA_BYTES);
}

void kt_vm_areas_free(KtVmAreas *a)
{
    if (!a) {
        return;
    }
    release_areas(a);
    g_tree_unref(a->tree);
    kt_shadow_free(a->shadow);
    pthread_mutex_destroy(&a->lock);
    g_free(a);
}

void kt_vm_areas_clear(KtVmAreas *a)
{
    release_areas(a);
    g_tree_remove_all(a->tree);
    if (a->shadow) {
        kt_shadow_clear(a->shadow);
    }
}

/* ---- with the lock ------------------------------------------------------- */

/* Find out if the shadow covers the range. Make it if there is none. */
static KtAreaResult cover(KtVmAreas *a, uint64_t from, uint64_t end)
{
    uint64_t base = from & -TIB;
    const KtShadow *s = a->shadow;

    if (!s && base <= UINT64_MAX - WINDOW) {
        __atomic_store_n(&a->shadow,
                         kt_shadow_new(base, WINDOW, a->budget, NULL),
                         __ATOMIC_RELEASE);
        s = a->shadow;
        if (!s) {
            return KT_AREA_NO_MEMORY;
        }
    }
    return s && from >= s->base && end - s->base <= s->len ? KT_AREA_OK :
                                                             KT_AREA_OUTSIDE;
}

static void remove_area(KtVmAreas *a, const Area *area)
{
    kt_shadow_forget(a->shadow, area->from, area->end - area->from);
    g_tree_remove(a->tree, &area->va);
    kt_budget_release(a->budget, KT_MEM_SHADOW, AREA_BYTES);
}

static KtAreaResult add_area(KtVmAreas *a, const Area *area, uint64_t good)
{
    KtAreaResult covered = cover(a, area->from, area->end);
    Area *copy;

    if (covered != KT_AREA_OK) {
        return covered;
    }
    if (!kt_budget_take(a->budget, KT_MEM_SHADOW, AREA_BYTES)) {
        return KT_AREA_NO_MEMORY;
    }
    copy = g_memdup2(area, sizeof(*area));
    g_tree_insert(a->tree, &copy->va, copy);
    return kt_shadow_alloc(a->shadow, area->from, good,
                           area->end - area->from, true) ?
               KT_AREA_OK : KT_AREA_NO_MEMORY;
}

/* @end: of the pages that are known to be mapped, at least */
static KtAreaResult set_area(KtVmAreas *a, uint64_t va, uint64_t size,
                             uint64_t page, uint64_t end)
{
    Area area = { .va = va, .from = va + (size & -page) };

    area.end = MAX(end, (va + size + page - 1) & -page);
    if (va + size == area.end || area.end - area.from > KT_SHADOW_BLOCK_MAX) {
        return KT_AREA_OK;
    }
    /* A block of no good bytes is one whose size is unknown. */
    if (va + size == area.from) {
        area.from -= page;
    }
    return add_area(a, &area, va + size - area.from);
}

static bool is_area(uint64_t va, uint64_t size, uint64_t page)
{
    return size && size <= AREA_MAX && va % page == 0 &&
           va <= UINT64_MAX - size - page;
}

static KtAreaResult replace(KtVmAreas *a, uint64_t va, uint64_t size,
                            uint64_t page, bool same_pages)
{
    const Area *old;
    uint64_t end = 0;

    if (!is_area(va, size, page)) {
        return KT_AREA_OK;
    }
    old = g_tree_lookup(a->tree, &va);
    if (old) {
        end = same_pages ? old->end : 0;
        remove_area(a, old);
    }
    return set_area(a, va, size, page, end);
}

/* ---- events -------------------------------------------------------------- */

KtAreaResult kt_vm_areas_set(KtVmAreas *a, uint64_t va, uint64_t size,
                             uint64_t page, bool resized)
{
    KtAreaResult result;

    pthread_mutex_lock(&a->lock);
    result = replace(a, va, size, page, resized);
    pthread_mutex_unlock(&a->lock);
    return result;
}

void kt_vm_areas_freed(KtVmAreas *a, uint64_t va)
{
    const Area *area;

    pthread_mutex_lock(&a->lock);
    area = g_tree_lookup(a->tree, &va);
    if (area) {
        remove_area(a, area);
    }
    pthread_mutex_unlock(&a->lock);
}
