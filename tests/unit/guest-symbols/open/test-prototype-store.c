/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A prototype that was packed and unpacked prints each value as the original
 * does, and damaged bytes are no prototype.
 */
#include "tests/lib/test-main.h"
#include "tests/lib/types-writer.h"
#include "guest-symbols/arch/arch.h"
#include "guest-symbols/types/prototype.h"
#include "guest-symbols/types/value.h"

#include <string.h>

/* ---- types ---- */

typedef struct Types {
    struct btf *b;
    int v_int, v_char, v_u32, v_u64, v_bool;
    int gfp, flags, colour, state, pair, node;
} Types;

static void make_enums(Types *t)
{
    btf__add_enum(t->b, NULL, 4);
    btf__add_enum_value(t->b, "___GFP_DMA_BIT", 0);
    btf__add_enum_value(t->b, "___GFP_ODD_BIT", 7);
    t->colour = btf__add_enum(t->b, "colour", 4);
    btf__add_enum_value(t->b, "RED", 0);
    btf__add_enum_value(t->b, "ALL", 0xffffffff);
    t->state = btf__add_enum64(t->b, "state", 8, true);
    btf__add_enum64_value(t->b, "GONE", -2);
}

/* struct node { struct node *next; struct pair all[9]; } */
static void make_structs(Types *t)
{
    int next, nine;

    t->pair = btf__add_struct(t->b, "pair", 16);
    btf__add_field(t->b, "low", t->v_u64, 0, 0);
    btf__add_field(t->b, "mode", t->colour, 64, 0);
    btf__add_field(t->b, "bit", t->v_u32, 96, 3);
    nine = btf__add_array(t->b, t->v_int, t->pair, 9);
    next = btf__add_ptr(t->b, nine + 2);
    t->node = btf__add_struct(t->b, "node", 8 + 9 * 16);
    g_assert_cmpint(t->node, ==, nine + 2);
    btf__add_field(t->b, "next", next, 0, 0);
    btf__add_field(t->b, "all", nine, 64, 0);
}

static Types make_types(void)
{
    Types t = { .b = btf__new_empty() };

    t.v_int = btf__add_int(t.b, "int", 4, BTF_INT_SIGNED);
    t.v_char = btf__add_int(t.b, "char", 1, BTF_INT_SIGNED);
    t.v_u32 = btf__add_int(t.b, "unsigned int", 4, 0);
    t.v_u64 = btf__add_int(t.b, "long unsigned int", 8, 0);
    t.v_bool = btf__add_int(t.b, "_Bool", 1, BTF_INT_BOOL);
    t.gfp = btf__add_typedef(t.b, "gfp_t", t.v_u32);
    t.flags = btf__add_typedef(t.b, "slab_flags_t", t.v_u32);
    make_enums(&t);
    make_structs(&t);
    return t;
}

static void add_capable(Types *t)
{
    int proto = btf__add_func_proto(t->b, t->v_bool);

    btf__add_func_param(t->b, "cap", t->v_int);
    btf__add_func(t->b, "ns_capable", BTF_FUNC_GLOBAL, proto);
}

/* int f(...all kinds of values..., ...) */
static GsBtf *make_functions(void)
{
    Types t = make_types();
    int text = btf__add_ptr(t.b, btf__add_const(t.b, t.v_char));
    int node = btf__add_ptr(t.b, t.node);
    int proto = btf__add_func_proto(t.b, t.v_int);

    btf__add_func_param(t.b, "size", t.v_u64);
    btf__add_func_param(t.b, "gfp", t.gfp);
    btf__add_func_param(t.b, "flags", t.flags);
    btf__add_func_param(t.b, "mode", t.colour);
    btf__add_func_param(t.b, "state", t.state);
    btf__add_func_param(t.b, "pair", t.pair);
    btf__add_func_param(t.b, "what", text);
    btf__add_func_param(t.b, "node", node);
    btf__add_func_param(t.b, "on", t.v_bool);
    btf__add_func_param(t.b, "", t.v_int);
    btf__add_func_param(t.b, "", 0);
    btf__add_func(t.b, "f", BTF_FUNC_GLOBAL, proto);
    add_capable(&t);
    return types_end(t.b);
}

/* ---- comparing ---- */

static void assert_same_values(const GsPrototype *a, const GsParam *x,
                               const GsPrototype *b, const GsParam *y)
{
    static const uint64_t words[][2] = {
        { 0, 0 }, { 1, 1 }, { 0x81, 0x81 }, { 320, 0xffffffff },
        { -12ull, 5 }, { 0xffffffff, 0 }, { 21, 0x700000000 },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(words); i++) {
        g_autoptr(GString) one = g_string_new(NULL);
        g_autoptr(GString) two = g_string_new(NULL);

        gs_param_print(one, a, x, words[i], MIN(x->size, 16));
        gs_param_print(two, b, y, words[i], MIN(y->size, 16));
        g_assert_cmpstr(one->str, ==, two->str);
        g_assert_true(gs_param_failed(x, *words[i]) ==
                      gs_param_failed(y, *words[i]));
    }
}

