/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The queue of the mark phase: each number is popped once, in order. */
#include "tests/lib/test-main.h"
#include "kalloc-tracer/leak/mark-internal.h"

#include <glib.h>

/* Pop all numbers, and check that they come in groups and in order. */
static void take_all(KtMarkQueue *g, bool *in, unsigned n)
{
    uint32_t first, last = 0;
    bool turned = false;
    uint64_t bits;

    for (unsigned i = 0; (bits = kt_mark_queue_pop(g, &first)); i++) {
        g_assert_cmpuint(first % KT_MARK_QUEUE_GROUP, ==, 0);
        if (i && first < last) {
            g_assert_false(turned);
            turned = true;
        }
        last = first;
        for (unsigned j = 0; j < KT_MARK_QUEUE_GROUP; j++) {
            bool has = bits >> j & 1;

            g_assert_true(!has || first + j < n);
            if (first + j < n) {
                g_assert_cmpint(has, ==, in[first + j]);
                in[first + j] = false;
            }
        }
    }
    for (unsigned i = 0; i < n; i++) {
        g_assert_false(in[i]);
    }
}

TEST(test_all, "/scan-grey/all")
{
    static const unsigned sizes[] = { 1, 63, 64, 65, 4095, 4096, 4097, 262143,
                                      262144, 300000 };

    for (unsigned seed = 0; seed < G_N_ELEMENTS(sizes) * 4; seed++) {
        unsigned n = sizes[seed / 4], some = seed % 4 * 50;
        g_autoptr(GRand) r = g_rand_new_with_seed(seed);
        g_autofree bool *in = g_new0(bool, n);
        uint32_t first;
        KtMarkQueue g;

        kt_mark_queue_init(&g, n);
        g_assert_cmpuint(kt_mark_queue_pop(&g, &first), ==, 0);
        for (unsigned round = 0; round < 3; round++) {
            for (unsigned i = 0; i < some; i++) {
                uint32_t number = i ? (uint32_t)g_rand_int_range(r, 0, n) :
                                      n - 1;

                kt_mark_queue_add(&g, number);
                in[number] = true;
            }
            take_all(&g, in, n);
        }
        kt_mark_queue_deinit(&g);
    }
}

/* A group that got new numbers is popped again at once. */
TEST(test_stays_near, "/scan-grey/stays-near")
{
    static const uint32_t turn[] = { 700, 701, 5000, 70000, 3 };
    uint32_t first;
    KtMarkQueue g;

    kt_mark_queue_init(&g, 100000);
    for (unsigned i = 0; i < G_N_ELEMENTS(turn); i++) {
        if (i != 1) {
            kt_mark_queue_add(&g, turn[i]);
        }
    }
    g.group = 100 / KT_MARK_QUEUE_GROUP;
    for (unsigned i = 0; i < G_N_ELEMENTS(turn); i++) {
        g_assert_cmphex(kt_mark_queue_pop(&g, &first), ==,
                        1ull << turn[i] % KT_MARK_QUEUE_GROUP);
        g_assert_cmpuint(first, ==, turn[i] & -KT_MARK_QUEUE_GROUP);
        if (!i) {
            kt_mark_queue_add(&g, turn[1]);
        }
    }
    g_assert_cmpuint(kt_mark_queue_pop(&g, &first), ==, 0);
    kt_mark_queue_deinit(&g);
}
