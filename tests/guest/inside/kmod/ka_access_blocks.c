/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka_access: one load or store of a block that is freed, or behind a block.
 */
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/vmalloc.h>

#include "ka_access.h"

#define KA_BIG (KMALLOC_MAX_CACHE_SIZE - 10)
#define KA_LARGE (2 * KMALLOC_MAX_CACHE_SIZE + 10)

struct pair {
    u64 low, high;
};

/* A case that accesses a live block, of which @size bytes were asked for. */
#define KA_BEHIND(name, made, how, at, size, access) \
    KA_CASE(name) \
    { \
        u8 *p = made; \
        \
        if (!p) { \
            return -ENOMEM; \
        } \
        ka_truth(__func__, KA_OOB, how, p + (at), p, size); \
        access; \
        ka_access_free(p); \
        return 0; \
    }

/* A case that accesses a freed object of the module's cache. */
#define KA_AFTER(name, how, at, ...) \
    KA_CASE(name) \
    { \
        u8 *p = ka_access_take(ka_own); \
        \
        if (!p) { \
            return -ENOMEM; \
        } \
        ka_truth(__func__, KA_UAF, how, p + (at), p, KA_OBJECT); \
        ka_access_give(ka_own, p); \
        __VA_ARGS__; \
        return 0; \
    }

/* ---- behind the block ---------------------------------------------------- */

KA_BEHIND(oob_store, ka_access_alloc(115), "w1", 115, 115,
          WRITE_ONCE(p[115], 1))
KA_BEHIND(oob_load, ka_access_alloc(115), "r1", 120, 115, READ_ONCE(p[120]))

/* The last five of eight bytes are in the block. */
KA_BEHIND(oob_partial, ka_access_alloc(117), "r8", 112, 117,
          READ_ONCE(*(u64 *)(p + 112)))

/* One assignment, which the compiler makes of two stores. */
KA_CASE(oob_16)
{
    struct pair *from = ka_access_alloc(sizeof(*from));
    struct pair *to = ka_access_alloc(13);

    if (from && to) {
        ka_truth(__func__, KA_OOB, "w16", to, to, 13);
        *to = *from;
        barrier_data(to);
    }
    ka_access_free(from);
    ka_access_free(to);
    return from && to ? 0 : -ENOMEM;
}

/* The largest size that a slab has. */
KA_BEHIND(oob_big, ka_access_alloc(KA_BIG), "w1", KA_BIG, KA_BIG,
          WRITE_ONCE(p[KA_BIG], 1))
KA_BEHIND(oob_large, ka_access_alloc(KA_LARGE), "w1", KA_LARGE, KA_LARGE,
          WRITE_ONCE(p[KA_LARGE], 1))

/* An object of a cache whose slots are larger than its objects. */
KA_CASE(oob_cache)
{
    struct kmem_cache *cache = kmem_cache_create("ka_access_100", 100, 0,
                                                 SLAB_NOLEAKTRACE, NULL);
    u8 *p = cache ? ka_access_take(cache) : NULL;

    if (p) {
        ka_truth(__func__, KA_OOB, "r1", p + 100, p, 100);
        READ_ONCE(p[100]);
        ka_access_give(cache, p);
    }
    kmem_cache_destroy(cache);
    return p ? 0 : -ENOMEM;
}

KA_CASE(oob_vmalloc)
{
    u8 *p = vmalloc(2 * PAGE_SIZE - 200);

    if (!p) {
        return -ENOMEM;
    }
    ka_truth(__func__, KA_OOB, "r1", p + 2 * PAGE_SIZE - 100, p,
             2 * PAGE_SIZE - 200);
    READ_ONCE(p[2 * PAGE_SIZE - 100]);
    vfree(p);
    return 0;
}

/* ---- krealloc() ---------------------------------------------------------- */

static KA_SITE void *ka_access_realloc(void *p, size_t size)
{
    p = krealloc(p, size, GFP_KERNEL);
    ka_site_end();
    return p;
}

KA_BEHIND(krealloc_more, ka_access_realloc(ka_access_alloc(65), 80), "w1", 80,
          80, WRITE_ONCE(p[80], 1))
KA_BEHIND(krealloc_less, ka_access_realloc(ka_access_alloc(90), 70), "w1", 75,
          70, WRITE_ONCE(p[75], 1))

/* The old block, after the new one was allocated elsewhere. */
KA_CASE(krealloc_old)
{
    u8 *p = ka_access_alloc(115), *more;

    if (!p) {
        return -ENOMEM;
    }
    ka_truth(__func__, KA_UAF, "r1", p + KA_SAFE, p, 115);
    more = ka_access_realloc(p, 300);
    READ_ONCE(p[KA_SAFE]);
    ka_access_free(more);
    return 0;
}

