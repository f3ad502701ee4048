/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tracer and the naive model agree on everything after random events. */
#include <glib.h>
#include <stdbool.h>

#include "tests/lib/naive-run.h"
#include "tests/lib/test-main.h"

TEST(agrees_with_the_naive_model, "/model/agrees-with-the-naive-model")
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(g_test_rand_int());

    for (unsigned round = 0; round < 100; round++) {
        unsigned n = 8 * g_rand_int_range(rand, 1, 2000);
        g_autofree uint8_t *data = g_malloc(n);
        bool calm = round % 3;

        for (unsigned i = 0; i < n; i++) {
            data[i] = g_rand_int(rand);
            /* No clearing and resetting all the time. */
            if (i % 8 == 0 && (calm || g_rand_int_range(rand, 0, 20))) {
                data[i] &= 0x7f;
            }
            /* Accesses. */
            if (i % 8 == 0 && !g_rand_int_range(rand, 0, 8)) {
                data[i] = 0xf9;
            }
        }
        if (round % 2) {
            data[0] = 0xfd;
            data[1] = 1;
        }
        naive_run(data, n, NAIVE_EVERY);
    }
}
