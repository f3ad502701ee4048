/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Records of .BTF sections are found with both kinds of header, kinds that are
 * not known are skipped by the layout table or end the types, and all members
 * of real kernels' structs are where libbpf says: KA_TEST_BTF=<file>[:...]
 * (default: the host's kernel).
 */
#include "tests/lib/test-main.h"
#include "guest-symbols/types/btf.h"
#include "guest-symbols/types/btf-records.h"

#include <bpf/btf.h>
#include <unistd.h>

#define KIND_NEW        21      /* libbpf and btf-records.c do not know it */
#define LAYOUT_ROWS     (KIND_NEW + 1)
#define HEADER_LONG     32

static const char names[] = "\0int\0first\0last\0a";
enum { NAME_INT = 1, NAME_FIRST = 5, NAME_LAST = 11, NAME_A = 16 };

typedef struct Section {
    GArray *types;
    uint8_t layout[LAYOUT_ROWS][4];
} Section;

static void put(Section *s, const uint32_t *words, unsigned n)
{
    g_array_append_vals(s->types, words, n);
}

static void put_struct(Section *s, uint32_t name, uint32_t bit)
{
    const uint32_t words[] = {
        name, gs_btf_info(GS_BTF_STRUCT, 1, false), 8, NAME_A, 1, bit,
    };

    put(s, words, G_N_ELEMENTS(words));
}

/* int; struct first; a record of a new kind with 3 elements; struct last. */
static void put_types(Section *s)
{
    static const uint32_t t_int[] = {
        NAME_INT, 0x01000000, 4, 0x01000020,
    };
    static const uint32_t t_new[] = {
        0, 0x15000003, 0, 0xdead, 1, 2, 3, 4, 5, 6,
    };

    put(s, t_int, G_N_ELEMENTS(t_int));
    put_struct(s, NAME_FIRST, 0);
    put(s, t_new, G_N_ELEMENTS(t_new));
    put_struct(s, NAME_LAST, 32);
}

static Section section_new(void)
{
    Section s = { .types = g_array_new(FALSE, FALSE, sizeof(uint32_t)) };

    put_types(&s);
    s.layout[KIND_NEW][0] = 4;
    s.layout[KIND_NEW][1] = 8;
    return s;
}

/* Put header, types, layout and names together. @rows: of the layout table */
static GByteArray *section_end(Section *s, unsigned rows)
{
    uint32_t types = s->types->len * sizeof(uint32_t), layout = rows * 4;
    uint32_t head[] = {
        0x0001eb9f, HEADER_LONG, 0, types, types + layout, sizeof(names),
        types, layout,
    };
    GByteArray *out = g_byte_array_new();

    g_byte_array_append(out, (uint8_t *)head, sizeof(head));
    g_byte_array_append(out, (uint8_t *)s->types->data, types);
    g_byte_array_append(out, (uint8_t *)s->layout, layout);
    g_byte_array_append(out, (const uint8_t *)names, sizeof(names));
    g_array_unref(s->types);
    return out;
}

static GsBtf *parse(const GByteArray *raw)
{
    g_autoptr(GError) err = NULL;
    GsBtf *b = gs_btf_new(raw->data, raw->len, &err);

    g_assert_no_error(err);
    return b;
}

TEST(test_skips_by_layout, "/btf-records/skips-by-layout")
{
    Section s = section_new();
    g_autoptr(GByteArray) raw = section_end(&s, LAYOUT_ROWS);
    g_autoptr(GsBtf) b = parse(raw);
    uint32_t offset;

    g_assert_true(gs_btf_member(b, "first", "a", &offset, NULL));
    g_assert_cmpuint(offset, ==, 0);
    g_assert_true(gs_btf_member(b, "last", "a", &offset, NULL));
    g_assert_cmpuint(offset, ==, 4);
}

static void expect_first_only(const GByteArray *raw)
{
    g_autoptr(GsBtf) b = parse(raw);
    uint32_t offset;

    g_assert_true(gs_btf_member(b, "first", "a", &offset, NULL));
    g_assert_false(gs_btf_member(b, "last", "a", &offset, NULL));
}

/* The kind is behind the end of the layout table, or its row cannot be. */
TEST(test_unknown_kind_ends_types, "/btf-records/unknown-kind-ends-types")
{
    Section without = section_new(), odd = section_new();
    g_autoptr(GByteArray) none = section_end(&without, 0);
    g_autoptr(GByteArray) bad = NULL;

    odd.layout[KIND_NEW][1] = 7;
    bad = section_end(&odd, LAYOUT_ROWS);
    expect_first_only(none);
    expect_first_only(bad);
}

TEST(test_record_past_the_end, "/btf-records/record-past-the-end")
{
    Section s = section_new();
    g_autoptr(GByteArray) raw = NULL;
    GsBtfRecords r;

    s.layout[KIND_NEW][1] = 252;
    raw = section_end(&s, LAYOUT_ROWS);
    g_assert_false(gs_btf_records_init(&r, raw->data, raw->len, NULL));
    g_assert_null(r.data);
}

TEST(test_layout_past_the_end, "/btf-records/layout-past-the-end")
{
    Section s = section_new();
    g_autoptr(GByteArray) raw = section_end(&s, LAYOUT_ROWS);
    GsBtfRecords r;

    for (unsigned word = 6; word < 8; word++) {
        g_autofree uint32_t *bad = g_memdup2(raw->data, raw->len);

        bad[word] = 0xfffffff0;
        g_assert_false(gs_btf_records_init(&r, (uint8_t *)bad, raw->len,
                                           NULL));
    }
}

TEST(test_search_finds_long_header, "/btf-records/search-finds-long-header")
{
    Section s = section_new();
    g_autoptr(GByteArray) raw = section_end(&s, LAYOUT_ROWS);
    g_autoptr(GByteArray) image = g_byte_array_new();
    g_autoptr(GsBtf) b = NULL;
    size_t room = 1 << 20;
    bool left_out = false;
    uint32_t size;

    g_byte_array_append(image, raw->data, 20);  /* a header that is cut */
    g_byte_array_append(image, raw->data, raw->len);
    g_byte_array_append(image, raw->data, 20);
    b = gs_btf_search(image->data, image->len, &room, &left_out);
    g_assert_nonnull(b);
    g_assert_true(gs_btf_type_size(b, "last", &size));
}

/* ---- real kernels ---- */

static void compare_members(const GsBtfRecords *r, const struct btf *btf,
                            uint32_t id)
{
    const struct btf_type *want = btf__type_by_id(btf, id);
    const struct btf_member *members = btf_members(want);
    GsBtfType t;

    g_assert_true(gs_btf_type(r, id, &t));
    for (unsigned i = 0; i < btf_vlen(want); i++) {
        GsBtfMember m = gs_btf_nth_member(&t, i);

        g_assert_cmpuint(m.bit, ==, btf_member_bit_offset(want, i));
        g_assert_cmpuint(m.bits, ==, btf_member_bitfield_size(want, i));
        g_assert_cmpuint(m.type, ==, members[i].type);
        g_assert_cmpstr(gs_btf_name(r, m.name), ==,
                        btf__name_by_offset(btf, members[i].name_off));
    }
}

/* libbpf also gives variables, sections and tags a size. No value is of such a
 * type. */
static int64_t bytes_of_value(const struct btf *btf, uint32_t id)
{
    const struct btf_type *t = btf__type_by_id(btf, id);

    return btf_is_var(t) || btf_is_datasec(t) || btf_is_decl_tag(t) ?
           -1 : btf__resolve_size(btf, id);
}

/* A type has the same kind, name, size and members. */
static void compare_type(const GsBtfRecords *r, const struct btf *btf,
                         uint32_t id)
{
    const struct btf_type *want = btf__type_by_id(btf, id);
    int64_t bytes = bytes_of_value(btf, id);
    uint32_t size = 0;
    GsBtfType t;

    g_assert_true(gs_btf_type(r, id, &t));
    g_assert_cmpuint(t.kind, ==, btf_kind(want));
    g_assert_cmpuint(t.vlen, ==, btf_vlen(want));
    g_assert_cmpstr(gs_btf_name(r, t.name), ==,
                    btf__name_by_offset(btf, want->name_off));
    g_assert_cmpint(gs_btf_size(r, id, &size), ==, bytes >= 0);
    g_assert_cmpint(size, ==, MAX(bytes, 0));
    if (btf_is_composite(want)) {
        compare_members(r, btf, id);
    }
}

static void compare_file(const char *path)
{
    struct btf *btf = btf__parse(path, NULL);
    GsBtfRecords r;
    const void *raw;
    __u32 len;

    g_assert_nonnull(btf);
    btf__set_pointer_size(btf, 8);
    raw = btf__raw_data(btf, &len);
    g_assert_true(gs_btf_records_init(&r, raw, len, NULL));
    g_assert_cmpuint(r.n, ==, btf__type_cnt(btf));
    for (uint32_t id = 1; id < r.n; id++) {
        compare_type(&r, btf, id);
    }
    gs_btf_records_deinit(&r);
    btf__free(btf);
}

TEST(test_real_kernels, "/btf-records/real-kernels")
{
    const char *list = g_getenv("KA_TEST_BTF");
    g_auto(GStrv) paths = g_strsplit(list ? list : "/sys/kernel/btf/vmlinux",
                                     ":", -1);

    if (!list && access(paths[0], R_OK)) {
        g_test_skip("KA_TEST_BTF is not set, and the host has no BTF");
        return;
    }
    for (char **path = paths; *path; path++) {
        compare_file(*path);
    }
}
