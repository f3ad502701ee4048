/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ORC tables, exported symbols and the layout of struct module, in real
 * kernels: KA_TEST_KERNELS=<vmlinuz>[:<vmlinuz>...].
 */
#include "tests/lib/test-main.h"
#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/modules/modules.h"
#include "guest-symbols/symbols/symtab.h"

#include <string.h>

static const char *const starts[] = {
    "kfree", "vfree", "vfs_read", "do_exit", "schedule", "mutex_lock",
    "kmem_cache_free", "krealloc", "printk", "_printk", "copy_process",
};

static void check_orc(const GsKernel *k)
{
    const GsOrcTable *t;
    unsigned n = 0;
    size_t calls = 0;

    t = gs_orc_set_table(k->orc);
    g_assert_nonnull(t);
    g_assert_cmpuint(gs_orc_table_n(t), >, 100000);
    for (size_t i = 0; i < gs_orc_table_n(t); i++) {
        uint64_t va;

        calls += gs_orc_table_nth(t, i, &va)->type == GS_ORC_CALL;
        g_assert_true(gs_orc_table_find(t, va) == gs_orc_table_nth(t, i, &va));
    }
    g_assert_cmpuint(calls * 100, >, gs_orc_table_n(t) * 80);
    for (size_t i = 0; i < G_N_ELEMENTS(starts); i++) {
        GsSymbol sym;

        if (gs_kernel_lookup(k, starts[i], &sym)) {
            const GsOrcRule *rule = gs_orc_table_find(t, sym.va);

            g_assert_nonnull(rule);
            g_assert_cmpint(rule->type, ==, GS_ORC_CALL);
            g_assert_cmpint(rule->sp, ==, GS_ORC_SP);
            g_assert_cmpint(rule->sp_off, ==, 8);
            g_assert_cmpint(rule->bp, ==, GS_ORC_BP_KEEP);
            g_assert_cmpint(rule->bp_off, ==, 0);
            g_assert_cmpint(rule->exact, ==, 0);
            n++;
        }
    }
    g_assert_cmpuint(n, >=, 5);
}

/* The image as it is in memory, without names of sections. */
typedef struct Flat {
    uint64_t va;
    size_t len;
    uint8_t *data;
} Flat;

static Flat flatten(const GsImage *img)
{
    const GsSection *first = NULL, *last = NULL;
    Flat f;

    for (size_t i = 0; i < img->sections->len; i++) {
        const GsSection *s = gs_image_nth_section(img, i);

        if (s->va >> 63) {
            first = first ? first : s;
            last = s;
        }
    }
    f.va = first->va;
    f.len = (last->va + last->len - first->va + 0x1fffff) & ~0x1fffffull;
    f.data = g_malloc0(f.len);
    for (const GsSection *s = first; s <= last; s++) {
        if (s->data) {
            memcpy(f.data + (s->va - f.va), s->data, s->len);
        }
    }
    return f;
}

static void check_orc_find(const GsKernel *k, const Flat *f)
{
    const GsSection all = {
        .name = "", .va = f->va, .data = f->data, .len = f->len,
    };
    const uint8_t *data;
    GsOrcRaw raw;
    uint64_t va;
    size_t len;

    g_assert_true(gs_orc_find(&all, &raw));
    g_assert_true(gs_image_section(k->image, ".orc_unwind_ip", &va, &data,
                                   &len));
    g_assert_cmphex(raw.ip_va, ==, va);
    g_assert_cmpuint(raw.ip_len, ==, len);
    g_assert_true(gs_image_section(k->image, ".orc_unwind", &va, &data, &len));
    g_assert_cmphex(raw.ip_va + raw.ip_len, ==, va);
    g_assert_cmpuint(raw.orc_len, ==, len);
}

static bool read_flat(void *opaque, uint64_t va, void *buf, size_t len)
{
    const Flat *f = opaque;

    if (va < f->va || va - f->va >= f->len || len > f->len - (va - f->va)) {
        return false;
    }
    memcpy(buf, f->data + (va - f->va), len);
    return true;
}

/* What an exported symbol is in kallsyms. */
static bool is_symbol(const GsSymbol *sym, void *opaque)
{
    uint64_t *va = opaque;

    if (sym->va == *va) {
        *va = 0;
    }
    return *va;
}

static void check_export(uint64_t va, const char *text, size_t len,
                         void *opaque)
{
    uint64_t left = va;
    GsSymbol sym;

    gs_kernel_foreach_named(opaque, text + 1, is_symbol, &left);
    g_assert_cmphex(left, ==, 0);
    if (gs_symbol_slides(va)) {
        g_assert_true(gs_kernel_symbolize(opaque, va, &sym));
    }
}

static void check_exports(const GsKernel *k, Flat *f)
{
    const GsMem mem = {
        .read = read_flat, .opaque = f, .no_kallsyms = true,
    };
    g_autoptr(GError) err = NULL;
    g_autoptr(GsKernel) few = NULL;
    GsSymbol sym;

    few = gs_kernel_new_from_memory(k->arch, &mem, f->va, &err);
    g_assert_no_error(err);
    g_assert_cmpstr(gs_kernel_symbols_from(few), ==, "exports");
    g_assert_cmpstr(gs_kernel_unwinder(few), ==, "ORC");
    g_assert_cmpuint(gs_kernel_n_symbols(few), >, 9000);
    gs_symtab_foreach(few->symtab, check_export, (void *)k);
    g_assert_true(gs_kernel_lookup(few, "kfree", &sym));
    g_assert_true(gs_kernel_is_text(few, sym.va));
    g_assert_cmpuint(sym.size, ==, 0);
    g_assert_true(gs_kernel_symbolize(few, sym.va, &sym));
    g_assert_false(gs_kernel_symbolize(few, sym.va + 1, &sym));
}

static void check_shape(const GsKernel *k)
{
    g_autoptr(GError) err = NULL;
    GsModuleShape shape;
    size_t n_text = 0;

    gs_module_shape_init(&shape, k->btf, &err);
    g_assert_no_error(err);
    g_assert_true(shape.has_kallsyms && shape.has_typetab && shape.has_orc);
    g_assert_true(shape.n_mem == 2 || shape.n_mem == 7);
    g_assert_cmpuint(shape.name_size, ==, 56);
    for (size_t i = 0; i < shape.n_mem; i++) {
        n_text += shape.mem[i].text || shape.mem[i].text_size;
    }
    g_assert_cmpuint(n_text, ==, 2);
}

TEST(test_real, "/real-kernels/tables")
{
    const char *list = g_getenv("KA_TEST_KERNELS");
    g_auto(GStrv) paths = g_strsplit(list ? list : "", ":", -1);

    if (!paths[0]) {
        g_test_skip("KA_TEST_KERNELS is not set");
        return;
    }
    for (size_t i = 0; paths[i]; i++) {
        g_autoptr(GError) err = NULL;
        g_autoptr(GsKernel) k = gs_kernel_open(paths[i], &err);
        Flat f;

        g_assert_no_error(err);
        check_orc(k);
        f = flatten(k->image);
        check_orc_find(k, &f);
        check_exports(k, &f);
        g_free(f.data);
        check_shape(k);
    }
}
