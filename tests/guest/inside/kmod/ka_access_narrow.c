/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka_access: more accesses that must be reported although the function is one
 * of those whose accesses are explained or not looked at: each row of ka's
 * table of functions has a case. See ka_access_tables.c for the others.
 */
#include <linux/fs.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/namei.h>
#include <linux/shrinker.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/version.h>
#include <linux/wait.h>

#include "ka_access.h"

/* ---- strings ------------------------------------------------------------- */

KA_CASE(strncmp)
{
    char *p = ka_freed_text(__func__, "r1", "freed text");
    int n = p ? strncmp(p, "freed text", ka_hidden(9)) : 0;

    barrier_data(&n);
    return p ? 0 : -ENOMEM;
}

KA_CASE(strrchr)
{
    char *p = ka_freed_text(__func__, "r1", "freed text"), *found;

    found = p ? strrchr(p, 'x') : NULL;
    barrier_data(&found);
    return p ? 0 : -ENOMEM;
}

/* ---- names of files ------------------------------------------------------ */

/* Follow a symbolic link of tmpfs whose text is freed. */
static int follow(struct inode *link, const char *path)
{
    char *text = link->i_link;
    struct path found;
    int error;

    link->i_link = ka_freed_text("ka_case_link_name", "r1", "null");
    error = link->i_link ? kern_path(path, LOOKUP_FOLLOW, &found) : -ENOMEM;
    link->i_link = text;
    if (!error) {
        path_put(&found);
    }
    return error;
}

/* The script access.sh makes a symbolic link. To follow it, the kernel compares
 * its last part, "null", with names of directory entries. */
KA_CASE(link_name)
{
    struct path link, target;
    int error = kern_path("/dev/ka_link", 0, &link);

    if (error) {
        return error;
    }
    error = kern_path("/dev/null", 0, &target);
    if (!error) {
        error = link.dentry->d_inode->i_link ?
                follow(link.dentry->d_inode, "/dev/ka_link") : -ENODATA;
        path_put(&target);
    }
    path_put(&link);
    ka_site_end();
    return error;
}

/* ---- helpers that allocators call, too ----------------------------------- */

/* An object that is all 0, and freed; its address at SAFE. */
static void *freed_zeros(const char *site, const char *how)
{
    return ka_freed_text(site, how, "");
}

KA_CASE(list_add)
{
    struct list_head *head = ka_access_take(ka_own), node;
    u8 *p = (u8 *)head;

    if (!p) {
        return -ENOMEM;
    }
    head = (struct list_head *)(p + KA_SAFE);
    INIT_LIST_HEAD(head);
    ka_truth(__func__, KA_UAF, "r8", head, p, KA_OBJECT);
    ka_access_give(ka_own, p);
    list_add(&node, head);
    ka_site_end();
    return 0;
}

KA_CASE(llist_add)
{
    struct llist_head *head = freed_zeros(__func__, "r8");
    struct llist_node node;

    if (head) {
        llist_add(&node, head);
    }
    ka_site_end();
    return head ? 0 : -ENOMEM;
}

KA_CASE(spin_lock)
{
    spinlock_t *lock = freed_zeros(__func__, "w4");

    if (lock) {
        spin_lock(lock);
        spin_unlock(lock);
    }
    ka_site_end();
    return lock ? 0 : -ENOMEM;
}

KA_CASE(init_waitqueue)
{
    wait_queue_head_t *head = freed_zeros(__func__, "w");

    if (head) {
        init_waitqueue_head(head);
    }
    ka_site_end();
    return head ? 0 : -ENOMEM;
}

KA_CASE(init_mutex)
{
    struct mutex *mutex = freed_zeros(__func__, "w");

    if (mutex) {
        mutex_init(mutex);
    }
    ka_site_end();
    return mutex ? 0 : -ENOMEM;
}

/* ---- memory as a range --------------------------------------------------- */

