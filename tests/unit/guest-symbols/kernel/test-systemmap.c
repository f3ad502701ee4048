/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * System.map files are read, and the stub that Debian ships is recognised.
 * Other wrong files are refused.
 */
#include "tests/lib/test-main.h"
#include "guest-symbols/gs.h"

#include <string.h>

static const char good[] =
    "0000000000000000 D __per_cpu_start\n"
    "0000000000000040 D current_task\n"
    "0000000000000080 D __per_cpu_end\n"
    "ffffffff81000000 T _stext\n"
    "ffffffff81000000 T _text\n"
    "ffffffff81000040 t helper\n"
    "ffffffff81000080 T start_kernel\n"
    "ffffffff81000100 T _etext\n"
    "ffffffff82000000 T _sinittext\n"
    "ffffffff82000000 T init_one\n"
    "ffffffff82000040 T _einittext\n"
    "ffffffff83000000 B _end\n";

static GsKernel *open_text(const char *text, GError **errp)
{
    return gs_kernel_new_from_data(text, strlen(text), "System.map", errp);
}

TEST(test_good, "/systemmap/good")
{
    g_autoptr(GError) err = NULL;
    g_autoptr(GsKernel) k = open_text(good, &err);
    GsSymbol sym;
    uint64_t start, end;
    uint8_t byte;

    g_assert_no_error(err);
    g_assert_cmpuint(gs_kernel_n_symbols(k), ==, 12);
    g_assert_null(gs_kernel_banner(k));
    g_assert_false(gs_kernel_has_btf(k));
    g_assert_false(gs_kernel_read_image(k, 0xffffffff81000000ull, &byte, 1));
    g_assert_true(gs_kernel_lookup(k, "start_kernel", &sym));
    g_assert_cmphex(sym.va, ==, 0xffffffff81000080ull);
    g_assert_cmphex(sym.size, ==, 0x80);
    g_assert_true(gs_kernel_text_range(k, &start, &end));
    g_assert_cmphex(start, ==, 0xffffffff81000000ull);
    g_assert_cmphex(end, ==, 0xffffffff82000040ull);
}

TEST(test_slide, "/systemmap/slide")
{
    g_autoptr(GsKernel) k = open_text(good, NULL);
    const uint64_t slide = 0x1c000000;
    GsSymbol sym;
    uint64_t start, end;

    gs_kernel_set_slide(k, slide);
    g_assert_cmphex(gs_kernel_slide(k), ==, slide);
    g_assert_true(gs_kernel_lookup(k, "helper", &sym));
    g_assert_cmphex(sym.va, ==, 0xffffffff81000040ull + slide);
    g_assert_true(gs_kernel_lookup(k, "current_task", &sym));
    g_assert_cmphex(sym.va, ==, 0x40);
    g_assert_true(gs_kernel_symbolize(k, 0xffffffff81000050ull + slide,
                                      &sym));
    g_assert_cmpstr(sym.name, ==, "helper");
    g_assert_cmphex(sym.va, ==, 0xffffffff81000040ull + slide);
    g_assert_false(gs_kernel_symbolize(k, 0xffffffff81000050ull, &sym));
    g_assert_true(gs_kernel_text_range(k, &start, &end));
    g_assert_cmphex(start, ==, 0xffffffff81000000ull + slide);
    g_assert_true(gs_kernel_is_text(k, start));
    g_assert_true(gs_kernel_is_text(k, end - 1));
    g_assert_false(gs_kernel_is_text(k, end));
    /* between text and init text lies data */
    g_assert_false(gs_kernel_is_text(k, 0xffffffff81000100ull + slide));
}

static bool slid(const GsSymbol *sym, void *opaque)
{
    *(uint64_t *)opaque = sym->va;
    return true;
}

TEST(test_foreach_slides, "/systemmap/foreach-slides")
{
    g_autoptr(GsKernel) k = open_text(good, NULL);
    uint64_t va = 0;

    gs_kernel_set_slide(k, 0x1000000);
    g_assert_cmpuint(gs_kernel_foreach_named(k, "helper", slid, &va), ==, 1);
    g_assert_cmphex(va, ==, 0xffffffff82000040ull);
    g_assert_cmpuint(gs_kernel_foreach_named(k, "nothing", slid, &va), ==, 0);
}

typedef struct BadCase {
    const char *text;
    GsErrorCode code;
    const char *says;
} BadCase;

static const BadCase bad_cases[] = {
    { "ffffffffffffffff B The real System.map is in the "
      "linux-image-<version>-dbg package\n", GS_ERROR_NO_SYMBOLS,
      "linux-image-<version>-dbg" },
    { "ffffffff81000000 T _stext\nwhat is this\n", GS_ERROR_FORMAT,
      "line 2" },
    { "ffffffff81000000 T _stext\nffffffff81000040 T\n", GS_ERROR_FORMAT,
      "line 2" },
    { "ffffffff81000000 T other\nffffffff81000040 T _etext\n",
      GS_ERROR_FORMAT, "_stext" },
    { "ffffffff81000000 T _etext\nffffffff81000040 T _stext\n",
      GS_ERROR_FORMAT, "reversed" },
    { "c1000000 T _stext\nc1000040 T _etext\n", GS_ERROR_FORMAT, "64-bit" },
    { "ffffffff81000040 T _etext\nffffffff81000000 T _stext\n",
      GS_ERROR_FORMAT, "not sorted" },
};

TEST(test_bad, "/systemmap/bad")
{
    for (size_t i = 0; i < G_N_ELEMENTS(bad_cases); i++) {
        g_autoptr(GError) err = NULL;

        g_assert_null(open_text(bad_cases[i].text, &err));
        g_assert_error(err, GS_ERROR, (int)bad_cases[i].code);
        g_assert_nonnull(strstr(err->message, bad_cases[i].says));
        g_assert_true(g_str_has_prefix(err->message, "System.map: "));
        g_assert_null(strchr(err->message, '\n'));
    }
}

/* Binary rubbish in names must not reach a terminal through the message. */
TEST(test_escapes, "/systemmap/no-escapes-in-errors")
{
    g_autoptr(GError) err = NULL;

    g_assert_null(open_text("ffffffff81000000 T a \033[2Jb\n", &err));
    g_assert_null(strchr(err->message, '\033'));
}

TEST(test_open, "/systemmap/open-fails")
{
    g_autoptr(GError) err = NULL;

    g_assert_null(gs_kernel_open("/nonexistent/vmlinuz", &err));
    g_assert_error(err, GS_ERROR, GS_ERROR_IO);
    g_assert_nonnull(strstr(err->message, "/nonexistent/vmlinuz"));
    g_clear_error(&err);
    g_assert_null(gs_kernel_open("/", &err));
    g_assert_error(err, GS_ERROR, GS_ERROR_IO);
}
