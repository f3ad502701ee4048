/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The main() of a test program: a table of test cases. Single-threaded. */
#ifndef TEST_MAIN_H
#define TEST_MAIN_H

#include <glib.h>

/**
 * struct TestCase - a row of the table
 * @path: the name of the case in TAP output
 * @fn: the case, if it needs no data
 * @data_fn: the case, if it needs data
 * @data: (borrowed) the argument of @data_fn
 */
typedef struct TestCase {
    const char *path;
    GTestFunc fn;
    GTestDataFunc data_fn;
    gconstpointer data;
} TestCase;

/** test_main() - run the cases that the command line selects, in the order of
 *  the table. Returns: the exit code of the program. */
int test_main(int argc, char **argv, const TestCase *cases, size_t n);

#endif /* TEST_MAIN_H */
