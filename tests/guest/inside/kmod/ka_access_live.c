/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka_access: accesses to memory of another block, live or freed; and accesses
 * that are no errors, but come close to one.
 */
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/string.h>
#include <linux/version.h>

#include "ka_access.h"

#define KA_SMALL 64
#define KA_MANY 128
#define KA_TRIES 8
#define KA_OWN_SIZE 3000

static struct kmem_cache *small_cache(void)
{
    return kmem_cache_create("ka_access_small", KA_SMALL, 0, SLAB_NOLEAKTRACE,
                             NULL);
}

/* ---- two blocks, one behind the other ----------------------------------- */

struct row {
    struct kmem_cache *cache;
    void *block[KA_MANY];
    u8 *left, *right;
};

/* A KASAN kernel has a red zone between two objects. The first two will do. */
static void find_neighbours(struct row *r)
{
    int i, j;

    r->left = r->block[0];
    r->right = r->block[1];
    for (i = 0; i < KA_MANY; i++) {
        for (j = 0; j < KA_MANY; j++) {
            if (r->block[j] == r->block[i] + KA_SMALL) {
                r->left = r->block[i];
                r->right = r->block[j];
                return;
            }
        }
    }
}

static void empty_row(struct row *r)
{
    int i;

    for (i = 0; i < KA_MANY; i++) {
        if (r->block[i]) {
            ka_access_give(r->cache, r->block[i]);
        }
    }
    kmem_cache_destroy(r->cache);
    kfree(r);
}

static void give_right(struct row *r)
{
    int i;

    for (i = 0; i < KA_MANY; i++) {
        if (r->block[i] == r->right) {
            r->block[i] = NULL;
        }
    }
    ka_access_give(r->cache, r->right);
}

static struct row *make_row(void)
{
    struct row *r = kzalloc(sizeof(*r), GFP_KERNEL);
    int i;

    if (!r) {
        return NULL;
    }
    r->cache = small_cache();
    for (i = 0; i < KA_MANY && r->cache; i++) {
        r->block[i] = ka_access_take(r->cache);
        if (!r->block[i]) {
            empty_row(r);
            return NULL;
        }
    }
    find_neighbours(r);
    return r;
}

KA_CASE(next_live)
{
    struct row *r = make_row();

    if (!r) {
        return -ENOMEM;
    }
    ka_truth(__func__, KA_OOB, "r1", r->left + KA_SMALL + 8, r->left,
             KA_SMALL);
    READ_ONCE(r->left[KA_SMALL + 8]);
    empty_row(r);
    return 0;
}

KA_CASE(next_freed)
{
    struct row *r = make_row();

    if (!r) {
        return -ENOMEM;
    }
    ka_truth(__func__, KA_OOB, "r1", r->left + KA_SMALL + 8, r->left,
             KA_SMALL);
    give_right(r);
    READ_ONCE(r->left[KA_SMALL + 8]);
    empty_row(r);
    return 0;
}

KA_CASE(left_live)
{
    struct row *r = make_row();

    if (!r) {
        return -ENOMEM;
    }
    ka_truth(__func__, KA_OOB, "r1", r->right - 1, r->right, KA_SMALL);
    READ_ONCE(r->right[-1]);
    empty_row(r);
    return 0;
}

/* ---- slots that nobody owns ---------------------------------------------- */

/* They are only read: the allocator keeps its links there. */

/* The first blocks of a new slab. */
struct first {
    struct kmem_cache *cache;
    size_t size;
    u8 *block[KA_TRIES];
};

static bool is_same_slab(const void *a, const void *b)
{
    return virt_to_head_page(a) == virt_to_head_page(b);
}

static bool is_owned(const struct first *f, const u8 *at)
{
    int i;

    for (i = 0; i < KA_TRIES; i++) {
        if (f->block[i] && at >= f->block[i] && at < f->block[i] + f->size) {
            return true;
        }
    }
    return false;
}

/* Return a block that has a free slot at this distance. */
static u8 *find_block(const struct first *f, long distance)
{
    int i;

    for (i = 0; i < KA_TRIES && f->block[i]; i++) {
        u8 *at = f->block[i] + distance;

        if (is_same_slab(f->block[i], at) && !is_owned(f, at)) {
            return f->block[i];
        }
    }
    return NULL;
}

