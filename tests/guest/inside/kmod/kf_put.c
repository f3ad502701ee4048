/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kf_put: kobject_put() frees the object, and then kfree() does, as in btrfs's
 * create_space_info().
 */
#include <linux/kobject.h>

#include "ka_kmod.h"

static struct kobject *object;

static void kf_release(struct kobject *k)
{
    kfree(k);
}

static const struct kobj_type kf_type = {
    .release = kf_release,
};

static int __init kf_put_init(void)
{
    int err;

    object = kzalloc(sizeof(*object), GFP_KERNEL);
    if (!object)
        return -ENOMEM;
    err = kobject_init_and_add(object, (struct kobj_type *)&kf_type, NULL,
                   "kf_put");
    if (err) {
        kobject_put(object);
        kfree(object);      /* the error */
    }
    return err;
}

static void __exit kf_put_exit(void)
{
    kobject_put(object);
}

KA_MODULE(kf_put_init, kf_put_exit, "ka test: a kobject that is freed twice");
