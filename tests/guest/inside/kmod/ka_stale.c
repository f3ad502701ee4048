/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka_stale: uses a block after it has freed it, so that the kernel crashes in
 * the middle of that, with the block's address in registers and on the stack.
 *
 *   ka_stale: block=ADDRESS alloc=FUNCTION free=FUNCTION
 *
 * What it reads from the freed block it takes for a pointer: its own poison,
 * an address that nobody has. The block is from a cache of its own, whose
 * freelist is elsewhere in the object.
 */
#include <linux/init.h>

#include "ka_kmod.h"

#define POISON 0x6b6b6b6b6b6b6b6bul

struct ka_stale {
    unsigned long *next;
    unsigned long fill[63];
};

static struct kmem_cache *cache;

KA_SITE_RETURNS(struct ka_stale *, ka_stale_alloc_site, (void),
                kmem_cache_alloc(cache, GFP_KERNEL))
KA_SITE_DOES(ka_stale_free_site, (struct ka_stale *p),
             kmem_cache_free(cache, p))

/* The block's address is its first argument, and used behind the fault. */
static KA_SITE unsigned long ka_stale_use_site(struct ka_stale *p)
{
    unsigned long v = *READ_ONCE(p->next);

    p->fill[0] = v;
    return v;
}

static void obj_init(void *at)
{
    struct ka_stale *p = at;

    p->next = (unsigned long *)POISON;
}

static int __init ka_stale_init(void)
{
    struct ka_stale *p;

    /* A constructor keeps the object as it is, and its cache unmerged. */
    cache = kmem_cache_create("ka_stale", sizeof(*p), 0, SLAB_HWCACHE_ALIGN,
                              obj_init);
    p = cache ? ka_stale_alloc_site() : NULL;
    if (!p) {
        return -ENOMEM;
    }
    ka_stale_free_site(p);
    pr_info("ka_stale: block=%px alloc=ka_stale_alloc_site "
            "free=ka_stale_free_site\n", p);
    return ka_stale_use_site(p) ? 0 : -EINVAL;
}

KA_MODULE_STAYS(ka_stale_init, "uses a block after it was freed");
