/* SPDX-License-Identifier: GPL-2.0-or-later */
/* kf_null: a result is used unchecked, as in iio before fe6f45f6ba22. */
#include "ka_kmod.h"

static int *value;

static KA_SITE void kf_set(void)
{
    value = kmalloc(64, GFP_KERNEL);
    WRITE_ONCE(value[3], 1);    /* the error */
}

static int __init kf_null_init(void)
{
    kf_set();
    return 0;
}

static void __exit kf_null_exit(void)
{
    kfree(value);
}

KA_MODULE(kf_null_init, kf_null_exit, "ka test: a result that is not checked");
