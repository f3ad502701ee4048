/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A kernel that is saved and loaded names addresses as before. Damaged bytes
 * never crash the loader: it refuses them, or loads some kernel.
 */
#include <string.h>

#include "tests/lib/test-main.h"
#include "guest-symbols/gs.h"

static const char map[] =
    "0000000000000000 A fixed_percpu_data\n"
    "0000000000021000 A __per_cpu_end\n"
    "ffffffff81000000 T _stext\n"
    "ffffffff81000000 T _text\n"
    "ffffffff81000100 T kmalloc\n"
    "ffffffff81000180 t init\n"
    "ffffffff81000200 W weak\n"
    "ffffffff81000200 t init\n"
    "ffffffff81000300 T _etext\n"
    "ffffffff82000000 T _sdata\n"
    "ffffffff82000000 T jiffies\n"
    "ffffffff82000040 d local.3\n"
    "ffffffff82000060 D _edata\n"
    "ffffffff82000070 t at_exit\n"
    "ffffffff82000080 B _end\n";

static GsKernel *make(void)
{
    static const GsModuleSymbol syms[] = {
        { 0xffffffffc0000010, "ext4_alloc", 't' },
        { 0xffffffffc0000020, "ext4_free", 'T' },
        { 0xffffffffc0000020, "an_alias", 't' },
    };
    g_autoptr(GError) err = NULL;
    GsKernel *k = gs_kernel_new_from_data(map, strlen(map), "map", &err);

    g_assert_no_error(err);
    gs_kernel_set_slide(k, 0x1000000);
    g_assert_true(gs_kernel_add_module_data(
        k, 0xffffffffc0001000, "ext4", 0xffffffffc0000000, 0x800, syms,
        G_N_ELEMENTS(syms), 0, NULL, NULL, 0, NULL));
    return k;
}

static GsKernel *load(const GByteArray *data, const GByteArray *module)
{
    g_autoptr(GError) err = NULL;
    GsKernel *k = gs_kernel_new_saved(data->data, data->len, &err);

    g_assert_no_error(err);
    g_assert_true(gs_kernel_load_module(k, module->data, module->len, &err));
    g_assert_no_error(err);
    return k;
}

static void same_symbol(const GsKernel *a, const GsKernel *b, uint64_t va)
{
    GsSymbol x, y;

    g_assert_true(gs_kernel_symbolize(a, va, &x) ==
                  gs_kernel_symbolize(b, va, &y));
    if (gs_kernel_symbolize(a, va, &x)) {
        g_assert_cmpstr(x.name, ==, y.name);
        g_assert_cmpstr(x.module, ==, y.module);
        g_assert_cmpuint(x.va, ==, y.va);
        g_assert_cmpuint(x.size, ==, y.size);
        g_assert_cmpint(x.type, ==, y.type);
        g_assert_true(gs_kernel_is_code(a, &x) == gs_kernel_is_code(b, &y));
    }
}

static void same_name(const GsKernel *a, const GsKernel *b, const char *name)
{
    GsSymbol x, y;

    g_assert_true(gs_kernel_lookup(a, name, &x) ==
                  gs_kernel_lookup(b, name, &y));
    if (gs_kernel_lookup(a, name, &x)) {
        g_assert_cmpuint(x.va, ==, y.va);
        g_assert_cmpuint(x.size, ==, y.size);
    }
}

static bool names_code(const GsKernel *k, const char *name)
{
    GsSymbol sym;

    g_assert_true(gs_kernel_lookup(k, name, &sym));
    return gs_kernel_is_code(k, &sym);
}

static void saved(GByteArray *data, GByteArray *module)
{
    g_autoptr(GsKernel) k = make();

    gs_kernel_save(k, data);
    g_assert_true(gs_kernel_save_module(k, 0xffffffffc0001000, module));
    g_assert_false(gs_kernel_save_module(k, 0xffffffffc0002000, module));
}

TEST(names_as_before, "/saved/names-as-before")
{
    g_autoptr(GByteArray) data = g_byte_array_new();
    g_autoptr(GByteArray) module = g_byte_array_new();
    g_autoptr(GsKernel) was = make();
    g_autoptr(GsKernel) is = NULL;

    saved(data, module);
    is = load(data, module);
    g_assert_false(names_code(is, "jiffies"));
    g_assert_true(names_code(is, "at_exit"));
    for (uint64_t va = 0; va < 0x400; va += 8) {
        same_symbol(was, is, va);
        same_symbol(was, is, 0xffffffff82000000 + va);
        same_symbol(was, is, 0xffffffff83000000 + va);
        same_symbol(was, is, 0xffffffffc0000000 + va);
    }
    for (const char *name = "kmalloc\0init\0weak\0jiffies\0ext4_free\0"
         "ext4:an_alias\0ext3:an_alias\0nobody\0_end\0"; *name;
         name += strlen(name) + 1) {
        same_name(was, is, name);
    }
    g_assert_cmpuint(gs_kernel_n_symbols(was), ==, gs_kernel_n_symbols(is));
    g_assert_cmpuint(gs_kernel_n_modules(was), ==, gs_kernel_n_modules(is));
    g_assert_cmpuint(gs_kernel_symbol_bytes(was), ==,
                     gs_kernel_symbol_bytes(is));
    g_assert_cmpuint(gs_kernel_slide(was), ==, gs_kernel_slide(is));
    g_assert_cmpstr(gs_kernel_symbols_from(was), ==,
                    gs_kernel_symbols_from(is));
    gs_kernel_drop_module(is, 0xffffffffc0001000);
    same_symbol(was, is, 0xffffffffc0000018);
}

TEST(longest_name, "/saved/longest-name")
{
    g_autofree char *name = g_strnfill(GS_SYMBOL_NAME_MAX, 'n');
    g_autofree char *of = g_strdup_printf("ffffffff81000000 T _stext\n"
                                          "ffffffff81000100 T %s\n"
                                          "ffffffff81000300 T _etext\n", name);
    g_autoptr(GsKernel) was = gs_kernel_new_from_data(of, strlen(of), "map",
                                                      NULL);
    g_autoptr(GByteArray) data = g_byte_array_new();
    g_autoptr(GError) err = NULL;
    g_autoptr(GsKernel) is = NULL;
    GsSymbol sym;

    g_assert_nonnull(was);
    gs_kernel_save(was, data);
    is = gs_kernel_new_saved(data->data, data->len, &err);
    g_assert_no_error(err);
    g_assert_true(gs_kernel_symbolize(is, 0xffffffff81000180, &sym));
    g_assert_cmpstr(sym.name, ==, name);
}

static void try_bytes(const GByteArray *data, gsize len, bool module)
{
    g_autoptr(GError) err = NULL;
    g_autoptr(GsKernel) k = NULL;

    if (module) {
        k = make();
        gs_kernel_load_module(k, data->data, len, &err);
    } else {
        k = gs_kernel_new_saved(data->data, len, &err);
        g_assert_true(!k == !!err);
    }
}

static void damage(GByteArray *data, bool module)
{
    for (guint i = 0; i < data->len; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            data->data[i] ^= 1 << bit;
            try_bytes(data, data->len, module);
            data->data[i] ^= 1 << bit;
        }
        try_bytes(data, i, module);
    }
}

TEST(damaged, "/saved/damaged")
{
    g_autoptr(GByteArray) data = g_byte_array_new();
    g_autoptr(GByteArray) module = g_byte_array_new();

    saved(data, module);
    damage(data, false);
    damage(module, true);
}
