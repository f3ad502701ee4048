/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/lib/elf-writer.h"

void elf_writer_start(ElfWriter *w)
{
    *w = (ElfWriter) { .n = 1 };
    w->bytes = g_byte_array_new();
    w->names = g_byte_array_new();
    g_byte_array_set_size(w->bytes, sizeof(Elf64_Ehdr));
    memset(w->bytes->data, 0, sizeof(Elf64_Ehdr));
    g_byte_array_append(w->names, (const uint8_t *)"", 1);
}

void elf_writer_add(ElfWriter *w, const char *name, uint64_t va,
                    uint64_t flags, const void *data, size_t len)
{
    Elf64_Shdr *sh = &w->sec[w->n++];

    *sh = (Elf64_Shdr) {
        .sh_name = w->names->len,
        .sh_type = data ? SHT_PROGBITS : SHT_NOBITS,
        .sh_flags = SHF_ALLOC | flags,
        .sh_addr = va,
        .sh_offset = w->bytes->len,
        .sh_size = len,
    };
    g_byte_array_append(w->names, (const uint8_t *)name, strlen(name) + 1);
    if (data) {
        g_byte_array_append(w->bytes, data, len);
    }
}

void elf_writer_table(ElfWriter *w, unsigned type, const GByteArray *bytes)
{
    w->sec[w->n] = (Elf64_Shdr) {
        .sh_type = type, .sh_offset = w->bytes->len, .sh_size = bytes->len,
        .sh_link = w->n + 1,
    };
    w->n++;
    g_byte_array_append(w->bytes, bytes->data, bytes->len);
}

void elf_writer_symbols(ElfWriter *w, const ElfSymbol *syms, unsigned n)
{
    g_autoptr(GByteArray) table = g_byte_array_new();
    g_autoptr(GByteArray) names = g_byte_array_new();

    g_byte_array_append(names, (const uint8_t *)"", 1);
    for (unsigned i = 0; i < n; i++) {
        Elf64_Sym sym = {
            .st_name = names->len, .st_value = syms[i].va,
            .st_shndx = syms[i].section,
            .st_info = ELF64_ST_INFO(STB_GLOBAL, syms[i].type),
        };

        g_byte_array_append(table, (const uint8_t *)&sym, sizeof(sym));
        g_byte_array_append(names, (const uint8_t *)syms[i].name,
                            strlen(syms[i].name) + 1);
    }
    elf_writer_table(w, SHT_SYMTAB, table);
    elf_writer_table(w, SHT_STRTAB, names);
}

GBytes *elf_writer_finish(ElfWriter *w)
{
    Elf64_Ehdr h = {
        .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, 1 },
        .e_type = ET_EXEC, .e_version = 1, .e_entry = w->entry,
        .e_machine = w->machine ? w->machine : EM_X86_64,
        .e_ehsize = sizeof(h), .e_shentsize = sizeof(Elf64_Shdr),
    };

    w->sec[w->n] = (Elf64_Shdr) {
        .sh_type = SHT_STRTAB, .sh_offset = w->bytes->len,
        .sh_size = w->names->len,
    };
    h.e_shstrndx = w->n++;
    h.e_shnum = w->n;
    g_byte_array_append(w->bytes, w->names->data, w->names->len);
    h.e_shoff = w->bytes->len;
    g_byte_array_append(w->bytes, (const uint8_t *)w->sec,
                        w->n * sizeof(*w->sec));
    memcpy(w->bytes->data, &h, sizeof(h));
    g_byte_array_free(w->names, TRUE);
    return g_byte_array_free_to_bytes(w->bytes);
}

GBytes *bz_writer_wrap(const void *payload, uint32_t len)
{
    GByteArray *b = g_byte_array_new();
    uint32_t code = BZ_WRITER_CODE;
    uint16_t version = 0x20f;

    g_byte_array_set_size(b, BZ_WRITER_SETUP + BZ_WRITER_CODE);
    memset(b->data, 0, b->len);
    b->data[0x1f1] = 2;
    memcpy(b->data + 0x202, "HdrS", 4);
    memcpy(b->data + 0x206, &version, 2);
    memcpy(b->data + 0x248, &code, 4);
    memcpy(b->data + 0x24c, &len, 4);
    g_byte_array_append(b, payload, len);
    return g_byte_array_free_to_bytes(b);
}
