/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copied values are printed by their types; bytes that are missing, and types
 * that make no sense, give "?" or a text of bounded length. The types are made
 * with libbpf.
 */
#include "tests/lib/test-main.h"
#include "tests/lib/types-writer.h"
#include "guest-symbols/base/printable.h"
#include "guest-symbols/types/btf.h"
#include "guest-symbols/types/btf-records.h"
#include "guest-symbols/types/value.h"

#include <stddef.h>
#include <string.h>

/* ---- types ---- */

/*
 * struct pair { int a; unsigned short b; };
 * struct all {
 *     struct pair pair;            0
 *     char comm[8];                8
 *     union { u64 word; u8 byte; };        16
 *     unsigned three : 3, rest : 29;       24
 *     short list[2];               28
 *     enum colour colour;          32
 *     int tail[];                  36
 * };
 */
typedef struct Types {
    struct btf *b;
    int s8, s16, s32, s64, u8, u16, u32, u64, wide, flag, chr, f32, f64;
    int size_t_, gfp_t_, flags_t, colour, low, huge, ptr, text;
    int pair, all, comm, list, loop, deep, nothing;
} Types;

static void make_ints(Types *t)
{
    t->s8 = btf__add_int(t->b, "signed char", 1, BTF_INT_SIGNED);
    t->s16 = btf__add_int(t->b, "short int", 2, BTF_INT_SIGNED);
    t->s32 = btf__add_int(t->b, "int", 4, BTF_INT_SIGNED);
    t->s64 = btf__add_int(t->b, "long int", 8, BTF_INT_SIGNED);
    t->u8 = btf__add_int(t->b, "unsigned char", 1, 0);
    t->u16 = btf__add_int(t->b, "short unsigned int", 2, 0);
    t->u32 = btf__add_int(t->b, "unsigned int", 4, 0);
    t->u64 = btf__add_int(t->b, "long unsigned int", 8, 0);
    t->wide = btf__add_int(t->b, "__int128", 16, BTF_INT_SIGNED);
    t->flag = btf__add_int(t->b, "_Bool", 1, BTF_INT_BOOL);
    t->chr = btf__add_int(t->b, "char", 1, BTF_INT_SIGNED);
    t->f32 = btf__add_float(t->b, "float", 4);
    t->f64 = btf__add_float(t->b, "double", 8);
}

static void make_named(Types *t)
{
    t->size_t_ = btf__add_typedef(t->b, "size_t", t->u64);
    t->gfp_t_ = btf__add_const(t->b, btf__add_typedef(t->b, "gfp_t", t->u32));
    t->flags_t = btf__add_typedef(t->b, "slab_flags_t", t->u32);
    t->colour = btf__add_enum(t->b, "colour", 4);
    btf__add_enum_value(t->b, "RED", 0);
    btf__add_enum_value(t->b, "MINUS", -1);
    t->low = btf__add_enum(t->b, "low", 4);
    btf__add_enum_value(t->b, "TOP", 0x80000000ll);
    t->huge = btf__add_enum64(t->b, "huge", 8, false);
    btf__add_enum64_value(t->b, "FAR", 1ull << 40);
    t->ptr = btf__add_ptr(t->b, 0);
    t->text = btf__add_ptr(t->b, t->chr);
    t->comm = btf__add_array(t->b, t->s32, t->chr, 8);
    t->list = btf__add_array(t->b, t->s32, t->s16, 2);
}

static void make_structs(Types *t)
{
    int any, tail = btf__add_array(t->b, t->s32, t->s32, 0);

    t->pair = btf__add_struct(t->b, "pair", 8);
    btf__add_field(t->b, "a", t->s32, 0, 0);
    btf__add_field(t->b, "b", t->u16, 32, 0);
    any = btf__add_union(t->b, "", 8);
    btf__add_field(t->b, "word", t->u64, 0, 0);
    btf__add_field(t->b, "byte", t->u8, 0, 0);
    t->all = btf__add_struct(t->b, "all", 36);
    btf__add_field(t->b, "pair", t->pair, 0, 0);
    btf__add_field(t->b, "comm", t->comm, 64, 0);
    btf__add_field(t->b, "", any, 128, 0);
    btf__add_field(t->b, "three", t->u32, 192, 3);
    btf__add_field(t->b, "rest", t->u32, 195, 29);
    btf__add_field(t->b, "list", t->list, 224, 0);
    btf__add_field(t->b, "colour", t->colour, 256, 0);
    btf__add_field(t->b, "tail", tail, 288, 0);
    t->nothing = btf__add_struct(t->b, "nothing", 0);
}

