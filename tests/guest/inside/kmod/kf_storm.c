/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kf_storm: a thread on each CPU that allocates and frees, and bears it if an
 * allocation fails. insmod ends when all are done. Then the module has printed
 *
 *   kf_storm: calls=80000 failed=40123
 *
 * Each thread calls from two places, so that there are two stacks.
 */
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/kthread.h>
#include <linux/sched.h>

#include "ka_kmod.h"

static unsigned int calls = 1000;
module_param(calls, uint, 0444);
MODULE_PARM_DESC(calls, "calls of each thread");

static atomic_long_t failed = ATOMIC_LONG_INIT(0);
static atomic_t running = ATOMIC_INIT(0);
static DECLARE_COMPLETION(done);

static KA_SITE bool storm_small(unsigned int i)
{
    void *p = kmalloc(64 + i % 512, GFP_KERNEL);

    kfree(p);
    return p != NULL;
}

static KA_SITE bool storm_atomic(unsigned int i)
{
    void *p = kmalloc(1024 + i % 512, GFP_ATOMIC);

    kfree(p);
    return p != NULL;
}

static int storm_thread(void *unused)
{
    unsigned int i;

    for (i = 0; i < calls; i++) {
        if (!(i % 2 ? storm_small(i) : storm_atomic(i)))
            atomic_long_inc(&failed);
        if (!(i % 64))
            cond_resched();
    }
    if (atomic_dec_and_test(&running))
        complete(&done);
    return 0;
}

static int __init kf_storm_init(void)
{
    struct task_struct *thread;
    unsigned int cpu, started = 0;

    atomic_set(&running, 1);
    for_each_online_cpu(cpu) {
        thread = kthread_create(storm_thread, NULL, "kf_storm/%u", cpu);
        if (IS_ERR(thread))
            continue;
        kthread_bind(thread, cpu);
        atomic_inc(&running);
        started++;
        wake_up_process(thread);
    }
    if (!atomic_dec_and_test(&running))
        wait_for_completion(&done);
    pr_info("kf_storm: calls=%lu failed=%ld\n",
            (unsigned long)started * calls, atomic_long_read(&failed));
    return 0;
}

static void __exit kf_storm_exit(void)
{
}

KA_MODULE(kf_storm_init, kf_storm_exit,
          "allocations that may fail, from many threads");
