/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka_life: allocates in each of a module's sections: in its init section,
 * which is gone when it has been loaded, in its core, and in its exit
 * section. What it allocated is printed, and freed when it is unloaded:
 *
 *   ka_life: SITE=ADDRESS
 *   ka_life is at pfn=NUMBER phys=ADDRESS page=ADDRESS
 *
 * The second line is about the block that its core allocated.
 */
#include <linux/init.h>
#include <linux/io.h>
#include <linux/mm.h>

#include "ka_kmod.h"

/* From a slab of its own size, so that addresses come again. */
#define BYTES 700

static void *from_init, *from_core;

static __init KA_SITE void *ka_life_site_init(void)
{
    void *p = kmalloc(BYTES, GFP_KERNEL);

    ka_site_end();
    return p;
}

KA_SITE_RETURNS(void *, ka_life_site_core, (void), kmalloc(BYTES, GFP_KERNEL))
KA_SITE_DOES(ka_life_site_free, (void *p), kfree(p))

static __exit KA_SITE void *ka_life_site_exit(void)
{
    void *p = kmalloc(BYTES, GFP_KERNEL);

    ka_site_end();
    return p;
}

static void say(const char *site, const void *p)
{
    pr_info("ka_life: %s=%px\n", site, p);
}

static void say_place(const void *p)
{
    const struct page *page = virt_to_page(p);

    pr_info("ka_life is at pfn=%lx phys=%llx page=%px\n", page_to_pfn(page),
            (u64)virt_to_phys((void *)p), page);
}

static int __init ka_life_init(void)
{
    from_init = ka_life_site_init();
    say("ka_life_site_init", from_init);
    from_core = ka_life_site_core();
    say("ka_life_site_core", from_core);
    say_place(from_core);
    return from_init && from_core ? 0 : -ENOMEM;
}

static void __exit ka_life_exit(void)
{
    void *p = ka_life_site_exit();

    say("ka_life_site_exit", p);
    ka_life_site_free(p);
    ka_life_site_free(from_core);
    ka_life_site_free(from_init);
    ka_site_end();
}

KA_MODULE(ka_life_init, ka_life_exit, "allocates in init, core and exit code");
