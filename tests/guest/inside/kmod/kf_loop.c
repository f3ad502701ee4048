/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kf_loop: if buffer number i fails, those before it are not freed, as in
 * keyspan before 910c996335c3.
 */
#include "ka_kmod.h"

static void *buffer[6];

static KA_SITE int kf_fill(void)
{
    int i;

    for (i = 0; i < 6; i++) {
        buffer[i] = kmalloc(100, GFP_KERNEL);
        if (!buffer[i])
            return -ENOMEM; /* the error */
    }
    return 0;
}

static int __init kf_loop_init(void)
{
    return kf_fill();
}

static void __exit kf_loop_exit(void)
{
    int i;

    for (i = 0; i < 6; i++)
        kfree(buffer[i]);
}

KA_MODULE(kf_loop_init, kf_loop_exit, "ka test: buffers of a loop that leak");
