/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/lib/test-main.h"

int test_main(int argc, char **argv, const TestCase *cases, size_t n)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < n; i++) {
        if (cases[i].fn) {
            g_test_add_func(cases[i].path, cases[i].fn);
        } else {
            g_test_add_data_func(cases[i].path, cases[i].data,
                                 cases[i].data_fn);
        }
    }
    return g_test_run();
}
