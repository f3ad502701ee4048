/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kf_double: the callee frees on an error, and the caller frees again, as in
 * mlx5e's arfs_create_groups() before 3c6d5189246f.
 */
#include <linux/mm.h>

#include "ka_kmod.h"

static void *groups, *in;

static KA_SITE int kf_create_groups(void)
{
    groups = kmalloc(96, GFP_KERNEL);
    in = kvmalloc(3 * PAGE_SIZE, GFP_KERNEL);
    if (!groups || !in) {
        kfree(groups);
        kvfree(in);
        in = NULL;
        return -ENOMEM;
    }
    return 0;
}

static int __init kf_double_init(void)
{
    int err = kf_create_groups();

    if (err)
        kfree(groups);      /* the error */
    return err;
}

static void __exit kf_double_exit(void)
{
    kfree(groups);
    kvfree(in);
}

KA_MODULE(kf_double_init, kf_double_exit,
          "ka test: a block that is freed twice");
