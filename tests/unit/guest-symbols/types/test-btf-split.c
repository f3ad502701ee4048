/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Types of a module continue those of the kernel, by themselves or relocated
 * from a small base (.BTF.base). What does not fit the kernel is refused. The
 * types are made with libbpf, in the form in which pahole makes them.
 */
#include "tests/lib/test-main.h"
#include "tests/lib/types-writer.h"
#include "guest-symbols/arch/arch.h"
#include "guest-symbols/types/btf-records.h"
#include "guest-symbols/types/prototype.h"

#include <string.h>

/* The kernel: int, struct pair, struct list, enum colour; two structs "twice"
 * of one size; int f(struct pair *p). */
static struct btf *kernel_types(void)
{
    struct btf *b = btf__new_empty();
    int t_int = btf__add_int(b, "int", 4, BTF_INT_SIGNED);
    int pair, p_pair, list, proto;

    pair = btf__add_struct(b, "pair", 8);
    btf__add_field(b, "a", t_int, 0, 0);
    btf__add_field(b, "b", t_int, 32, 0);
    list = btf__add_struct(b, "list", 8);
    btf__add_field(b, "next", btf__type_cnt(b), 0, 0);
    btf__add_ptr(b, list);
    btf__add_enum(b, "colour", 4);
    btf__add_enum_value(b, "RED", 0);
    for (int i = 0; i < 2; i++) {
        btf__add_struct(b, "twice", 4);
        btf__add_field(b, i ? "x" : "y", t_int, 0, 0);
    }
    p_pair = btf__add_ptr(b, pair);
    proto = btf__add_func_proto(b, t_int);
    btf__add_func_param(b, "p", p_pair);
    btf__add_func(b, "f", BTF_FUNC_GLOBAL, proto);
    return b;
}

/*
 * The module: struct mine { struct pair pair; struct list *list; enum colour
 * colour; }; int g(struct mine *mine, int n) and static f(void).
 */
typedef struct Ids {
    int t_int, pair, list, colour;
} Ids;

static void module_types(struct btf *b, const Ids *ids)
{
    int list = btf__add_ptr(b, ids->list), mine, p_mine, proto;

    mine = btf__add_struct(b, "mine", 24);
    btf__add_field(b, "pair", ids->pair, 0, 0);
    btf__add_field(b, "list", list, 64, 0);
    btf__add_field(b, "colour", ids->colour, 128, 0);
    p_mine = btf__add_ptr(b, mine);
    proto = btf__add_func_proto(b, ids->t_int);
    btf__add_func_param(b, "mine", p_mine);
    btf__add_func_param(b, "n", ids->t_int);
    btf__add_func(b, "g", BTF_FUNC_GLOBAL, proto);
    proto = btf__add_func_proto(b, 0);
    btf__add_func(b, "f", BTF_FUNC_STATIC, proto);
}

static GsBtf *split(GsBtf *kernel, struct btf *types, struct btf *small,
                    GError **errp)
{
    g_autoptr(GBytes) raw = types_bytes(types);
    g_autoptr(GBytes) base = small ? types_bytes(small) : NULL;

    return gs_btf_new_split(kernel, g_bytes_get_data(raw, NULL),
                            g_bytes_get_size(raw),
                            base ? g_bytes_get_data(base, NULL) : NULL,
                            base ? g_bytes_get_size(base) : 0, errp);
}

static void expect_prototype(GsBtf *btf, const char *func, const char *want)
{
    g_autoptr(GsPrototype) p = NULL;
    g_autofree char *text = NULL;
    const char *why;

    p = gs_prototype_new(btf, &gs_arch_x86_64, func, &why);
    text = p ? gs_prototype_text(p, func) : g_strdup(why);
    g_assert_cmpstr(text, ==, want);
}

static const TypesMember members[] = {
    { "mine", "pair.b", 4, 4 },
    { "mine", "list", 8, 8 },
    { "mine", "colour", 16, 4 },
    { "pair", "b", 4, 4 },
    { "list", "next", 0, 8 },
};

