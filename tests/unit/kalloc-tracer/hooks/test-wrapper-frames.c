/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A backtrace begins at the caller of the outermost wrapper. */
#include "tests/lib/test-main.h"
#include "kalloc-tracer/hooks/hooks.h"

#include <string.h>

static const char map[] =
    "ffffffff81000000 T _stext\n"
    "ffffffff81000000 T _text\n"
    "ffffffff81001000 T kvrealloc_noprof\n"
    "ffffffff81001100 T vzalloc_noprof\n"
    "ffffffff81001200 T other\n"
    "ffffffff82000000 T _etext\n"
    "ffffffff82100000 R linux_banner\n";

#define OUTER   0xffffffff81001000ull
#define INNER   0xffffffff81001100ull
#define OTHER   0xffffffff81001250ull
#define BPF     0xffffffffc0001050ull

static KtHooks *hooks;
static GsKernel *kernel;

/* Return how many of @frames are dropped; @name: the outermost wrapper */
static unsigned dropped(const uint64_t *frames, unsigned n, const char *name)
{
    g_autoptr(KtHookTable) table = kt_hook_table_new();
    KtHookId wrapper = kt_hooks_wrapper(hooks, frames[0], false);
    unsigned skip = kt_wrapper_frames(hooks, kernel, &wrapper, false,
                                      frames, n);

    g_assert_cmpstr(wrapper.v ? kt_hook_table_name(table, wrapper) : NULL, ==,
                    name);
    return skip;
}

TEST(none, "/wrapper-frames/none")
{
    const uint64_t frames[] = { OTHER, INNER + 0x50, OTHER };

    g_assert_cmpuint(dropped(frames, 3, NULL), ==, 0);
}

TEST(the_outermost, "/wrapper-frames/the-outermost")
{
    const uint64_t frames[] = { INNER + 0x50, OUTER + 0x50, OTHER, OUTER + 9 };

    g_assert_cmpuint(dropped(frames, 4, "kvrealloc_noprof"), ==, 2);
    g_assert_cmpuint(dropped(frames, 2, "vzalloc_noprof"), ==, 1);
    g_assert_cmpuint(dropped(frames, 1, "vzalloc_noprof"), ==, 0);
}

/* A trampoline called the wrapper. */
TEST(behind_a_trampoline, "/wrapper-frames/behind-a-trampoline")
{
    const uint64_t frames[] = {
        INNER + 0x50, BPF, INNER + 9, OUTER + 0x50, BPF, OUTER + 5, OTHER,
    };

    g_assert_cmpuint(dropped(frames, 7, "kvrealloc_noprof"), ==, 6);
    g_assert_cmpuint(dropped(frames, 4, "vzalloc_noprof"), ==, 3);
    /* The true caller is not among the frames. */
    g_assert_cmpuint(dropped(frames, 3, "vzalloc_noprof"), ==, 1);
}

/* A function that a trampoline called jumped to the allocator. */
TEST(trampoline_first, "/wrapper-frames/trampoline-first")
{
    const uint64_t frames[] = { BPF, OTHER - 0x47, OUTER + 0x50, OTHER };

    g_assert_cmpuint(dropped(frames, 4, "kvrealloc_noprof"), ==, 3);
    g_assert_cmpuint(dropped(frames, 3, NULL), ==, 2);
    g_assert_cmpuint(dropped(frames, 2, NULL), ==, 0);
    g_assert_cmpuint(dropped(frames, 1, NULL), ==, 0);
}

/* The wrapper calls that function elsewhere: a frame as any other. */
TEST(a_true_caller, "/wrapper-frames/a-true-caller")
{
    const uint64_t inner[] = { INNER + 0x50, BPF, INNER + 0x11, OTHER };
    const uint64_t other[] = { INNER + 0x50, OTHER, OUTER + 9, OTHER };

    g_assert_cmpuint(dropped(inner, 4, "vzalloc_noprof"), ==, 1);
    g_assert_cmpuint(dropped(other, 4, "vzalloc_noprof"), ==, 1);
}

int main(int argc, char **argv)
{
    g_autoptr(KtHookTable) table = kt_hook_table_new();
    int failed;

    kernel = gs_kernel_new_from_data(map, strlen(map), "System.map", NULL);
    hooks = kt_hooks_resolve(table, kernel, 0);
    failed = test_run(argc, argv);
    kt_hooks_free(hooks);
    gs_kernel_free(kernel);
    return failed;
}
