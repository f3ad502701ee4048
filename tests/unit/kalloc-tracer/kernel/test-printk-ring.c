/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Why the ring of printk records of a kernel cannot be read. */
#include "kalloc-tracer/kernel/printk-ring.h"

#include <string.h>

#include "tests/lib/printk-writer.h"
#include "tests/lib/test-main.h"

TEST(test_why_not, "/printk-ring/why-not")
{
    g_autofree PrintkWriter *w = pw_new(4, 10, true);
    KtPrintkLayout at;
    GsKernel k;

    pw_kernel_init(&k, w, true, "printk_ringbuffer");
    g_assert_nonnull(strstr(kt_printk_layout_find(&at, &k), "types"));
    gs_symtab_free(k.symtab);
    k.symtab = gs_symtab_new();
    gs_symtab_seal(k.symtab, NULL);
    g_assert_nonnull(strstr(kt_printk_layout_find(&at, &k), "no symbol"));
    gs_symtab_free(k.symtab);
    k.symtab = gs_symtab_new();
    gs_symtab_add(k.symtab, PW_PRB, 'd', "log_first_seq", 13);
    gs_symtab_seal(k.symtab, NULL);
    g_assert_nonnull(strstr(kt_printk_layout_find(&at, &k), "before 5.10"));
    pw_kernel_deinit(&k);
}
