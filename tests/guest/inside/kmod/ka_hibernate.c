/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka_hibernate: blocks that are kept while the guest hibernates. The parameter
 * "go" takes:
 *
 *   some     frees half of the blocks
 *   again    frees one of these once more, which is an error; another one of
 *            its slab before, or SLUB would see that it is freed twice in a row
 *   rest     frees the others, and the area of vmalloc()
 *
 * Addresses are printed: ka_hibernate: first=ADDRESS again=ADDRESS
 */
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/vmalloc.h>

#include "ka_kmod.h"

#define N 100

static void *block[N];
static void *area;
static unsigned int again, before;      /* one of each half */

static KA_SITE void hibernate_take(void)
{
    static const unsigned int sizes[] = { 24, 100, 200, 700, 3000 };
    unsigned int i;

    for (i = 0; i < N; i++) {
        block[i] = kzalloc(sizes[i % ARRAY_SIZE(sizes)], GFP_KERNEL);
    }
    area = vmalloc(20000);
}

static bool choose(void)
{
    for (again = 0; again < N / 2; again++) {
        for (before = N / 2; before < N; before++) {
            if (block[again] && block[before] &&
                virt_to_head_page(block[again]) ==
                virt_to_head_page(block[before])) {
                return true;
            }
        }
    }
    return false;
}

static KA_SITE void hibernate_free(unsigned int from, unsigned int to)
{
    unsigned int i;

    for (i = from; i < to; i++) {
        kfree(block[i]);
    }
}

static int go(const char *what, const struct kernel_param *p)
{
    if (sysfs_streq(what, "some")) {
        hibernate_free(0, N / 2);
    } else if (sysfs_streq(what, "again")) {
        hibernate_free(before, before + 1);
        hibernate_free(again, again + 1);
    } else if (sysfs_streq(what, "rest")) {
        hibernate_free(N / 2, before);
        hibernate_free(before + 1, N);
        vfree(area);
    } else {
        return -EINVAL;
    }
    return 0;
}

static const struct kernel_param_ops ops = { .set = go };

module_param_cb(go, &ops, NULL, 0200);

static int __init hibernate_init(void)
{
    hibernate_take();
    if (!choose()) {
        return -EAGAIN;
    }
    pr_info("ka_hibernate: first=%px again=%px\n", block[0], block[again]);
    return 0;
}

static void __exit hibernate_exit(void)
{
}

KA_MODULE(hibernate_init, hibernate_exit,
          "blocks that are kept while the guest hibernates");
