/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka_owned: a device that owns two blocks, for `ka whatis`. Prints the memory
 * that it got, and the device:
 *
 *   ka_owned: data=ADDRESS device=ADDRESS
 */
#include <linux/device.h>

#include "ka_kmod.h"

static struct device *device;

static int __init ka_owned_init(void)
{
    void *data, *other;

    device = root_device_register("ka_owner");
    if (IS_ERR(device)) {
        return PTR_ERR(device);
    }
    data = devm_kmalloc(device, 200, GFP_KERNEL);
    other = devm_kmalloc(device, 40, GFP_KERNEL);
    if (!data || !other) {
        root_device_unregister(device);
        return -ENOMEM;
    }
    pr_info("ka_owned: data=%px device=%px\n", data, device);
    return 0;
}

static void __exit ka_owned_exit(void)
{
    root_device_unregister(device);
}

KA_MODULE(ka_owned_init, ka_owned_exit, "a device that owns memory");
