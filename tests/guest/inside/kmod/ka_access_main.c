/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka_access: accesses memory that is freed, or is behind what was asked for.
 *
 *   insmod ka_access.ko
 *   echo NAME >/sys/module/ka_access/parameters/run     (or "all")
 *
 * The module prints for each case
 *
 *   ka_access: begin NAME
 *   ka_access: truth SITE KIND how=r4 at=ADDRESS block=ADDRESS bytes=N
 *   ka_access: end NAME RESULT
 *
 * It does so before it frees the block: printing takes time, and a freed block
 * could meanwhile be allocated by others. A case without a line "truth" does
 * nothing wrong.
 *
 * Cases leave the kernel as sound as they can. What they overwrite is nobody's:
 * the slack of a slot, or a freed object of a cache that only this module uses.
 */
#include <linux/moduleparam.h>
#include <linux/string.h>

#include "ka_access.h"

struct kmem_cache *ka_own;

KA_SITE void *ka_access_alloc(size_t size)
{
    void *p = kmalloc(size, GFP_KERNEL);

    ka_site_end();
    return p;
}

KA_SITE void ka_access_free(const void *p)
{
    kfree(p);
    ka_site_end();
}

KA_SITE void *ka_access_take(struct kmem_cache *cache)
{
    void *p = kmem_cache_alloc(cache, GFP_KERNEL);

    ka_site_end();
    return p;
}

KA_SITE void ka_access_give(struct kmem_cache *cache, void *p)
{
    kmem_cache_free(cache, p);
    ka_site_end();
}

void ka_truth(const char *site, const char *kind, const char *how,
              const void *at, const void *block, size_t bytes)
{
    pr_info("ka_access: truth %s %s how=%s at=%px block=%px bytes=%zu\n", site,
            kind, how, at, block, bytes);
}

/* The first case is one of an object that was freed before: no other may
 * allocate this object. */
static const struct ka_case *const tables[] = {
    ka_context_cases, ka_block_cases, ka_live_cases, ka_call_cases,
    ka_table_cases, ka_narrow_cases,
};

static void run_case(const struct ka_case *c)
{
    int result;

    pr_info("ka_access: begin %s\n", c->name);
    result = c->run();
    pr_info("ka_access: end %s %d\n", c->name, result);
}

static int run_cases(const char *word, const struct kernel_param *unused)
{
    bool all = sysfs_streq(word, "all"), found = all;
    const struct ka_case *c;
    size_t i;

    for (i = 0; i < ARRAY_SIZE(tables); i++) {
        for (c = tables[i]; c->name; c++) {
            if (all || sysfs_streq(word, c->name)) {
                run_case(c);
                found = true;
            }
        }
    }
    return found ? 0 : -EINVAL;
}

static int list_cases(char *buffer, const struct kernel_param *unused)
{
    const struct ka_case *c;
    int len = 0;
    size_t i;

    for (i = 0; i < ARRAY_SIZE(tables); i++) {
        for (c = tables[i]; c->name; c++) {
            len += scnprintf(buffer + len, PAGE_SIZE - len, "%s\n", c->name);
        }
    }
    return len;
}

static const struct kernel_param_ops run_ops = {
    .set = run_cases,
    .get = list_cases,
};
module_param_cb(run, &run_ops, NULL, 0600);
MODULE_PARM_DESC(run, "the case to run; reading lists the cases");

/* A cache that kmemleak must not search is never merged with another, and has
 * no arrays of free objects (since 7.0). All of an object may be copied to and
 * from user memory. */
static int __init ka_access_init(void)
{
    ka_own = kmem_cache_create_usercopy("ka_access", KA_OBJECT, 0,
                                        SLAB_NOLEAKTRACE, 0, KA_OBJECT, NULL);
    return ka_own ? 0 : -ENOMEM;
}

static void __exit ka_access_exit(void)
{
    kmem_cache_destroy(ka_own);
}

KA_MODULE(ka_access_init, ka_access_exit,
          "accesses to freed memory, and behind blocks");
