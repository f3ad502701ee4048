/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Task filter: names, and descendants of a process in a made-up guest whose
 * tasks are three words each: tgid, real_parent, start_time.
 */
#include <string.h>

#include "kalloc-tracer/conditions/task-filter.h"
#include "tests/lib/test-main.h"

#define BASE 0xffff888000000000ull
#define TASK(i) (BASE + (i) * 24)
#define N_TASKS 80

static uint64_t memory[N_TASKS][3];

static bool read_memory(void *opaque, uint64_t va, void *buf, size_t len)
{
    if (va < BASE || va - BASE + len > sizeof(memory)) {
        return false;
    }
    memcpy(buf, (char *)memory + (va - BASE), len);
    return true;
}

static const KtTaskLayout layout = { .tgid = 0, .real_parent = 8, .start = 16 };
static const KtTaskReader reader = { &layout, read_memory, NULL };

static void set_task(unsigned i, uint32_t tgid, unsigned parent, uint64_t start)
{
    memory[i][0] = tgid;
    memory[i][1] = TASK(parent);
    memory[i][2] = start;
}

/* 0 is swapper, 1 init, 2 the shell (process 123), 3 and 4 descend from it, 5
 * does not. */
static void make_tasks(void)
{
    set_task(0, 0, 0, 1);
    set_task(1, 1, 0, 2);
    set_task(2, 123, 1, 3);
    set_task(3, 124, 2, 4);
    set_task(4, 125, 3, 5);
    set_task(5, 77, 1, 6);
}

TEST(families, "/task-filter/families")
{
    g_autoptr(KtTaskFilter) f = kt_task_filter_new();
    static const bool is_child[] = { false, false, true, true, true, false };
    int i = kt_task_filter_add_process(f, 123);

    make_tasks();
    g_assert_true(kt_task_filter_has_processes(f));
    for (unsigned t = 0; t < G_N_ELEMENTS(is_child); t++) {
        g_assert_cmpint(kt_task_filter_child(f, i, &reader, TASK(t)), ==,
                        is_child[t] ? KT_YES : KT_NO);
    }
    g_assert_cmpuint(kt_task_filter_n_marks(f), ==, 3);
}

/* A daemon was marked when it was forked; init is its parent now. Another task
 * at the same address is not marked. */
TEST(daemons, "/task-filter/daemons")
{
    g_autoptr(KtTaskFilter) f = kt_task_filter_new();
    int i = kt_task_filter_add_process(f, 123);

    make_tasks();
    kt_task_filter_forked(f, &reader, TASK(3), TASK(4));
    kt_task_filter_forked(f, &reader, TASK(5), TASK(1));
    set_task(4, 125, 1, 5);
    g_assert_cmpint(kt_task_filter_child(f, i, &reader, TASK(4)), ==, KT_YES);
    g_assert_cmpint(kt_task_filter_child(f, i, &reader, TASK(1)), ==, KT_NO);
    set_task(4, 125, 1, 9);
    g_assert_cmpint(kt_task_filter_child(f, i, &reader, TASK(4)), ==, KT_NO);
    set_task(3, 124, 1, 4);             /* its grandchild asks for the mark */
    set_task(6, 130, 3, 10);
    g_assert_cmpint(kt_task_filter_child(f, i, &reader, TASK(6)), ==, KT_YES);
}

TEST(unreadable, "/task-filter/unreadable")
{
    g_autoptr(KtTaskFilter) f = kt_task_filter_new();
    const KtTaskLayout none = { UINT32_MAX, UINT32_MAX, UINT32_MAX };
    const KtTaskReader blind = { &none, read_memory, NULL };
    int i = kt_task_filter_add_process(f, 123);

    make_tasks();
    memory[4][1] = 0x1234;
    g_assert_cmpint(kt_task_filter_child(f, i, &blind, TASK(2)), ==,
                    KT_UNKNOWN);
    g_assert_cmpint(kt_task_filter_child(f, i, &reader, TASK(4)), ==,
                    KT_UNKNOWN);
}

/* A guest can link tasks to a circle. */
TEST(circles, "/task-filter/circles")
{
    g_autoptr(KtTaskFilter) f = kt_task_filter_new();
    int i = kt_task_filter_add_process(f, 123);

    set_task(0, 5, 1, 1);
    set_task(1, 6, 0, 1);
    g_assert_cmpint(kt_task_filter_child(f, i, &reader, TASK(0)), ==, KT_NO);
}

TEST(names, "/task-filter/names")
{
    g_autoptr(KtTaskFilter) f = kt_task_filter_new();
    int ins = kt_task_filter_add_name(f, "ins*");
    int one = kt_task_filter_add_name(f, "k?orker/0");

    g_assert_true(kt_task_filter_name(f, ins, "insmod"));
    g_assert_false(kt_task_filter_name(f, ins, "rmmod"));
    g_assert_true(kt_task_filter_name(f, one, "kworker/0"));
    for (int i = 2; i < KT_TASK_FILTER_MAX; i++) {
        g_assert_cmpint(kt_task_filter_add_name(f, "x"), ==, i);
    }
    g_assert_cmpint(kt_task_filter_add_name(f, "x"), ==, -1);
    g_assert_false(kt_task_filter_has_processes(f));
}