/* ---- after the free ------------------------------------------------------ */

KA_CASE(uaf_load)
{
    u8 *p = ka_access_alloc(115);

    if (!p) {
        return -ENOMEM;
    }
    ka_truth(__func__, KA_UAF, "r4", p + KA_SAFE, p, 115);
    ka_access_free(p);
    READ_ONCE(*(u32 *)(p + KA_SAFE));
    return 0;
}

KA_AFTER(uaf_store, "w2", KA_SAFE, WRITE_ONCE(*(u16 *)(p + KA_SAFE), 0))
KA_AFTER(uaf_first_byte, "r1", 0, READ_ONCE(*p))
KA_AFTER(uaf_last_byte, "r1", KA_OBJECT - 1, READ_ONCE(p[KA_OBJECT - 1]))
KA_AFTER(uaf_later, "r1", KA_SAFE, msleep(20); READ_ONCE(p[KA_SAFE]))

KA_CASE(uaf_16)
{
    struct pair *from = ka_access_take(ka_own), *to;

    if (!from) {
        return -ENOMEM;
    }
    to = ka_access_alloc(sizeof(*to));
    from += 2;
    ka_truth(__func__, KA_UAF, "r16", from, from - 2, KA_OBJECT);
    ka_access_give(ka_own, from - 2);
    if (to) {
        *to = *from;
        barrier_data(to);
    }
    ka_access_free(to);
    return to ? 0 : -ENOMEM;
}

/* The block beside it is live. */
KA_CASE(uaf_beside)
{
    u8 *p = ka_access_take(ka_own), *other = ka_access_take(ka_own);

    if (!p || !other) {
        return -ENOMEM;
    }
    ka_truth(__func__, KA_UAF, "r8", p + KA_SAFE, p, KA_OBJECT);
    ka_access_give(ka_own, p);
    READ_ONCE(*(u64 *)(p + KA_SAFE));
    READ_ONCE(*(u64 *)(other + KA_SAFE));
    ka_access_give(ka_own, other);
    return 0;
}

KA_SITE_DOES(ka_access_free_bulk, (struct kmem_cache *cache, void **p),
             kmem_cache_free_bulk(cache, 2, p))

KA_CASE(uaf_bulk)
{
    void *two[2] = { ka_access_take(ka_own), ka_access_take(ka_own) };
    u8 *p = two[0];

    if (!two[0] || !two[1]) {
        return -ENOMEM;
    }
    ka_truth(__func__, KA_UAF, "r1", p + KA_SAFE, p, KA_OBJECT);
    ka_access_free_bulk(ka_own, two);
    READ_ONCE(p[KA_SAFE]);
    return 0;
}

KA_CASE(uaf_large)
{
    const size_t size = 2 * KMALLOC_MAX_CACHE_SIZE + 10;
    u8 *p = ka_access_alloc(size);

    if (!p) {
        return -ENOMEM;
    }
    ka_truth(__func__, KA_UAF, "r1", p + 100, p, size);
    ka_access_free(p);
    READ_ONCE(p[100]);
    return 0;
}

KA_CASE(uaf_pages)
{
    u8 *p = (u8 *)__get_free_pages(GFP_KERNEL, 2);

    if (!p) {
        return -ENOMEM;
    }
    ka_truth(__func__, KA_UAF, "r1", p + 100, p, 4 * PAGE_SIZE);
    free_pages((unsigned long)p, 2);
    READ_ONCE(p[100]);
    return 0;
}

#define KA_TIMES 8

KA_CASE(uaf_often)
{
    u8 *p = ka_access_take(ka_own);
    int i;

    if (!p) {
        return -ENOMEM;
    }
    ka_truth(__func__, KA_UAF, "r1", p + KA_SAFE, p, KA_OBJECT);
    ka_access_give(ka_own, p);
    for (i = 0; i < KA_TIMES; i++) {
        READ_ONCE(p[KA_SAFE + i]);
    }
    return 0;
}

const struct ka_case ka_block_cases[] = {
    KA_ROW(oob_store), KA_ROW(oob_load), KA_ROW(oob_partial), KA_ROW(oob_16),
    KA_ROW(oob_big), KA_ROW(oob_large), KA_ROW(oob_cache), KA_ROW(oob_vmalloc),
    KA_ROW(krealloc_more), KA_ROW(krealloc_less), KA_ROW(krealloc_old),
    KA_ROW(uaf_load), KA_ROW(uaf_store), KA_ROW(uaf_first_byte),
    KA_ROW(uaf_last_byte), KA_ROW(uaf_later), KA_ROW(uaf_16),
    KA_ROW(uaf_beside), KA_ROW(uaf_bulk), KA_ROW(uaf_large), KA_ROW(uaf_pages),
    KA_ROW(uaf_often),
    {}
};
