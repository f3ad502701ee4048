/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka_errors: commits one kind of heap error, once, on purpose.
 *
 *   insmod ka_errors.ko kind=double-free
 *
 * Each case has an "alloc" site and a "bad" site, functions of their own, which
 * the stacks of the report must show. The truth is printed as
 *
 *   ka_errors: KIND va=ADDRESS block=ADDRESS bad=FUNCTION alloc=FUNCTION
 *
 * A case leaves the kernel as sound as it can: objects come from caches that
 * nobody else uses and that are never used again, and where those of kmalloc()
 * are everybody's, SLUB's freelist is put back by hand. The module cannot be
 * unloaded: its caches are not fit to be destroyed.
 */
#include <linux/err.h>
#include <linux/gfp.h>
#include <linux/irqflags.h>
#include <linux/kasan.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "ka_kmod.h"

static char *kind = "";
module_param(kind, charp, 0444);
MODULE_PARM_DESC(kind, "the error to commit");

struct ka_obj {
    struct rcu_head rcu;
    char fill[240];
};

/* A constructor keeps SLUB from merging the cache with another. */
static void obj_init(void *p)
{
    memset(p, 0, sizeof(struct ka_obj));
}

static void gone_init(void *p)
{
    memset(p, 0, 2048);
}

static struct kmem_cache *own_cache(const char *name)
{
    return kmem_cache_create(name, sizeof(struct ka_obj), 0,
                             SLAB_HWCACHE_ALIGN, obj_init);
}

/* A cache that frees straight to its slab's freelist, and is never merged with
 * another. Since 7.0 free objects are first kept in arrays of the CPU, sheaves;
 * a cache that kmemleak must not search has none. */
static struct kmem_cache *list_cache(const char *name, size_t size)
{
    return kmem_cache_create(name, size, 0, SLAB_NOLEAKTRACE, NULL);
}

/* kmalloc() from caches of the same kind, in kernels that can make a set of
 * them (since 6.11). NULL: from those that all share. */
#ifdef CONFIG_SLAB_BUCKETS
static kmem_buckets *own_kmalloc;

static int make_own_kmalloc(void)
{
    own_kmalloc = kmem_buckets_create("ka_err", SLAB_NOLEAKTRACE, 0, 0, NULL);
    return own_kmalloc ? 0 : -ENOMEM;
}
#else
static int make_own_kmalloc(void)
{
    return 0;
}
#endif

static __always_inline void *kmalloc_of_ours(size_t size)
{
#ifdef CONFIG_SLAB_BUCKETS
    if (own_kmalloc) {
        return kmem_buckets_alloc(own_kmalloc, size, GFP_ATOMIC);
    }
#endif
    return kmalloc(size, GFP_ATOMIC);
}

/* ---- sites that are right ---------------------------------------------- */

KA_SITE_RETURNS(void *, ka_err_alloc_cache, (struct kmem_cache *cache),
                kmem_cache_alloc(cache, GFP_KERNEL))
KA_SITE_RETURNS(void *, ka_err_alloc_kmalloc, (size_t size),
                kmalloc_of_ours(size))
KA_SITE_RETURNS(void *, ka_err_alloc_vmalloc, (size_t size), vmalloc(size))
KA_SITE_DOES(ka_err_free_kfree, (void *p), kfree(p))
KA_SITE_DOES(ka_err_free_cache, (struct kmem_cache *cache, void *p),
             kmem_cache_free(cache, p))
KA_SITE_DOES(ka_err_queue_rcu, (struct ka_obj *p), kfree_rcu(p, rcu))

/* ---- sites that are wrong ---------------------------------------------- */

KA_SITE_DOES(ka_err_bad_kfree, (void *p), kfree(p))
KA_SITE_DOES(ka_err_bad_cache_free, (struct kmem_cache *cache, void *p),
             kmem_cache_free(cache, p))
KA_SITE_DOES(ka_err_bad_vfree, (void *p), vfree(p))
KA_SITE_DOES(ka_err_bad_sensitive, (void *p), kfree_sensitive(p))

static KA_SITE void ka_err_bad_krealloc(void *p)
{
    p = krealloc(p, 64, GFP_KERNEL);
    barrier_data(p);
}

KA_SITE_DOES(ka_err_bad_rcu, (struct ka_obj *p), kfree_rcu(p, rcu))
KA_SITE_DOES(ka_err_bad_destroy, (struct kmem_cache *cache),
             kmem_cache_destroy(cache))
KA_SITE_RETURNS(void *, ka_err_bad_alloc, (struct kmem_cache *cache),
                kmem_cache_alloc(cache, GFP_KERNEL))

static void truth(const void *va, const void *block, const char *bad,
                  const char *alloc)
{
    pr_info("ka_errors: %s va=%px block=%px bad=%s alloc=%s\n", kind, va,
            block, bad, alloc);
}

