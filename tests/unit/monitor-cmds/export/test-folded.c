/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Folded stacks: order, sums, and that no name makes a second record. */
#include "tests/lib/test-main.h"
#include "tests/lib/export-world.h"

#include <string.h>

/* (owned) The lines that are no comments. */
static char *records(const McHeapProfile *p, McFrames frames, McTopId value)
{
    const McExport e = { .profile = p, .frames = frames, .value = value };
    g_autofree char *text = export_bytes(MC_EXPORT_FOLDED, &e, NULL);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    GString *s = g_string_new(NULL);

    for (unsigned i = 0; lines[i]; i++) {
        if (*lines[i] && *lines[i] != '#') {
            g_string_append_printf(s, "%s\n", lines[i]);
        }
    }
    return g_string_free(s, FALSE);
}

static void assert_records(const McHeapProfile *p, McFrames frames,
                           McTopId value, const char *expected)
{
    g_autofree char *got = records(p, frames, value);

    g_assert_cmpstr(got, ==, expected);
}

PROFILE_TEST(the_root_comes_first, "/folded/root-first")
{
    export_stack(p, "leaf+0x10 middle+0x20[ext4] root+0x30", 4096, 2);
    assert_records(p, MC_FRAMES_FUNCTION, MC_TOP_live,
                   "root;middle [ext4];leaf 4096\n");
    assert_records(p, MC_FRAMES_OFFSET, MC_TOP_blocks,
                   "root+0x30;middle+0x20 [ext4];leaf+0x10 2\n");
}

PROFILE_TEST(equal_lines_are_added_up, "/folded/equal-lines")
{
    export_stack(p, "b+0x10 a+0x10", 64, 1);
    export_stack(p, "b+0x20 a+0x10", 32, 1);
    export_stack(p, "", 16, 1);
    assert_records(p, MC_FRAMES_FUNCTION, MC_TOP_live,
                   "[no backtrace] 16\na;b 96\n");
    assert_records(p, MC_FRAMES_OFFSET, MC_TOP_live,
                   "[no backtrace] 16\na+0x10;b+0x10 64\na+0x10;b+0x20 32\n");
}

PROFILE_TEST(recursion_stays_in_the_stack, "/folded/recursion")
{
    export_stack(p, "f+0x1 f+0x1 a+0x2", 8, 1);
    assert_records(p, MC_FRAMES_FUNCTION, MC_TOP_live, "a;f;f 8\n");
}

PROFILE_TEST(what_is_not_positive_is_left_out_and_counted,
             "/folded/not-positive")
{
    const McExport e = { .profile = p, .diff = true };
    g_autofree char *text = NULL;

    export_stack(p, "a+0x1", 64, 1);
    export_stack(p, "b+0x1", 0, 0);
    export_stack(p, "c+0x1", -48, -1);
    export_stack(p, "d+0x1", -16, -1);
    assert_records(p, MC_FRAMES_FUNCTION, MC_TOP_live, "a 64\n");
    text = export_bytes(MC_EXPORT_FOLDED, &e, NULL);
    g_assert_nonnull(strstr(text, "# [left out, because they are negative: 2 "
                            "stacks, their sum is -64]\n"));
}

/* Readers take "<anything> <digits>" for a stack. */
PROFILE_TEST(no_comment_is_a_stack, "/folded/comments")
{
    const McExport e = { .profile = p };
    g_autofree char *text = NULL;
    g_auto(GStrv) lines = NULL;

    mc_heap_profile_note(p, "as of 12345");
    mc_heap_profile_set_banner(p, "Linux version 6");
    text = export_bytes(MC_EXPORT_FOLDED, &e, NULL);
    g_assert_nonnull(strstr(text, "# [as of 12345]\n"));
    lines = g_strsplit(text, "\n", -1);
    for (unsigned i = 0; lines[i]; i++) {
        size_t len = strlen(lines[i]);

        g_assert_true(!len || lines[i][len - 1] == ']');
    }
}

TEST(hostile_names_are_one_record_each, "/folded/hostile-names")
{
    unsigned n, lines = 0;
    g_autoptr(McHeapProfile) p = export_hostile(&n);
    g_autofree char *text = records(p, MC_FRAMES_OFFSET, MC_TOP_live);
    g_auto(GStrv) line = g_strsplit(text, "\n", -1);

    for (; line[lines] && *line[lines]; lines++) {
        bool is_first = g_str_has_prefix(line[lines], "root+0x1;");

        g_assert_true(g_str_has_suffix(line[lines], "] 64"));
        g_assert_true(is_first || !strchr(line[lines], ';'));
        g_assert_true(g_str_is_ascii(line[lines]));
    }
    g_assert_cmpuint(lines, ==, n);
}
