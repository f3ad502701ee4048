/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Code that gets pages for the blocks of another layer: a function of each pair
 * of layers is found in a System.map, with its clones; no other is.
 */
#include "tests/lib/test-main.h"
#include "kalloc-tracer/hooks/backing-code.h"

#include <string.h>

#define TEXT 0xffffffff81000000ull

/* Each has 0x100 bytes; those at odd numbers are for themselves. */
static const char map[] =
    "ffffffff81000000 T _stext\n"
    "ffffffff81000000 t allocate_slab\n"                   /* slabs */
    "ffffffff81000100 T __pte_alloc_kernel\n"
    "ffffffff81000200 t cache_alloc_refill\n"              /* of SLAB */
    "ffffffff81000300 T kasan_populate_vmalloc\n"
    "ffffffff81000400 t ___kmalloc_large_node\n"           /* kmalloc() */
    "ffffffff81000500 T page_pool_alloc_pages\n"
    "ffffffff81000600 T __vmalloc_node_range_noprof\n"     /* vmalloc() */
    "ffffffff81000700 T vmap\n"
    "ffffffff81000800 t pcpu_populate_chunk\n"             /* percpu */
    "ffffffff81000900 T pcpu_get_vm_areas\n"
    "ffffffff81000a00 t slob_new_pages.constprop.0\n"      /* of SLOB */
    "ffffffff81000b00 t allocate_slab_not\n"
    "ffffffff81000c00 t vm_area_alloc_pages.llvm.77\n"
    "ffffffff81000d00 T driver\n"
    "ffffffff81000e00 T _etext\n";

static GsKernel *open_kernel(const char *text)
{
    g_autoptr(GError) err = NULL;
    GsKernel *k = gs_kernel_new_from_data(text, strlen(text), "System.map",
                                          &err);

    g_assert_no_error(err);
    return k;
}

TEST(pairs, "/backing-code/pairs")
{
    g_autoptr(GsKernel) k = open_kernel(map);
    g_autoptr(GArray) code = kt_backing_code(k);

    g_assert_cmpuint(code->len, ==, 7);
    for (unsigned i = 0; i < code->len; i++) {
        const KtCodeRange *r = &g_array_index(code, KtCodeRange, i);

        g_assert_cmphex(r->lo, ==, TEXT + 0x200 * i);
        g_assert_cmphex(r->hi, ==, TEXT + 0x200 * i + 0xff);
    }
}

TEST(none, "/backing-code/none")
{
    g_autoptr(GsKernel) k = open_kernel("ffffffff81000000 T _stext\n"
                                        "ffffffff81000100 T driver\n"
                                        "ffffffff81000200 T _etext\n");

    g_assert_null(kt_backing_code(k));
}
