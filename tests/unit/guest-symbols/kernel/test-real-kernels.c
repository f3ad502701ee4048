/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ORC tables and the layout of struct module, in real kernels:
 * KA_TEST_KERNELS=<vmlinuz>[:<vmlinuz>...].
 */
#include "tests/lib/test-main.h"
#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/modules/modules.h"

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

/* The same table is found in the image as it is in memory, without names of
 * sections. */
static void check_orc_find(const GsKernel *k)
{
    const GsSection *first = NULL, *last = NULL;
    g_autofree uint8_t *flat = NULL;
    GsSection all = { .name = "" };
    const uint8_t *data;
    GsOrcRaw raw;
    uint64_t va;
    size_t len;

    for (size_t i = 0; i < gs_image_n_sections(k->image); i++) {
        const GsSection *s = gs_image_nth_section(k->image, i);

        if (s->va >> 63) {
            first = first ? first : s;
            last = s;
        }
    }
    all.va = first->va;
    all.len = last->va + last->len - first->va;
    all.data = flat = g_malloc0(all.len);
    for (const GsSection *s = first; s <= last; s++) {
        if (s->data) {
            memcpy(flat + (s->va - all.va), s->data, s->len);
        }
    }
    g_assert_true(gs_orc_find(&all, &raw));
    g_assert_true(gs_image_section(k->image, ".orc_unwind_ip", &va, &data,
                                   &len));
    g_assert_cmphex(raw.ip_va, ==, va);
    g_assert_cmpuint(raw.ip_len, ==, len);
    g_assert_true(gs_image_section(k->image, ".orc_unwind", &va, &data, &len));
    g_assert_cmphex(raw.ip_va + raw.ip_len, ==, va);
    g_assert_cmpuint(raw.orc_len, ==, len);
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

static void test_real(void)
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

        g_assert_no_error(err);
        check_orc(k);
        check_orc_find(k);
        check_shape(k);
    }
}

int main(int argc, char **argv)
{
    static const TestCase cases[] = {
        { "/real-kernels/tables", test_real },
    };

    return test_main(argc, argv, cases, G_N_ELEMENTS(cases));
}
