/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Parts of structs are found by their paths, through pointers and arrays, and
 * structs by name, also if several have it. What does not exist is an error
 * with similar names. The types are those of struct-types.h.
 */
#include "tests/lib/struct-types.h"
#include "tests/lib/test-main.h"
#include "tests/lib/types-writer.h"
#include "guest-symbols/types/btf.h"
#include "guest-symbols/types/struct-place.h"

#include <string.h>

static GsBtf *types(void)
{
    g_autoptr(GBytes) bytes = struct_types();
    size_t len;
    const void *data = g_bytes_get_data(bytes, &len);

    return gs_btf_new(data, len, NULL);
}

static uint32_t id_of(const GsBtf *btf, const char *name)
{
    g_autoptr(GArray) ids = gs_struct_definitions(btf, name);

    g_assert_cmpuint(ids->len, >=, 1);
    return g_array_index(ids, uint32_t, 0);
}

static const struct {
    const char *path;
    const char *type, *name;
    unsigned n;
    uint32_t pointer[2], offset, size;
    bool open;
} places[] = {
    { "", "struct box", "", 0, { 0 }, 0, 136, true },
    { "list.prev", "struct list_head *", "prev", 0, { 0 }, 8, 8 },
    { "name", "char[8]", "name", 0, { 0 }, 0x18, 8 },
    { "name[3]", "char", "name", 0, { 0 }, 0x1b, 1 },
    { "high", "unsigned int", "high", 0, { 0 }, 0x20, 1 },
    { "b", "int", "b", 0, { 0 }, 0x2c, 4 },
    { "pair.y", "int", "y", 0, { 0 }, 0x2c, 4 },
    { "points[2].y", "int", "y", 0, { 0 }, 0x4c, 4 },
    { "more[5]", "u8", "more", 0, { 0 }, 0x8d, 1 },
    { "table.max", "unsigned int", "max", 1, { 0x10 }, 0, 4 },
    { "table.box[3]", "struct box *", "box", 2, { 0x10, 8 }, 24, 8 },
    { "list.next.next.prev", "struct list_head *", "prev", 2, { 0, 0 }, 8, 8 },
};

TEST(test_places, "/struct-place/places")
{
    g_autoptr(GsBtf) btf = types();

    for (size_t i = 0; i < G_N_ELEMENTS(places); i++) {
        g_autoptr(GError) err = NULL;
        g_autoptr(GsStruct) s = gs_struct_new(btf, id_of(btf, "box"), "box",
                                              places[i].path, "BTF", &err);

        g_assert_no_error(err);
        g_assert_cmpstr(gs_struct_type(s), ==, places[i].type);
        g_assert_cmpstr(s->name, ==, places[i].name);
        g_assert_cmpuint(gs_struct_at(s)->n, ==, places[i].n);
        for (unsigned p = 0; p < places[i].n; p++) {
            g_assert_cmpuint(gs_struct_at(s)->pointer[p], ==,
                             places[i].pointer[p]);
        }
        g_assert_cmpuint(gs_struct_at(s)->offset, ==, places[i].offset);
        g_assert_cmpuint(gs_struct_size(s), ==, places[i].size);
        g_assert_cmpint(gs_struct_is_open(s), ==, places[i].open);
    }
}

static const struct {
    const char *path, *error;
} wrong[] = {
    { "nam", "\"box.nam\": struct box has no member nam; near: name" },
    { "list.x", "\"box.list.x\": struct list_head has no member x" },
    { "table.boxes", "\"box.table.boxes\": struct table has no member boxes; "
                     "near: box" },
    { "high.x", "\"box.high\": a bit field has no members" },
    { "minus.x", "\"box.minus.x\": int has no member x" },
    { "points[3]", "\"box.points\": the array has 3 elements" },
    { "minus[0]", "\"box.minus\": this is no array" },
    { "points[x]", "\"box.points\": \"[x]\" is no index; [3] would be one" },
    { "points[1", "\"box.points\": \"[1\" is no index; [3] would be one" },
    { "points[1]]", "\"box.points[1]\": \"]\" is no index; [3] would be one" },
    { ".x", "\"box\": a name is missing" },
    { "x.", "\"box.x\": struct box has no member x" },
    { "name[4294967296]", "\"box.name\": \"[4294967296]\" is no index; [3] "
                          "would be one" },
    { "more[4000000000]", "\"box.more[4000000000]\": this is more than "
                          "1073741824 bytes away" },
    { "fn.x", "\"box.fn.x\": int (void) has no member x" },
    { "ptrs[0].x", "\"box.ptrs[0].x\": void has no member x" },
    { "table.box[0].table.box[0].table.box[0].table.box[0].table.box[0]",
      "\"box.table.box[0].table.box[0].table.box\": more than 8 pointers" },
};

TEST(test_wrong, "/struct-place/wrong")
{
    g_autoptr(GsBtf) btf = types();

    for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
        g_autoptr(GError) err = NULL;
        g_autoptr(GsStruct) s = gs_struct_new(btf, id_of(btf, "box"), "box",
                                              wrong[i].path, "BTF", &err);

        g_assert_null(s);
        g_assert_nonnull(err);
        if (i + 1 < G_N_ELEMENTS(wrong)) {
            g_assert_cmpstr(err->message, ==, wrong[i].error);
        } else {
            g_assert_true(g_str_has_suffix(err->message, "8 pointers"));
        }
    }
}

static void add_name(const GsStructName *name, void *opaque)
{
    g_string_append_printf(opaque, "%s %u %u,", name->name, name->size,
                           name->n);
}

TEST(test_names, "/struct-place/names")
{
    g_autoptr(GsBtf) btf = types();
    g_autoptr(GArray) twice = gs_struct_definitions(btf, "twice");
    g_autoptr(GArray) holder = gs_struct_definitions(btf, "holder_t");
    g_autoptr(GArray) number = gs_struct_definitions(btf, "u64");
    g_autoptr(GArray) fwd = gs_struct_definitions(btf, "nowhere");
    g_autoptr(GArray) empty = gs_struct_definitions(btf, "");
    g_autofree char *near = gs_struct_near(btf, "pint");
    g_autoptr(GString) all = g_string_new(NULL), some = g_string_new(NULL);

    g_assert_cmpuint(twice->len, ==, 2);
    g_assert_cmpuint(holder->len, ==, 1);
    g_assert_cmpuint(number->len + fwd->len + empty->len, ==, 0);
    g_assert_cmpstr(near, ==, "point");
    gs_struct_foreach_name(btf, "*", false, add_name, all);
    g_assert_cmpstr(all->str, ==, "box 136 1,holder_t 8 1,list_head 16 1,"
                    "point 8 1,table 16 1,twice 4 2,");
    gs_struct_foreach_name(btf, "t?*e", false, add_name, some);
    g_assert_cmpstr(some->str, ==, "table 16 1,twice 4 2,");
}