static void check_module(GsBtf *btf)
{
    const uint8_t bytes[8] = { 0xff, 0xff, 0xff, 0xff };
    g_autoptr(GString) s = g_string_new(NULL);
    g_autoptr(GsDeref) d = NULL;
    g_autoptr(GsPrototype) p = NULL;
    const char *why;

    types_expect_members(btf, members, G_N_ELEMENTS(members));
    types_expect_value(btf, "RED", 0);
    expect_prototype(btf, "g", "int g(struct mine *mine, int n)");
    expect_prototype(btf, "f", "void f(void)");
    expect_prototype(btf, "h", "the types have no function of this name");
    p = gs_prototype_new(btf, &gs_arch_x86_64, "g", &why);
    d = gs_deref_new(p, "mine->pair", NULL);
    gs_param_print(s, p, gs_deref_value(d), bytes, sizeof(bytes));
    g_assert_cmpstr(s->str, ==, "{.a=-1,.b=0}");
}

TEST(test_continues, "/btf-split/continues")
{
    struct btf *kernel = kernel_types();
    struct btf *module = btf__new_empty_split(kernel);
    const Ids ids = {
        btf__find_by_name(kernel, "int"), btf__find_by_name(kernel, "pair"),
        btf__find_by_name(kernel, "list"), btf__find_by_name(kernel, "colour"),
    };
    g_autoptr(GError) err = NULL;
    g_autoptr(GsBtf) base = NULL;
    g_autoptr(GsBtf) btf = NULL;
    g_autoptr(GBytes) raw = NULL;

    module_types(module, &ids);
    raw = types_bytes(module);
    base = types_end(kernel);
    btf = gs_btf_new_split(base, g_bytes_get_data(raw, NULL),
                           g_bytes_get_size(raw), NULL, 0, &err);
    g_assert_no_error(err);
    check_module(btf);
    expect_prototype(base, "f", "int f(struct pair *p)");
}

/* A small base as pahole makes it: structs without members, and a forward
 * declaration of what only a pointer leads to. @pair: size of struct pair */
static struct btf *small_types(Ids *ids, const char *name, unsigned pair)
{
    struct btf *b = btf__new_empty();

    ids->t_int = btf__add_int(b, "int", 4, BTF_INT_SIGNED);
    ids->list = btf__add_fwd(b, "list", BTF_FWD_STRUCT);
    ids->colour = btf__add_enum(b, "colour", 4);
    ids->pair = btf__add_struct(b, name, pair);
    return b;
}

TEST(test_relocated, "/btf-split/relocated")
{
    g_autoptr(GsBtf) kernel = types_end(kernel_types());
    g_autoptr(GError) err = NULL;
    g_autoptr(GsBtf) btf = NULL;
    struct btf *small, *module;
    Ids ids;

    small = small_types(&ids, "pair", 8);
    module = btf__new_empty_split(small);
    module_types(module, &ids);
    btf = split(kernel, module, small, &err);
    g_assert_no_error(err);
    check_module(btf);
}

static const struct {
    const char *name;
    unsigned size;
    const char *error;
} others[] = {
    { "pair", 12, "no type of that size: pair" },
    { "none", 8, "no type of that size: none" },
    { "twice", 4, "several types twice" },
    { "", 8, "senseless type" },
};

TEST(test_other_kernel, "/btf-split/other-kernel")
{
    g_autoptr(GsBtf) kernel = types_end(kernel_types());

    for (size_t i = 0; i < G_N_ELEMENTS(others); i++) {
        g_autoptr(GError) err = NULL;
        struct btf *small, *module;
        Ids ids;

        small = small_types(&ids, others[i].name, others[i].size);
        module = btf__new_empty_split(small);
        module_types(module, &ids);
        g_assert_null(split(kernel, module, small, &err));
        g_assert_nonnull(strstr(err->message, others[i].error));
    }
}

/* A section cut at each word is refused, or has fewer types. */
TEST(test_cut, "/btf-split/cut")
{
    struct btf *kernel = kernel_types();
    struct btf *module = btf__new_empty_split(kernel);
    const Ids ids = { 1, 2, 3, 5 };
    g_autoptr(GBytes) raw = NULL;
    g_autoptr(GsBtf) base = NULL;
    size_t len;
    const uint8_t *data;

    module_types(module, &ids);
    raw = types_bytes(module);
    base = types_end(kernel);
    data = g_bytes_get_data(raw, &len);
    for (size_t n = 0; n < len; n += 4) {
        g_autofree uint8_t *copy = g_memdup2(data, n);
        g_autoptr(GError) err = NULL;

        g_assert_null(gs_btf_new_split(base, copy, n, NULL, 0, &err));
        g_assert_nonnull(err);
    }
}
