/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka_planted: a driver with thirteen errors, each in the error path of another
 * operation, and each of another kind. If no call fails, all of it is right.
 *
 *   insmod ka_planted.ko
 *   mknod planted c $(sed -n 's/ ka_planted$//p' /proc/devices) 0
 *   echo leak >planted
 *   rmmod ka_planted
 *
 * A line that is written to the device names the operation. "the error" marks
 * what is wrong in it.
 */
#include <linux/delay.h>
#include <linux/device.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/proc_fs.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "ka_kmod.h"

#define ITEMS 5

struct item {
    struct item *next;
    int status;
    char data[100];
};

KA_SITE_RETURNS(struct item *, new_item, (size_t size),
                kzalloc(size, GFP_KERNEL))

/* What is allocated before the call that fails is not freed. */
static KA_SITE int planted_leak(void)
{
    void *first, *second, *third;

    first = kmalloc(40, GFP_KERNEL);
    if (!first)
        return -ENOMEM;
    second = kmalloc(100, GFP_KERNEL);
    if (!second)
        return -ENOMEM;     /* the error */
    third = kmalloc(300, GFP_KERNEL);
    if (!third)
        return -ENOMEM;     /* the same error */
    kfree(third);
    kfree(second);
    kfree(first);
    return 0;
}

/* put_device() is missing, which would free the name. */
static void free_device(struct device *device)
{
    kfree(device);
}

static KA_SITE int planted_name(void)
{
    struct device *device = kzalloc(sizeof(*device), GFP_KERNEL);
    void *part;

    if (!device)
        return -ENOMEM;
    device_initialize(device);
    device->release = free_device;
    if (dev_set_name(device, "ka_planted_name%d", 1)) {
        put_device(device);
        return -ENOMEM;
    }
    part = kmalloc(200, GFP_KERNEL);
    if (!part) {
        kfree(device);      /* the error */
        return -ENOMEM;
    }
    kfree(part);
    put_device(device);
    return 0;
}

/* The callee frees what its caller frees, too. */
static KA_SITE int fill(struct item *p)
{
    p->next = new_item(120);
    if (p->next)
        return 0;
    kfree(p);
    return -ENOMEM;
}

static KA_SITE int planted_double_free(void)
{
    struct item *p = kzalloc(sizeof(*p), GFP_KERNEL);
    int err;

    if (!p)
        return -ENOMEM;
    err = fill(p);
    if (err) {
        kfree(p);           /* the error */
        return err;
    }
    kfree(p->next);
    kfree(p);
    return 0;
}

/* The result is read out of what was freed. */
static KA_SITE int planted_use_after_free(void)
{
    struct item *p = kzalloc(sizeof(*p), GFP_KERNEL);
    void *part;

    if (!p)
        return -ENOMEM;
    p->status = -ENOMEM;
    part = kmalloc(400, GFP_KERNEL);
    if (!part) {
        kfree(p);
        return READ_ONCE(p->status) ? -ENOMEM : -EIO;   /* the error */
    }
    kfree(part);
    kfree(p);
    return 0;
}

/* A result is not checked. */
static KA_SITE int planted_null(void)
{
    struct item *p = kmalloc(sizeof(*p), GFP_KERNEL);

    WRITE_ONCE(p->status, 1);       /* the error */
    kfree(p);
    return 0;
}

/* Only the first result of a loop is checked. */
static KA_SITE int planted_later(void)
{
    struct item *list = NULL, *p;
    int i;

    for (i = 0; i < ITEMS; i++) {
        p = kmalloc(sizeof(*p), GFP_KERNEL);
        if (!p && !i)
            return -ENOMEM;
        WRITE_ONCE(p->next, list);  /* the error */
        list = p;
    }
    while ((p = list)) {
        list = p->next;
        kfree(p);
    }
    return 0;
}

/* An error pointer is taken for one that is valid. */
static KA_SITE struct item *make_item(void)
{
    struct item *p = kmalloc(sizeof(*p), GFP_KERNEL);

    ka_site_end();
    return p ? p : ERR_PTR(-ENOMEM);
}

static KA_SITE int planted_err_ptr(void)
{
    struct item *p = make_item();

    if (!p)                 /* the error: not IS_ERR() */
        return -ENOMEM;
    WRITE_ONCE(p->status, 1);
    kfree(p);
    return 0;
}

