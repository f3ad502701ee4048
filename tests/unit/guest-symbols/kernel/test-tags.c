/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tags in pointers: which kernels keep them, and addresses without them. */
#include "tests/lib/test-main.h"
#include "guest-symbols/gs.h"

#include <string.h>

#define TOP_BYTE (0xffull << 56)

/* Make a kernel of arm64, or of x86-64, with one more function. */
static GsKernel *kernel_with(bool arm64, const char *function)
{
    g_autofree char *map = g_strdup_printf(
        "ffff800080000000 T _text\n"
        "ffff800080000000 T _stext\n"
        "ffff800080000040 T %s\n"
        "ffff800080000080 T %s\n"
        "ffff8000800000c0 T start_kernel\n"
        "ffff800080000100 T _etext\n", arm64 ? "__primary_switched" :
                                               "x86_64_start_kernel", function);
    g_autoptr(GError) err = NULL;
    GsKernel *k = gs_kernel_new_from_data(map, strlen(map), "System.map", &err);

    g_assert_no_error(err);
    return k;
}

static void check(bool arm64, const char *function, bool tags, uint64_t bits)
{
    g_autoptr(GsKernel) k = kernel_with(arm64, function);

    g_assert_cmpint(gs_kernel_tags_pointers(k), ==, tags);
    g_assert_cmphex(gs_kernel_tag_bits(k), ==, bits);
}

TEST(kernels, "/tags/kernels")
{
    check(true, "kfree", false, 0);
    check(true, "__hwasan_tag_memory", true, TOP_BYTE);
    check(true, "kasan_init_hw_tags", true, TOP_BYTE);
    /* of generic KASAN */
    check(true, "kasan_save_stack", false, 0);
    /* tags, but not in the top byte: nobody knows where */
    check(false, "__hwasan_tag_memory", true, 0);
}

TEST(addresses, "/tags/addresses")
{
    static const struct {
        uint64_t va, untagged;
    } rows[] = {
        /* 48 bits, 52 bits: direct map, vmalloc */
        { 0x2eff80001234c000, 0xffff80001234c000 },
        { 0x00ff000012345678, 0xffff000012345678 },
        { 0x80f0000012345678, 0xfff0000012345678 },
        { 0xffff80001234c000, 0xffff80001234c000 },
        /* the last byte of memory, an error pointer, none */
        { 0x2effffffffffffff, 0xffffffffffffffff },
        { 0xfffffffffffffffe, 0xfffffffffffffffe },
        { 0, 0 }, { 16, 16 },
        /* user space, sizes, numbers */
        { 0x0000aaaaaaaa0000, 0x0000aaaaaaaa0000 },
        { 0x2e00aaaaaaaa0000, 0x2e00aaaaaaaa0000 },
        { 0x00e0000000001000, 0x00e0000000001000 },
        { 0xffffffff, 0xffffffff },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_assert_cmphex(gs_untag(TOP_BYTE, rows[i].va), ==, rows[i].untagged);
        g_assert_cmphex(gs_untag(TOP_BYTE, rows[i].untagged), ==,
                        rows[i].untagged);
        g_assert_cmphex(gs_untag(0, rows[i].va), ==, rows[i].va);
    }
}

/* The complement of the top byte, so that a pointer without a tag has 0. */
TEST(tags, "/tags/tags")
{
    g_assert_cmphex(gs_tag_of(TOP_BYTE, 0x2eff80001234c000), ==, 0xd1);
    g_assert_cmphex(gs_tag_of(TOP_BYTE, 0x00ff80001234c000), ==, 0xff);
    g_assert_cmphex(gs_tag_of(TOP_BYTE, 0xffff80001234c000), ==, 0);
    g_assert_cmphex(gs_tag_of(0, 0x2eff80001234c000), ==, 0);
    g_assert_cmphex(gs_tag_of(TOP_BYTE, 0), ==, 0);
    g_assert_cmphex(gs_tag_of(TOP_BYTE, 0x0000aaaaaaaa0000), ==, 0);
}
