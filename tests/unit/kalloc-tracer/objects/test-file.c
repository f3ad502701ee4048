/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Damaged tables of open files, and damaged paths: each walk ends, and reports
 * which part it could not read. The memory is that of a golden test case.
 */
#include "kalloc-tracer/api/kt-files.h"
#include "tests/lib/events.h"
#include "tests/lib/test-main.h"

#include <string.h>

#define CASE KA_SOURCE_DIR "/tests/replay/cases/078-files/events"
#define FILES 0xffff888000010000ull
#define FD 4                    /* the file whose path is damaged */

typedef struct Found {
    unsigned n;
    KtFile file;
} Found;

static bool on_file(const KtFile *f, void *opaque)
{
    Found *found = opaque;

    found->n++;
    if (f->fd == FD) {
        found->file = *f;
    }
    return true;
}

static const char *list(const char *damage, Found *found)
{
    g_autofree char *script = NULL;
    g_autoptr(TestWorld) w = NULL;
    const McContext *ctx;

    g_assert_true(g_file_get_contents(CASE, &script, NULL, NULL));
    w = test_world_new(script);
    test_world_events(w, damage);
    ctx = test_world_context(w);
    *found = (Found) { 0 };
    return kt_files_foreach(
        &(KtObjects) { ctx->tracer, ctx->kernel, ctx->vm }, FILES, on_file,
        found);
}

TEST(test_table, "/file/table")
{
    Found found;

    g_assert_null(list("", &found));
    g_assert_cmpuint(found.n, ==, 7);
    g_assert_cmpstr(kt_file_type(&found.file), ==, "dir");
    g_assert_cmpstr(list("word va=ffff888000010008 value=0", &found), ==,
                    "the table of files is not readable");
    g_assert_cmpstr(list("word va=ffff888000010100 value=800000", &found), ==,
                    "a part of the table of files is not readable");
    g_assert_cmpstr(list("types structs=none", &found), ==,
                    "the kernel has no types of files");
}

TEST(test_path, "/file/path")
{
    Found found;

    g_assert_null(list("", &found));
    g_assert_cmpstr(found.file.path, ==, ".../b/a");
    g_assert_false(found.file.whole);
    /* two directories that are each other's parent */
    g_assert_null(list("word va=ffff888000015310 value=ffff888000015280",
                       &found));
    g_assert_false(found.file.whole);
    g_assert_cmpuint(strlen(found.file.path), >, KT_FILE_PATH_MAX - 4);
    g_assert_true(g_str_has_prefix(found.file.path, "..."));
    g_assert_true(g_str_has_suffix(found.file.path, "/a/b/a"));
    /* a name of no bytes, and one that is too long */
    g_assert_null(list("word va=ffff888000015298 value=0", &found));
    g_assert_cmpstr(found.file.path, ==, "");
    g_assert_null(list("word va=ffff888000015298 value=10000000000",
                       &found));
    g_assert_cmpstr(found.file.path, ==, "");
}

/* A mount that is mounted on a directory of its own. */
TEST(test_mounts, "/file/mounts")
{
    Found found;

    g_assert_cmpstr(
        list("word va=ffff888000014000 value=ffff888000014100\n"
             "word va=ffff888000014008 value=ffff888000015100\n"
             "word va=ffff888000014110 value=ffff888000015100\n"
             "word va=ffff888000014108 value=ffff888000015100\n"
             "word va=ffff888000014100 value=ffff888000014000\n"
             "word va=ffff888000014010 value=ffff888000015100\n"
             "word va=ffff888000015290 value=ffff888000015100", &found), ==,
        "too many links were followed for the paths");
    g_assert_false(found.file.whole);
}