static u8 *take_beside_free(struct first *f, size_t size, long distance)
{
    u8 *found = NULL;
    int i;

    f->size = size;
    f->cache = kmem_cache_create("ka_access_first", size, 0, SLAB_NOLEAKTRACE,
                                 NULL);
    for (i = 0; i < KA_TRIES && f->cache && !found; i++) {
        f->block[i] = ka_access_take(f->cache);
        found = find_block(f, distance);
    }
    return found;
}

static void give_first(struct first *f)
{
    int i;

    for (i = 0; i < KA_TRIES; i++) {
        if (f->block[i]) {
            ka_access_give(f->cache, f->block[i]);
        }
    }
    kmem_cache_destroy(f->cache);
}

KA_CASE(next_slot)
{
    struct first f = {};
    u8 *p = take_beside_free(&f, KA_SMALL, KA_SMALL + 8);

    if (p) {
        ka_truth(__func__, KA_OOB, "r1", p + KA_SMALL + 8, p, KA_SMALL);
        READ_ONCE(p[KA_SMALL + 8]);
    }
    give_first(&f);
    return p ? 0 : -ENOMEM;
}

KA_CASE(left_slot)
{
    struct first f = {};
    u8 *p = take_beside_free(&f, KA_SMALL, -1);

    if (p) {
        ka_truth(__func__, KA_OOB, "r1", p - 1, p, KA_SMALL);
        READ_ONCE(p[-1]);
    }
    give_first(&f);
    return p ? 0 : -ENOMEM;
}

/* Let the pages of the next new slab be those of large blocks before. The page
 * allocator hands out first what this CPU freed last. */
static void free_pages_for_slab(void)
{
    void *large[] = { kmalloc(PAGE_SIZE << 2, GFP_KERNEL),
                      kmalloc(PAGE_SIZE << 3, GFP_KERNEL) };
    int i;

    for (i = 0; i < ARRAY_SIZE(large); i++) {
        kfree(large[i]);
    }
}

/* Far behind the block, in a page of which nothing was handed out since the
 * slab has it. */
KA_CASE(next_page)
{
    struct first f = {};
    u8 *p;

    free_pages_for_slab();
    p = take_beside_free(&f, 32 * KA_SMALL, PAGE_SIZE);
    if (p) {
        ka_truth(__func__, KA_OOB, "r4", p + PAGE_SIZE, p, 32 * KA_SMALL);
        READ_ONCE(*(u32 *)(p + PAGE_SIZE));
    }
    give_first(&f);
    return p ? 0 : -ENOMEM;
}

/* ---- a block that is allocated again ------------------------------------- */

/* Allocate until @old is handed out again. A KASAN kernel keeps it back. */
static void *take_again(const void *old, void *taken[KA_TRIES])
{
    int i;

    for (i = 0; i < KA_TRIES; i++) {
        taken[i] = ka_access_take(ka_own);
        if (taken[i] == old) {
            return taken[i];
        }
    }
    return NULL;
}

KA_CASE(reused)
{
    void *taken[KA_TRIES] = {};
    u8 *p = ka_access_take(ka_own);
    int i;

    if (!p) {
        return -ENOMEM;
    }
    ka_truth(__func__, KA_UAF, "r1", p + KA_SAFE, p, KA_OBJECT);
    ka_access_give(ka_own, p);
    take_again(p, taken);
    READ_ONCE(p[KA_SAFE]);
    for (i = 0; i < KA_TRIES; i++) {
        if (taken[i]) {
            ka_access_give(ka_own, taken[i]);
        }
    }
    return 0;
}

/* The same of a block of kmalloc(), whose size nobody else asks for: the next
 * one gets the memory. */
KA_CASE(reused_kmalloc)
{
    void *taken[KA_TRIES] = {};
    u8 *p = ka_access_alloc(KA_OWN_SIZE);
    int i;

    if (!p) {
        return -ENOMEM;
    }
    ka_truth(__func__, KA_UAF, "r1", p + KA_SAFE, p, KA_OWN_SIZE);
    ka_access_free(p);
    for (i = 0; i < KA_TRIES; i++) {
        taken[i] = ka_access_alloc(KA_OWN_SIZE);
        if (taken[i] == p) {
            break;
        }
    }
    READ_ONCE(p[KA_SAFE]);
    for (i = 0; i < KA_TRIES; i++) {
        ka_access_free(taken[i]);
    }
    return 0;
}

/* ---- no errors ----------------------------------------------------------- */

