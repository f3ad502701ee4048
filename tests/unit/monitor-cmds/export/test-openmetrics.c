/* SPDX-License-Identifier: GPL-2.0-or-later */
/* OpenMetrics: one sample a cache, whatever its name; and none is left out. */
#include "tests/lib/test-main.h"
#include "tests/lib/export-world.h"

#include <string.h>

static void add_cache(McHeapProfile *p, const char *name, int64_t live)
{
    unsigned id = mc_heap_profile_label(p, name);

    mc_profile_set(mc_heap_profile_stack(p, &id, 1), MC_TOP_live, live);
}

/* (owned) The samples of live bytes. */
static char *samples(const McHeapProfile *p)
{
    const McExport e = { .profile = p };
    g_autofree char *text = export_bytes(MC_EXPORT_OPENMETRICS, &e, NULL);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    GString *s = g_string_new(NULL);

    g_assert_true(g_str_has_suffix(text, "\n# EOF\n"));
    for (unsigned i = 0; lines[i]; i++) {
        if (g_str_has_prefix(lines[i], "ka_live_bytes{")) {
            g_string_append_printf(s, "%s\n", lines[i]);
        }
    }
    return g_string_free(s, FALSE);
}

static unsigned count_lines(const char *text)
{
    unsigned n = 0;

    for (; *text; text++) {
        n += *text == '\n';
    }
    return n;
}

PROFILE_TEST(caches_of_one_name_are_added_up, "/openmetrics/one-name")
{
    g_autofree char *text = NULL;

    add_cache(p, "dentry", 64);
    add_cache(p, "[vmalloc]", 32);
    add_cache(p, "dentry", 8);
    text = samples(p);
    g_assert_cmpstr(text, ==, "ka_live_bytes{cache=\"dentry\"} 72\n"
                    "ka_live_bytes{cache=\"[vmalloc]\"} 32\n");
}

PROFILE_TEST(what_is_beyond_the_limit_is_one_cache, "/openmetrics/limit")
{
    g_autofree char *text = NULL;

    for (unsigned i = 0; i < 250; i++) {
        g_autofree char *name = g_strdup_printf("cache-%u", i);

        add_cache(p, name, 2);
    }
    text = samples(p);
    g_assert_cmpuint(count_lines(text), ==, 201);
    g_assert_true(g_str_has_suffix(text,
                                   "ka_live_bytes{cache=\"(other)\"} 100\n"));
}

TEST(hostile_names_are_one_sample_each, "/openmetrics/hostile-names")
{
    static const char *const names[] = {
        "a\"} 1\nka_live_bytes{cache=\"b", "\\", "\"", "x\\", "\xff\xfe",
        "# EOF", "<b>", "(other)",
    };
    g_autoptr(McHeapProfile) p = mc_heap_profile_new();
    g_autofree char *huge = g_strnfill(4096, '"');
    g_autofree char *text = NULL;

    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        add_cache(p, names[i], 1);
    }
    add_cache(p, huge, 1);
    text = samples(p);
    g_assert_cmpuint(count_lines(text), ==, G_N_ELEMENTS(names) + 1);
    g_assert_nonnull(strstr(text, "{cache=\"a\\\"}\\\\x201\\\\x0aka_live_bytes"
                            "{cache=\\\"b\"} 1\n"));
    g_assert_nonnull(strstr(text, "{cache=\"\\\\\"} 1\n"));
    g_assert_true(g_str_is_ascii(text));
}
