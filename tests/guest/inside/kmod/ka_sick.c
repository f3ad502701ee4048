/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka_sick: makes the kernel sick, in the way that is written to its device:
 *
 *   insmod ka_sick.ko
 *   echo warn >/dev/ka_sick
 *
 * Each way is a function ka_sick_*: its name is in the title of the report.
 * What only some kernels notice, such as a possible deadlock, is done in all.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/irq_work.h>
#include <linux/irqflags.h>
#include <linux/fs.h>
#include <linux/list.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>

#include "ka_kmod.h"

/* Longer than the watchdogs wait, which the test has set to some seconds. */
#define LONG_MS 15000

/* The compiler does not know these. */
static int *volatile null;
static unsigned long volatile no_address = 0xdead000000000000;

/* ---- faults ---------------------------------------------------------------*/

KA_SITE_DOES(ka_sick_oops, (void), *null = 1)
KA_SITE_DOES(ka_sick_fault, (void), *(int *)no_address = 1)

static void ka_sick_irq_work(struct irq_work *work)
{
    ka_sick_oops();
    ka_site_end();
}

static KA_SITE void ka_sick_irq(void)
{
    static struct irq_work work;

    init_irq_work(&work, ka_sick_irq_work);
    irq_work_queue(&work);
    irq_work_sync(&work);
}

static KA_SITE void ka_sick_bug(void)
{
    BUG();
}

static KA_SITE void ka_sick_panic(void)
{
    panic("ka_sick has a reason");
}

/* ---- warnings ------------------------------------------------------------ */

KA_SITE_DOES(ka_sick_warn, (void), WARN_ON(1))

static KA_SITE void ka_sick_count(void)
{
    refcount_t count = REFCOUNT_INIT(0);

    refcount_inc(&count);
    ka_site_end();
}

static KA_SITE void ka_sick_list(void)
{
    static LIST_HEAD(head);
    static struct list_head entry;

    list_add(&entry, &head);
    entry.next = &entry;
    list_del(&entry);
    ka_site_end();
}

static KA_SITE void ka_sick_page(void)
{
    struct page *page = alloc_page(GFP_KERNEL);

    page->mapping = (void *)0x100;
    __free_page(page);
    ka_site_end();
}

static KA_SITE void ka_sick_atomic(void)
{
    preempt_disable();
    schedule_timeout_uninterruptible(1);
    /* The kernel has set its count back to 0. */
    ka_site_end();
}

/* ---- no progress --------------------------------------------------------- */

KA_SITE_DOES(ka_sick_loop, (void), mdelay(LONG_MS))

static void ka_sick_lockup_work(struct work_struct *work)
{
    preempt_disable();
    ka_sick_loop();
    preempt_enable();
}

static void ka_sick_stall_work(struct work_struct *work)
{
    rcu_read_lock();
    preempt_disable();
    ka_sick_loop();
    preempt_enable();
    rcu_read_unlock();
}

/* Work of its own, so that its caller is the same each time. */
static void run_as_work(work_func_t func)
{
    static struct work_struct work;

    INIT_WORK(&work, func);
    schedule_work(&work);
    flush_work(&work);
}

static KA_SITE void ka_sick_lockup(void)
{
    run_as_work(ka_sick_lockup_work);
}

static KA_SITE void ka_sick_stall(void)
{
    run_as_work(ka_sick_stall_work);
}

static KA_SITE void ka_sick_hung(void)
{
    static DECLARE_COMPLETION(never);

    wait_for_completion_timeout(&never, msecs_to_jiffies(LONG_MS));
    ka_site_end();
}

/* The CPU takes no interrupts any more. */
static KA_SITE void ka_sick_hang(void)
{
    local_irq_disable();
    for (;;) {
        cpu_relax();
    }
}

/* ---- locks --------------------------------------------------------------- */

static DEFINE_MUTEX(first);
static DEFINE_MUTEX(second);

static KA_SITE void ka_sick_deadlock(void)
{
    mutex_lock(&first);
    mutex_lock(&second);
    mutex_unlock(&second);
    mutex_unlock(&first);
    mutex_lock(&second);
    mutex_lock(&first);
    mutex_unlock(&first);
    mutex_unlock(&second);
}

static KA_SITE void ka_sick_reader(void)
{
    static void __rcu *pointer;

    WARN_ON(rcu_dereference(pointer));
    ka_site_end();
}

static KA_SITE void ka_sick_sleep(void)
{
    preempt_disable();
    might_sleep();
    preempt_enable();
}

/* -------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*run)(void);
} ways[] = {
    { "oops", ka_sick_oops },
    { "fault", ka_sick_fault },
    { "irq", ka_sick_irq },
    { "bug", ka_sick_bug },
    { "panic", ka_sick_panic },
    { "warn", ka_sick_warn },
    { "refcount", ka_sick_count },
    { "list", ka_sick_list },
    { "page", ka_sick_page },
    { "atomic", ka_sick_atomic },
    { "lockup", ka_sick_lockup },
    { "stall", ka_sick_stall },
    { "hung", ka_sick_hung },
    { "hang", ka_sick_hang },
    { "deadlock", ka_sick_deadlock },
    { "rcu", ka_sick_reader },
    { "sleep", ka_sick_sleep },
};

/* A task that dies in here holds no lock. */
static ssize_t ka_sick_write(struct file *file, const char __user *from,
                             size_t n, loff_t *pos)
{
    char name[16] = "";

    if (copy_from_user(name, from, min(n, sizeof(name) - 1))) {
        return -EFAULT;
    }
    for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
        if (sysfs_streq(name, ways[i].name)) {
            ways[i].run();
            return n;
        }
    }
    return -EINVAL;
}

static const struct file_operations ka_sick_ops = {
    .owner = THIS_MODULE,
    .write = ka_sick_write,
};

static struct miscdevice ka_sick_device = {
    .minor = MISC_DYNAMIC_MINOR,
    .name = "ka_sick",
    .fops = &ka_sick_ops,
};

static int __init ka_sick_init(void)
{
    return misc_register(&ka_sick_device);
}

static void __exit ka_sick_exit(void)
{
    misc_deregister(&ka_sick_device);
}

KA_MODULE(ka_sick_init, ka_sick_exit, "makes the kernel sick");
