/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka_five: five leaks of five sizes, which look alike.
 *
 *   insmod ka_five.ko how=calls      five calls of kmalloc() in one function
 *   insmod ka_five.ko how=callers    five callers of one function, which
 *                                    calls kmalloc()
 */
#include <linux/init.h>
#include <linux/string.h>

#include "ka_kmod.h"

static char *how = "calls";
module_param(how, charp, 0444);
MODULE_PARM_DESC(how, "what the leaks have in common: calls or callers");

enum { SIZE = 1000 };

static KA_SITE void ka_five_calls(void)
{
    kmalloc(SIZE + 1, GFP_KERNEL);
    kmalloc(SIZE + 2, GFP_KERNEL);
    kmalloc(SIZE + 3, GFP_KERNEL);
    kmalloc(SIZE + 4, GFP_KERNEL);
    kmalloc(SIZE + 5, GFP_KERNEL);
    ka_site_end();
}

KA_SITE_DOES(ka_five_get, (size_t size), kmalloc(size, GFP_KERNEL))

#define CALLER(n)                               \
    static KA_SITE void ka_five_caller##n(void) \
    {                                           \
        ka_five_get(SIZE + n);                  \
        ka_site_end();                          \
    }

CALLER(1)
CALLER(2)
CALLER(3)
CALLER(4)
CALLER(5)

static void call_all(void)
{
    ka_five_caller1();
    ka_five_caller2();
    ka_five_caller3();
    ka_five_caller4();
    ka_five_caller5();
}

static int __init ka_five_init(void)
{
    if (!strcmp(how, "callers")) {
        call_all();
    } else {
        ka_five_calls();
    }
    return 0;
}

static void __exit ka_five_exit(void)
{
}

KA_MODULE(ka_five_init, ka_five_exit, "five leaks that look alike");
