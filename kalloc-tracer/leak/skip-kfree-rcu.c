/* SPDX-License-Identifier: GPL-2.0-or-later */
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
#include "kalloc-tracer/leak/roots.h"

#define KEPT_MAX 4096           /* most pages of a CPU */

static void skip_page(KtPageUses *p, uint64_t va)
{
    uint8_t *use = kt_page_use_kernel(p, va);

    if (use) {
        *use = KT_PAGE_SKIPPED;
    }
}

/* Skip a list of pages; the first word of a page is the address of the next. */
static void skip_list(KtLiveSet *w, uint64_t head)
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
        skip_list(w, g_array_index(w->offset, uint64_t, cpu) + krc + list);
    }
}
