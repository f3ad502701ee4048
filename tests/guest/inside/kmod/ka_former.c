/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka_former: keeps a pointer to a block that it has freed, and uses it when
 * ka_latter calls ka_former_use(): the last owner of the block is innocent.
 */
#include "ka_former.h"

#include <linux/init.h>

static void *kept;

KA_SITE_RETURNS(void *, ka_former_take, (void), kzalloc(180, GFP_KERNEL))
KA_SITE_DOES(ka_former_give, (void *p), kfree(p))
KA_SITE_RETURNS(int, ka_former_read, (void), READ_ONCE(((int *)kept)[3]))
KA_SITE_DOES(ka_former_write, (void), WRITE_ONCE(((int *)kept)[5], 0x41))

void *ka_former_free(void)
{
    ka_former_give(kept);
    return kept;
}
EXPORT_SYMBOL_GPL(ka_former_free);

void ka_former_use(void)
{
    ka_former_read();
    ka_former_write();
}
EXPORT_SYMBOL_GPL(ka_former_use);

static int __init ka_former_init(void)
{
    kept = ka_former_take();
    return kept ? 0 : -ENOMEM;
}

static void __exit ka_former_exit(void)
{
}

KA_MODULE(ka_former_init, ka_former_exit, "uses a block that it has freed");
