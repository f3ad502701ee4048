/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The loaded sections of an ELF file (System V ABI; only 64-bit little-endian
 * ones). Called by image.c; stateless.
 */
#include "guest-symbols/image/image-internal.h"
#include "guest-symbols/base/bytes.h"

#include <elf.h>

#define SECTIONS_MAX    4096
#define SHARERS_MAX     4   /* sections that a byte is in; of a linker: one */
#define NAME_MAX_LEN    64  /* ".orc_unwind_ip" is the longest asked for */

typedef struct Elf {
    GsBytes c;
    uint64_t contents;      /* bytes of all sections that have some */
    uint64_t phoff, shoff;
    unsigned phnum, shnum, shstrndx, machine;
} Elf;

static const uint16_t elf_machines[] = { EM_X86_64, EM_AARCH64, EM_RISCV };

bool gs_image_is_elf(const uint8_t *data, size_t len)
{
    return gs_has_magic(data, len, 0, ELFMAG);
}

static bool known_machine(unsigned machine)
{
    for (size_t i = 0; i < G_N_ELEMENTS(elf_machines); i++) {
        if (elf_machines[i] == machine) {
            return true;
        }
    }
    return false;
}

static bool elf_header(Elf *elf, GError **errp)
{
    Elf64_Ehdr h;
    const uint8_t *p = gs_bytes_take(&elf->c, sizeof(h));

    if (!p) {
        return gs_bytes_check(&elf->c, errp);
    }
    memcpy(&h, p, sizeof(h));
    if (h.e_ident[EI_CLASS] != ELFCLASS64 ||
        h.e_ident[EI_DATA] != ELFDATA2LSB ||
        !known_machine(GUINT16_FROM_LE(h.e_machine))) {
        return gs_fail(errp, GS_ERROR_UNSUPPORTED,
                       "ELF: class %u, data %u, machine %u is not x86-64, "
                       "arm64 or riscv64", h.e_ident[EI_CLASS],
                       h.e_ident[EI_DATA], GUINT16_FROM_LE(h.e_machine));
    }
    if (GUINT16_FROM_LE(h.e_type) == ET_REL) {
        return gs_fail(errp, GS_ERROR_FORMAT,
                       "ELF: a relocatable object (a module?), not a kernel");
    }
    elf->machine = GUINT16_FROM_LE(h.e_machine);
    elf->phoff = GUINT64_FROM_LE(h.e_phoff);
    elf->shoff = GUINT64_FROM_LE(h.e_shoff);
    elf->phnum = GUINT16_FROM_LE(h.e_phnum);
    elf->shnum = GUINT16_FROM_LE(h.e_shnum);
    elf->shstrndx = GUINT16_FROM_LE(h.e_shstrndx);
    return true;
}

/* Read record @i of a table of @num records of @size bytes at @off. False if it
 * lies outside the table or the file. */
static bool elf_record(const Elf *elf, uint64_t off, unsigned i, unsigned num,
                       void *rec, size_t size)
{
    GsBytes c = elf->c;
    const uint8_t *p;

    if (i >= num || off > elf->c.len) {
        return false;
    }
    gs_bytes_seek(&c, off + (uint64_t)i * size);
    p = gs_bytes_take(&c, size);
    if (p) {
        memcpy(rec, p, size);
    }
    return p != NULL;
}

/* Read a name of the string table. It is "" if there is none, or if it is
 * longer than every name that callers compare with. */
static const char *elf_section_name(const Elf *elf, const Elf64_Shdr *strs,
                                    uint32_t name)
{
    GsBytes c = elf->c;
    uint64_t off = GUINT64_FROM_LE(strs->sh_offset);
    const char *s;

    if (name >= GUINT64_FROM_LE(strs->sh_size) || off > elf->c.len) {
        return "";
    }
    gs_bytes_seek(&c, off + name);
    s = gs_bytes_str(&c, NAME_MAX_LEN, NULL);
    return s ? s : "";
}

/* Add a range of the file. One that wraps around, or lies outside the file, is
 * ignored. */
static void add_section(GsImage *img, Elf *elf, GsSection sec, uint64_t off,
                        bool contents)
{
    GsBytes c = elf->c;

    if (!sec.len || sec.va + sec.len < sec.va) {
        return;
    }
    if (contents) {
        gs_bytes_seek(&c, off);
        sec.data = gs_bytes_take(&c, sec.len);
        if (!sec.data) {
            return;
        }
        elf->contents += sec.len;
    }
    sec.name = g_string_chunk_insert_const(img->names, sec.name);
    g_array_append_val(img->sections, sec);
}

static void elf_fill_sections(GsImage *img, Elf *elf)
{
    unsigned n = MIN(elf->shnum, SECTIONS_MAX);
    Elf64_Shdr strs = { 0 };
    Elf64_Shdr sh;

    elf_record(elf, elf->shoff, elf->shstrndx, elf->shnum, &strs,
               sizeof(strs));
    for (unsigned i = 0; i < n; i++) {
        uint64_t flags;

        if (!elf_record(elf, elf->shoff, i, n, &sh, sizeof(sh))) {
            return;
        }
        flags = GUINT64_FROM_LE(sh.sh_flags);
        if (!(flags & SHF_ALLOC)) {
            continue;
        }
        add_section(img, elf, (GsSection) {
            .name = elf_section_name(elf, &strs, GUINT32_FROM_LE(sh.sh_name)),
            .va = GUINT64_FROM_LE(sh.sh_addr),
            .len = GUINT64_FROM_LE(sh.sh_size),
            .exec = flags & SHF_EXECINSTR,
        }, GUINT64_FROM_LE(sh.sh_offset),
            GUINT32_FROM_LE(sh.sh_type) != SHT_NOBITS);
    }
}

static void elf_fill_segments(GsImage *img, Elf *elf)
{
    unsigned n = MIN(elf->phnum, SECTIONS_MAX);
    Elf64_Phdr ph;

    for (unsigned i = 0; i < n; i++) {
        if (!elf_record(elf, elf->phoff, i, n, &ph, sizeof(ph))) {
            return;
        }
        if (GUINT32_FROM_LE(ph.p_type) != PT_LOAD) {
            continue;
        }
        add_section(img, elf, (GsSection) {
            .name = "",
            .va = GUINT64_FROM_LE(ph.p_vaddr),
            .len = GUINT64_FROM_LE(ph.p_filesz),
            .exec = GUINT32_FROM_LE(ph.p_flags) & PF_X,
        }, GUINT64_FROM_LE(ph.p_offset), true);
    }
}

bool gs_image_fill_elf(GsImage *img, GError **errp)
{
    size_t len;
    const uint8_t *data = g_bytes_get_data(img->bytes, &len);
    Elf elf = { 0 };

    gs_bytes_init(&elf.c, data, len, "ELF header");
    if (!elf_header(&elf, errp)) {
        return false;
    }
    img->machine = elf.machine;
    elf_fill_sections(img, &elf);
    if (!img->sections->len) {
        elf_fill_segments(img, &elf);
    }
    if (!img->sections->len) {
        return gs_fail(errp, GS_ERROR_FORMAT,
                       "ELF: no loaded section lies inside the file");
    }
    if (elf.contents / SHARERS_MAX > len) {
        return gs_fail(errp, GS_ERROR_FORMAT, "ELF: sections of %"
                       G_GINT64_MODIFIER "u bytes in a file of %zu",
                       elf.contents, len);
    }
    return true;
}
