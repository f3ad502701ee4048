/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The members of a struct, and the values of a copied object, are rows in the
 * order of their declaration. An object may end before its type, or behind it;
 * parts may be missing. Types that contain themselves, or arrays of what has no
 * size, come to an end. The types are those of struct-types.h, the hostile ones
 * are made here.
 */
#include "tests/lib/struct-types.h"
#include "tests/lib/test-main.h"
#include "tests/lib/types-writer.h"
#include "guest-symbols/types/btf.h"
#include "guest-symbols/types/struct-place.h"

#include <string.h>

#define VA      0xffff888000001000ull
#define SIZE    136

/* The bytes of a box, with @n bytes behind it. */
static uint8_t *make_box(unsigned n)
{
    static const uint8_t points[] = { 1, 0, 0, 0, 2, 0, 0, 0 };
    uint8_t *b = g_malloc0(SIZE + n);
    uint64_t self = GUINT64_TO_LE(VA), ptr = GUINT64_TO_LE(VA + 0x100);
    uint32_t minus = GUINT32_TO_LE((uint32_t)-5);

    memcpy(b, &self, 8);
    memcpy(b + 8, &self, 8);
    memcpy(b + 0x18, "bo\"x", 4);
    b[0x20] = 5 | 17 << 3;
    b[0x24] = 7;
    b[0x28] = 9;
    b[0x30] = 1;
    b[0x34] = 3;
    for (unsigned i = 0; i < 2; i++) {
        memcpy(b + 0x38 + i * 8, points, 8);
    }
    memcpy(b + 0x50, &ptr, 8);
    b[0x80] = 1;
    memcpy(b + 0x84, &minus, 4);
    memset(b + SIZE, 0xab, n);
    return b;
}

static void add_row(const GsMember *m, void *opaque)
{
    GString *s = opaque;

    g_string_append_printf(s, "%s+%x", m->overlaps ? "|" : "", m->offset);
    if (m->bits) {
        g_string_append_printf(s, ":%u-%u", m->bit, m->bits);
    }
    if (m->value) {
        g_string_append_printf(s, " %s %s\n", m->path, m->value);
    } else {
        g_string_append_printf(s, " %s%s %s %u\n", m->path,
                               m->kind == GS_MEMBER_OPEN ? " {" :
                               m->kind == GS_MEMBER_CLOSE ? "}" : "",
                               m->type, m->size);
    }
}

/* (owned) Walk over a part of struct box; *@sum gets its sum. */
static char *walk(const char *path, const GsStructPlan *plan,
                  GsStructSum *sum)
{
    g_autoptr(GBytes) bytes = struct_types();
    GString *rows = g_string_new(NULL);
    size_t len;
    const void *data = g_bytes_get_data(bytes, &len);
    g_autoptr(GsBtf) btf = gs_btf_new(data, len, NULL);
    g_autoptr(GArray) ids = gs_struct_definitions(btf, "box");
    g_autoptr(GsStruct) s = gs_struct_new(btf, g_array_index(ids, uint32_t, 0),
                                          "box", path, "BTF", NULL);

    *sum = gs_struct_walk(s, plan, add_row, rows);
    return g_string_free(rows, FALSE);
}

TEST(test_definition, "/struct-walk/definition")
{
    GsStructSum sum;
    g_autofree char *all = walk("", &(GsStructPlan) { 0 }, &sum);
    g_autofree char *flat = walk("", &(GsStructPlan) { .depth = 1 }, &sum);
    g_autofree char *part = walk("pair", &(GsStructPlan) { 0 }, &sum);
    g_autofree char *bits = walk("high", &(GsStructPlan) { 0 }, &sum);

    g_assert_cmpstr(all, ==,
        "+0 list struct list_head 16\n"
        "+10 table struct table * 8\n"
        "+18 name char[8] 8\n"
        "+20:0-3 low unsigned int 4\n"
        "+20:3-5 high unsigned int 4\n"
        "+24 state enum state 4\n"
        "+28  { union {...} 8\n"
        "|+28 word u64 8\n"
        "|+28  { struct {...} 8\n"
        "|+28 a int 4\n"
        "|+2c b int 4\n"
        "+0 }  0\n"
        "|+28 pair { struct point 8\n"
        "|+28 pair.x int 4\n"
        "|+2c pair.y int 4\n"
        "+0 }  0\n"
        "+0 }  0\n"
        "+30 shorts short[4] 8\n"
        "+38 points { struct point[3] 24\n"
        "+38 points[0].x int 4\n"
        "+3c points[0].y int 4\n"
        "+0 }  0\n"
        "+50 ptrs void *[4] 32\n"
        "+70 fn int (*)(void) 8\n"
        "+78 addr unsigned long 8\n"
        "+80 flag bool 1\n"
        "+84 minus int 4\n"
        "+88 more u8[0] 0\n");
    g_assert_true(strstr(flat, "|+28 pair struct point 8\n"));
    g_assert_true(strstr(flat, "+38 points struct point[3] 24\n"));
    g_assert_cmpstr(part, ==, "+28 pair.x int 4\n+2c pair.y int 4\n");
    g_assert_cmpstr(bits, ==, "+20:3-5 high unsigned int 4\n");
}