static void assert_same(const GsPrototype *a, const GsPrototype *b)
{
    g_autofree char *one = gs_prototype_text(a, "f");
    g_autofree char *two = gs_prototype_text(b, "f");

    g_assert_cmpstr(one, ==, two);
    g_assert_cmpuint(gs_prototype_n(a), ==, gs_prototype_n(b));
    for (unsigned i = 0; i < gs_prototype_n(a); i++) {
        const GsParam *x = gs_prototype_param(a, i);
        const GsParam *y = gs_prototype_param(b, i);

        g_assert_cmpmem(&x->place, sizeof(x->place), &y->place,
                        sizeof(y->place));
        assert_same_values(a, x, b, y);
    }
    assert_same_values(a, gs_prototype_result(a), b, gs_prototype_result(b));
}

static GsPrototype *make(GsBtf *btf, const GsArch *arch, const char *func)
{
    const char *why;

    return gs_prototype_new(btf, arch, func, &why);
}

TEST(test_same, "/prototype-store/same")
{
    static const char *const funcs[] = { "f", "f.lto_priv.1", "ns_capable" };
    g_autoptr(GsBtf) btf = make_functions();

    for (unsigned i = 0; i < G_N_ELEMENTS(funcs) * GS_N_ARCHS; i++) {
        g_autoptr(GsPrototype) p = make(btf, gs_arch_nth(i % GS_N_ARCHS),
                                        funcs[i / GS_N_ARCHS]);
        g_autoptr(GByteArray) bytes = g_byte_array_new();
        g_autoptr(GsPrototype) again = NULL;

        g_assert_true(gs_prototype_pack(p, bytes));
        g_assert_cmpuint(bytes->len, <, 1500);
        again = gs_prototype_unpack(bytes->data, bytes->len);
        g_assert_nonnull(again);
        assert_same(p, again);
    }
}

/* Structs by pointer are not copied, so a packed prototype packs the same. */
TEST(test_twice, "/prototype-store/twice")
{
    g_autoptr(GsBtf) btf = make_functions();
    g_autoptr(GsPrototype) p = make(btf, &gs_arch_x86_64, "f");
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    g_autoptr(GByteArray) more = g_byte_array_new();
    g_autoptr(GsPrototype) again = NULL;

    g_assert_true(gs_prototype_pack(p, bytes));
    g_assert_null(memmem(bytes->data, bytes->len, "next", 5));
    again = gs_prototype_unpack(bytes->data, bytes->len);
    g_assert_true(gs_prototype_pack(again, more));
    g_assert_cmpuint(more->len, ==, bytes->len);
}

/* An enum that is too large: nothing is appended. */
TEST(test_too_large, "/prototype-store/too-large")
{
    Types t = make_types();
    int huge = btf__add_enum(t.b, "huge", 4);
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    g_autoptr(GsPrototype) p = NULL;
    g_autoptr(GsBtf) btf = NULL;
    int proto;

    for (int i = 0; i < 9000; i++) {
        g_autofree char *name = g_strdup_printf("VALUE_%i", i);

        btf__add_enum_value(t.b, name, i);
    }
    proto = btf__add_func_proto(t.b, t.v_int);
    btf__add_func_param(t.b, "v", huge);
    btf__add_func(t.b, "f", BTF_FUNC_GLOBAL, proto);
    btf = types_end(t.b);
    p = make(btf, &gs_arch_x86_64, "f");
    g_assert_false(gs_prototype_pack(p, bytes));
    g_assert_cmpuint(bytes->len, ==, 0);
}

TEST(test_damaged, "/prototype-store/damaged")
{
    g_autoptr(GsBtf) btf = make_functions();
    g_autoptr(GsPrototype) p = make(btf, &gs_arch_x86_64, "f");
    g_autoptr(GByteArray) bytes = g_byte_array_new();

    g_assert_true(gs_prototype_pack(p, bytes));
    for (guint len = 0; len < 40; len++) {
        g_assert_null(gs_prototype_unpack(bytes->data, len));
    }
    bytes->data[0] = GS_N_ARCHS;
    g_assert_null(gs_prototype_unpack(bytes->data, bytes->len));
    bytes->data[0] = (uint8_t)gs_arch_number(&gs_arch_arm64);
    bytes->data[1] = 'g';
    g_assert_null(gs_prototype_unpack(bytes->data, bytes->len));
}
