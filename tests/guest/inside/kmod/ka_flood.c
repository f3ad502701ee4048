/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka_flood: makes a tracer's memory grow, as a guest that allocates without
 * end does. What is to be done is written to its parameter "run":
 *
 *   keep N    N objects more, which stay
 *   churn N   N pairs of kmalloc and kfree, a thousand others between the two
 *   free      all that stayed
 *
 * Each allocation comes with one of 2^bits backtraces. Objects are linked by
 * their first word, so that nothing else is allocated. A line on the console
 * tells how long it took and, of "keep", the first and the last object.
 */
#include <linux/ktime.h>
#include <linux/moduleparam.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/vmalloc.h>

#include "ka_kmod.h"

#define LAG 1024

static unsigned int size = 64;
module_param(size, uint, 0644);
MODULE_PARM_DESC(size, "bytes of an object, 8 at least");

static unsigned int bits = 12;
module_param(bits, uint, 0644);
MODULE_PARM_DESC(bits, "2^bits different backtraces, 20 at most");

static bool areas;
module_param(areas, bool, 0644);
MODULE_PARM_DESC(areas, "objects are areas of vmalloc()");

static bool percpu;
module_param(percpu, bool, 0644);
MODULE_PARM_DESC(percpu, "objects are per-CPU memory, 32 KiB at most");

static void *kept;
static void *lag[LAG];
static unsigned int turn;

static __always_inline void *flood_alloc(void)
{
    return percpu ? (__force void *)__alloc_percpu(max(size, 8u), 8) :
           areas ? vmalloc(max(size, 8u)) :
                   kmalloc(max(size, 8u), GFP_KERNEL | __GFP_NOWARN);
}

/* The first word of an object: of the first CPU, if it is per-CPU memory. */
static void **flood_word(void *p)
{
    return percpu ? per_cpu_ptr((void * __percpu *)p, 0) : p;
}

static __always_inline void flood_release(void *p)
{
    if (percpu) {
        free_percpu((void __percpu *)p);
    } else if (areas) {
        vfree(p);
    } else {
        kfree(p);
    }
}

/* Two calls of itself: each bit of the path is another return address. */
static KA_SITE void *flood_take(unsigned int path, unsigned int depth)
{
    void *p;

    if (!depth) {
        p = flood_alloc();
        ka_site_end();
        return p;
    }
    if (path & 1) {
        p = flood_take(path >> 1, depth - 1);
        asm volatile("nop" : : : "memory");
    } else {
        p = flood_take(path >> 1, depth - 1);
        ka_site_end();
    }
    return p;
}

static void *flood_next(void)
{
    unsigned int depth = min(bits, 20u);

    if (!(++turn % 1024)) {
        cond_resched();
    }
    return flood_take(turn * 0x9e3779b1u >> (32 - max(depth, 1u)), depth);
}

static KA_SITE int flood_keep(unsigned int n, void **first, void **last)
{
    void *p;

    while (n--) {
        p = flood_next();
        if (!p) {
            return -ENOMEM;
        }
        *first = *first ? *first : p;
        *last = p;
        *flood_word(p) = kept;
        kept = p;
    }
    return 0;
}

static KA_SITE int flood_churn(unsigned int n)
{
    void *p;

    while (n--) {
        p = flood_next();
        flood_release(lag[turn % LAG]);
        lag[turn % LAG] = p;
        if (!p) {
            return -ENOMEM;
        }
    }
    return 0;
}

static KA_SITE void flood_free(void)
{
    void *next;
    unsigned int i;

    for (i = 0; kept; i++) {
        next = *flood_word(kept);
        flood_release(kept);
        kept = next;
        if (!(i % 1024)) {
            cond_resched();
        }
    }
    for (i = 0; i < LAG; i++) {
        flood_release(lag[i]);
        lag[i] = NULL;
    }
}

/* "WORD N"; a line end may follow. */
static bool is_word(const char *text, const char *word, unsigned int *n)
{
    size_t len = strlen(word);

    return !strncmp(text, word, len) && text[len] == ' ' &&
           !kstrtouint(text + len + 1, 10, n);
}

static int run_set(const char *text, const struct kernel_param *kp)
{
    void *first = NULL, *last = NULL;
    unsigned int n = 0;
    int ret = 0;
    u64 t = ktime_get_ns();

    if (is_word(text, "keep", &n)) {
        ret = flood_keep(n, &first, &last);
    } else if (is_word(text, "churn", &n)) {
        ret = flood_churn(n);
    } else if (!strncmp(text, "free", 4)) {
        flood_free();
    } else {
        return -EINVAL;
    }
    t = ktime_get_ns() - t;
    pr_info("ka_flood: %.5s n=%u us=%llu first=%px last=%px\n", text, n,
            t / 1000, first, last);
    return ret;
}

static const struct kernel_param_ops run_ops = { .set = run_set };
module_param_cb(run, &run_ops, NULL, 0200);
MODULE_PARM_DESC(run, "keep N, churn N or free");

static int __init ka_flood_init(void)
{
    return 0;
}

static void __exit ka_flood_exit(void)
{
    flood_free();
}

KA_MODULE(ka_flood_init, ka_flood_exit, "allocations without end");
