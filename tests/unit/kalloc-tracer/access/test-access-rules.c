/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files of access rules: good ones are read as written, and a wrong line is
 * reported with its number, what is wrong, and what would be right.
 */
#include "tests/lib/test-main.h"
#include "kalloc-tracer/access/code-classes.h"

#include <string.h>

static KtAccessRules *parse(const char *text, GError **errp)
{
    return kt_access_rules_new_from_data(text, strlen(text), "rules", errp);
}

TEST(good, "/access-rules/good")
{
    static const char text[] =
        "# functions of our driver\n"
        "\n"
        "allocator  pool_alloc\n"
        "\toverread my_hash\tpast=7 before=1   # words\r\n"
        "range my_copy dst=0 src=1 n=2\n"
        "range my_clear dst=0 size=4096\n"
        "range my_copy_end\n"
        "loads-ok dump_* \n"
        "leaf my_lock\n"
        "plain full_name_hash";
    static const KtCodeRow wanted[] = {
        { "pool_alloc", KT_CODE_ALLOCATOR, 0, 0, -1, -1, -1, 0 },
        { "my_hash", KT_CODE_OVERREAD, 7, 1, -1, -1, -1, 0 },
        { "my_copy", KT_CODE_RANGE, 0, 0, 0, 1, 2, 1 },
        { "my_clear", KT_CODE_RANGE, 0, 0, 0, -1, -1, 4096 },
        { "my_copy_end", KT_CODE_RANGE, 0, 0, -1, -1, -1, 0 },
        { "dump_*", KT_CODE_LOADS_OK, 0, 0, -1, -1, -1, 0 },
        { "my_lock", KT_CODE_LEAF, 0, 0, -1, -1, -1, 0 },
        { "full_name_hash", KT_CODE_PLAIN, 0, 0, -1, -1, -1, 0 },
    };
    g_autoptr(GError) err = NULL;
    g_autoptr(KtAccessRules) r = parse(text, &err);

    g_assert_no_error(err);
    for (unsigned i = 0; i < G_N_ELEMENTS(wanted); i++) {
        const KtCodeRow *row = kt_access_rules_nth(r, i);

        g_assert_cmpstr(row->name, ==, wanted[i].name);
        g_assert_cmpint(row->class, ==, wanted[i].class);
        g_assert_cmpuint(row->max_past, ==, wanted[i].max_past);
        g_assert_cmpuint(row->max_before, ==, wanted[i].max_before);
        g_assert_cmpint(row->dst, ==, wanted[i].dst);
        g_assert_cmpint(row->src, ==, wanted[i].src);
        g_assert_cmpint(row->n, ==, wanted[i].n);
        g_assert_cmpuint(row->unit, ==, wanted[i].unit);
    }
    g_assert_null(kt_access_rules_nth(r, G_N_ELEMENTS(wanted)));
    g_assert_null(kt_access_rules_nth(NULL, 0));
}

TEST(empty, "/access-rules/empty")
{
    g_autoptr(KtAccessRules) r = parse("", NULL);

    g_assert_nonnull(r);
    g_assert_null(kt_access_rules_nth(r, 0));
}

static const struct {
    const char *text, *error;
} bad_files[] = {
    { "\nalocator kfree\n",
      "rules:2: 'alocator' is not a class: use one of plain, allocator, range, "
      "leaf, overread, loads-ok" },
    { "leaf\n", "rules:1: no function: write its name behind the class" },
    { "leaf a-b\n",
      "rules:1: 'a-b' is not a function's name: use letters, digits, '_', "
      "'.', and '*' for any characters" },
    { "leaf *\n",
      "rules:1: '*' is not a function's name: use at most 1024 characters, "
      "and no '*' at the start" },
    { "range my_* dst=0 n=1\n",
      "rules:1: 'my_*': class range needs whole names, since it depends on "
      "arguments" },
    { "leaf a\nleaf b\nplain a\n",
      "rules:3: 'a' is in line 1 already: remove one" },
    { "leaf a past=1\n",
      "rules:1: 'past=1': class leaf has no columns, remove it" },
    { "overread a n=1\n",
      "rules:1: 'n=1': class overread has the columns past=, before=" },
    { "overread a past\n",
      "rules:1: 'past': class overread has the columns past=, before=" },
    { "overread a past=64\n",
      "rules:1: 'past=64': use a number from 0 to 63" },
    { "overread a past=-1\n",
      "rules:1: 'past=-1': use a number from 0 to 63" },
    { "overread a\n", "rules:1: a: class overread needs past= or before=" },
    { "range a dst=6 n=1\n", "rules:1: 'dst=6': use a number from 0 to 5" },
    { "range a dst=0\n",
      "rules:1: a: class range needs either n= or size= with dst= or src=" },
    { "range a dst=0 n=1 size=8\n",
      "rules:1: a: class range needs either n= or size= with dst= or src=" },
    { "leaf \033[31m\n",
      "rules:1: '\\033[31m' is not a function's name: use letters, digits, "
      "'_', '.', and '*' for any characters" },
};

TEST(bad, "/access-rules/bad")
{
    for (unsigned i = 0; i < G_N_ELEMENTS(bad_files); i++) {
        g_autoptr(GError) err = NULL;

        g_assert_null(parse(bad_files[i].text, &err));
        g_assert_cmpstr(err->message, ==, bad_files[i].error);
    }
}

TEST(not_text, "/access-rules/not-text")
{
    g_autoptr(GError) err = NULL;

    g_assert_null(kt_access_rules_new_from_data("leaf a\0b", 8, "rules", &err));
    g_assert_cmpstr(err->message, ==,
                    "rules: not a text file of at most 1 MiB");
}

TEST(no_file, "/access-rules/no-file")
{
    g_autoptr(GError) err = NULL;

    g_assert_null(kt_access_rules_open("/nonexistent/rules", &err));
    g_assert_cmpstr(err->message, ==, "/nonexistent/rules: No such file or "
                    "directory");
}
