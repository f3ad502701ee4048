/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka_latter: gets the block that ka_former frees, frees it as well, and lets
 * ka_former use it.
 *
 *   ka_latter: same=1 block=ADDRESS     0: it did not get that block
 */
#include "ka_former.h"

#include <linux/init.h>
#include <linux/preempt.h>

KA_SITE_RETURNS(void *, ka_latter_take, (void), kzalloc(190, GFP_ATOMIC))
KA_SITE_DOES(ka_latter_give, (void *p), kfree(p))

static int __init ka_latter_init(void)
{
    void *freed, *got;

    preempt_disable();
    freed = ka_former_free();
    got = ka_latter_take();
    ka_latter_give(got);
    ka_former_use();
    preempt_enable();
    pr_info("ka_latter: same=%d block=%px\n", got == freed, freed);
    return 0;
}

static void __exit ka_latter_exit(void)
{
}

KA_MODULE(ka_latter_init, ka_latter_exit, "is the last owner of a block");
