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
#include "kalloc-tracer/leak/leak-internal.h"

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
    unsigned order = kt_live_set_u32(w, hstate + l->at[KT_M_HSTATE_ORDER]);
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
    n = MIN(kt_live_set_u32(w, sizes), SIZES_MAX);
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

/* ---- kfree_rcu() --------------------------------------------------------- */
/*
 * Skip pages that kfree_rcu() keeps in reserve. kfree_rcu() stores pointers to
 * blocks that wait for a grace period in whole pages (kernel/rcu/tree.c since
 * 5.8, mm/slab_common.c since 6.14). Empty pages are kept in a list for each
 * CPU, and still have the pointers to the blocks that were freed:
 *
 *     krc.bkvcache.first --> page --> page --> NULL     (of each CPU)
 *
 * Such pages become KT_PAGE_SKIPPED.
 */

#define KEPT_MAX 4096           /* most pages of a CPU */

static void skip_page(KtPageUses *p, uint64_t va)
{
    uint8_t *use = kt_page_use_kernel(p, va);

    if (use) {
        *use = KT_PAGE_SKIPPED;
    }
}

/* Skip a list of pages; the first word of a page is the address of the next. */
static void skip_chain(KtLiveSet *w, uint64_t head)
{
    uint64_t at = head;

    for (unsigned i = 0; i < KEPT_MAX && kt_live_set_load(w, at, &at) && at;
         i++) {
        skip_page(w->pages, at);
    }
}

void kt_skip_kfree_rcu(KtLiveSet *w)
{
    uint64_t krc = kt_live_set_symbol(w, "krc");
    uint32_t list = w->layout.at[KT_M_KRC_KEPT];

    if (!krc || list == KT_NO_MEMBER) {
        return;
    }
    for (unsigned cpu = 0; cpu < w->offset->len; cpu++) {
        skip_chain(w, g_array_index(w->offset, uint64_t, cpu) + krc + list);
    }
}
