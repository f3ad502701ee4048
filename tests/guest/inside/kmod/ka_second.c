/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka_second: does nothing. Its functions lie where those of ka_first were.
 */
#include <linux/init.h>

#include "ka_kmod.h"


void ka_second_a(void);
void ka_second_b(void);
void ka_second_c(void);

KA_SITE void ka_second_a(void)
{
    printk("a\n");
    printk("a\n");
}

KA_SITE void ka_second_b(void)
{
    printk("b\n");
    printk("b\n");
    printk("b\n");
    printk("b\n");
}

KA_SITE void ka_second_c(void)
{
    printk("c\n");
    printk("c\n");
    printk("c\n");
    printk("c\n");
    printk("c\n");
    printk("c\n");
    printk("c\n");
    printk("c\n");
    ka_site_end();
}

static int __init ka_second_init(void)
{
    return 0;
}

static void __exit ka_second_exit(void)
{
    ka_second_a();
    ka_second_b();
    ka_second_c();
}

KA_MODULE(ka_second_init, ka_second_exit, "takes the place of another module");
