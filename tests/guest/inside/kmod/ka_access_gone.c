/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka_access_gone: allocates an object and frees it when it is loaded. The case
 * "of_gone" of ka_access reads it, after this module was unloaded.
 */
#include "ka_access_lend.h"
#include "ka_kmod.h"

KA_SITE_RETURNS(void *, ka_gone_take, (void),
                kmem_cache_alloc(ka_access_cache(), GFP_KERNEL))
KA_SITE_DOES(ka_gone_give, (void *p), kmem_cache_free(ka_access_cache(), p))

static int __init ka_gone_init(void)
{
    void *p = ka_gone_take();

    if (!p) {
        return -ENOMEM;
    }
    ka_access_lend(p);
    ka_gone_give(p);
    return 0;
}

static void __exit ka_gone_exit(void)
{
}

KA_MODULE(ka_gone_init, ka_gone_exit, "frees an object that ka_access reads");
