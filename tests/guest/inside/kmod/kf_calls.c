/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kf_calls: makes calls that fault rules are about, and says which of them
 * failed. A line that is written to /proc/kf_calls is "WHAT A B N": N calls of
 * WHAT with the arguments A and B. The module prints
 *
 *   kf_calls: WHAT ..F..F       a letter for each call, F: it failed
 *
 * When it is loaded, and again when it is unloaded, it makes five calls of
 * kmalloc(320): "init" and "exit".
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/proc_fs.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "ka_kmod.h"

#define CALLS_MAX 200

static struct kmem_cache *cache;
static char pattern[CALLS_MAX + 1];

static KA_SITE bool call_kmalloc(size_t size, gfp_t flags)
{
    void *p = kmalloc(size, flags);

    kfree(p);
    return p != NULL;
}

/* Another caller, for conditions about it. */
static KA_SITE bool call_other(size_t size, gfp_t flags)
{
    void *p = kmalloc(size, flags);

    kfree(p);
    return p != NULL;
}

static KA_SITE bool call_nofail(size_t size)
{
    void *p = kmalloc(size, GFP_KERNEL | __GFP_NOFAIL);

    kfree(p);
    return p != NULL;
}

static KA_SITE bool call_kvmalloc(size_t size)
{
    void *p = kvmalloc(size, GFP_KERNEL);

    kvfree(p);
    return p != NULL;
}

static KA_SITE bool call_cache(void)
{
    void *p = kmem_cache_alloc(cache, GFP_KERNEL);

    if (p)
        kmem_cache_free(cache, p);
    return p != NULL;
}

static KA_SITE bool call_pages(unsigned int order)
{
    struct page *p = alloc_pages(GFP_KERNEL, order);

    if (p)
        __free_pages(p, order);
    return p != NULL;
}

static KA_SITE bool call_vmalloc(size_t size)
{
    void *p = vmalloc(size);

    vfree(p);
    return p != NULL;
}

static KA_SITE bool call_percpu(void)
{
    int __percpu *p = alloc_percpu(int);

    free_percpu(p);
    return p != NULL;
}

static KA_SITE bool call_kstrdup(void)
{
    char *p = kstrdup("kf_calls", GFP_KERNEL);

    kfree(p);
    return p != NULL;
}

KA_SITE_RETURNS(bool, call_capable, (int cap), capable(cap))

/* A constructor keeps the cache from being merged with another one. */
static void construct(void *object)
{
}

static KA_SITE bool call_create(slab_flags_t flags)
{
    struct kmem_cache *c =
        kmem_cache_create("kf_created", 200, 0, flags, construct);

    kmem_cache_destroy(c);
    return c != NULL;
}

/* A function of the module itself that can be made to fail. */
static KA_SITE int kf_errno(int value, long other)
{
    ka_site_end();
    return value & 0;
}

static KA_SITE bool call_copy(const char __user *from)
{
    char to[8];
    unsigned long left = copy_from_user(to, from, sizeof(to));

    return left != sizeof(to);
}

static bool call(const char *what, unsigned long a, unsigned long b,
         const char __user *from)
{
    if (!strcmp(what, "kmalloc"))
        return call_kmalloc(a, b ? GFP_NOFS : GFP_KERNEL);
    if (!strcmp(what, "other"))
        return call_other(a, GFP_KERNEL);
    if (!strcmp(what, "nofail"))
        return call_nofail(a);
    if (!strcmp(what, "kvmalloc"))
        return call_kvmalloc(a);
    if (!strcmp(what, "cache"))
        return call_cache();
    if (!strcmp(what, "pages"))
        return call_pages(a);
    if (!strcmp(what, "vmalloc"))
        return call_vmalloc(a);
    if (!strcmp(what, "percpu"))
        return call_percpu();
    if (!strcmp(what, "kstrdup"))
        return call_kstrdup();
    if (!strcmp(what, "capable"))
        return call_capable(a);
    if (!strcmp(what, "create"))
        return call_create(a ? SLAB_PANIC : 0);
    if (!strcmp(what, "errno"))
        return kf_errno(a, b) == 0;
    return call_copy(from);
}

static void make_calls(const char *what, unsigned long a, unsigned long b,
               unsigned int n, const char __user *from)
{
    unsigned int i;

    n = min_t(unsigned int, n, CALLS_MAX);
    for (i = 0; i < n; i++)
        pattern[i] = call(what, a, b, from) ? '.' : 'F';
    pattern[n] = 0;
    pr_info("kf_calls: %s %s\n", what, pattern);
}

static ssize_t write_calls(struct file *file, const char __user *buf,
               size_t len, loff_t *pos)
{
    char line[64], *rest = line, *what;
    unsigned long number[3];
    unsigned int i;

    if (len >= sizeof(line))
        return -EINVAL;
    /* Rules can make copies fail: a second one is tried. */
    if (copy_from_user(line, buf, len) && copy_from_user(line, buf, len))
        return -EFAULT;
    line[len] = 0;
    what = strsep(&rest, " \n");
    for (i = 0; i < 3; i++) {
        char *word = strsep(&rest, " \n");

        if (!word || kstrtoul(word, 10, &number[i]))
            return -EINVAL;
    }
    make_calls(what, number[0], number[1], number[2], buf);
    return len;
}

static const struct proc_ops ops = {
    .proc_write = write_calls,
};

static KA_SITE void five_calls(const char *when)
{
    unsigned int i;

    for (i = 0; i < 5; i++)
        pattern[i] = call_kmalloc(320, GFP_KERNEL) ? '.' : 'F';
    pattern[5] = 0;
    pr_info("kf_calls: %s %s\n", when, pattern);
}

static int __init kf_calls_init(void)
{
    cache = kmem_cache_create("kf_cache", 200, 0, 0, construct);
    if (!cache)
        return -ENOMEM;
    five_calls("init");
    proc_create("kf_calls", 0600, NULL, &ops);
    return 0;
}

static void __exit kf_calls_exit(void)
{
    remove_proc_entry("kf_calls", NULL);
    five_calls("exit");
    kmem_cache_destroy(cache);
}

KA_MODULE(kf_calls_init, kf_calls_exit,
          "ka test: calls that fault rules are about");
