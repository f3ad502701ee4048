/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel's banner is found by its symbol or by its text. Text that only
 * begins like a banner is not one.
 */
#include "tests/lib/elf-writer.h"
#include "tests/lib/test-main.h"
#include "guest-symbols/kernel/kernel.h"

#define RODATA  0xffffffff81800000ull
#define START   "Linux version "
#define BANNER  "Linux version 6.12.0 (somebody@somewhere) #1 SMP"

/* @decoys times the beginning, then the line. */
static GsImage *make_image(unsigned decoys)
{
    g_autoptr(GString) ro = g_string_new(NULL);
    g_autoptr(GBytes) elf = NULL;
    ElfWriter w;

    for (unsigned i = 0; i < decoys; i++) {
        g_string_append(ro, START);
    }
    g_string_append_c(ro, 0);
    g_string_append_len(ro, BANNER "\n", sizeof(BANNER "\n"));
    elf_writer_start(&w);
    elf_writer_add(&w, ".rodata", RODATA, 0, (uint8_t *)ro->str, ro->len);
    elf = elf_writer_finish(&w);
    return gs_image_new(elf, NULL);
}

static void expect(unsigned decoys, const char *banner, size_t at)
{
    g_autoptr(GsImage) img = make_image(decoys);
    g_autoptr(GsSymtab) tab = gs_symtab_new();
    g_autofree char *found = NULL;
    uint64_t va = 0;

    gs_symtab_seal(tab, img);
    found = gs_banner_find(img, tab, &va);
    g_assert_true(g_str_has_prefix(found, banner));
    g_assert_cmphex(va, ==, RODATA + at);
}

TEST(test_by_text, "/banner/by-text")
{
    expect(0, BANNER, 1);
    expect(10, BANNER, 10 * strlen(START) + 1);
}

TEST(test_by_symbol, "/banner/by-symbol")
{
    g_autoptr(GsImage) img = make_image(1000);
    g_autoptr(GsSymtab) tab = gs_symtab_new();
    const uint64_t at = RODATA + 1000 * strlen(START) + 1;
    g_autofree char *found = NULL;
    uint64_t va = 0;

    g_assert_true(gs_symtab_add(tab, at, 'D', "linux_banner", 12));
    gs_symtab_seal(tab, img);
    found = gs_banner_find(img, tab, &va);
    g_assert_cmpstr(found, ==, BANNER);
    g_assert_cmphex(va, ==, at);
}

/* Not all of them are looked at: an image has room for millions. */
TEST(test_decoys, "/banner/decoys")
{
    expect(1000, START START START, 0);
}