#define HEAD \
    "+0 list empty\n" \
    "+18 name \"bo\\\"x\"\n" \
    "+20:0-3 low 5\n" \
    "+20:3-5 high 17\n" \
    "+24 state DEAD(7)\n" \
    "|+28 word 9\n" \
    "|+28 a 9\n" \
    "|+28 pair.x 9\n" \
    "+30 shorts {1,0,3,0}\n" \
    "+38 points[0..1].x 1\n" \
    "+3c points[0..1].y 2\n" \
    "+50 ptrs[0] 0xffff888000001100\n"

TEST(test_values, "/struct-walk/values")
{
    g_autofree uint8_t *box = make_box(0);
    const GsObject o = { .bytes = box, .len = SIZE, .va = VA };
    GsStructPlan plan = { .object = &o };
    GsStructSum sum;
    g_autofree char *values = walk("", &plan, &sum);
    g_autofree char *zeros = NULL, *flat = NULL;

    g_assert_cmpstr(values, ==, HEAD "+80 flag true\n+84 minus -5\n");
    g_assert_cmpuint(sum.shown, ==, 14);
    g_assert_cmpuint(sum.zeros, ==, 8);
    g_assert_cmpuint(sum.behind + sum.unknown + sum.cut, ==, 0);
    plan.zeros = plan.hex = true;
    zeros = walk("", &plan, &sum);
    g_assert_cmpuint(sum.shown, ==, 22);
    g_assert_cmpuint(sum.zeros, ==, 0);
    g_assert_true(strstr(zeros, "+58 ptrs[1..3] 0x0\n+70 fn 0x0\n"));
    g_assert_true(strstr(zeros, "+84 minus 0xfffffffb\n"));
    g_assert_true(strstr(zeros, "+30 shorts {0x1,0x0,0x3,0x0}\n"));
    g_assert_true(strstr(zeros, "+48 points[2].x 0x0\n"));
    plan = (GsStructPlan) { .object = &o, .depth = 1 };
    flat = walk("", &plan, &sum);
    g_assert_true(strstr(flat, "|+28 pair {.x=9,.y=0}\n"));
    g_assert_true(strstr(flat, "+38 points {{.x=1,.y=2},"));
}

/* Parts are copied from where they begin. */
TEST(test_parts, "/struct-walk/parts")
{
    g_autofree uint8_t *box = make_box(0);
    GsObject o = { .bytes = box + 0x20, .len = 1, .va = VA + 0x20 };
    const GsStructPlan plan = { .object = &o };
    GsStructSum sum;
    g_autofree char *bits = walk("high", &plan, &sum), *points = NULL;
    g_autofree char *name = NULL, *list = NULL;

    g_assert_cmpstr(bits, ==, "+20:3-5 high 17\n");
    o = (GsObject) { .bytes = box + 0x38, .len = 24, .va = VA + 0x38 };
    points = walk("points", &plan, &sum);
    g_assert_cmpstr(points, ==, "+38 points[0..1].x 1\n"
                    "+3c points[0..1].y 2\n");
    o = (GsObject) { .bytes = box + 0x18, .len = 8, .va = VA + 0x18 };
    name = walk("name", &plan, &sum);
    g_assert_cmpstr(name, ==, "+18 name \"bo\\\"x\"\n");
    o = (GsObject) { .bytes = box, .len = 16, .va = VA + 8 };
    list = walk("list", &plan, &sum);
    g_assert_cmpstr(list, ==, "+0 list.next 0xffff888000001000\n"
                    "+8 list.prev 0xffff888000001000\n");
}