/* ---- SLUB's freelist, by hand ------------------------------------------ */

/* A free object of a cache without a constructor holds, in its middle, the
 * encoded address of the next one: next ^ a key that depends on the place
 * only (mm/slub.c, freelist_ptr(), since 4.14; in the middle since 5.7;
 * without CONFIG_SLAB_FREELIST_HARDENED the key is 0). Two encodings at the
 * same place differ by what they encode; that is all that is needed here. */
static unsigned long *link_of(void *p, size_t size)
{
    return p + size / 2;
}

static bool same_slab(const void *a, const void *b)
{
    return virt_to_head_page(a) == virt_to_head_page(b);
}

/* Two objects from the same slab, the current one of this CPU. Interrupts
 * are off, so the next frees and allocations of that size are ours. */
static bool take_pair(size_t size, void **a, void **b)
{
    int tries;

    *a = ka_err_alloc_kmalloc(size);
    for (tries = 0; tries < 16; tries++) {
        *b = ka_err_alloc_kmalloc(size);
        if (!*a || !*b) {
            return false;
        }
        if (same_slab(*a, *b)) {
            return true;
        }
        *a = *b;    /* the other is leaked: it would lie in the way */
    }
    return false;
}

/* Keep @n more objects in the slab of @p, so that it does not become empty:
 * SLUB_TINY gives an empty slab back at once, and then a second free is not
 * one of this allocator any more. A slab has room for four objects or more.
 * @cache: NULL for kmalloc() */
static bool keep_slab(struct kmem_cache *cache, const void *p, size_t size,
                      unsigned n)
{
    unsigned kept = 0;
    int tries;

    for (tries = 0; tries < 16 && kept < n; tries++) {
        void *q = cache ? ka_err_alloc_cache(cache) :
                          ka_err_alloc_kmalloc(size);

        kept += q && same_slab(p, q);
    }
    return kept == n;
}

/* ---- the cases --------------------------------------------------------- */

/* kfree(a) kfree(b) kfree(a): SLUB's own check (of the list's head) is passed,
 * and the list is a cycle a -> b -> a. Mended to a -> b -> rest. The slab may
 * then count one object too few, so two others stay in it. */
static int case_double_free(void)
{
    const size_t size = 2048;
    unsigned long flags, first, second;
    unsigned long *link_a, *link_b;
    void *a, *b;

    if (make_own_kmalloc()) {
        return -ENOMEM;
    }
    local_irq_save(flags);
    if (!take_pair(size, &a, &b) || !keep_slab(NULL, a, size, 2)) {
        local_irq_restore(flags);
        return -ENOMEM;
    }
    link_a = link_of(a, size);
    link_b = link_of(b, size);
    ka_err_free_kfree(a);
    first = READ_ONCE(*link_a);         /* key_a ^ rest */
    ka_err_free_kfree(b);               /* *link_b = key_b ^ a */
    ka_err_bad_kfree(a);
    second = READ_ONCE(*link_a);        /* key_a ^ b */
    *link_b ^= (unsigned long)a ^ first ^ second ^ (unsigned long)b;
    *link_a = second;
    local_irq_restore(flags);
    truth(a, a, "ka_err_bad_kfree", "ka_err_alloc_kmalloc");
    return 0;
}

/* The same to a cache of our own, which stays unusable and unused. */
static int case_double_free_cache(void)
{
    struct kmem_cache *cache = own_cache("ka_err_twice");
    void *a = cache ? ka_err_alloc_cache(cache) : NULL;
    void *b = cache ? ka_err_alloc_cache(cache) : NULL;

    if (!a || !b || !keep_slab(cache, a, 0, 2)) {
        return -ENOMEM;
    }
    ka_err_free_cache(cache, a);
    ka_err_free_cache(cache, b);
    ka_err_bad_cache_free(cache, a);
    truth(a, a, "ka_err_bad_cache_free", "ka_err_alloc_cache");
    return 0;
}

/* By an old pointer to an object that was allocated again. KASAN refuses it if
 * the tag is another one; most lives have a new one. The next free is right. */
static int case_double_free_tag(void)
{
    struct kmem_cache *cache = list_cache("ka_err_tag", 256);
    void *a, *b = cache ? ka_err_alloc_cache(cache) : NULL;
    int tries = 0;

    do {
        a = b;
        if (!a || tries++ == 64) {
            return -EOPNOTSUPP;
        }
        ka_err_free_cache(cache, a);
        b = ka_err_alloc_cache(cache);
    } while (a == b || kasan_reset_tag(a) != kasan_reset_tag(b));
    ka_err_bad_cache_free(cache, a);
    ka_err_free_cache(cache, b);
    truth(a, a, "ka_err_bad_cache_free", "ka_err_alloc_cache");
    return 0;
}

