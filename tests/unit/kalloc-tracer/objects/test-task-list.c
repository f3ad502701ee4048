/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel's list of tasks, if it is damaged: the walk ends, says why, and
 * no task of the map is missing. The guest is that of a golden case.
 */
#include "kalloc-tracer/api/kt-tasks.h"
#include "tests/lib/events.h"
#include "tests/lib/test-main.h"

#include <string.h>

#define CASE KA_SOURCE_DIR "/tests/replay/cases/076-task/events"
#define IN_MAP 4u

typedef struct Guest {
    char *script;
    TestWorld *w;
} Guest;

static void guest_deinit(Guest *g)
{
    g_free(g->script);
    test_world_free(g->w);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Guest, guest_deinit)

static KtTasks *tasks_of(Guest *g, const char *damage)
{
    const McContext *ctx;

    g_assert_true(g_file_get_contents(CASE, &g->script, NULL, NULL));
    g->w = test_world_new(g->script);
    test_world_events(g->w, damage);
    ctx = test_world_context(g->w);
    return kt_tasks_new(&(KtObjects) { ctx->tracer, ctx->kernel, ctx->vm });
}

static unsigned count_in_map(const KtTasks *tasks)
{
    unsigned n = 0;

    for (unsigned i = 0; i < tasks->task->len; i++) {
        n += g_array_index(tasks->task, KtTask, i).in_map;
    }
    return n;
}

TEST(test_whole, "/task-list/whole")
{
    g_auto(Guest) g = { 0 };
    g_autoptr(KtTasks) tasks = tasks_of(&g, "");

    g_assert_null(tasks->why_no_list);
    g_assert_cmpuint(count_in_map(tasks), ==, IN_MAP);
    g_assert_cmpuint(tasks->only_list, ==, 1);
}

TEST(test_damaged, "/task-list/damaged")
{
    static const struct {
        const char *damage, *why;
    } row[] = {
        { "word va=ffff888000005020 value=ffff888000001120",
          "it leads back into itself" },
        { "word va=ffff888000005020 value=dead00000000",
          "it leads to unreadable memory" },
        { "word va=ffff888000005020 value=0",
          "it leads to unreadable memory" },
        /* a list of threads without its head */
        { "word va=ffff888000001230 value=ffff888000001130\n"
          "word va=ffff888000003010 value=ffff888000001130",
          "it leads back into itself" },
        { "word va=ffff888000001130 value=ffff888000001130\n"
          "word va=ffff888000003010 value=ffff888000001130",
          "it has no end" },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(row); i++) {
        g_auto(Guest) g = { 0 };
        g_autoptr(KtTasks) tasks = tasks_of(&g, row[i].damage);

        g_assert_cmpstr(tasks->why_no_list, ==, row[i].why);
        g_assert_cmpuint(count_in_map(tasks), ==, IN_MAP);
        g_assert_cmpuint(tasks->only_map, ==, 0);
    }
}
