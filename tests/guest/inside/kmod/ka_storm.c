/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka_storm: kmalloc and kfree in a loop, nothing else.
 *
 * The worst case for a tracer of allocations. Prints the mean guest time of
 * a pair for each size; insmod ends when the loops have.
 */
#include <linux/ktime.h>
#include <linux/sched.h>

#include "ka_kmod.h"

static unsigned int pairs = 100000;
module_param(pairs, uint, 0444);
MODULE_PARM_DESC(pairs, "pairs of kmalloc and kfree for each size");

static unsigned int sizes[8] = { 64, 1000, 8192 };
static int n_sizes = 3;
module_param_array(sizes, uint, &n_sizes, 0444);
MODULE_PARM_DESC(sizes, "requested sizes in bytes");

static KA_SITE int storm_pairs(unsigned int size, unsigned int n)
{
    unsigned int i;
    void *p;

    for (i = 0; i < n; i++) {
        p = kmalloc(size, GFP_KERNEL);
        if (!p) {
            return -ENOMEM;
        }
        kfree(p);
        if (!(i % 1024)) {
            cond_resched();
        }
    }
    return 0;
}

static int __init ka_storm_init(void)
{
    int i, ret;
    u64 t;

    for (i = 0; i < n_sizes; i++) {
        t = ktime_get_ns();
        ret = storm_pairs(sizes[i], pairs);
        t = ktime_get_ns() - t;
        if (ret) {
            return ret;
        }
        pr_info("ka_storm: size=%u pairs=%u ns_per_pair=%llu\n",
                sizes[i], pairs, pairs ? t / pairs : 0);
    }
    pr_info("ka_storm: done\n");
    return 0;
}

static void __exit ka_storm_exit(void)
{
}

KA_MODULE(ka_storm_init, ka_storm_exit, "kmalloc and kfree in a loop");
