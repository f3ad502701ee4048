/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pages that the kernel keeps for later, with what they had when they were
 * last used. kfree_rcu() lists blocks in pages, and has some for each CPU
 * in reserve (kernel/rcu/tree.c, since 5.8; mm/slab_common.c since 6.14): all
 * that was freed is still in these.
 */
#include "kalloc-tracer/leak/roots.h"

#define KEPT_MAX 4096           /* of a CPU, whatever a guest says */

static void skip_page(KtPageUses *p, uint64_t va)
{
    uint8_t *use = kt_page_use_kernel(p, va);

    if (use) {
        *use = KT_PAGE_SKIPPED;
    }
}

/* Each begins with the address of the next. */
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
    uint32_t list;

    if (!krc || !gs_kernel_member(w->plan->kernel, "kfree_rcu_cpu",
                                  "bkvcache.first", &list, NULL)) {
        return;
    }
    for (unsigned cpu = 0; cpu < w->offset->len; cpu++) {
        skip_list(w, g_array_index(w->offset, uint64_t, cpu) + krc + list);
    }
}
