/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The main() of a test program, and the list of its cases. A case registers
 * itself where it is defined:
 *
 *     TEST(frees_are_counted, "/budget/frees-are-counted")
 *     {
 *         ...
 *     }
 *
 *     static void reads(gconstpointer data)
 *     {
 *         ...
 *     }
 *
 *     TEST_WITH(reads, "/file/short", &short_file)
 *     TEST_WITH(reads, "/file/long", &long_file)
 *
 * A program that has more to do before or after its cases has a main() of its
 * own, which calls test_run(). Single-threaded.
 */
#ifndef TEST_MAIN_H
#define TEST_MAIN_H

#include <glib.h>

/**
 * test_add() - add a case after those that were added before
 * @path: the name of the case in TAP output
 * @fn: the case, if it needs no data
 * @data_fn: the case, if it needs data
 * @data: (borrowed) the argument of @data_fn
 */
void test_add(const char *path, GTestFunc fn, GTestDataFunc data_fn,
              gconstpointer data);

/** test_run() - run the cases that the command line selects, in the order in
 *  which they were added. Returns: the exit code of the program. */
int test_run(int argc, char **argv);

/* A function that runs before main(). Those of a file run in its order. */
#define TEST_REGISTER(name)                                     \
    static void __attribute__((constructor)) name(void)

/** TEST() - begin the definition of a case without data */
#define TEST(fn, path)                                          \
    static void fn(void);                                       \
    TEST_REGISTER(register_##fn)                                \
    {                                                           \
        test_add(path, fn, NULL, NULL);                         \
    }                                                           \
    static void fn(void)

/** TEST_IN() - begin the definition of a case that gets what @make returns.
 *  @holder: its type with a cleanup, as g_autoptr(Type); @param: the parameter
 *  of the case. A macro of the file stands for all but @fn and @path. */
#define TEST_IN(holder, param, make, fn, path)                  \
    static void fn(param);                                      \
    TEST(fn##_in, path)                                         \
    {                                                           \
        holder made_ = make;                                    \
                                                                \
        fn(made_);                                              \
    }                                                           \
    static void fn(param)

/** TEST_WITH() - add a case: a function that is defined above, and its data */
#define TEST_WITH(fn, path, data)                               \
    TEST_REGISTER(G_PASTE(register_at_, __LINE__))              \
    {                                                           \
        test_add(path, NULL, fn, data);                         \
    }

#endif /* TEST_MAIN_H */
