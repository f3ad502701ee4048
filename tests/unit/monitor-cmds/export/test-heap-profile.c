/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Heap profiles: how names are read, and that hostile ones stay one name. */
#include "tests/lib/export-world.h"
#include "tests/lib/test-main.h"
#include "monitor-cmds/export/export.h"

#include <string.h>

static const McProfileFrame *frame_of(McHeapProfile *p, uint64_t pc,
                                      const char *symbol)
{
    unsigned id = mc_heap_profile_frame(p, pc, symbol);

    return &g_array_index(p->frame, McProfileFrame, id);
}

static void check(const char *symbol, const char *function, const char *module,
                  uint64_t offset)
{
    g_autoptr(McHeapProfile) p = mc_heap_profile_new();
    const McProfileFrame *f = frame_of(p, 0xffffffff81000010, symbol);

    g_assert_cmpstr(f->function, ==, function);
    g_assert_cmpstr(f->module, ==, module);
    g_assert_cmpuint(f->offset, ==, offset);
    g_assert_true(f->named == (symbol && strcmp(function,
                                                "0xffffffff81000010")));
}

TEST(names_are_read_from_the_right, "/heap-profile/names-from-the-right")
{
    check("kmalloc+0x10", "kmalloc", NULL, 0x10);
    check("f+0x1f[ext4]", "f", "ext4", 0x1f);
    check("f+0x1[a]+0x2[b]", "f+0x1[a]", "b", 2);
    check("f[x]+0x1", "f[x]", NULL, 1);
    check("f+0x1[a[b]", "f", "a[b", 1);
    check("ffffffff81000010", "0xffffffff81000010", NULL, 0);
    check("+0x10", "0xffffffff81000010", NULL, 0);
    check("f+0x", "0xffffffff81000010", NULL, 0);
    check("f+0x10[m", "0xffffffff81000010", NULL, 0);
    check("", "0xffffffff81000010", NULL, 0);
    check(NULL, "0xffffffff81000010", NULL, 0);
}

PROFILE_TEST(frames_have_one_number, "/heap-profile/one-number-a-frame")
{
    unsigned a = mc_heap_profile_frame(p, 1, "a+0x1");

    g_assert_cmpuint(mc_heap_profile_frame(p, 1, "a+0x1"), ==, a);
    g_assert_cmpuint(mc_heap_profile_frame(p, 2, "a+0x1"), !=, a);
    /* the code at an address can change with modules */
    g_assert_cmpuint(mc_heap_profile_frame(p, 1, "b+0x1"), !=, a);
}

PROFILE_TEST(stacks_without_frames_say_so, "/heap-profile/no-frames")
{
    const McProfileStack *s = mc_heap_profile_stack(p, NULL, 0);
    unsigned id = g_array_index(p->path, unsigned, s->first);

    g_assert_cmpuint(s->n, ==, 1);
    g_assert_cmpstr(g_array_index(p->frame, McProfileFrame, id).function, ==,
                    "[no backtrace]");
}

static void assert_visible(const char *name)
{
    for (; *name; name++) {
        g_assert_true(*name > 0x20 && *name < 0x7f);
    }
}

TEST(hostile_names_stay_visible_and_short, "/heap-profile/hostile-names")
{
    static const char *const hostile[] = {
        "a\nb", "a b", "\xff\xfe", "<script>", "a\tb\r", "\xc0\x80",
    };
    g_autoptr(McHeapProfile) p = mc_heap_profile_new();
    g_autofree char *huge = g_strnfill(4096, '\n');
    g_autofree char *symbol = g_strconcat(huge, "+0x1[", huge, "]", NULL);
    const McProfileFrame *f = frame_of(p, 1, symbol);

    g_assert_cmpuint(strlen(f->function), <=, MC_PROFILE_NAME_MAX);
    g_assert_true(g_str_has_suffix(f->function, "..."));
    g_assert_cmpuint(strlen(f->module), <=, MC_PROFILE_NAME_MAX);
    assert_visible(f->function);
    assert_visible(f->module);
    for (unsigned i = 0; i < G_N_ELEMENTS(hostile); i++) {
        g_autofree char *text = g_strconcat(hostile[i], "+0x1", NULL);

        assert_visible(frame_of(p, 1, text)->function);
    }
}

PROFILE_TEST(notes_are_one_line, "/heap-profile/notes")
{
    mc_heap_profile_note(p, "from %s", "a\nb\x1b[2J");
    g_assert_cmpstr(p->note->pdata[0], ==, "from a\\x0ab\\x1b[2J");
    mc_heap_profile_set_banner(p, "Linux\n\xff");
    g_assert_cmpstr(p->banner, ==, "Linux\\x0a\\xff");
}

PROFILE_TEST(ranges_that_end_before_they_start_are_dropped,
             "/heap-profile/ranges")
{
    mc_heap_profile_range(p, "m", 2, 1);
    g_assert_cmpuint(p->range->len, ==, 0);
    mc_heap_profile_range(p, "m", 2, 2);
    g_assert_cmpuint(p->range->len, ==, 1);
}