/* Queued twice; the reclaim that follows frees it twice, in our own cache. */
static int case_double_free_rcu(void)
{
    struct kmem_cache *cache = own_cache("ka_err_rcu");
    void *a = cache ? ka_err_alloc_cache(cache) : NULL;
    void *b = cache ? ka_err_alloc_cache(cache) : NULL;

    if (!a || !b) {
        return -ENOMEM;
    }
    ka_err_queue_rcu(a);
    ka_err_queue_rcu(b);
    ka_err_bad_rcu(a);
    truth(a, a, "ka_err_bad_rcu", "ka_err_alloc_cache");
    return 0;
}

/* In pages that no slab owns: the kernel frees them as if they were a large
 * block. At an odd address, where no block can have begun before. */
static int case_invalid_free(void)
{
    struct page *page = alloc_pages(GFP_KERNEL | __GFP_COMP, 1);
    void *p;

    if (!page) {
        return -ENOMEM;
    }
    get_page(page);
    p = page_address(page) + 3;
    ka_err_bad_kfree(p);
    truth(p, NULL, "ka_err_bad_kfree", "-");
    return 0;
}

/* What a function returned instead of memory: the kernel oopses, and so does
 * not return, but vfree() warns and goes on. */
static int bad_error(int code, void (*bad)(void *), const char *name)
{
    truth(ERR_PTR(code), NULL, name, "-");
    bad(ERR_PTR(code));
    return 0;
}

