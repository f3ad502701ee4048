/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka_page_errors: as ka_errors, errors with memory of the page allocator. The
 * truth is printed in the same form.
 */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/string.h>

#include "ka_kmod.h"

static char *kind = "";
module_param(kind, charp, 0444);
MODULE_PARM_DESC(kind, "the error to commit");

KA_SITE_RETURNS(struct page *, ka_err_alloc_pages,
                (gfp_t gfp, unsigned int order), alloc_pages(gfp, order))
KA_SITE_DOES(ka_err_bad_kfree, (void *p), kfree(p))
KA_SITE_DOES(ka_err_bad_free_pages, (void *p, unsigned int order),
             free_pages((unsigned long)p, order))

static void truth_inside(const void *p, const void *block, const char *bad)
{
    pr_info("ka_errors: %s va=%px block=%px bad=%s alloc=ka_err_alloc_pages\n",
            kind, p, block, bad);
}

static void truth(const void *p, const char *bad)
{
    truth_inside(p, p, bad);
}

/* Pages that the page allocator handed out, which kfree() takes for a large
 * block. A reference of ours keeps them. */
static int case_wrong_family_pages(void)
{
    struct page *page = ka_err_alloc_pages(GFP_KERNEL | __GFP_COMP, 1);

    if (!page) {
        return -ENOMEM;
    }
    get_page(page);
    ka_err_bad_kfree(page_address(page));
    truth(page_address(page), "ka_err_bad_kfree");
    return 0;
}

/* 32 pages of which 8 are freed; the kernel says nothing, the rest is lost. */
static int case_wrong_order(void)
{
    struct page *page = ka_err_alloc_pages(GFP_KERNEL, 5);

    if (!page) {
        return -ENOMEM;
    }
    ka_err_bad_free_pages(page_address(page), 3);
    truth(page_address(page), "ka_err_bad_free_pages");
    return 0;
}

#define KA_PAIRS 128

/* Two pages freed as four. The other two are ours as well, so that nobody
 * else's memory is freed. The blocks in between are leaked. */
static int case_wrong_order_larger(void)
{
    void *block[KA_PAIRS];
    int i, k;

    for (i = 0; i < KA_PAIRS; i++) {
        struct page *page = ka_err_alloc_pages(GFP_KERNEL, 1);

        if (!page) {
            return -ENOMEM;
        }
        block[i] = page_address(page);
        for (k = 0; k < i; k++) {
            void *low = min(block[i], block[k]);

            if (IS_ALIGNED((unsigned long)low, 4 * PAGE_SIZE) &&
                max(block[i], block[k]) == low + 2 * PAGE_SIZE) {
                ka_err_bad_free_pages(low, 2);
                truth(low, "ka_err_bad_free_pages");
                return 0;
            }
        }
    }
    return -EAGAIN;
}

/* Such a page has no reference that could be dropped: the kernel frees nothing,
 * and says nothing. The count is mended before somebody else gets the page. */
static void free_without_reference(struct page *page)
{
    ka_err_bad_free_pages(page_address(page), 0);
    page_ref_inc(page);
}

static int case_double_free_page(void)
{
    struct page *page = ka_err_alloc_pages(GFP_KERNEL, 0);
    unsigned long flags;

    if (!page) {
        return -ENOMEM;
    }
    local_irq_save(flags);
    __free_page(page);
    free_without_reference(page);
    local_irq_restore(flags);
    truth(page_address(page), "ka_err_bad_free_pages");
    return 0;
}

static int case_interior_free_page(void)
{
    struct page *page = ka_err_alloc_pages(GFP_KERNEL, 2);

    if (!page) {
        return -ENOMEM;
    }
    free_without_reference(page + 1);
    truth_inside(page_address(page + 1), page_address(page),
                 "ka_err_bad_free_pages");
    return 0;
}

static const struct {
    const char *name;
    int (*run)(void);
} cases[] = {
    { "double-free-page", case_double_free_page },
    { "interior-free-page", case_interior_free_page },
    { "wrong-family-pages", case_wrong_family_pages },
    { "wrong-order", case_wrong_order },
    { "wrong-order-larger", case_wrong_order_larger },
};

static int __init ka_page_errors_init(void)
{
    unsigned int i;

    for (i = 0; i < ARRAY_SIZE(cases); i++) {
        if (!strcmp(cases[i].name, kind)) {
            return cases[i].run();
        }
    }
    pr_err("ka_page_errors: no such kind: %s\n", kind);
    return -EINVAL;
}

KA_MODULE_STAYS(ka_page_errors_init, "errors with pages on purpose");