/* The object may end before its type, or have more elements at its end. */
TEST(test_ends, "/struct-walk/ends")
{
    g_autofree uint8_t *box = make_box(20);
    GsObject o = { .bytes = box, .len = 0x54, .va = VA };
    const GsStructPlan plan = { .object = &o };
    GsStructSum sum;
    g_autofree char *shorter = walk("", &plan, &sum), *longer = NULL;

    g_assert_true(g_str_has_suffix(shorter, "points[0..1].y 2\n"));
    g_assert_cmpuint(sum.behind, ==, 5);
    o.len = SIZE + 20;
    longer = walk("", &plan, &sum);
    g_assert_true(g_str_has_suffix(longer, "+88 more[0..19] 171\n"));
    g_assert_cmpuint(sum.behind, ==, 0);
}

TEST(test_missing, "/struct-walk/missing")
{
    g_autofree uint8_t *box = make_box(0);
    const GsObject o = {
        .bytes = box, .len = SIZE, .va = VA + 0xfc0, .missing = 2,
    };
    const GsStructPlan plan = { .object = &o };
    GsStructSum sum;
    g_autofree char *values = walk("", &plan, &sum);

    g_assert_true(strstr(values, "points[0].x 1\n"));
    g_assert_true(strstr(values, "points[1].x ?\n"));
    g_assert_true(strstr(values, "minus ?\n"));
    g_assert_cmpuint(sum.unknown, ==, 10);
}

/* ---- hostile types ------------------------------------------------------- */

/*
 * struct loop { struct loop a, b; };
 * struct many { struct nothing none[2^32 - 1]; int all[2^30]; };
 * struct far { long far; };       at byte 2^28 - 1 of 8
 */
static GsBtf *hostile(void)
{
    struct btf *b = btf__new_empty();
    int v_int = btf__add_int(b, "int", 4, BTF_INT_SIGNED);
    int v_long = btf__add_int(b, "long int", 8, BTF_INT_SIGNED);
    int loop = btf__add_struct(b, "loop", 8), nothing, none, all, rows;

    btf__add_field(b, "a", loop, 0, 0);
    btf__add_field(b, "b", loop, 0, 0);
    nothing = btf__add_struct(b, "nothing", 0);
    none = btf__add_array(b, v_int, nothing, UINT32_MAX);
    rows = btf__add_array(b, v_int, none, UINT32_MAX);
    all = btf__add_array(b, v_int, v_int, 1u << 30);
    btf__add_struct(b, "many", 8);
    btf__add_field(b, "none", none, 0, 0);
    btf__add_field(b, "rows", rows, 0, 0);
    btf__add_field(b, "all", all, 0, 0);
    btf__add_struct(b, "far", 8);
    btf__add_field(b, "far", v_long, 0x7ffffff8, 0);
    return types_end(b);
}

static unsigned count_rows(const char *name, const GsStructPlan *plan,
                           GsStructSum *sum)
{
    g_autoptr(GsBtf) btf = hostile();
    g_autoptr(GArray) ids = gs_struct_definitions(btf, name);
    g_autoptr(GString) rows = g_string_new(NULL);
    g_autoptr(GsStruct) s = gs_struct_new(btf, g_array_index(ids, uint32_t, 0),
                                          name, "", "BTF", NULL);

    g_assert_false(gs_struct_is_open(s));
    *sum = gs_struct_walk(s, plan, add_row, rows);
    return sum->shown;
}

TEST(test_hostile, "/struct-walk/hostile")
{
    static const uint8_t bytes[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    const GsObject o = { .bytes = bytes, .len = 8, .va = VA };
    const GsStructPlan definition = { 0 };
    const GsStructPlan values = { .object = &o, .zeros = true };
    GsStructSum sum;

    g_assert_cmpuint(count_rows("loop", &definition, &sum), <=,
                     GS_STRUCT_MEMBERS);
    g_assert_true(sum.cut);
    g_assert_cmpuint(count_rows("loop", &values, &sum), <=,
                     GS_STRUCT_MEMBERS);
    g_assert_true(sum.cut);
    g_assert_cmpuint(count_rows("many", &definition, &sum), ==, 1);
    g_assert_false(sum.cut);
    g_assert_cmpuint(count_rows("many", &values, &sum), ==, 1);
    g_assert_cmpuint(sum.behind, ==, 1);
    g_assert_cmpuint(count_rows("far", &definition, &sum), ==, 1);
    g_assert_cmpuint(count_rows("far", &values, &sum), ==, 0);
    g_assert_cmpuint(sum.behind, ==, 1);
}
