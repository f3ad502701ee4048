/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Members of types are found through anonymous structs and paths, also bit
 * fields and enums. Damaged sections are refused. The types are made with
 * libbpf.
 */
#include "tests/lib/test-main.h"
#include "tests/lib/types-writer.h"
#include "guest-symbols/types/btf.h"

#include <string.h>

/*
 * struct inner { int a; long b; };
 * typedef const struct inner inner_t;
 * struct outer {
 *     char *name;                  0
 *     union {                      8
 *         struct { int x, y; };
 *         inner_t in;
 *     };
 *     char comm[16];               24
 *     unsigned bit:1, bits:7;      40
 *     char tail[];                 44
 * };
 * enum colour { RED, GREEN = 7, MINUS = -1 };      signed
 * enum big { BIG = 0x80000000 };                   unsigned
 * enum huge { HUGE = 1 << 40 };                    64 bits
 */
static struct btf *make_types(void)
{
    struct btf *b = btf__new_empty();
    int t_int = btf__add_int(b, "int", 4, BTF_INT_SIGNED);
    int t_long = btf__add_int(b, "long", 8, BTF_INT_SIGNED);
    int t_char = btf__add_int(b, "char", 1, BTF_INT_CHAR);
    int t_ptr = btf__add_ptr(b, t_char);
    int inner, t_const, inner_t, xy, anon, comm, tail;

    inner = btf__add_struct(b, "inner", 16);
    btf__add_field(b, "a", t_int, 0, 0);
    btf__add_field(b, "b", t_long, 64, 0);
    t_const = btf__add_const(b, inner);
    inner_t = btf__add_typedef(b, "inner_t", t_const);
    xy = btf__add_struct(b, "", 8);
    btf__add_field(b, "x", t_int, 0, 0);
    btf__add_field(b, "y", t_int, 32, 0);
    anon = btf__add_union(b, "", 16);
    btf__add_field(b, "", xy, 0, 0);
    btf__add_field(b, "in", inner_t, 0, 0);
    comm = btf__add_array(b, t_int, t_char, 16);
    tail = btf__add_array(b, t_int, t_char, 0);
    btf__add_struct(b, "outer", 48);
    btf__add_field(b, "name", t_ptr, 0, 0);
    btf__add_field(b, "", anon, 64, 0);
    btf__add_field(b, "comm", comm, 192, 0);
    btf__add_field(b, "bit", t_int, 320, 1);
    btf__add_field(b, "bits", t_int, 321, 7);
    btf__add_field(b, "tail", tail, 352, 0);
    btf__add_typedef(b, "outer", t_int);
    btf__add_enum(b, "colour", 4);
    btf__add_enum_value(b, "RED", 0);
    btf__add_enum_value(b, "GREEN", 7);
    btf__add_enum_value(b, "MINUS", -1);
    btf__add_enum(b, "big", 4);
    btf__add_enum_value(b, "BIG", 0x80000000ll);
    btf__add_enum64(b, "huge", 8, false);
    btf__add_enum64_value(b, "HUGE", 1ull << 40);
    return b;
}

static GsBtf *make(void)
{
    return types_end(make_types());
}

static const TypesMember members[] = {
    { "outer", "name", 0, 8 },
    { "outer", "x", 8, 4 },
    { "outer", "y", 12, 4 },
    { "outer", "in", 8, 16 },
    { "outer", "in.b", 16, 8 },
    { "outer", "comm", 24, 16 },
    { "outer", "tail", 44, 0 },
    { "inner", "b", 8, 8 },
    { "inner_t", "a", 0, 4 },
};

TEST(test_members, "/btf/members")
{
    g_autoptr(GsBtf) b = make();

    types_expect_members(b, members, G_N_ELEMENTS(members));
}

static const char *const missing[][2] = {
    { "outer", "bit" }, { "outer", "bits" }, { "outer", "nothing" },
    { "outer", "" }, { "outer", "in." }, { "outer", "in..b" },
    { "outer", ".in" }, { "outer", "name.a" }, { "outer", "in.b.c" },
    { "none", "a" }, { "", "x" }, { "colour", "RED" }, { "int", "a" },
    { "outer", "in.in.in.in.in.in.in.in.in.in.in.in.in.in.in.in.in.in.a" },
};