/* The mutex stays locked. */
static DEFINE_MUTEX(mutex);

static KA_SITE int planted_lock(void)
{
    void *p;

    mutex_lock(&mutex);
    p = kmalloc(500, GFP_KERNEL);
    if (!p)
        return -ENOMEM;     /* the error */
    kfree(p);
    mutex_unlock(&mutex);
    return 0;
}

/* The module keeps a reference to itself. */
static KA_SITE int planted_module_ref(void)
{
    void *p;

    if (!try_module_get(THIS_MODULE))
        return -ENODEV;
    p = kmalloc(600, GFP_KERNEL);
    if (!p)
        return -ENOMEM;     /* the error */
    kfree(p);
    module_put(THIS_MODULE);
    return 0;
}

/* The notifier stays registered when the module is gone. */
static int on_netdevice(struct notifier_block *nb, unsigned long what, void *p)
{
    return NOTIFY_DONE;
}

static struct notifier_block notifier = {
    .notifier_call = on_netdevice,
};

static KA_SITE int planted_notifier(void)
{
    int err = register_netdevice_notifier(&notifier);
    void *p;

    if (err)
        return err;
    p = kmalloc(700, GFP_KERNEL);
    if (!p)
        return -ENOMEM;     /* the error */
    kfree(p);
    return unregister_netdevice_notifier(&notifier);
}

/* A directory is removed before what is in it. */
static KA_SITE int planted_order(void)
{
    struct proc_dir_entry *dir = proc_mkdir("ka_planted", NULL);
    void *p = NULL;

    if (!dir)
        return -ENOMEM;
    if (proc_mkdir("inner", dir)) {
        p = kmalloc(800, GFP_KERNEL);
        if (p)
            remove_proc_entry("inner", dir);    /* the error: only then */
    }
    remove_proc_entry("ka_planted", NULL);
    kfree(p);
    return p ? 0 : -ENOMEM;
}

/* It tries for ever. */
static KA_SITE int planted_retry(void)
{
    void *p;

    while (!(p = kmalloc(900, GFP_KERNEL)))     /* the error */
        msleep(1);
    kfree(p);
    return 0;
}

/* A cache is destroyed while it has an object. */
static void construct(void *object)
{
}

static KA_SITE int planted_cache(void)
{
    /* A constructor keeps the cache from being merged with another one. */
    struct kmem_cache *cache =
        kmem_cache_create("ka_planted", 200, 0, 0, construct);
    void *object, *p;
    int err = -ENOMEM;

    if (!cache)
        return err;
    object = kmem_cache_alloc(cache, GFP_KERNEL);
    if (object) {
        p = kmalloc(1000, GFP_KERNEL);
        if (p) {
            kmem_cache_free(cache, object);     /* the error: only then */
            kfree(p);
            err = 0;
        }
    }
    kmem_cache_destroy(cache);
    return err;
}

static const struct {
    const char *name;
    int (*run)(void);
} operations[] = {
    { "leak", planted_leak },
    { "name", planted_name },
    { "double_free", planted_double_free },
    { "use_after_free", planted_use_after_free },
    { "null", planted_null },
    { "later", planted_later },
    { "err_ptr", planted_err_ptr },
    { "lock", planted_lock },
    { "module_ref", planted_module_ref },
    { "notifier", planted_notifier },
    { "order", planted_order },
    { "retry", planted_retry },
    { "cache", planted_cache },
};

static ssize_t planted_write(struct file *file, const char __user *from,
                             size_t count, loff_t *pos)
{
    char name[20] = "";
    int i, err;

    if (copy_from_user(name, from, min(count, sizeof(name) - 1)))
        return -EFAULT;
    for (i = 0; i < ARRAY_SIZE(operations); i++) {
        if (sysfs_streq(name, operations[i].name)) {
            err = operations[i].run();
            return err ? err : count;
        }
    }
    return -EINVAL;
}

static const struct file_operations planted_fops = {
    .owner = THIS_MODULE,
    .write = planted_write,
};

static int major;

static int __init planted_init(void)
{
    major = register_chrdev(0, "ka_planted", &planted_fops);
    return major < 0 ? major : 0;
}

static void __exit planted_exit(void)
{
    unregister_chrdev(major, "ka_planted");
}

KA_MODULE(planted_init, planted_exit,
          "ka test: thirteen errors in error paths");
