/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka_cache: a kmem_cache of its own, of objects of "size" bytes. Its name is
 * the size, and where it is and what is allocated of it is printed:
 *
 *   ka_cache: cache=ADDRESS size=BYTES
 *   ka_cache: object=ADDRESS
 *
 * What is written to the parameter "more" says how many objects more it
 * allocates. All goes when it is unloaded, except the cache if "keep" is set.
 */
#include "ka_kmod.h"

#define OBJECTS 64

static unsigned int size = 128;
module_param(size, uint, 0444);

static bool keep;
module_param(keep, bool, 0444);

static struct kmem_cache *cache;
static void *objects[OBJECTS];
static unsigned int n;

/* A cache that has one is not merged with others. */
static void init_object(void *p)
{
    memset(p, 0, size);
}

static int set_more(const char *text, const struct kernel_param *kp)
{
    unsigned int more;

    if (kstrtouint(text, 0, &more)) {
        return -EINVAL;
    }
    for (; more && n < OBJECTS; more--, n++) {
        objects[n] = kmem_cache_alloc(cache, GFP_KERNEL);
        pr_info("ka_cache: object=%px\n", objects[n]);
    }
    return 0;
}

static const struct kernel_param_ops more_ops = { .set = set_more };
module_param_cb(more, &more_ops, NULL, 0200);

static int __init ka_cache_init(void)
{
    char name[32];

    snprintf(name, sizeof(name), "ka_cache_%u", size);
    cache = kmem_cache_create(name, size, 0, 0, init_object);
    if (!cache) {
        return -ENOMEM;
    }
    pr_info("ka_cache: cache=%px size=%u\n", cache, size);
    return 0;
}

static void __exit ka_cache_exit(void)
{
    while (n) {
        kmem_cache_free(cache, objects[--n]);
    }
    if (!keep) {
        kmem_cache_destroy(cache);
    }
}

KA_MODULE(ka_cache_init, ka_cache_exit, "a cache of its own");
