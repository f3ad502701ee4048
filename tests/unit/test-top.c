/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tables of accounts: what their columns tell of blocks that are counted. */
#include "top.h"

static void count_block(McTopTable *t, uint64_t us)
{
    const KtBlock b = {
        .va = 0xffff888000001000, .requested = 64, .alloc_us = us,
        .state = KT_STATE_ALLOCATED,
    };

    mc_top_count(t, &b, true);
}

static int64_t oldest(McTopTable *t)
{
    int64_t us = -1;

    g_assert_true(mc_top_value(t, &t->all, MC_TOP_oldest, &us));
    return us;
}

/* The time is taken first, then blocks are counted while the VM runs. */
static void newer_than_now(void)
{
    g_autoptr(KtTracer) tracer = kt_tracer_new(&(KtConfig) KT_CONFIG_DEFAULT,
                                               NULL);
    g_autoptr(McTopTable) t = mc_top_new(tracer, NULL, MC_BY_SIZE);

    t->all.now = 1000;
    count_block(t, 1005);
    g_assert_cmpint(oldest(t), ==, 0);
    count_block(t, 900);
    g_assert_cmpint(oldest(t), ==, 100);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/top/newer-than-now", newer_than_now);
    return g_test_run();
}
