/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kf_errptr: an error pointer is stored, and the clean-up uses it, as in
 * msi_populate_sysfs().
 */
#include <linux/err.h>

#include "ka_kmod.h"

struct group {
    void *name;
};

static struct group *group;

static KA_SITE struct group *kf_make(void)
{
    struct group *g = kcalloc(4, sizeof(*g), GFP_KERNEL);

    return g ? g : ERR_PTR(-ENOMEM);
}

static KA_SITE void kf_clean_up(void)
{
    if (group)          /* the error: IS_ERR() is missing */
        kfree(READ_ONCE(group->name));
    kfree(group);
}

static int __init kf_errptr_init(void)
{
    group = kf_make();
    if (IS_ERR(group)) {
        kf_clean_up();
        return -ENOMEM;
    }
    return 0;
}

static void __exit kf_errptr_exit(void)
{
    kf_clean_up();
}

KA_MODULE(kf_errptr_init, kf_errptr_exit,
          "ka test: an error pointer that is used");