TEST(test_missing, "/btf/missing-members")
{
    g_autoptr(GsBtf) b = make();

    for (size_t i = 0; i < G_N_ELEMENTS(missing); i++) {
        uint32_t offset;

        g_assert_false(gs_btf_member(b, missing[i][0], missing[i][1],
                                     &offset, NULL));
    }
}

TEST(test_bit_fields, "/btf/bit-fields")
{
    g_autoptr(GsBtf) b = make();
    uint32_t bit = 0, bits = 0;

    g_assert_true(gs_btf_bit_field(b, "outer", "bit", &bit, &bits));
    g_assert_cmpuint(bit, ==, 320);
    g_assert_cmpuint(bits, ==, 1);
    g_assert_true(gs_btf_bit_field(b, "outer", "bits", &bit, &bits));
    g_assert_cmpuint(bit, ==, 321);
    g_assert_cmpuint(bits, ==, 7);
    g_assert_false(gs_btf_bit_field(b, "outer", "x", &bit, &bits));
    g_assert_false(gs_btf_bit_field(b, "outer", "none", &bit, &bits));
    g_assert_false(gs_btf_bit_field(b, "none", "bit", &bit, &bits));
}

/* struct far { struct { struct { ... int a; }; }; }, each @bits into the one
 * around it. */
static GsBtf *make_far(unsigned depth, uint32_t bits)
{
    struct btf *types = btf__new_empty();
    int inner = btf__add_int(types, "int", 4, BTF_INT_SIGNED);

    for (unsigned i = 1; i <= depth; i++) {
        int around = btf__add_struct(types, i == depth ? "far" : "", 8);

        btf__add_field(types, i == 1 ? "a" : "", inner, bits, 0);
        inner = around;
    }
    return types_end(types);
}

/* No sum of an offset and a few bytes is to wrap, whatever a guest says. */
TEST(test_members_too_far_away, "/btf/members-too-far-away")
{
    static const struct {
        unsigned depth;
        uint32_t bits;
        bool found;
    } row[] = {
        { 1, ((1u << 20) - 4) * 8, true }, { 1, ((1u << 20) - 3) * 8, false },
        { 1, 0xfffffff8, false }, { 8, 0xfffffff8, false },
        { 63, 0xfffffff8, false }, { 8, 8, true },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(row); i++) {
        g_autoptr(GsBtf) b = make_far(row[i].depth, row[i].bits);
        uint32_t offset = 0;

        g_assert_cmpint(gs_btf_member(b, "far", "a", &offset, NULL), ==,
                        row[i].found);
        g_assert_cmpuint(offset, ==, row[i].found ?
                         row[i].depth * row[i].bits / 8 : 0);
    }
}

TEST(test_sizes, "/btf/sizes")
{
    g_autoptr(GsBtf) b = make();
    uint32_t size;

    g_assert_true(gs_btf_type_size(b, "outer", &size));
    g_assert_cmpuint(size, ==, 48);     /* the struct, not the typedef */
    g_assert_true(gs_btf_type_size(b, "inner_t", &size));
    g_assert_cmpuint(size, ==, 16);
    g_assert_false(gs_btf_type_size(b, "none", &size));
}

TEST(test_enums, "/btf/enums")
{
    g_autoptr(GsBtf) b = make();
    int64_t value;

    types_expect_value(b, "RED", 0);
    types_expect_value(b, "GREEN", 7);
    types_expect_value(b, "MINUS", -1);
    types_expect_value(b, "BIG", 0x80000000ll);
    types_expect_value(b, "HUGE", 1ll << 40);
    g_assert_false(gs_btf_enum_value(b, "colour", &value));
    g_assert_false(gs_btf_enum_value(b, "", &value));
}

