/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka_halt: the guest hangs while it shuts down. What calls reboot(2) sleeps for
 * ever in a notifier of this module; with spin=1 it loops instead.
 */
#include <linux/delay.h>
#include <linux/notifier.h>
#include <linux/reboot.h>

#include "ka_kmod.h"

static bool spin;
module_param(spin, bool, 0);

static int ka_halt_wait(struct notifier_block *nb, unsigned long action,
                        void *data)
{
    while (spin)
        cpu_relax();
    for (;;)
        msleep(1000);
    return NOTIFY_DONE;
}

static struct notifier_block halt_nb = { .notifier_call = ka_halt_wait };

static int __init ka_halt_init(void)
{
    return register_reboot_notifier(&halt_nb);
}

static void __exit ka_halt_exit(void)
{
    unregister_reboot_notifier(&halt_nb);
}

KA_MODULE(ka_halt_init, ka_halt_exit, "Hang while the guest shuts down");
