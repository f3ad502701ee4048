/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of objects: text in the object, text that a member points to, and the
 * name of another object. The guest is that of a replay case.
 */
#include "kalloc-tracer/api/kt-structs.h"
#include "tests/lib/events.h"
#include "tests/lib/test-main.h"

#define CASE KA_SOURCE_DIR "/tests/replay/cases/078-files/events"
#define DENTRY  0xffff888000015280ull   /* "a" */
#define TEXT    0xffff8880000160a0ull
#define FILE_   0xffff888000011100ull   /* a file of this dentry */
#define TASK    0xffff888000001000ull   /* sh */

typedef struct World {
    TestWorld *w;
    KtObjects o;
    char name[KT_OBJECT_NAME_MAX + 1];
} World;

static void world_open(World *x, const char *more)
{
    g_autofree char *script = NULL;
    const McContext *ctx;

    g_assert_true(g_file_get_contents(CASE, &script, NULL, NULL));
    x->w = test_world_new(script);
    test_world_events(x->w, more);
    ctx = test_world_context(x->w);
    x->o = (KtObjects) { ctx->tracer, ctx->kernel, ctx->vm };
}

static const char *name_of(World *x, const char *type, uint64_t va)
{
    return kt_object_name(&x->o, type, va, x->name) ? x->name : NULL;
}

static const char *name_behind(World *x, const char *ctype, uint64_t va)
{
    return kt_pointer_name(&x->o, ctype, va, x->name) ? x->name : NULL;
}

TEST(test_kinds, "/object-names/kinds")
{
    World x;

    world_open(&x, "");
    g_assert_cmpstr(name_of(&x, "dentry", DENTRY), ==, "a");
    g_assert_cmpstr(name_of(&x, "struct dentry", DENTRY), ==, "a");
    g_assert_cmpstr(name_of(&x, "file", FILE_), ==, "a");
    g_assert_cmpstr(name_of(&x, "task_struct", TASK), ==, "sh");
    g_assert_null(name_of(&x, "inode", DENTRY));
    g_assert_null(name_of(&x, "dentry", 0x1000));
    test_world_free(x.w);
}

TEST(test_pointers, "/object-names/pointers")
{
    World x;

    world_open(&x, "");
    g_assert_cmpstr(name_behind(&x, "struct dentry *", DENTRY), ==, "a");
    g_assert_cmpstr(name_behind(&x, "const char *", TEXT), ==, "a");
    g_assert_cmpstr(name_behind(&x, "const unsigned char *", TEXT), ==, "a");
    g_assert_null(name_behind(&x, "struct dentry", DENTRY));
    g_assert_null(name_behind(&x, "struct dentry **", DENTRY));
    g_assert_null(name_behind(&x, "void *", TEXT));
    g_assert_null(name_behind(&x, "char *", 0));
    test_world_events(x.w, "text va=ffff8880000160a0 value=a\\x01");
    g_assert_null(name_behind(&x, "char *", TEXT));
    test_world_free(x.w);
}

/* Without types there are no names; a pointer to nothing leads to none. */
TEST(test_unknown, "/object-names/unknown")
{
    World x;

    world_open(&x, "word va=ffff8880000152a0 value=0");
    g_assert_null(name_of(&x, "dentry", DENTRY));
    g_assert_null(name_of(&x, "file", FILE_));
    test_world_free(x.w);
    world_open(&x, "types structs=none");
    g_assert_null(name_of(&x, "dentry", DENTRY));
    test_world_free(x.w);
}