/* The three of which libbpf's printer makes no end, or an error: a struct in
 * itself, 2^32 - 1 structs without a size, and a member far behind the end. */
static void make_hostile(Types *t)
{
    int many = btf__add_array(t->b, t->s32, t->nothing, UINT32_MAX);

    t->loop = btf__add_struct(t->b, "loop", 8);
    btf__add_field(t->b, "a", t->loop, 0, 0);
    btf__add_field(t->b, "b", t->loop, 0, 0);
    t->deep = btf__add_struct(t->b, "deep", 8);
    btf__add_field(t->b, "many", many, 0, 0);
    btf__add_field(t->b, "far", t->s64, 0x7ffffff8, 0);
}

static Types make_types(void)
{
    Types t = { .b = btf__new_empty() };

    make_ints(&t);
    make_named(&t);
    make_structs(&t);
    make_hostile(&t);
    return t;
}

/* ---- values ---- */

#define TYPE(name) offsetof(Types, name)

static int type_at(const Types *t, size_t offset)
{
    return *(const int *)((const char *)t + offset);
}

static char *print(const GsBtf *btf, int type, const char *name,
                   GsNumberNames names, const void *bytes, size_t len)
{
    GsLeaf value = { .type = type, .name = name, .names = names };
    GString *s = g_string_new(NULL);

    if (!gs_btf_size(gs_btf_records(btf), type, &value.size)) {
        value.size = 0;
    }
    if (!value.names) {
        value.names = gs_value_names(btf, type);
    }
    gs_value_print(s, btf, &value, bytes, len);
    g_assert_true(gs_is_printable(s->str));
    g_assert_cmpuint(s->len, <=, GS_VALUE_TEXT_MAX);
    return g_string_free(s, FALSE);
}

