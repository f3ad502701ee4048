/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka_pairs: gives a block of one allocator to the freeing function of another,
 * and finds out whether the kernel freed it.
 *
 *   insmod ka_pairs.ko free=vfree block=kmalloc
 *
 * It prints, the first line before the call:
 *
 *   ka_pairs: vfree kmalloc va=ADDRESS block=ADDRESS
 *   ka_pairs: returned
 *   ka_pairs: freed=0
 *
 * If the kernel dies in the call, the first line is the last one. The block was
 * freed (1) if memory of the same kind is then allocated at its address, or if
 * the area is no longer mapped; in part (2) if single pages are allocated
 * there. There is no way to unload the module.
 */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "ka_kmod.h"

static char *block = "";
module_param(block, charp, 0444);
MODULE_PARM_DESC(block, "what is allocated");
static char *free = "";
module_param(free, charp, 0444);
MODULE_PARM_DESC(free, "the function that gets it");

struct ka_pair {
    struct rcu_head rcu;
    char fill[240];
};

#define KA_TRIES 512
#define KA_LARGE (4 * PAGE_SIZE)
#define KA_ORDER 1
#define KA_DRAIN 7      /* seconds until kfree_rcu() frees, and some */

static struct kmem_cache *cache, *other_cache;
static struct page *mapped[2];

/* ---- blocks ------------------------------------------------------------- */

static void *alloc_kmalloc(void)
{
    return kmalloc(PAGE_SIZE, GFP_KERNEL);
}

static void *alloc_cache(void)
{
    return kmem_cache_alloc(cache, GFP_KERNEL);
}

/* free_pages() frees the pages of a slab only by the first one. */
static bool is_at_head(const void *p)
{
    return virt_to_page(p) == virt_to_head_page(p);
}

static void *alloc_large(void)
{
    return kmalloc(KA_LARGE, GFP_KERNEL);
}

static void *alloc_vmalloc(void)
{
    return vmalloc(2 * PAGE_SIZE);
}

static void *alloc_percpu_block(void)
{
    return (void __force *)__alloc_percpu(256, 8);
}

static void *alloc_page_block(void)
{
    return (void *)__get_free_pages(GFP_KERNEL, KA_ORDER);
}

static void *alloc_compound(void)
{
    return (void *)__get_free_pages(GFP_KERNEL | __GFP_COMP, KA_ORDER);
}

static void *alloc_vmap(void)
{
    mapped[0] = alloc_page(GFP_KERNEL);
    mapped[1] = alloc_page(GFP_KERNEL);
    return vmap(mapped, 2, VM_MAP, PAGE_KERNEL);
}

static const struct ka_block {
    const char *name;
    void *(*alloc)(void);
    bool is_mapped;         /* an area of vmalloc() */
    bool is_object;         /* in a slab */
    bool inside;            /* the function gets the second page of the block */
} blocks[] = {
    { "kmalloc", alloc_kmalloc, false, true },
    { "cache", alloc_cache, false, true },
    { "large", alloc_large },
    { "vmalloc", alloc_vmalloc, true },
    { "percpu", alloc_percpu_block },
    { "pages", alloc_page_block },
    { "compound", alloc_compound },
    { "vmap", alloc_vmap, true },
    { "large-inside", alloc_large, false, false, true },
    { "vmalloc-inside", alloc_vmalloc, true, false, true },
};

static KA_SITE void *ka_pair_alloc(const struct ka_block *b)
{
    void *p = b->alloc();
    int i;

    for (i = 0; i < KA_TRIES && b->is_object && !is_at_head(p); i++) {
        p = b->alloc();         /* the others are leaked */
    }
    ka_site_end();
    return p;
}

/* ---- functions ---------------------------------------------------------- */

static void free_kfree(void *p)
{
    kfree(p);
}

static void free_kvfree(void *p)
{
    kvfree(p);
}

static void free_cache(void *p)
{
    kmem_cache_free(cache, p);
}

static void free_other_cache(void *p)
{
    kmem_cache_free(other_cache, p);
}

static void free_vfree(void *p)
{
    vfree(p);
}

static void free_vunmap(void *p)
{
    vunmap(p);
}

static void free_percpu_block(void *p)
{
    free_percpu((void __percpu __force *)p);
}

static void free_page_block(void *p)
{
    free_pages((unsigned long)p, strcmp(block, "large") ? KA_ORDER :
                                 get_order(KA_LARGE));
}

static void free_rcu(void *p)
{
    struct ka_pair *pair = p;

    kfree_rcu(pair, rcu);
}

static const struct {
    const char *name;
    void (*run)(void *p);
} functions[] = {
    { "kfree", free_kfree },
    { "kvfree", free_kvfree },
    { "kmem_cache_free", free_cache },
    { "kmem_cache_free-other", free_other_cache },
    { "vfree", free_vfree },
    { "vunmap", free_vunmap },
    { "free_percpu", free_percpu_block },
    { "free_pages", free_page_block },
    { "kfree_rcu", free_rcu },
};

static KA_SITE void ka_pair_free(void (*run)(void *), void *p)
{
    run(p);
    ka_site_end();
}

/* ---- what became of it -------------------------------------------------- */

static KA_SITE int ka_pair_is_free(const struct ka_block *b, const void *p)
{
    int i;

    if (b->is_mapped) {
        return !vmalloc_to_page(p);
    }
    for (i = 0; i < KA_TRIES; i++) {
        if (b->alloc() == p) {
            return 1;
        }
    }
    for (i = 0; i < KA_TRIES; i++) {
        if ((void *)__get_free_page(GFP_KERNEL) == p ||
            (void *)__get_free_pages(GFP_KERNEL, KA_ORDER) == p) {
            return 2;
        }
    }
    return 0;
}

static void ctor(void *p)
{
    memset(p, 0, sizeof(struct ka_pair));
}

static int __init ka_pairs_init(void)
{
    const struct ka_block *b = NULL;
    void (*run)(void *) = NULL;
    unsigned int i;
    void *p, *at;

    cache = kmem_cache_create("ka_pairs", PAGE_SIZE, 0, 0, ctor);
    other_cache = kmem_cache_create("ka_pairs_other", PAGE_SIZE, 0, 0, ctor);
    for (i = 0; i < ARRAY_SIZE(blocks); i++) {
        b = strcmp(blocks[i].name, block) ? b : &blocks[i];
    }
    for (i = 0; i < ARRAY_SIZE(functions); i++) {
        run = strcmp(functions[i].name, free) ? run : functions[i].run;
    }
    p = b && run && cache && other_cache ? ka_pair_alloc(b) : NULL;
    if (!p) {
        pr_err("ka_pairs: nothing is done\n");
        return -EINVAL;
    }
    at = b->inside ? p + PAGE_SIZE : p;
    pr_info("ka_pairs: %s %s va=%px block=%px\n", free, block, at, p);
    ka_pair_free(run, at);
    pr_info("ka_pairs: returned\n");
    if (run == free_rcu) {
        rcu_barrier();
        schedule_timeout_uninterruptible(KA_DRAIN * HZ);
    }
    pr_info("ka_pairs: freed=%d\n", ka_pair_is_free(b, p));
    return 0;
}

KA_MODULE_STAYS(ka_pairs_init, "frees by the functions of other allocators");
