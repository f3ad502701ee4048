/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka_access: accesses that must be reported although the function is one of
 * those whose accesses are mostly explained: functions that read behind the
 * end of strings, and functions that allocators call.
 */
#include <linux/dcache.h>
#include <linux/namei.h>
#include <linux/siphash.h>
#include <linux/string.h>
#include <linux/stringhash.h>
#include <net/checksum.h>

#include "ka_access.h"

char *ka_freed_text(const char *site, const char *how, const char *text)
{
    char *p = ka_access_take(ka_own);

    if (!p) {
        return NULL;
    }
    memset(p, 0, KA_OBJECT);
    strscpy(p + KA_SAFE, text, 32);
    ka_truth(site, KA_UAF, how, p + KA_SAFE, p, KA_OBJECT);
    ka_access_give(ka_own, p);
    return p + KA_SAFE;
}

/* The first byte of what is read is bad. */
KA_CASE(name_hash)
{
    char *p = ka_freed_text(__func__, "r8", "sixteen letters.");
    unsigned int hash = p ? full_name_hash(NULL, p, 16) : 0;

    barrier_data(&hash);
    return p ? 0 : -ENOMEM;
}

KA_CASE(siphash)
{
    char *p = ka_freed_text(__func__, "r8", "twelve chars");
    static siphash_key_t key;
    u64 hash = p ? siphash(p, 12, &key) : 0;

    barrier_data(&hash);
    return p ? 0 : -ENOMEM;
}

/* More than 7 bytes behind the end. */
KA_CASE(name_hash_far)
{
    char *p = ka_access_alloc(72);
    unsigned int hash;

    if (!p) {
        return -ENOMEM;
    }
    memset(p, 'x', 72);
    ka_truth(__func__, KA_OOB, "r8", p + 72, p, 72);
    hash = full_name_hash(NULL, p, 88);
    barrier_data(&hash);
    ka_access_free(p);
    return 0;
}

KA_CASE(strscpy_from)
{
    char *p = ka_freed_text(__func__, "r", "freed text"), to[32];
    ssize_t n = p ? strscpy(to, p, sizeof(to)) : 0;

    barrier_data(&n);
    return p ? 0 : -ENOMEM;
}

/* A store is never explained. */
KA_CASE(strscpy_to)
{
    char *p = ka_freed_text(__func__, "w8", "freed text");
    ssize_t n = p ? strscpy(p, "a text of 24 characters", 24) : 0;

    barrier_data(&n);
    return p ? 0 : -ENOMEM;
}

#ifdef CONFIG_NET
KA_CASE(checksum)
{
    char *p = ka_freed_text(__func__, "r8", "twenty-one characters");
    __wsum sum = p ? csum_partial(p, 21, 0) : 0;

    barrier_data(&sum);
    return p ? 0 : -ENOMEM;
}
#endif

/* ---- names of files ------------------------------------------------------ */

/* Compare the names of two directory entries, of which one is freed. */
KA_CASE(dentry_name)
{
    struct qstr name = { .len = 4 };
    struct dentry *found;
    struct path root;
    char *p;

    if (kern_path("/", 0, &root)) {
        return -ENOENT;
    }
    p = ka_freed_text(__func__, "r8", "proc");
    if (p) {
        name.name = p;
        name.hash = full_name_hash(root.dentry, "proc", 4);
        found = d_lookup(root.dentry, &name);
        dput(found);
    }
    path_put(&root);
    return p ? 0 : -ENOMEM;
}

/* ---- what allocators call ------------------------------------------------ */

static u8 *other;

static KA_SITE void ka_site_constructor(void *p)
{
    memset(p, 0, 100);
    if (other) {
        READ_ONCE(*other);
    }
}

/* A constructor reads a freed object of another cache. */
KA_CASE(constructor)
{
    struct kmem_cache *cache = kmem_cache_create("ka_access_new", 100, 0, 0,
                                                 ka_site_constructor);
    u8 *p;

    if (!cache) {
        return -ENOMEM;
    }
    other = ka_freed_text("ka_site_constructor", "r1", "x");
    p = ka_access_take(cache);
    other = NULL;
    if (p) {
        ka_access_give(cache, p);
    }
    kmem_cache_destroy(cache);
    return p ? 0 : -ENOMEM;
}

const struct ka_case ka_table_cases[] = {
    KA_ROW(name_hash), KA_ROW(name_hash_far), KA_ROW(siphash),
    KA_ROW(strscpy_from), KA_ROW(strscpy_to),
#ifdef CONFIG_NET
    KA_ROW(checksum),
#endif
    KA_ROW(dentry_name), KA_ROW(constructor),
    {}
};