static const struct {
    size_t type;
    const char *name;
    uint64_t value;
    const char *want;
    GsNumberNames names;
} numbers[] = {
    { TYPE(s8), "", 0xff, "-1" },
    { TYPE(s16), "", 0x7fff, "32767" },
    { TYPE(s32), "", 0xfffffff4, "-12" },
    { TYPE(s32), "", 0xfffffff4, "-12 ENOMEM", GS_NAMES_ERRNO },
    { TYPE(s32), "", 12, "12", GS_NAMES_ERRNO },
    { TYPE(s32), "", 0xfffff001, "-4095", GS_NAMES_ERRNO },
    { TYPE(s64), "", -517ll, "-517 EPROBE_DEFER", GS_NAMES_ERRNO },
    { TYPE(s32), "cap", 21, "21 CAP_SYS_ADMIN", GS_NAMES_CAPABILITY },
    { TYPE(s32), "cap", 99, "99", GS_NAMES_CAPABILITY },
    { TYPE(u8), "", 200, "200" },
    { TYPE(u32), "order", 0xffffffff, "4294967295" },
    { TYPE(u32), "flags", 0x10, "0x10" },
    { TYPE(u64), "addr", 4096, "0x1000" },
    { TYPE(u64), "start", 4096, "0x1000" },
    { TYPE(u64), "size", 4096, "4096" },
    { TYPE(u64), "nr_pages", 16, "16" },
    { TYPE(u64), "n", 16, "16" },
    { TYPE(size_t_), "x", 320, "320" },
    { TYPE(flags_t), "x", 0x2000, "0x2000" },
    { TYPE(flag), "", 0, "false" },
    { TYPE(flag), "", 1, "true" },
    { TYPE(flag), "", 2, "2" },
    { TYPE(chr), "", 65, "65" },
    { TYPE(colour), "", 0, "RED(0)" },
    { TYPE(colour), "", 0xffffffff, "MINUS(-1)" },
    { TYPE(colour), "", 5, "5" },
    { TYPE(low), "", 0x80000000, "TOP(2147483648)" },
    { TYPE(huge), "", 1ull << 40, "FAR(1099511627776)" },
    { TYPE(ptr), "", 0, "0x0" },
    { TYPE(ptr), "", 0xffff888004a1c000, "0xffff888004a1c000" },
    { TYPE(ptr), "", -12ll, "-ENOMEM" },
    { TYPE(text), "", -22ll, "-EINVAL" },
    { TYPE(ptr), "", -4095ll, "0xfffffffffffff001" },
    { TYPE(ptr), "", -4096ll, "0xfffffffffffff000" },
    { TYPE(gfp_t_), "flags", 0xdc0, "0xdc0 GFP_KERNEL|ZERO" },
    { TYPE(gfp_t_), "flags", 0xcc0, "0xcc0 GFP_KERNEL" },
    { TYPE(gfp_t_), "flags", 0x820, "0x820 GFP_ATOMIC" },
    { TYPE(gfp_t_), "flags", 0xa20, "0xa20 GFP_ATOMIC" },
    { TYPE(gfp_t_), "flags", 0x2800, "0x2800 GFP_NOWAIT|NOWARN" },
    { TYPE(gfp_t_), "flags", 0x1c24ca, "0x1c24ca GFP_TRANSHUGE" },
    { TYPE(gfp_t_), "flags", 0x100cca, "0x100cca GFP_HIGHUSER_MOVABLE" },
    { TYPE(gfp_t_), "flags", 0xc01, "0xc01 GFP_NOIO|DMA" },
    { TYPE(gfp_t_), "flags", 0x400cc0, "0x400cc0 GFP_KERNEL_ACCOUNT" },
    { TYPE(gfp_t_), "flags", 0x80000005, "0x80000005 DMA|DMA32|0x80000000" },
    { TYPE(gfp_t_), "flags", 0, "0x0" },
    { TYPE(f32), "", 0x3fc00000, "1.5" },
    { TYPE(f64), "", 0xbfe0000000000000, "-0.5" },
    { TYPE(nothing), "", 0, "{}" },
};

TEST(test_numbers, "/value/numbers")
{
    Types t = make_types();
    g_autoptr(GsBtf) btf = types_end(t.b);

    for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++) {
        uint64_t word = GUINT64_TO_LE(numbers[i].value);
        g_autofree char *got = print(btf, type_at(&t, numbers[i].type),
                                     numbers[i].name, numbers[i].names,
                                     &word, sizeof(word));

        g_assert_cmpstr(got, ==, numbers[i].want);
    }
}

/* A kernel that says which bits gfp_t has, 6.10 and later. */
TEST(test_gfp_enum, "/value/gfp-enum")
{
    struct btf *b = btf__new_empty();
    int u32 = btf__add_int(b, "unsigned int", 4, 0);
    int gfp = btf__add_typedef(b, "gfp_t", u32);
    uint32_t flags = 0x1000dc0;
    g_autoptr(GsBtf) btf = NULL;
    g_autofree char *got = NULL;

    btf__add_enum(b, "", 4);
    btf__add_enum_value(b, "___GFP_DMA_BIT", 0);
    btf__add_enum_value(b, "___GFP_ZERO_BIT", 8);
    btf__add_enum_value(b, "___GFP_UNUSED_BIT", 9);
    btf__add_enum_value(b, "___GFP_NO_OBJ_EXT_BIT", 24);
    btf__add_enum_value(b, "___GFP_LAST_BIT", 25);
    btf = types_end(b);
    got = print(btf, gfp, "", GS_NAMES_NONE, &flags, sizeof(flags));
    g_assert_cmpstr(got, ==, "0x1000dc0 GFP_KERNEL|ZERO|NO_OBJ_EXT");
}

