/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Skip big pages that contain no pointers of the kernel, so that a scan need
 * not read gigabytes in vain:
 *
 *     hugetlb pages         free ones, and used ones, of each size (hstates[])
 *     crashkernel= memory   crashk_res, crashk_low_res: an image that is loaded
 *                           for later, of another kernel
 *
 * Their pages become KT_PAGE_SKIPPED. Hugetlb pages that are mapped have a
 * mapping, and are user memory anyhow.
 */
#include "kalloc-tracer/leak/roots.h"

#define SIZES_MAX   8
#define LISTS_MAX   1024
#define ORDER_MAX   18              /* 1 GiB of 4 KiB */

/* Offsets in struct hstate; sizes of its lists, 16 bytes for each node. */
typedef struct Layout {
    uint32_t size, order, order_size;
    uint32_t active, free, free_size;
    uint32_t lru;                   /* in struct page */
} Layout;

static bool find_layout(const GsKernel *k, Layout *at)
{
    static const char type[] = "hstate";

    return gs_kernel_type_size(k, type, &at->size) && at->size &&
           gs_kernel_member(k, type, "order", &at->order, &at->order_size) &&
           at->order_size == 4 &&
           gs_kernel_member(k, type, "hugepage_activelist", &at->active,
                            NULL) &&
           gs_kernel_member(k, type, "hugepage_freelists", &at->free,
                            &at->free_size) &&
           gs_kernel_member(k, "page", "lru", &at->lru, NULL);
}

static uint32_t load_u32(const KtLiveSet *w, uint64_t va)
{
    uint32_t v;

    return w->mem.read(w->mem.opaque, va, &v, sizeof(v)) ? v : 0;
}

/* Skip @n pages from number @i on. */
static void skip_pages(KtPageUses *p, uint64_t i, uint64_t n)
{
    for (uint64_t end = i + MIN(n, p->n - i); i < end; i++) {
        p->use[i] = p->use[i] == KT_PAGE_KERNEL ? KT_PAGE_SKIPPED : p->use[i];
    }
}

/* Skip the pages of a list. It ends at a page that was skipped before, and
 * after as many steps as there are pages. */
static void skip_list(KtLiveSet *w, uint64_t list, uint32_t lru,
                      unsigned order)
{
    KtPageUses *p = w->pages;
    uint64_t at = list, i;

    for (uint64_t n = 0; n < p->n; n++) {
        if (!kt_live_set_load(w, at, &at) || at == list ||
            !kt_page_use_by_struct(p, at - lru, &i) ||
            p->use[i] == KT_PAGE_SKIPPED) {
            return;
        }
        skip_pages(p, i, 1ull << order);
    }
}

static void skip_size(KtLiveSet *w, const Layout *at, uint64_t hstate)
{
    unsigned order = load_u32(w, hstate + at->order);
    unsigned lists = MIN(at->free_size / 16, LISTS_MAX);

    if (order > ORDER_MAX) {
        return;
    }
    skip_list(w, hstate + at->active, at->lru, order);
    for (unsigned i = 0; i < lists; i++) {
        skip_list(w, hstate + at->free + i * 16, at->lru, order);
    }
}

static void skip_hugetlb(KtLiveSet *w)
{
    uint64_t hstates = kt_live_set_symbol(w, "hstates");
    uint64_t sizes = kt_live_set_symbol(w, "hugetlb_max_hstate");
    Layout at;
    unsigned n;

    if (!hstates || !sizes || !find_layout(w->plan->kernel, &at)) {
        return;
    }
    n = MIN(load_u32(w, sizes), SIZES_MAX);
    for (unsigned i = 0; i < n; i++) {
        skip_size(w, &at, hstates + i * (uint64_t)at.size);
    }
}

/* Skip the pages of a struct resource. */
static void skip_resource(KtLiveSet *w, const char *name)
{
    const GsKernel *k = w->plan->kernel;
    KtPageUses *p = w->pages;
    uint64_t va = kt_live_set_symbol(w, name), start, end, first;
    uint32_t at_start, at_end;

    if (!va || !gs_kernel_member(k, "resource", "start", &at_start, NULL) ||
        !gs_kernel_member(k, "resource", "end", &at_end, NULL) ||
        !kt_live_set_load(w, va + at_start, &start) ||
        !kt_live_set_load(w, va + at_end, &end) || end <= start) {
        return;
    }
    first = (start >> p->page_shift) - p->lo;
    if (first < p->n) {
        skip_pages(p, first, ((end - start) >> p->page_shift) + 1);
    }
}

void kt_skip_big_pages(KtLiveSet *w)
{
    skip_hugetlb(w);
    skip_resource(w, "crashk_res");
    skip_resource(w, "crashk_low_res");
}
