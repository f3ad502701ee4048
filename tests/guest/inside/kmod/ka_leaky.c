/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka_leaky: leaves blocks behind when it is unloaded, or not, as it is told.
 *
 *   insmod ka_leaky.ko plant=0x2d
 *
 * Each bit of @plant is a case. It prints that it is loaded, and each block
 * that it leaves:
 *
 *   ka_leaky: loaded
 *   ka_leaky: SITE=ADDRESS
 */
#include <linux/init.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/vmalloc.h>

#include "ka_kmod.h"

static unsigned int plant;
module_param(plant, uint, 0444);
MODULE_PARM_DESC(plant, "what to leave behind, a bit a case");
static unsigned long release;
module_param(release, ulong, 0444);
MODULE_PARM_DESC(release, "free that block, which was left behind before");

enum {
    LEAVE_INIT = 1 << 0,        /* by init code */
    LEAVE_CORE = 1 << 1,        /* nine times by the same code */
    LEAVE_EXIT = 1 << 2,        /* by exit code */
    LEAVE_OBJECT = 1 << 3,      /* of a cache of the kernel's */
    LEAVE_VMALLOC = 1 << 4,
    LEAVE_PERCPU = 1 << 5,
    LEAVE_LIBRARY = 1 << 6,     /* by a function of the kernel's */
};

#define BYTES 700
#define TIMES 9

struct queued {
    struct rcu_head rcu;
    char fill[BYTES];
};

static struct queued *queued;
static void *kept[4];
static void __percpu *kept_percpu;

static void say(const char *site, const void *p)
{
    pr_info("ka_leaky: %s=%px\n", site, p);
}

static __init KA_SITE void *ka_leaky_init_site(void)
{
    void *p = kmalloc(BYTES, GFP_KERNEL);

    ka_site_end();
    return p;
}

KA_SITE_RETURNS(void *, ka_leaky_core_site, (void), kmalloc(BYTES, GFP_KERNEL))

static __exit KA_SITE void *ka_leaky_exit_site(void)
{
    void *p = kmalloc(BYTES, GFP_KERNEL);

    ka_site_end();
    return p;
}

KA_SITE_RETURNS(void *, ka_leaky_object_site, (void), kmalloc(3, GFP_KERNEL))
KA_SITE_RETURNS(void *, ka_leaky_vmalloc_site, (void), vmalloc(3 * PAGE_SIZE))
KA_SITE_RETURNS(void __percpu *, ka_leaky_percpu_site, (void),
                __alloc_percpu(40, 8))
KA_SITE_RETURNS(char *, ka_leaky_library_site, (void),
                kasprintf(GFP_KERNEL, "left by %s", "a library"))

/* What is well: freed at exit, or queued to be. */
static int take_and_keep(void)
{
    queued = kmalloc(sizeof(*queued), GFP_KERNEL);
    kept[0] = ka_leaky_core_site();
    kept[1] = ka_leaky_object_site();
    kept[2] = ka_leaky_vmalloc_site();
    kept[3] = ka_leaky_library_site();
    kept_percpu = ka_leaky_percpu_site();
    return queued && kept[0] && kept[1] && kept[2] && kept[3] &&
           kept_percpu ? 0 : -ENOMEM;
}

static void give_back(void)
{
    kfree(kept[0]);
    kfree(kept[1]);
    vfree(kept[2]);
    kfree(kept[3]);
    free_percpu(kept_percpu);
    kfree_rcu(queued, rcu);
}

static void leave_behind(void)
{
    int i;

    for (i = 0; i < TIMES && (plant & LEAVE_CORE); i++) {
        say("ka_leaky_core_site", ka_leaky_core_site());
    }
    if (plant & LEAVE_OBJECT) {
        say("ka_leaky_object_site", ka_leaky_object_site());
    }
    if (plant & LEAVE_VMALLOC) {
        say("ka_leaky_vmalloc_site", ka_leaky_vmalloc_site());
    }
    if (plant & LEAVE_PERCPU) {
        say("ka_leaky_percpu_site",
            (const void __force *)ka_leaky_percpu_site());
    }
    if (plant & LEAVE_LIBRARY) {
        say("ka_leaky_library_site", ka_leaky_library_site());
    }
}

static int __init ka_leaky_init(void)
{
    pr_info("ka_leaky: loaded\n");
    if (plant & LEAVE_INIT) {
        say("ka_leaky_init_site", ka_leaky_init_site());
    }
    kfree((void *)release);
    leave_behind();
    return take_and_keep();
}

static void __exit ka_leaky_exit(void)
{
    if (plant & LEAVE_EXIT) {
        say("ka_leaky_exit_site", ka_leaky_exit_site());
    }
    give_back();
}

KA_MODULE(ka_leaky_init, ka_leaky_exit,
          "leaves blocks behind when it is unloaded");
