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

static bool find_hstate(const KtLiveSet *w, uint32_t *size)
{
    return kt_layout_has_all(&w->layout, KT_M_HSTATE_ORDER,
                             KT_M_HSTATE_FREE) &&
           w->layout.size[KT_M_HSTATE_ORDER] == 4 &&
           kt_layout_has(&w->layout, KT_M_PAGE_LRU) &&
           gs_kernel_type_size(w->plan->kernel, "hstate", size) && *size;
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
static void skip_list(KtLiveSet *w, uint64_t list, unsigned order)
{
    KtPageUses *p = w->pages;
    uint64_t at = list, i;

    for (uint64_t n = 0; n < p->n; n++) {
        if (!kt_live_set_load(w, at, &at) || at == list ||
            !kt_page_use_by_struct(p, at - w->layout.at[KT_M_PAGE_LRU], &i) ||
            p->use[i] == KT_PAGE_SKIPPED) {
            return;
        }
        skip_pages(p, i, 1ull << order);
    }
}

static void skip_size(KtLiveSet *w, uint64_t hstate)
{
    const KtLayout *l = &w->layout;
    unsigned order = load_u32(w, hstate + l->at[KT_M_HSTATE_ORDER]);
    unsigned lists = MIN(l->size[KT_M_HSTATE_FREE] / 16, LISTS_MAX);

    if (order > ORDER_MAX) {
        return;
    }
    skip_list(w, hstate + l->at[KT_M_HSTATE_ACTIVE], order);
    for (unsigned i = 0; i < lists; i++) {
        skip_list(w, hstate + l->at[KT_M_HSTATE_FREE] + i * 16, order);
    }
}

static void skip_hugetlb(KtLiveSet *w)
{
    uint64_t hstates = kt_live_set_symbol(w, "hstates");
    uint64_t sizes = kt_live_set_symbol(w, "hugetlb_max_hstate");
    uint32_t size;
    unsigned n;

    if (!hstates || !sizes || !find_hstate(w, &size)) {
        return;
    }
    n = MIN(load_u32(w, sizes), SIZES_MAX);
    for (unsigned i = 0; i < n; i++) {
        skip_size(w, hstates + i * (uint64_t)size);
    }
}

/* Skip the pages of a struct resource. */
static void skip_resource(KtLiveSet *w, const char *name)
{
    const KtLayout *l = &w->layout;
    KtPageUses *p = w->pages;
    uint64_t va = kt_live_set_symbol(w, name), start, end, first;

    if (!va || !kt_layout_has_all(l, KT_M_RESOURCE_START, KT_M_RESOURCE_END) ||
        !kt_live_set_load(w, va + l->at[KT_M_RESOURCE_START], &start) ||
        !kt_live_set_load(w, va + l->at[KT_M_RESOURCE_END], &end) ||
        end <= start) {
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
