/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka_ticks: allocates and frees in timer interrupts of all CPUs, and so where
 * no other code allocates: wherever an interrupt may arrive.
 *
 *   parameters/us        time from a tick to the next one, in microseconds
 *   parameters/threads   N: begin and end N kernel threads, one after the other
 */
#include <linux/cpu.h>
#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/percpu.h>
#include <linux/smp.h>
#include <linux/version.h>

#include "ka_kmod.h"

/* From a slab of its own size. */
#define BYTES 700

static unsigned int us = 100;
module_param(us, uint, 0444);
MODULE_PARM_DESC(us, "microseconds from a tick to the next one");

static DEFINE_PER_CPU(struct hrtimer, ticks);

static KA_SITE void ka_ticks_site(void)
{
    void *p = kmalloc(BYTES, GFP_ATOMIC | __GFP_NOWARN);

    ka_site_end();
    kfree(p);
    ka_site_end();
}

static enum hrtimer_restart tick(struct hrtimer *timer)
{
    ka_ticks_site();
    hrtimer_forward_now(timer, ns_to_ktime(us * 1000ull));
    return HRTIMER_RESTART;
}

static void start(void *unused)
{
    struct hrtimer *timer = this_cpu_ptr(&ticks);

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
    hrtimer_setup(timer, tick, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
#else
    hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
    timer->function = tick;
#endif
    hrtimer_start(timer, ns_to_ktime(us * 1000ull),
                  HRTIMER_MODE_REL_PINNED_HARD);
}

static int ka_ticks_thread(void *unused)
{
    return 0;
}

static int set_threads(const char *text, const struct kernel_param *param)
{
    struct task_struct *task;
    unsigned int n;
    int ret = kstrtouint(text, 0, &n);

    while (!ret && n--) {
        task = kthread_run(ka_ticks_thread, NULL, "ka_ticks");
        ret = PTR_ERR_OR_ZERO(task);
    }
    return ret;
}

static const struct kernel_param_ops threads_ops = { .set = set_threads };
module_param_cb(threads, &threads_ops, NULL, 0200);

static int __init ka_ticks_init(void)
{
    return us ? on_each_cpu(start, NULL, 1), 0 : -EINVAL;
}

static void __exit ka_ticks_exit(void)
{
    int cpu;

    for_each_possible_cpu(cpu) {
        hrtimer_cancel(per_cpu_ptr(&ticks, cpu));
    }
}

KA_MODULE(ka_ticks_init, ka_ticks_exit, "allocates in timer interrupts");
