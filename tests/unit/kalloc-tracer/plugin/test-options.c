/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The plugin's options are parsed to values. A wrong option is refused with
 * one line.
 */
#include "tests/lib/test-main.h"
#include "kalloc-tracer/plugin/options.h"

#include <glib.h>

static bool parse(KtOptions *o, const char *word, char **why)
{
    char *argv[] = { (char *)word };

    *why = NULL;
    return kt_options_parse(o, 1, argv, why);
}

TEST(defaults_hold, "/options/defaults-hold")
{
    g_autofree char *why = NULL;
    KtOptions o;

    g_assert_true(kt_options_parse(&o, 0, NULL, &why));
    g_assert_null(o.kernel);
    g_assert_null(o.journal);
    g_assert_cmpuint(o.history, ==, 256 * 1024 * 1024);
    g_assert_cmpuint(o.mem, ==, 0);
}

TEST(sizes_take_suffixes, "/options/sizes-take-suffixes")
{
    static const struct { const char *word; uint64_t bytes; } cases[] = {
        { "history=0", 0 }, { "history=4096", 4096 }, { "history=2k", 2048 },
        { "history=3M", 3u << 20 }, { "history=1G", 1u << 30 },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        char *why;
        KtOptions o;

        g_assert_true(parse(&o, cases[i].word, &why));
        g_assert_cmpuint(o.history, ==, cases[i].bytes);
    }
}

TEST(switches_are_on_or_off, "/options/switches-are-on-or-off")
{
    char *why;
    KtOptions o;

    g_assert_true(kt_options_parse(&o, 0, NULL, &why));
    g_assert_false(o.pages);
    g_assert_true(parse(&o, "pages=on", &why));
    g_assert_true(o.pages);
    g_assert_true(parse(&o, "pages=off", &why));
    g_assert_false(o.pages);
}

TEST(bad_words_get_one_line, "/options/bad-words-get-one-line")
{
    static const char *const words[] = {
        "", "=", "kernel", "kernel=", "kernal=x", "history=", "history=x",
        "history=-1", "history=1KB", "history=99999999999G", "a\nb=1",
        "pages=", "pages=yes", "pages=on ",
        "types=", "script=", "script-output=f", "script-module=m",
        "without=", "without=types+", "without=type", "without=symbol:",
        "access=", "access-rules=",
        "quarantine=", "quarantine=on",
        "report=", "report=json",
        "leak-scan=", "leak-scan=-1", "leak-scan=5s", "leak-scan=86401",
    };

    for (size_t i = 0; i < G_N_ELEMENTS(words); i++) {
        g_autofree char *why = NULL;
        KtOptions o;

        g_assert_false(parse(&o, words[i], &why));
        g_assert_nonnull(why);
        g_assert_null(strchr(why, '\n'));
    }
}

TEST(seconds_are_a_number, "/options/seconds-are-a-number")
{
    KtOptions o;
    char *why;

    g_assert_true(parse(&o, "leak-scan=600", &why));
    g_assert_cmpuint(o.leak_scan, ==, 600);
    g_assert_true(parse(&o, "leak-scan=0", &why));
    g_assert_cmpuint(o.leak_scan, ==, 0);
}

TEST(access_is_on_or_names_something,
     "/options/access-is-on-or-names-something")
{
    char *argv[] = { (char *)"profile=p", (char *)"kernel=k",
                     (char *)"access=on" };
    g_autofree char *excluded = NULL;
    KtOptions o;
    char *why;

    g_assert_true(kt_options_parse(&o, 0, NULL, &why));
    g_assert_null(o.access);
    g_assert_true(parse(&o, "report=kasan", &why));
    g_assert_cmpstr(o.report, ==, "kasan");
    g_assert_true(parse(&o, "access=on", &why));
    g_assert_cmpstr(o.access, ==, "on");
    g_assert_true(parse(&o, "access=cache:dentry", &why));
    g_assert_cmpstr(o.access, ==, "cache:dentry");
    g_assert_true(parse(&o, "access=module:x", &why));
    g_assert_cmpstr(o.access, ==, "module:x");
    g_assert_false(kt_options_parse(&o, 3, argv, &excluded));
    g_assert_nonnull(strstr(excluded, "'access' is for Linux only"));
}

TEST(quarantine_is_a_size, "/options/quarantine-is-a-size")
{
    KtOptions o;
    char *why;

    g_assert_true(kt_options_parse(&o, 0, NULL, &why));
    g_assert_cmpuint(o.quarantine, ==, 0);
    g_assert_true(parse(&o, "quarantine=16M", &why));
    g_assert_cmpuint(o.quarantine, ==, 16 << 20);
}

TEST(hidden_sources_are_words, "/options/hidden-sources-are-words")
{
    KtOptions o;
    char *why;

    g_assert_true(parse(&o, "without=types+symbol:vfree_atomic", &why));
    g_assert_cmpstr(o.without, ==, "types+symbol:vfree_atomic");
    g_assert_true(parse(&o, "without=data+percpu+unwind", &why));
}

/* A profile is of the kernel given, and Linux's page allocator is no part of
 * it. */
TEST(a_profile_needs_a_kernel, "/options/a-profile-needs-a-kernel")
{
    char *argv[] = { (char *)"profile=p", (char *)"kernel=k",
                     (char *)"pages=on" };
    g_autofree char *alone = NULL, *pages = NULL;
    KtOptions o;

    g_assert_false(kt_options_parse(&o, 1, argv, &alone));
    g_assert_nonnull(strstr(alone, "kernel=FILE"));
    g_assert_true(kt_options_parse(&o, 2, argv, NULL));
    g_assert_cmpstr(o.profile, ==, "p");
    g_assert_false(kt_options_parse(&o, 3, argv, &pages));
    g_assert_nonnull(strstr(pages, "'pages'"));
}
