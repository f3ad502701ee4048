/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/lib/types-writer.h"
#include "tests/lib/elf-writer.h"

GBytes *types_bytes(struct btf *types)
{
    __u32 len;
    const void *raw = btf__raw_data(types, &len);
    GBytes *bytes = g_bytes_new(raw, len);

    btf__free(types);
    return bytes;
}

GsBtf *types_end(struct btf *types)
{
    g_autoptr(GBytes) bytes = types_bytes(types);
    g_autoptr(GError) err = NULL;
    size_t len;
    const uint8_t *data = g_bytes_get_data(bytes, &len);
    GsBtf *b = gs_btf_new(data, len, &err);

    g_assert_no_error(err);
    return b;
}

GByteArray *types_section(const uint8_t *records, size_t len,
                          const char *names, size_t names_len)
{
    const uint32_t types = len & ~3u;
    const struct btf_header head = {
        .magic = BTF_MAGIC, .version = BTF_VERSION, .hdr_len = sizeof(head),
        .type_len = types, .str_off = types, .str_len = names_len,
    };
    GByteArray *out = g_byte_array_new();

    g_byte_array_append(out, (const uint8_t *)&head, sizeof(head));
    g_byte_array_append(out, records, types);
    g_byte_array_append(out, (const uint8_t *)names, names_len);
    return out;
}

GBytes *types_elf(unsigned machine, const char *banner, GBytes *btf)
{
    static const ElfSymbol syms[] = {
        { "linux_banner", 0x1000, 1, STT_OBJECT },
    };
    g_autofree char *line = g_strdup_printf("%s\n", banner);
    ElfWriter w;

    elf_writer_start(&w);
    w.machine = machine;
    elf_writer_add(&w, ".rodata", 0x1000, SHF_ALLOC, line, strlen(line) + 1);
    if (btf) {
        elf_writer_add(&w, ".BTF", 0x2000, SHF_ALLOC,
                       g_bytes_get_data(btf, NULL), g_bytes_get_size(btf));
    }
    elf_writer_symbols(&w, syms, G_N_ELEMENTS(syms));
    return elf_writer_finish(&w);
}

void types_expect_members(const GsBtf *b, const TypesMember *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t offset, size;

        g_assert_true(gs_btf_member(b, rows[i].type, rows[i].member, &offset,
                                    &size));
        g_assert_cmpuint(offset, ==, rows[i].offset);
        g_assert_cmpuint(size, ==, rows[i].size);
        g_assert_true(gs_btf_member(b, rows[i].type, rows[i].member, &offset,
                                    NULL));
    }
}

void types_expect_value(const GsBtf *b, const char *name, int64_t want)
{
    int64_t value;

    g_assert_true(gs_btf_enum_value(b, name, &value));
    g_assert_cmpint(value, ==, want);
}