#define KA_ERROR_CASE(name, code, bad) \
    static int name(void) \
    { \
        return bad_error(code, bad, #bad); \
    }

KA_ERROR_CASE(case_invalid_free_error, -ENOENT, ka_err_bad_kfree)
KA_ERROR_CASE(case_invalid_free_error_vfree, -EPROBE_DEFER, ka_err_bad_vfree)
/* Functions that read the block first. */
KA_ERROR_CASE(case_invalid_free_error_sensitive, -EPERM, ka_err_bad_sensitive)
KA_ERROR_CASE(case_invalid_free_error_krealloc, -ENXIO, ka_err_bad_krealloc)

#define KA_TRIES 64

/* The pages that a cache has just given back, or NULL. */
static struct page *take_back(const void *p, unsigned int order)
{
    int tries;

    for (tries = 0; tries < KA_TRIES; tries++) {
        struct page *page = alloc_pages(GFP_KERNEL | __GFP_COMP, order);

        if (!page || page_address(page) == p) {
            return page;
        }
        /* the others are leaked: they would only come again */
    }
    return NULL;
}

/* An object whose slab was given back since it was freed: nothing of the slab
 * is left to tell that it was freed before. The pages are taken again, with a
 * reference to spare, so that what the kernel frees is ours. */
static int case_invalid_free_slab(void)
{
    struct kmem_cache *cache = kmem_cache_create("ka_err_gone", 2048, 0, 0,
                                                 gone_init);
    void *p = cache ? ka_err_alloc_cache(cache) : NULL;
    struct page *page = p ? virt_to_head_page(p) : NULL;
    unsigned int order;

    if (!page) {
        return -ENOMEM;
    }
    order = compound_order(page);
    ka_err_free_cache(cache, p);
    kmem_cache_shrink(cache);
    page = take_back(page_address(page), order);
    if (!page) {
        return -EAGAIN;
    }
    get_page(page);
    ka_err_bad_kfree(p);
    truth(p, NULL, "ka_err_bad_kfree", "-");
    return 0;
}

/* Inside an object of our own cache; the list's head is wrong from then on. */
static int case_interior_free(void)
{
    struct kmem_cache *cache = own_cache("ka_err_inside");
    void *p = cache ? ka_err_alloc_cache(cache) : NULL;

    if (!p) {
        return -ENOMEM;
    }
    ka_err_bad_kfree(p + 64);
    truth(p + 64, p, "ka_err_bad_kfree", "ka_err_alloc_cache");
    return 0;
}

/* Inside a large block; a reference of ours keeps its pages. */
static int case_interior_free_large(void)
{
    void *p = ka_err_alloc_kmalloc(4 * PAGE_SIZE);

    if (!p) {
        return -ENOMEM;
    }
    get_page(virt_to_page(p));
    ka_err_bad_kfree(p + PAGE_SIZE);
    truth(p + PAGE_SIZE, p, "ka_err_bad_kfree", "ka_err_alloc_kmalloc");
    return 0;
}

/* vfree() of a page-aligned kmalloc block: the kernel warns and goes on. */
static int case_wrong_family(void)
{
    void *p = ka_err_alloc_kmalloc(PAGE_SIZE);

    if (!p) {
        return -ENOMEM;
    }
    ka_err_bad_vfree(p);
    truth(p, p, "ka_err_bad_vfree", "ka_err_alloc_kmalloc");
    return 0;
}

/* The same, and then the right kfree(), which is no error. */
static int case_wrong_family_kept(void)
{
    void *p = ka_err_alloc_kmalloc(PAGE_SIZE);

    if (!p) {
        return -ENOMEM;
    }
    ka_err_bad_vfree(p);
    ka_err_free_kfree(p);
    truth(p, p, "ka_err_bad_vfree", "ka_err_alloc_kmalloc");
    return 0;
}

/* kfree() of vmalloc memory: the kernel oopses, insmod is killed. */
static int case_wrong_family_oops(void)
{
    void *p = ka_err_alloc_vmalloc(2 * PAGE_SIZE);

    if (!p) {
        return -ENOMEM;
    }
    truth(p, p, "ka_err_bad_kfree", "ka_err_alloc_vmalloc");
    ka_err_bad_kfree(p);
    return 0;
}

/* An object of one cache to another: the kernel warns, frees it rightly. */
static int case_wrong_cache(void)
{
    struct kmem_cache *one = own_cache("ka_err_one");
    struct kmem_cache *two = own_cache("ka_err_two");
    void *p = one && two ? ka_err_alloc_cache(one) : NULL;

    if (!p) {
        return -ENOMEM;
    }
    ka_err_bad_cache_free(two, p);
    truth(p, p, "ka_err_bad_cache_free", "ka_err_alloc_cache");
    return 0;
}

/* A freelist that leads to a live object. a and b are freed and taken again,
 * which leaves both encodings in our hands; then only b is freed, and its
 * link is made to lead to a. The link of a leads on to the rest. */
static void *take_live(struct kmem_cache *cache, void *a, void *b, size_t size)
{
    unsigned long to_rest, to_a;

    ka_err_free_cache(cache, a);
    to_rest = READ_ONCE(*link_of(a, size));
    ka_err_free_cache(cache, b);
    to_a = READ_ONCE(*link_of(b, size));
    b = ka_err_alloc_cache(cache);
    a = ka_err_alloc_cache(cache);
    ka_err_free_cache(cache, b);
    *link_of(b, size) = to_a;
    *link_of(a, size) = to_rest;
    ka_err_alloc_cache(cache);
    return ka_err_bad_alloc(cache);
}

static int case_overlap(void)
{
    const size_t size = 2048;
    struct kmem_cache *cache = list_cache("ka_err_list", size);
    void *a, *b, *again;

    if (!cache) {
        return -ENOMEM;
    }
    migrate_disable();      /* a freelist may be the CPU's */
    a = ka_err_alloc_cache(cache);
    b = ka_err_alloc_cache(cache);
    again = a && b && same_slab(a, b) && keep_slab(cache, a, size, 1) ?
            take_live(cache, a, b, size) : NULL;
    migrate_enable();
    if (!again || again != a) {
        return -EIO;
    }
    truth(a, a, "ka_err_bad_alloc", "ka_err_alloc_cache");
    return 0;
}

/* The kernel warns, and keeps the cache and its object. */
static int case_objects_left(void)
{
    struct kmem_cache *cache = own_cache("ka_err_left");
    void *p = cache ? ka_err_alloc_cache(cache) : NULL;

    if (!p) {
        return -ENOMEM;
    }
    ka_err_bad_destroy(cache);
    truth(cache, p, "ka_err_bad_destroy", "ka_err_alloc_cache");
    return 0;
}

static const struct {
    const char *name;
    int (*run)(void);
} cases[] = {
    { "double-free", case_double_free },
    { "double-free-cache", case_double_free_cache },
    { "double-free-rcu", case_double_free_rcu },
    { "double-free-tag", case_double_free_tag },
    { "invalid-free", case_invalid_free },
    { "invalid-free-slab", case_invalid_free_slab },
    { "invalid-free-error", case_invalid_free_error },
    { "invalid-free-error-vfree", case_invalid_free_error_vfree },
    { "invalid-free-error-sensitive", case_invalid_free_error_sensitive },
    { "invalid-free-error-krealloc", case_invalid_free_error_krealloc },
    { "interior-free", case_interior_free },
    { "interior-free-large", case_interior_free_large },
    { "wrong-family", case_wrong_family },
    { "wrong-family-kept", case_wrong_family_kept },
    { "wrong-family-oops", case_wrong_family_oops },
    { "wrong-cache", case_wrong_cache },
    { "objects-left", case_objects_left },
    { "overlap", case_overlap },
};

static int __init ka_errors_init(void)
{
    unsigned int i;

    for (i = 0; i < ARRAY_SIZE(cases); i++) {
        if (!strcmp(cases[i].name, kind)) {
            return cases[i].run();
        }
    }
    pr_err("ka_errors: no such kind: %s\n", kind);
    return -EINVAL;
}

KA_MODULE_STAYS(ka_errors_init, "heap errors on purpose");
