/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ka_triple: ends an x86-64 guest by a triple fault: a breakpoint without a
 * table of interrupt handlers. The kernel says nothing and is not asked. */
#include <linux/irqflags.h>

#include "ka_kmod.h"

static int __init ka_triple_init(void)
{
    static const struct {
        u16 limit;
        u64 base;
    } __packed none;

    local_irq_disable();
    asm volatile("lidt %0; int3" : : "m"(none));
    return -EIO;
}

KA_MODULE_STAYS(ka_triple_init, "a triple fault");
