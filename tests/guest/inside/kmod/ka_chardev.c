/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka_chardev: a character device, as the example of KEDR's manual: init
 * allocates 320 bytes for two devices, open() a buffer of 4000, and write()
 * fills the buffer from user space.
 *
 *   insmod ka_chardev.ko; echo text >/dev/ka_chardev; rmmod ka_chardev
 *
 * No call here is the last action of its function: as a tail call it would
 * return to the kernel.
 */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/uaccess.h>

#include "ka_kmod.h"

#define DEVICES 2
#define BUFFER_BYTES 4000

struct ka_chardev_state {
    unsigned long opened;
    char name[152];
};

static struct ka_chardev_state *devices;

static int ka_chardev_open(struct inode *inode, struct file *file)
{
    file->private_data = kmalloc(BUFFER_BYTES, GFP_KERNEL);
    devices[0].opened++;
    return file->private_data ? 0 : -ENOMEM;
}

static ssize_t ka_chardev_write(struct file *file, const char __user *from,
                                size_t count, loff_t *pos)
{
    size_t n = min_t(size_t, count, BUFFER_BYTES);

    return copy_from_user(file->private_data, from, n) ? -EFAULT : n;
}

static int ka_chardev_release(struct inode *inode, struct file *file)
{
    kfree(file->private_data);
    return 0;
}

static const struct file_operations operations = {
    .owner = THIS_MODULE,
    .open = ka_chardev_open,
    .write = ka_chardev_write,
    .release = ka_chardev_release,
};

static struct miscdevice device = {
    .minor = MISC_DYNAMIC_MINOR,
    .name = "ka_chardev",
    .fops = &operations,
};

static int __init ka_chardev_init(void)
{
    int error;

    devices = kmalloc(DEVICES * sizeof(*devices), GFP_KERNEL);
    if (!devices) {
        return -ENOMEM;
    }
    devices[0].opened = 0;
    error = misc_register(&device);
    if (error) {
        kfree(devices);
    }
    return error;
}

static void __exit ka_chardev_exit(void)
{
    misc_deregister(&device);
    kfree(devices);
    ka_site_end();
}

KA_MODULE(ka_chardev_init, ka_chardev_exit,
          "a character device that allocates");