/* struct loop { struct loop; }: no such C, but a file may say so. */
TEST(test_loop, "/btf/loops")
{
    struct btf *types = btf__new_empty();
    int loop = btf__add_struct(types, "loop", 8);
    g_autoptr(GsBtf) b = NULL;
    uint32_t offset;

    btf__add_field(types, "", loop, 0, 0);
    btf__add_field(types, "", loop, 0, 0);
    btf__add_typedef(types, "self", 2);
    b = types_end(types);
    g_assert_false(gs_btf_member(b, "loop", "a", &offset, NULL));
    g_assert_false(gs_btf_member(b, "self", "a", &offset, NULL));
    g_assert_false(gs_btf_type_size(b, "self", &offset));
}

/* ---- what is searched for ---- */

/* @n headers one behind the other; what follows each makes no types, and all
 * that does are its names. */
static GByteArray *make_headers(unsigned n)
{
    GByteArray *out = g_byte_array_new();
    const uint32_t end = n * sizeof(struct btf_header);

    for (unsigned i = 0; i < n; i++) {
        struct btf_header head = {
            .magic = BTF_MAGIC, .version = BTF_VERSION,
            .hdr_len = sizeof(head), .type_len = 24,
        };

        /* at the next but one's flags there is a NUL */
        head.str_off = sizeof(head) + offsetof(struct btf_header, flags);
        head.str_len = end + 1 - (out->len + sizeof(head) + head.str_off);
        g_byte_array_append(out, (uint8_t *)&head, sizeof(head));
    }
    g_byte_array_append(out, (const uint8_t *)"", 1);
    return out;
}

static void put_types(GByteArray *out)
{
    struct btf *types = make_types();
    __u32 len;
    const void *raw = btf__raw_data(types, &len);

    g_byte_array_append(out, raw, len);
    btf__free(types);
}

TEST(test_search, "/btf/search")
{
    g_autoptr(GByteArray) out = make_headers(10);
    size_t room = 10 * 4096;
    g_autoptr(GsBtf) none = NULL;
    g_autoptr(GsBtf) b = NULL;
    bool left_out = false;
    uint32_t size;

    none = gs_btf_search(out->data, out->len, &room, &left_out);
    g_assert_null(none);
    put_types(out);
    room = 16 * 4096;
    b = gs_btf_search(out->data, out->len, &room, &left_out);
    g_assert_nonnull(b);
    g_assert_false(left_out);
    g_assert_true(gs_btf_type_size(b, "outer", &size));
}

/* Each claims all that follows: there is no room left to parse the types. */
TEST(test_search_in_headers, "/btf/search-in-headers")
{
    g_autoptr(GByteArray) out = make_headers(100000);
    size_t room = 64u << 20;
    bool left_out = false;

    put_types(out);
    g_assert_null(gs_btf_search(out->data, out->len, &room, &left_out));
    g_assert_cmpuint(room, <, 4096);
    g_assert_true(left_out);
}

TEST(test_cut_record, "/btf/cut-record")
{
    struct {
        struct btf_header head;
        struct btf_type type;
        uint32_t rest;          /* too little for another */
        char names[4];
    } bad = {
        .head = { .magic = BTF_MAGIC, .version = BTF_VERSION,
                  .hdr_len = sizeof(bad.head), .type_len = 16, .str_off = 16,
                  .str_len = 4 },
        .type = { .info = BTF_KIND_FWD << 24 },
    };

    if (g_test_subprocess()) {
        g_assert_null(gs_btf_new((uint8_t *)&bad, sizeof(bad), NULL));
        return;
    }
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_passed();
    g_test_trap_assert_stderr("");
}

/* Lookups in a struct of very many: by name, by place. */
static GsBtf *make_large(unsigned n, bool anonymous)
{
    struct btf *types = btf__new_empty();
    int t_int = btf__add_int(types, "int", 4, BTF_INT_SIGNED);
    int large = btf__add_struct(types, "large", 4 * n);
    const void *raw;
    __u32 len;
    GsBtf *b;

    for (unsigned i = 0; i < n; i++) {
        g_autofree char *name = g_strdup_printf("m%u", i);

        btf__add_field(types, anonymous ? "" : name, anonymous ? large : t_int,
                       32 * i, 0);
    }
    raw = btf__raw_data(types, &len);
    b = gs_btf_new(raw, len, NULL);
    g_assert_nonnull(b);
    btf__free(types);
    return b;
}

