/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Objects are copied page by page, up to the end of their block; what cannot be
 * read is marked. Paths are followed, until a pointer leads to nothing. The
 * types are those of struct-types.h: a box has 136 bytes, and an array of
 * unknown length at its end.
 */
#include "kalloc-tracer/kt.h"
#include "tests/lib/events.h"
#include "tests/lib/test-main.h"

#include <string.h>

#define BOX     0xffff888000001000ull
#define TABLE   0xffff888000002000ull
#define SPLIT   0xffff888000004fc0ull
#define SIZE    136

static const char script[] =
    "symbol va=ffffffff81000000 name=_stext\n"
    "symbol va=ffffffff82000000 name=_etext\n"
    "alloc va=ffff888000001000 size=a0 actual=c0 us=1 cache=box\n"
    "alloc va=ffff888000003000 size=40 actual=40 us=2 cache=box\n"
    "vm n=1\n"
    "word va=ffff888000001010 value=ffff888000002000\n"
    "word va=ffff888000001098 value=77\n"
    "word va=ffff888000002008 value=0\n"
    "word va=ffff888000003000 value=5\n"
    "word va=ffff888000004fc0 value=6\n";

typedef struct World {
    TestWorld *w;
    KtObjects o;
} World;

static World world_new(void)
{
    World x = { .w = test_world_new(script) };
    const McContext *ctx = test_world_context(x.w);

    g_free(test_world_run(x.w, "base", NULL));
    test_world_events(x.w, "call types=2");     /* the kernel is made now */
    x.o = (KtObjects) { ctx->tracer, ctx->kernel, ctx->vm };
    return x;
}

static GsStruct *type(const World *x, const char *expr)
{
    g_autoptr(GError) err = NULL;
    GsStruct *s = gs_kernel_struct(x->o.kernel, expr, &err);

    g_assert_no_error(err);
    return s;
}

/* The object ends with the block: behind its type, or before. */
TEST(test_ends, "/struct-copy/ends")
{
    World x = world_new();
    g_autoptr(GsStruct) box = type(&x, "box"), table = type(&x, "table");
    g_auto(KtStructCopy) open = { 0 }, cut = { 0 }, tail = { 0 };
    g_auto(KtStructCopy) slack = { 0 };

    kt_struct_copy(&x.o, box, BOX, &open);
    g_assert_true(open.has_block);
    g_assert_cmpuint(open.object.len, ==, 0xa0);
    g_assert_cmpuint(open.object.bytes[0x98], ==, 0x77);
    g_assert_cmpuint(open.tail_len + open.unreadable, ==, 0);
    kt_struct_copy(&x.o, box, 0xffff888000003000ull, &cut);
    g_assert_cmpuint(cut.object.len, ==, 0x40);
    kt_struct_copy(&x.o, table, BOX, &tail);
    g_assert_cmpuint(tail.object.len, ==, 16);
    g_assert_cmpuint(tail.tail_len, ==, 0x90);
    g_assert_cmpuint(tail.tail[0x88], ==, 0x77);
    kt_struct_copy(&x.o, table, BOX + 0xa8, &slack);
    g_assert_cmpuint(slack.object.len, ==, 16);
    test_world_free(x.w);
}

TEST(test_unreadable, "/struct-copy/unreadable")
{
    World x = world_new();
    g_autoptr(GsStruct) box = type(&x, "box");
    g_auto(KtStructCopy) part = { 0 }, none = { 0 };

    kt_struct_copy(&x.o, box, SPLIT, &part);
    g_assert_cmpuint(part.object.len, ==, SIZE);
    g_assert_cmpuint(part.object.missing, ==, 2);
    g_assert_cmpuint(part.unreadable, ==, SIZE - 0x40);
    g_assert_cmpuint(part.object.bytes[0], ==, 6);
    g_assert_cmpuint(part.object.bytes[0x40], ==, 0);
    kt_struct_copy(&x.o, box, 0xffff888000009000ull, &none);
    g_assert_cmpuint(none.unreadable, ==, SIZE);
    g_assert_false(none.has_block);
    test_world_free(x.w);
}

TEST(test_follow, "/struct-copy/follow")
{
    World x = world_new();
    g_autoptr(GsStruct) max = type(&x, "box.table.max");
    g_autoptr(GsStruct) far = type(&x, "box.table.box[2].minus");
    uint64_t va = BOX;
    unsigned failed = 9;

    g_assert_true(kt_struct_follow(&x.o, gs_struct_at(max), &va, &failed));
    g_assert_cmphex(va, ==, TABLE);
    va = BOX;
    g_assert_false(kt_struct_follow(&x.o, gs_struct_at(far), &va, &failed));
    g_assert_cmpuint(failed, ==, 1);
    g_assert_cmphex(va, ==, 0);
    g_assert_cmpstr(gs_struct_pointer(far, failed), ==, "box.table.box");
    va = 0xffff888000009000ull;
    g_assert_false(kt_struct_follow(&x.o, gs_struct_at(far), &va, &failed));
    g_assert_cmpuint(failed, ==, 0);
    g_assert_cmphex(va, ==, 0xffff888000009010ull);
    test_world_free(x.w);
}