static const uint8_t bytes[] = {
    0xff, 0xff, 0xff, 0xff, 2, 1, 0, 0,             /* pair */
    'a', '"', '\n', 0x1b, 'z', 0, 'x', 'x',         /* comm */
    7, 1, 0, 0, 0, 0, 0, 0,                         /* word, byte */
    0x0d, 0, 0, 0,                                  /* three, rest */
    0xfe, 0xff, 3, 0,                               /* list */
    0, 0, 0, 0,                                     /* colour */
};

TEST(test_structs, "/value/structs")
{
    Types t = make_types();
    g_autoptr(GsBtf) btf = types_end(t.b);
    g_autofree char *pair = print(btf, t.pair, "", 0, bytes, sizeof(bytes));
    g_autofree char *all = print(btf, t.all, "", 0, bytes, sizeof(bytes));
    g_autofree char *list = print(btf, t.list, "", 0, bytes + 28, 4);
    g_autofree char *part = print(btf, t.all, "", 0, bytes, 6);
    g_autofree char *comm = print(btf, t.comm, "", 0, "12345678", 8);
    g_autofree char *wide = print(btf, t.wide, "", 0, bytes, 16);

    g_assert_cmpstr(pair, ==, "{.a=-1,.b=258}");
    g_assert_cmpstr(all, ==, "{.pair={.a=-1,.b=258},"
                    ".comm=\"a\\\"\\n\\x1bz\",{.word=0x107,.byte=7},"
                    ".three=5,.rest=1,.list={-2,3},.colour=RED(0),.tail={}}");
    g_assert_cmpstr(list, ==, "{-2,3}");
    g_assert_cmpstr(part, ==, "{.pair={.a=-1,.b=258},.comm=?,"
                    "{.word=?,.byte=?},.three=?,.rest=?,.list={?,?},"
                    ".colour=?,.tail={}}");
    g_assert_cmpstr(comm, ==, "\"12345678\"");
    g_assert_cmpstr(wide, ==, "0x7878007a1b0a226100000102ffffffff");
}

TEST(test_missing, "/value/missing")
{
    Types t = make_types();
    g_autoptr(GsBtf) btf = types_end(t.b);

    for (size_t i = 0; i < G_N_ELEMENTS(numbers) - 1; i++) {
        uint64_t word = 0;
        g_autofree char *none = print(btf, type_at(&t, numbers[i].type), "",
                                      0, &word, 0);

        g_assert_cmpstr(none, ==, "?");
    }
    for (int type = 100; type < 200; type += 99) {
        g_autofree char *unknown = print(btf, type, "", 0, bytes, 8);

        g_assert_cmpstr(unknown, ==, "?");
    }
}

TEST(test_hostile, "/value/hostile")
{
    Types t = make_types();
    g_autoptr(GsBtf) btf = types_end(t.b);
    g_autofree char *loop = print(btf, t.loop, "", 0, bytes, 8);
    g_autofree char *deep = print(btf, t.deep, "", 0, bytes, 8);

    g_assert_true(g_str_has_prefix(loop, "{.a={.a={"));
    g_assert_true(strstr(loop, ".a={...}"));
    g_assert_true(g_str_has_suffix(loop, "..."));
    g_assert_true(g_str_has_suffix(deep, "..."));
}

TEST(test_text, "/value/text")
{
    static const struct {
        const char *text;
        size_t len;
        const char *want;
    } row[] = {
        { "name\0x", 6, "\"name\"" },
        { "name", 4, "\"name\"..." },
        { "", 1, "\"\"" },
        { "", 0, "\"\"..." },
        { "\r\x80\\\t", 5, "\"\\r\\x80\\\\\\t\"" },
    };
    g_autofree char *large = g_strnfill(4096, '\1');
    g_autoptr(GString) s = g_string_new(NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(row); i++) {
        g_string_truncate(s, 0);
        gs_value_print_text(s, row[i].text, row[i].len);
        g_assert_cmpstr(s->str, ==, row[i].want);
    }
    g_string_truncate(s, 0);
    gs_value_print_text(s, large, 4097);
    g_assert_cmpuint(s->len, <=, GS_VALUE_TEXT_MAX);
    g_assert_true(g_str_has_suffix(s->str, "\"..."));
}