TEST(test_many_members, "/btf/many-members")
{
    g_autoptr(GsBtf) b = make_large(5000, false);
    g_autofree char *near = gs_btf_member_at(b, "large", 4 * 4000);
    g_autofree char *far = gs_btf_member_at(b, "large", 4 * 4999);
    uint32_t offset;

    g_assert_true(gs_btf_member(b, "large", "m4000", &offset, NULL));
    g_assert_cmpuint(offset, ==, 4 * 4000);
    g_assert_false(gs_btf_member(b, "large", "m4999", &offset, NULL));
    g_assert_cmpstr(near, ==, "m4000");
    g_assert_null(far);
}

/* All of its members are the struct itself: it takes minutes where structs
 * are counted. */
TEST(test_many_of_itself, "/btf/many-of-itself")
{
    g_autoptr(GsBtf) b = make_large(65535, true);

    for (unsigned i = 0; i < 200; i++) {
        uint32_t offset;

        g_assert_false(gs_btf_member(b, "large", "m", &offset, NULL));
    }
}

/* Structs without members, whose names collide in g_str_hash(): where they do
 * here it takes many minutes. */
TEST(test_chosen_to_collide, "/btf/chosen-to-collide")
{
    enum { BITS = 18, N = 1 << BITS, NAME = 2 * BITS + 1 };
    const size_t types_len = N * sizeof(struct btf_type);
    const size_t names_len = 1 + (size_t)N * NAME;
    struct btf_header head = {
        .magic = BTF_MAGIC, .version = BTF_VERSION, .hdr_len = sizeof(head),
        .type_len = types_len, .str_off = types_len, .str_len = names_len,
    };
    g_autofree uint8_t *raw = g_malloc0(sizeof(head) + types_len + names_len);
    struct btf_type *types = (struct btf_type *)(raw + sizeof(head));
    char *names = (char *)raw + sizeof(head) + types_len;
    g_autoptr(GsBtf) b = NULL;
    uint32_t size;

    memcpy(raw, &head, sizeof(head));
    for (unsigned i = 0; i < N; i++) {
        types[i] = (struct btf_type) {
            .name_off = 1 + i * NAME, .info = BTF_KIND_STRUCT << 24, .size = i,
        };
        for (unsigned bit = 0; bit < BITS; bit++) {
            memcpy(names + 1 + i * NAME + 2 * bit,
                   i >> bit & 1 ? "bA" : "ab", 2);
        }
    }
    b = gs_btf_new(raw, sizeof(head) + types_len + names_len, NULL);
    g_assert_nonnull(b);
    g_assert_true(gs_btf_type_size(b, names + 1 + 77 * NAME, &size));
    g_assert_cmpuint(size, ==, 77);
}

/* Each header word set to something huge, and every cut. */
TEST(test_damage, "/btf/damage")
{
    struct btf *types = make_types();
    __u32 len;
    const void *raw = btf__raw_data(types, &len);

    for (unsigned word = 0; word < 6; word++) {
        g_autofree uint32_t *bad = g_memdup2(raw, len);
        g_autoptr(GError) err = NULL;

        bad[word] = 0xfffffff0;
        g_assert_null(gs_btf_new((uint8_t *)bad, len, &err));
        g_assert_error(err, GS_ERROR, GS_ERROR_FORMAT);
    }
    for (uint32_t cut = 0; cut < len; cut++) {
        g_autofree uint8_t *bad = g_memdup2(raw, MAX(cut, 1));
        g_autoptr(GsBtf) b = gs_btf_new(bad, cut, NULL);

        g_assert_null(b);
    }
    btf__free(types);
}
