/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/lib/test-main.h"

typedef struct TestCase {
    const char *path;
    GTestFunc fn;
    GTestDataFunc data_fn;
    gconstpointer data;
} TestCase;

static GArray *cases;

void test_add(const char *path, GTestFunc fn, GTestDataFunc data_fn,
              gconstpointer data)
{
    const TestCase test = { g_intern_string(path), fn, data_fn, data };

    if (!cases) {
        cases = g_array_new(FALSE, FALSE, sizeof(TestCase));
    }
    g_array_append_val(cases, test);
}

int test_run(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < cases->len; i++) {
        const TestCase *test = &g_array_index(cases, TestCase, i);

        if (test->fn) {
            g_test_add_func(test->path, test->fn);
        } else {
            g_test_add_data_func(test->path, test->data, test->data_fn);
        }
    }
    return g_test_run();
}
