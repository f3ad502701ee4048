/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kf_swallow: init returns 0 though a part failed, and the module dies when it
 * is unloaded, as in Bluetooth's cmtp_init_sockets().
 */
#include <linux/list.h>

#include "ka_kmod.h"

static LIST_HEAD(parts);

struct part {
    struct list_head node;
    int value;
};

static KA_SITE int kf_add_part(void)
{
    struct part *p = kmalloc(sizeof(*p), GFP_KERNEL);

    if (!p)
        return -ENOMEM;
    list_add(&p->node, &parts);
    return 0;
}

static int __init kf_swallow_init(void)
{
    kf_add_part();      /* the error: its result is ignored */
    return 0;
}

static void __exit kf_swallow_exit(void)
{
    BUG_ON(list_empty(&parts));
    kfree(list_first_entry(&parts, struct part, node));
}

KA_MODULE(kf_swallow_init, kf_swallow_exit,
          "ka test: an error that init swallows");
