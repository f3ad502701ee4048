/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kf_name: the name that dev_set_name() allocated leaks if what comes after it
 * fails, as in drivers/ptp before 4225fea1cb28.
 */
#include <linux/device.h>

#include "ka_kmod.h"

static struct device device;
static void *part;

static KA_SITE int kf_register(void)
{
    part = kmalloc(200, GFP_KERNEL);
    return part ? 0 : -ENOMEM;
}

static int __init kf_name_init(void)
{
    int err;

    device_initialize(&device);
    err = dev_set_name(&device, "kf_name_that_is_allocated%d", 1);
    if (err)
        return err;
    err = kf_register();
    if (err) {
        /* The error: put_device() is missing. */
        device.kobj.name = NULL;
    }
    return err;
}

static void __exit kf_name_exit(void)
{
    kfree(part);
    kfree_const(device.kobj.name);
}

KA_MODULE(kf_name_init, kf_name_exit, "ka test: a name that leaks");
