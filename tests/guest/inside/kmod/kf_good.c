/* SPDX-License-Identifier: GPL-2.0-or-later */
/* kf_good: each failure is handled right. */
#include "ka_kmod.h"

static void *part[3];

static KA_SITE void *kf_first(void)
{
    return part[0] = kmalloc(64, GFP_KERNEL);
}

static KA_SITE void *kf_second(void)
{
    return part[1] = kmalloc(128, GFP_KERNEL);
}

static KA_SITE void *kf_third(void)
{
    return part[2] = kmalloc(256, GFP_KERNEL);
}

static int __init kf_good_init(void)
{
    if (!kf_first())
        goto fail;
    if (!kf_second())
        goto fail_second;
    if (!kf_third())
        goto fail_third;
    return 0;

fail_third:
    kfree(part[1]);
fail_second:
    kfree(part[0]);
fail:
    return -ENOMEM;
}

static void __exit kf_good_exit(void)
{
    int i;

    for (i = 0; i < 3; i++)
        kfree(part[i]);
}

KA_MODULE(kf_good_init, kf_good_exit, "ka test: no error at all");
