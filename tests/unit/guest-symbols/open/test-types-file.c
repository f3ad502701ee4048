/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Types files: raw BTF and ELF files with .BTF or DWARF are read, everything
 * else is refused with one line that names the file. A kernel without BTF uses
 * a file until it is dropped; a kernel's own BTF stays.
 */
#include "tests/lib/elf-writer.h"
#include "tests/lib/test-main.h"
#include "tests/lib/types-file.h"
#include "tests/lib/types-writer.h"
#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/types/btf.h"

#define BANNER "Linux version 6.12.1 (a@b) #1 SMP"

/* BTF with struct one, of @size bytes. */
static GBytes *make_btf(uint32_t size)
{
    struct btf *types = btf__new_empty();
    int t_int = btf__add_int(types, "int", 4, 0);

    btf__add_struct(types, "one", size);
    btf__add_field(types, "at", t_int, 64, 0);
    return types_bytes(types);
}

static GsKernel *kernel_of(GsTypesFile *f)
{
    GsKernel *k = gs_kernel_new_empty();

    gs_kernel_set_types(k, f);
    return k;
}

static void expect_types(GsTypesFile *f)
{
    g_autoptr(GsKernel) k = kernel_of(f);
    uint32_t size, offset;

    g_assert_true(gs_kernel_type_size(k, "one", &size));
    g_assert_cmpuint(size, ==, 24);
    g_assert_true(gs_kernel_member(k, "one", "at", &offset, NULL));
    g_assert_cmpuint(offset, ==, 8);
}

TEST(test_raw_btf, "/types-file/raw-btf")
{
    g_autoptr(GBytes) btf = make_btf(24);
    g_autoptr(GError) err = NULL;
    g_autoptr(GsTypesFile) f = types_file(btf, &err);

    g_assert_no_error(err);
    g_assert_null(gs_types_file_arch(f));
    g_assert_null(gs_types_file_banner(f));
    expect_types(f);
}

TEST(test_elf_with_btf, "/types-file/elf-with-btf")
{
    g_autoptr(GBytes) btf = make_btf(24);
    g_autoptr(GBytes) elf = types_elf(EM_AARCH64, BANNER, btf);
    g_autoptr(GError) err = NULL;
    g_autoptr(GsTypesFile) f = types_file(elf, &err);

    g_assert_no_error(err);
    g_assert_cmpstr(gs_types_file_arch(f)->name, ==, "aarch64");
    g_assert_cmpstr(gs_types_file_banner(f), ==, BANNER);
    expect_types(f);
}

TEST(test_elf_with_dwarf, "/types-file/elf-with-dwarf")
{
    g_auto(GStrv) paths = g_strsplit(g_getenv("KA_DWARF_SAMPLES"), ":", -1);
    g_autoptr(GError) err = NULL;
    g_autoptr(GsTypesFile) f = gs_types_file_open(paths[0], &err);
    g_autoptr(GsKernel) k = NULL;
    uint32_t offset;

    g_assert_no_error(err);
    k = kernel_of(f);
    g_assert_true(gs_kernel_member(k, "sample_inner", "b", &offset, NULL));
}

static void expect_error(GBytes *bytes, const char *text)
{
    g_autoptr(GError) err = NULL;

    g_assert_null(types_file(bytes, &err));
    g_assert_nonnull(strstr(err->message, text));
    g_assert_nonnull(strstr(err->message, "/types: "));
    g_assert_null(strchr(err->message, '\n'));
}

TEST(test_refused, "/types-file/refused")
{
    g_autoptr(GBytes) text = g_bytes_new_static("no types", 8);
    g_autoptr(GBytes) tiny = g_bytes_new_static("x", 1);
    g_autoptr(GBytes) cut = g_bytes_new_static("\x9f\xeb\1\0\x18\0\0\0", 8);
    g_autoptr(GBytes) elf_cut = g_bytes_new_static("\177ELF\2\1\1", 7);
    g_autoptr(GBytes) elf = types_elf(EM_X86_64, BANNER, NULL);
    g_autoptr(GBytes) elf_bad = types_elf(EM_X86_64, BANNER, text);

    expect_error(text, "not a file with types");
    expect_error(tiny, "not a file with types");
    expect_error(cut, "BTF");
    expect_error(elf_cut, "");
    expect_error(elf, "has no types");
    expect_error(elf_bad, "BTF");
}

TEST(test_no_file, "/types-file/no-file")
{
    g_autoptr(GError) none = NULL, is_folder = NULL;

    g_assert_null(gs_types_file_open("/no/such/file", &none));
    g_assert_error(none, GS_ERROR, GS_ERROR_IO);
    g_assert_null(gs_types_file_open("/", &is_folder));
    g_assert_error(is_folder, GS_ERROR, GS_ERROR_IO);
}

TEST(test_rungs, "/types-file/rungs")
{
    g_autoptr(GBytes) btf = make_btf(24), other = make_btf(32);
    g_autoptr(GsTypesFile) f = types_file(btf, NULL);
    g_autoptr(GsKernel) k = gs_kernel_new_empty();
    g_autoptr(GsKernel) own = gs_kernel_new_empty();
    uint32_t size;

    g_assert_cmpstr(gs_kernel_types_from(k), ==, "none");
    gs_kernel_set_types(k, f);
    g_assert_cmpstr(gs_kernel_types_from(k), ==, "file");
    g_assert_false(gs_kernel_has_btf(k));
    gs_kernel_set_types(k, NULL);
    g_assert_cmpstr(gs_kernel_types_from(k), ==, "none");
    g_assert_false(gs_kernel_type_size(k, "one", &size));
    own->btf = gs_btf_new(g_bytes_get_data(other, NULL),
                          g_bytes_get_size(other), NULL);
    gs_kernel_set_types(own, f);
    g_assert_cmpstr(gs_kernel_types_from(own), ==, "BTF");
    g_assert_true(gs_kernel_type_size(own, "one", &size));
    g_assert_cmpuint(size, ==, 32);
}