KA_CASE(copy_page)
{
    void *from = ka_access_alloc(PAGE_SIZE), *to = ka_access_alloc(PAGE_SIZE);

    if (from && to) {
        ka_truth(__func__, KA_UAF, "r4096", from, from, PAGE_SIZE);
        ka_access_free(from);
        copy_page(to, from);
        from = NULL;
    }
    ka_access_free(from);
    ka_access_free(to);
    return to ? 0 : -ENOMEM;
}

KA_CASE(clear_page)
{
    const size_t size = PAGE_SIZE - 10;
    void *p = ka_access_alloc(size);
    bool aligned = PAGE_ALIGNED(p);

    if (!p) {
        return -ENOMEM;
    }
    if (aligned) {
        ka_truth(__func__, KA_OOB, "w4096", p, p, size);
        clear_page(p);
    }
    ka_access_free(p);
    return aligned ? 0 : -EINVAL;
}

#if defined(CONFIG_X86_64) && defined(CONFIG_ARCH_HAS_UACCESS_FLUSHCACHE)
KA_CASE(memcpy_flush)
{
    u8 *from = ka_access_alloc(120), *to = ka_access_alloc(115);

    if (from && to) {
        ka_truth(__func__, KA_OOB, "w120", to, to, 115);
        memcpy_flushcache(to, from, ka_hidden(120));
    }
    ka_access_free(from);
    ka_access_free(to);
    return from && to ? 0 : -ENOMEM;
}
#endif

/* ---- any memory ---------------------------------------------------------- */

/* A store of the function whose loads may be from anywhere. */
KA_CASE(nofault_store)
{
    static u64 number;
    void *p = freed_zeros(__func__, "w8");
    long error = p ? copy_from_kernel_nofault(p, &number, sizeof(number)) : 0;

    ka_site_end();
    return p ? error : -ENOMEM;
}

/* ---- shrinkers ----------------------------------------------------------- */

/* The page allocator can be above them in the stack. */
static u8 *stale;

static KA_SITE unsigned long ka_site_shrinker(struct shrinker *unused,
                                              struct shrink_control *control)
{
    if (stale) {
        READ_ONCE(*stale);
    }
    return 0;
}

static int drop_caches(void)
{
    struct file *file = filp_open("/proc/sys/vm/drop_caches", O_WRONLY, 0);
    loff_t at = 0;
    ssize_t n;

    if (IS_ERR(file)) {
        return PTR_ERR(file);
    }
    stale = ka_freed_text("ka_site_shrinker", "r1", "x");
    n = kernel_write(file, "2", 1, &at);
    stale = NULL;
    filp_close(file, NULL);
    return n == 1 ? 0 : -EIO;
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
KA_CASE(shrinker)
{
    struct shrinker *shrinker = shrinker_alloc(0, "ka_access");
    int error;

    if (!shrinker) {
        return -ENOMEM;
    }
    shrinker->count_objects = ka_site_shrinker;
    shrinker->scan_objects = ka_site_shrinker;
    shrinker_register(shrinker);
    error = drop_caches();
    shrinker_free(shrinker);
    return error;
}
#else
KA_CASE(shrinker)
{
    static struct shrinker shrinker = {
        .count_objects = ka_site_shrinker,
        .scan_objects = ka_site_shrinker,
        .seeks = DEFAULT_SEEKS,
    };
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 0, 0)
    int error = register_shrinker(&shrinker, "ka_access");
#else
    int error = register_shrinker(&shrinker);
#endif

    if (!error) {
        error = drop_caches();
        unregister_shrinker(&shrinker);
    }
    return error;
}
#endif

const struct ka_case ka_narrow_cases[] = {
    KA_ROW(strncmp), KA_ROW(strrchr), KA_ROW(link_name), KA_ROW(list_add),
    KA_ROW(llist_add), KA_ROW(spin_lock), KA_ROW(init_waitqueue),
    KA_ROW(init_mutex), KA_ROW(copy_page), KA_ROW(clear_page),
#if defined(CONFIG_X86_64) && defined(CONFIG_ARCH_HAS_UACCESS_FLUSHCACHE)
    KA_ROW(memcpy_flush),
#endif
    KA_ROW(nofault_store), KA_ROW(shrinker),
    {}
};
