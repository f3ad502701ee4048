/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: the DWARF of a types file.
 *
 * The input becomes an ELF file with three sections. Byte 0 is the version of
 * the unit header that is added, 4 or 5; another value: the input has the
 * header. Bytes 1 and 2 are the length of .debug_abbrev, which follows; the
 * rest is .debug_info. .debug_str has some names.
 *
 * Checks: what is converted is BTF that can be read.
 */
#include "tests/fuzz/fuzz.h"
#include "tests/lib/elf-writer.h"
#include "guest-symbols/types/btf.h"
#include "guest-symbols/types/dwarf-types.h"

#define HEAD 3

static const char names[] = "\0a\0b\0c\0d\0e\0f";

static void query(const GsBtf *b)
{
    static const char *const queries[][2] = {
        { "a", "b" }, { "a", "b.c" }, { "b", "c.d.e.f" }, { "c", "a" },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(queries); i++) {
        uint32_t offset, size;
        int64_t value;

        gs_btf_member(b, queries[i][0], queries[i][1], &offset, &size);
        gs_btf_type_size(b, queries[i][0], &size);
        gs_btf_enum_value(b, queries[i][0], &value);
        gs_btf_func_param(b, queries[i][0], queries[i][1]);
        g_free(gs_btf_member_at(b, queries[i][0], 8 * i));
    }
}

/* Return (owned) .debug_info: a unit of that version, or the bytes alone. */
static GByteArray *make_info(unsigned version, const uint8_t *data, size_t len)
{
    static const uint8_t head_4[] = { 4, 0, 0, 0, 0, 0, 8 };
    static const uint8_t head_5[] = { 5, 0, 1, 8, 0, 0, 0, 0 };
    GByteArray *info = g_byte_array_new();
    const uint8_t *head = version == 4 ? head_4 : head_5;
    uint32_t n = version == 4 ? sizeof(head_4) : sizeof(head_5);
    uint32_t unit = n + len;

    if (version == 4 || version == 5) {
        g_byte_array_append(info, (const uint8_t *)&unit, sizeof(unit));
        g_byte_array_append(info, head, n);
    }
    g_byte_array_append(info, data, len);
    return info;
}

static GBytes *make_elf(const uint8_t *data, size_t len)
{
    size_t n = MIN((size_t)(data[1] | data[2] << 8), len - HEAD);
    g_autoptr(GByteArray) info = make_info(data[0], data + HEAD + n,
                                           len - HEAD - n);
    ElfWriter w;

    elf_writer_start(&w);
    elf_writer_add(&w, ".debug_abbrev", 0, 0, data + HEAD, n);
    elf_writer_add(&w, ".debug_info", 0, 0, info->data, info->len);
    elf_writer_add(&w, ".debug_str", 0, 0, names, sizeof(names));
    return elf_writer_finish(&w);
}

static void convert(Elf *elf)
{
    g_autoptr(GError) err = NULL;
    g_autoptr(GByteArray) raw = gs_dwarf_types(elf, &err);
    g_autoptr(GsBtf) b = NULL;

    if (!raw) {
        if (!err) {
            abort();
        }
        return;
    }
    b = gs_btf_new(raw->data, raw->len, NULL);
    if (!b) {
        abort();
    }
    query(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    g_autoptr(GBytes) bytes = NULL;
    g_autofree char *image = NULL;
    Elf *elf;

    if (len <= HEAD) {
        return 0;
    }
    bytes = make_elf(data, len);
    image = g_memdup2(g_bytes_get_data(bytes, NULL),
                      g_bytes_get_size(bytes));
    elf_version(EV_CURRENT);
    elf = elf_memory(image, g_bytes_get_size(bytes));
    if (elf) {
        convert(elf);
        elf_end(elf);
    }
    return 0;
}
