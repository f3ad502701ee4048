/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka_unpaid: pages that the memory cgroup of who loads this does not pay for.
 * All that it pays for are taken; then pages are freed, handed out again to
 * a call that asks for paid ones, and taken back inside that call. Prints
 *
 *   ka_unpaid: N of N refused
 */
#include <linux/gfp.h>
#include <linux/mm.h>

#include "ka_kmod.h"

#define PAID        (GFP_NOWAIT | __GFP_ACCOUNT | __GFP_NOWARN)
#define ROUNDS      16
#define KEPT_MAX    8192

static struct page *kept[KEPT_MAX];
static unsigned char kept_order[KEPT_MAX];
static unsigned int n_kept;

static KA_SITE bool keep(unsigned int order)
{
    struct page *page = n_kept < KEPT_MAX ? alloc_pages(PAID, order) : NULL;

    if (page) {
        kept_order[n_kept] = order;
        kept[n_kept++] = page;
    }
    return page != NULL;
}

static KA_SITE void free_kept(void)
{
    while (n_kept > 0) {
        n_kept--;
        __free_pages(kept[n_kept], kept_order[n_kept]);
    }
}

/* The page that was freed last is the first one to be handed out again. */
static KA_SITE bool refused(unsigned int order)
{
    struct page *page = alloc_pages(GFP_KERNEL, order);

    if (page)
        __free_pages(page, order);
    return !keep(order);
}

static int __init ka_unpaid_init(void)
{
    unsigned int i, n = 0;

    while (keep(2))
        ;
    while (keep(0))
        ;
    for (i = 0; i < ROUNDS; i++)
        n += refused(0) + refused(2);
    free_kept();
    pr_info("ka_unpaid: %u of %u refused\n", n, 2 * ROUNDS);
    return 0;
}

static void __exit ka_unpaid_exit(void)
{
}

KA_MODULE(ka_unpaid_init, ka_unpaid_exit,
          "ka test: pages that nobody pays for");
