/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ka_stress: the ways to allocate and free, and the counts. Any context. */
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/vmalloc.h>

#include "ka_stress.h"

#define MARKS 32

/* ---- what is live ------------------------------------------------------- */

static const char *const kind_names[KINDS] = {
    "kmalloc", "large", "cache", "vmalloc", "percpu",
};

struct live {
    atomic64_t blocks, bytes, sum;
};
static struct live live[KINDS];

static const char *const what_names[WHATS] = {
    "steps", "failed", "passed", "reallocs", "rcu", "callbacks", "bulks",
    "moves", "interrupts", "timers", "hogs",
};
static atomic64_t done[WHATS];

void did(enum what what)
{
    atomic64_inc(&done[what]);
}

static struct kmem_cache *objects;

void count(enum kind kind, const void *p, size_t size, int sign)
{
    atomic64_add(sign, &live[kind].blocks);
    atomic64_add(sign * (s64)size, &live[kind].bytes);
    atomic64_add(sign * (s64)(unsigned long)p, &live[kind].sum);
}

unsigned long tagged(enum kind kind, void *p, size_t size)
{
    if (!p) {
        did(FAILED);
        return 0;
    }
    if (kind != PERCPU_BLOCK) {
        ((struct head *)p)->size = size;
    }
    count(kind, p, size, 1);
    return (unsigned long)p | kind;
}

bool make_objects(void)
{
    objects = kmem_cache_create("ka_stress", OBJECT, 8, SLAB_ACCOUNT, NULL);
    return objects;
}

void destroy_objects(void)
{
    kmem_cache_destroy(objects);
}

void free_objects(void **list, int n)
{
    kmem_cache_free_bulk(objects, n, list);
}

/* ---- sites -------------------------------------------------------------- */

KA_SITE void *ka_stress_kmalloc(size_t size, gfp_t gfp)
{
    void *p = kmalloc(size, gfp);

    ka_site_end();
    return p;
}

KA_SITE void *ka_stress_krealloc(void *old, size_t size)
{
    void *p = krealloc(old, size, GFP_KERNEL);

    ka_site_end();
    return p;
}

KA_SITE void *ka_stress_large(size_t size, gfp_t gfp)
{
    void *p = kmalloc(size, gfp | __GFP_NOWARN);

    ka_site_end();
    return p;
}

KA_SITE void *ka_stress_cache(gfp_t gfp)
{
    void *p = kmem_cache_alloc(objects, gfp);

    ka_site_end();
    return p;
}

KA_SITE int ka_stress_bulk(void **list)
{
    int n = kmem_cache_alloc_bulk(objects, GFP_KERNEL, BULK, list);

    ka_site_end();
    return n;
}

KA_SITE void *ka_stress_vmalloc(size_t size)
{
    void *p = vmalloc(size);

    ka_site_end();
    return p;
}

KA_SITE void *ka_stress_percpu(void)
{
    void *p = (void __force *)__alloc_percpu(PERCPU, 8);

    ka_site_end();
    return p;
}

KA_SITE void ka_stress_mark(size_t size)
{
    unsigned long flags;
    int i;

    local_irq_save(flags);
    for (i = 0; i < MARKS; i++) {
        kfree(kmalloc(size, GFP_ATOMIC));
    }
    local_irq_restore(flags);
    ka_site_end();
}

KA_SITE void ka_stress_free(unsigned long block)
{
    struct head *h = head_of(block);
    enum kind kind = kind_of(block);

    if (!block) {
        return;
    }
    count(kind, h, kind == PERCPU_BLOCK ? PERCPU : h->size, -1);
    switch (kind) {
    case CACHE:
        kmem_cache_free(objects, h);
        break;
    case VMALLOC:
        vfree(h);
        break;
    case PERCPU_BLOCK:
        free_percpu((void __percpu __force *)h);
        break;
    default:
        kfree(h);
    }
    ka_site_end();
}

/* ---- parameters --------------------------------------------------------- */

int print_live(char *buffer)
{
    int i, n = 0;

    for (i = 0; i < KINDS; i++) {
        n += scnprintf(buffer + n, PAGE_SIZE - n, "%s %lld %lld %llu\n",
                       kind_names[i],
                       (long long)atomic64_read(&live[i].blocks),
                       (long long)atomic64_read(&live[i].bytes),
                       (unsigned long long)atomic64_read(&live[i].sum));
    }
    return n;
}

int print_done(char *buffer)
{
    int i, n = 0;

    for (i = 0; i < WHATS; i++) {
        n += scnprintf(buffer + n, PAGE_SIZE - n, "%s %lld\n", what_names[i],
                       (long long)atomic64_read(&done[i]));
    }
    return n;
}
