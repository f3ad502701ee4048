/* SPDX-License-Identifier: GPL-2.0-or-later */
/* kf_retry: tries for ever. */
#include <linux/delay.h>
#include <linux/sched.h>

#include "ka_kmod.h"

static void *block;

static KA_SITE void kf_try(void)
{
    while (!(block = kmalloc(72, GFP_KERNEL)))  /* the error */
        msleep(1);
}

static int __init kf_retry_init(void)
{
    kf_try();
    return 0;
}

static void __exit kf_retry_exit(void)
{
    kfree(block);
}

KA_MODULE(kf_retry_init, kf_retry_exit, "ka test: a loop that does not end");
