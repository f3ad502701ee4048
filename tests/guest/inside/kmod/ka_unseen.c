/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka_unseen: allocates so that a tracer of kmem_cache_alloc() does not see it.
 *
 *   parameters/unseen  N: free an object, allocate it again by a call behind
 *                      the first instruction of kmem_cache_alloc(), write to it
 *                      N times, and keep it for half a second. That is right.
 *   parameters/stale   N: N times, free an object and write to it. That is
 *                      wrong.
 *
 * The first instruction does nothing: it marks the target of an indirect jump,
 * or makes room for a tracer. If it is another one, a write to "unseen" fails
 * with ENOEXEC.
 */
#include <linux/delay.h>
#include <linux/init.h>

#include "ka_kmod.h"

#define OBJECT 192
/* In the freed object the kernel's own link is elsewhere. */
#define SAFE   40

#ifdef kmem_cache_alloc
#define ALLOC kmem_cache_alloc_noprof
#else
#define ALLOC kmem_cache_alloc
#endif

typedef void *alloc_fn(struct kmem_cache *cache, gfp_t flags);
typedef void free_fn(struct kmem_cache *cache, void *p);

/* With a constructor, so that the cache is shared with no other. */
static struct kmem_cache *cache;

static void construct(void *p)
{
    memset(p, 0, OBJECT);
}

/* Return the bytes of an instruction that does nothing; 0: it is another. */
static size_t nothing_at(const u8 *code)
{
#if defined(CONFIG_X86_64)
    static const struct {
        u8 bytes[5];
        size_t len, compared;
    } known[] = {
        { { 0xf3, 0x0f, 0x1e, 0xfa }, 4, 4 },           /* endbr64 */
        { { 0x66, 0x0f, 0x1f, 0x00 }, 4, 4 },           /* nops, in its place */
        { { 0x0f, 0x1f, 0x40 }, 4, 3 },
        { { 0x0f, 0x1f, 0x44, 0x00, 0x00 }, 5, 5 },     /* room for a call */
    };
#elif defined(CONFIG_ARM64)
    static const struct {
        u8 bytes[4];
        size_t len, compared;
    } known[] = {
        { { 0x1f, 0x20, 0x03, 0xd5 }, 4, 4 },           /* nop */
        { { 0x5f, 0x24, 0x03, 0xd5 }, 4, 4 },           /* bti c */
        /* mov x9, x30: only a tracer behind it would use x9 */
        { { 0xe9, 0x03, 0x1e, 0xaa }, 4, 4 },
    };
#else
    static const struct {
        u8 bytes[4];
        size_t len, compared;
    } known[] = {
        { { 0x13, 0x00, 0x00, 0x00 }, 4, 4 },           /* nop */
        { { 0x01, 0x00 }, 2, 2 },                       /* c.nop */
    };
#endif
    size_t i;

    for (i = 0; i < ARRAY_SIZE(known); i++) {
        if (!memcmp(code, known[i].bytes, known[i].compared)) {
            return known[i].len;
        }
    }
    return 0;
}

KA_SITE_DOES(ka_unseen_write, (u8 *p), WRITE_ONCE(p[SAFE], 1))
KA_SITE_DOES(ka_stale_write, (u8 *p), WRITE_ONCE(p[SAFE], 1))

/* Allocate and free an object, both seen. Return its address. */
static u8 *freed_object(void)
{
    u8 *p = kmem_cache_alloc(cache, GFP_KERNEL);

    if (p) {
        kmem_cache_free(cache, p);
    }
    return p;
}

static int run_unseen(unsigned int n)
{
    const u8 *alloc = (const u8 *)ALLOC, *give = (const u8 *)kmem_cache_free;
    size_t in_alloc = nothing_at(alloc), in_give = nothing_at(give);
    void *object;

    if (!in_alloc || !in_give) {
        return -ENOEXEC;
    }
    if (!freed_object()) {
        return -ENOMEM;
    }
    object = ((alloc_fn *)(alloc + in_alloc))(cache, GFP_KERNEL);
    if (!object) {
        return -ENOMEM;
    }
    while (n--) {
        ka_unseen_write(object);
    }
    msleep(500);
    ((free_fn *)(give + in_give))(cache, object);
    return 0;
}

static int run_stale(unsigned int n)
{
    u8 *p;

    while (n--) {
        p = freed_object();
        if (!p) {
            return -ENOMEM;
        }
        ka_stale_write(p);
    }
    return 0;
}

static int set_unseen(const char *text, const struct kernel_param *param)
{
    unsigned int n;
    int err = kstrtouint(text, 10, &n);

    return err ? err : run_unseen(n);
}

static int set_stale(const char *text, const struct kernel_param *param)
{
    unsigned int n;
    int err = kstrtouint(text, 10, &n);

    return err ? err : run_stale(n);
}

static const struct kernel_param_ops unseen_ops = { .set = set_unseen };
static const struct kernel_param_ops stale_ops = { .set = set_stale };
module_param_cb(unseen, &unseen_ops, NULL, 0200);
module_param_cb(stale, &stale_ops, NULL, 0200);

static int __init ka_unseen_init(void)
{
    cache = kmem_cache_create("ka_unseen", OBJECT, 0, 0, construct);
    return cache ? 0 : -ENOMEM;
}

static void __exit ka_unseen_exit(void)
{
    kmem_cache_destroy(cache);
}

module_init(ka_unseen_init);
module_exit(ka_unseen_exit);
MODULE_LICENSE("GPL");
