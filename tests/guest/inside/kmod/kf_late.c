/* SPDX-License-Identifier: GPL-2.0-or-later */
/* kf_late: its memory is freed some time after it is unloaded: no leak. */
#include <linux/rcupdate.h>

#include "ka_kmod.h"

struct late {
    struct rcu_head rcu;
    int value;
};

static struct late *late[2];

static int __init kf_late_init(void)
{
    int i;

    for (i = 0; i < 2; i++)
        late[i] = kzalloc(sizeof(*late[i]), GFP_KERNEL);
    return 0;
}

static void __exit kf_late_exit(void)
{
    int i;

    for (i = 0; i < 2; i++)
        if (late[i])
            kfree_rcu(late[i], rcu);
}

KA_MODULE(kf_late_init, kf_late_exit, "ka test: frees after the unload");