/* An object of this kind may be read by those that found it before. */
KA_CASE(quiet_typesafe)
{
    struct kmem_cache *cache =
        kmem_cache_create("ka_access_rcu", KA_OBJECT, 0,
                          SLAB_TYPESAFE_BY_RCU | SLAB_NOLEAKTRACE, NULL);
    u8 *p = cache ? ka_access_take(cache) : NULL;

    if (p) {
        rcu_read_lock();
        ka_access_give(cache, p);
        READ_ONCE(p[KA_SAFE]);
        rcu_read_unlock();
    }
    kmem_cache_destroy(cache);
    return p ? 0 : -ENOMEM;
}

static void set_up(void *p)
{
    memset(p, 0x5a, KA_OBJECT);
}

/* The constructor writes to all slots of a slab. */
KA_CASE(quiet_constructor)
{
    struct kmem_cache *cache = kmem_cache_create("ka_access_ctor", KA_OBJECT, 0,
                                                 0, set_up);
    u8 *p = cache ? ka_access_take(cache) : NULL;

    if (p) {
        READ_ONCE(p[KA_OBJECT - 1]);
        ka_access_give(cache, p);
        kmem_cache_shrink(cache);
    }
    kmem_cache_destroy(cache);
    return p ? 0 : -ENOMEM;
}

KA_CASE(quiet_realloc)
{
    u8 *p = ka_access_alloc(65);
    u8 *more = p ? krealloc(p, 90, GFP_KERNEL | __GFP_ZERO) : NULL;

    if (!more) {
        ka_access_free(p);
        return -ENOMEM;
    }
    WRITE_ONCE(more[89], 1);
    more[40] = READ_ONCE(more[88]);
    kfree_sensitive(more);
    return 0;
}

/* Until Linux 6.1 the owner of a block may use all that ksize() says. */
KA_CASE(quiet_ksize)
{
    u8 *p = ka_access_alloc(70);
    size_t bytes = p ? ksize(p) : 0;

    if (!p) {
        return -ENOMEM;
    }
    bytes = LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0) ? bytes : 70;
    WRITE_ONCE(p[bytes - 1], 1);
    memset(p, 0, bytes);
    ka_access_free(p);
    return 0;
}

struct queued {
    struct rcu_head rcu;
    u8 fill[100];
};

/* A block that waits for RCU is live. */
KA_CASE(quiet_queued)
{
    struct queued *q = ka_access_alloc(sizeof(*q));

    if (!q) {
        return -ENOMEM;
    }
    rcu_read_lock();
    kfree_rcu(q, rcu);
    READ_ONCE(q->fill[50]);
    rcu_read_unlock();
    return 0;
}

/* The functions of strings read whole words, up to 7 bytes behind a string. */
KA_CASE(quiet_words)
{
    char *from = ka_access_alloc(13), *to = ka_access_alloc(13);
    ssize_t n = -ENOMEM;

    if (from && to) {
        memcpy(from, "twelve chars", 13);
        n = strscpy(to, from, 13);
    }
    ka_access_free(from);
    ka_access_free(to);
    return n == 12 ? 0 : -EIO;
}

#ifdef CONFIG_X86_64
/* Clear a block from its last word down. The jump begins another block of
 * instructions for QEMU, in which nobody sees std. */
KA_CASE(quiet_down)
{
    u8 *p = ka_access_alloc(120), *at = p + 112;
    long n = 15;

    if (!p) {
        return -ENOMEM;
    }
    asm volatile("std\n\t"
                 "jmp 1f\n"
                 "1:\trep stosq\n\t"
                 "cld" : "+D" (at), "+c" (n) : "a" (0L) : "memory");
    ka_access_free(p);
    return at == p - 8 ? 0 : -EINVAL;
}
#endif

const struct ka_case ka_live_cases[] = {
    KA_ROW(next_live), KA_ROW(next_freed), KA_ROW(left_live),
    KA_ROW(next_slot), KA_ROW(left_slot), KA_ROW(next_page), KA_ROW(reused),
    KA_ROW(reused_kmalloc), KA_ROW(quiet_typesafe), KA_ROW(quiet_constructor),
    KA_ROW(quiet_realloc), KA_ROW(quiet_ksize), KA_ROW(quiet_queued),
    KA_ROW(quiet_words),
#ifdef CONFIG_X86_64
    KA_ROW(quiet_down),
#endif
    {}
};
