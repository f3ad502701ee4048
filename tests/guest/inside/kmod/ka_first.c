/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka_first: allocates in its init code and, when somebody writes to its
 * parameter start, loses one block, frees another, and frees an object to the
 * wrong cache. Then it is unloaded, and ka_second takes its place.
 *
 *   ka_first: lost=ADDRESS freed=ADDRESS at=ADDRESS of ka_first_lose()
 */
#include <linux/init.h>

#include "ka_kmod.h"

static struct kmem_cache *one, *other;

KA_SITE_RETURNS(void *, ka_first_lose, (void),
                kmalloc(777, GFP_KERNEL | __GFP_ZERO))
KA_SITE_RETURNS(void *, ka_first_take, (void), kmalloc(5000, GFP_KERNEL))
KA_SITE_DOES(ka_first_give, (void *p), kfree(p))

static KA_SITE void ka_first_wrong(void)
{
    void *p = kmem_cache_alloc(one, GFP_KERNEL);

    kmem_cache_free(other, p);
    ka_site_end();
}

static int start(const char *value, const struct kernel_param *param)
{
    void *lost = ka_first_lose(), *freed = ka_first_take();

    pr_info("ka_first: lost=%px freed=%px at=%px\n", lost, freed,
            ka_first_lose);
    ka_first_give(freed);
    ka_first_wrong();
    return 0;
}

static const struct kernel_param_ops ops = { .set = start };
module_param_cb(start, &ops, NULL, 0200);

/* Caches with a constructor are not merged. */
static void construct(void *object)
{
}

static int __init ka_first_init(void)
{
    one = kmem_cache_create("ka_first_one", 96, 0, 0, construct);
    other = kmem_cache_create("ka_first_other", 96, 0, 0, construct);
    return one && other ? 0 : -ENOMEM;
}

static void __exit ka_first_exit(void)
{
    kmem_cache_destroy(one);
    kmem_cache_destroy(other);
    ka_site_end();
}

KA_MODULE(ka_first_init, ka_first_exit,
          "leaves blocks and an error behind when it is unloaded");
