/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The loaded sections of an ELF file, and what other rooms ask such files for.
 * libelf reads the tables, also of damaged files. Called while a file is
 * opened, in that thread; stateless.
 */
#include "guest-symbols/image/image-internal.h"
#include "guest-symbols/base/bytes.h"
#include "guest-symbols/image/elf-sections.h"

#define SECTIONS_MAX    4096
#define NAME_MAX_LEN    64  /* ".orc_unwind_ip" is the longest asked for */
#define SHARERS_MAX     4   /* sections that a byte is in; of a linker: one */

static const uint16_t elf_machines[] = { EM_X86_64, EM_AARCH64, EM_RISCV };

bool gs_image_is_elf(const uint8_t *data, size_t len)
{
    return gs_has_magic(data, len, 0, ELFMAG);
}

Elf *gs_elf_begin(const void *data, size_t len)
{
    elf_version(EV_CURRENT);
    return elf_memory((char *)data, len);
}

Elf_Scn *gs_elf_section(Elf *elf, const char *name, unsigned type,
                        GElf_Shdr *shdr)
{
    Elf_Scn *scn = NULL;
    size_t strings = 0;

    elf_getshdrstrndx(elf, &strings);
    while ((scn = elf_nextscn(elf, scn))) {
        const char *at = gelf_getshdr(scn, shdr) && name ?
                         elf_strptr(elf, strings, shdr->sh_name) : NULL;

        if (name ? at && !strcmp(at, name) : shdr->sh_type == type) {
            return scn;
        }
    }
    return NULL;
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

static bool check_header(const uint8_t *data, size_t len, GError **errp)
{
    unsigned machine;

    if (len < sizeof(Elf64_Ehdr)) {
        return gs_fail(errp, GS_ERROR_FORMAT,
                       "ELF header: truncated at byte 0x0 of 0x%zx", len);
    }
    machine = gs_u16_at(data + offsetof(Elf64_Ehdr, e_machine));
    if (data[EI_CLASS] != ELFCLASS64 || data[EI_DATA] != ELFDATA2LSB ||
        !known_machine(machine)) {
        return gs_fail(errp, GS_ERROR_UNSUPPORTED,
                       "ELF: class %u, data %u, machine %u is not x86-64, "
                       "arm64 or riscv64", data[EI_CLASS], data[EI_DATA],
                       machine);
    }
    if (gs_u16_at(data + offsetof(Elf64_Ehdr, e_type)) == ET_REL) {
        return gs_fail(errp, GS_ERROR_FORMAT,
                       "ELF: a relocatable object (a module?), not a kernel");
    }
    return true;
}

/* Add a range of the file, at @off. One that wraps around, or lies outside the
 * file, is ignored. */
static void add_section(GsImage *img, GsSection sec, uint64_t off,
                        bool contents, uint64_t *all)
{
    size_t len;
    const uint8_t *data = g_bytes_get_data(img->bytes, &len);

    if (!sec.len || sec.va + sec.len < sec.va ||
        (contents && (off > len || sec.len > len - off))) {
        return;
    }
    if (contents) {
        sec.data = data + off;
        *all += sec.len;
    }
    sec.name = g_string_chunk_insert_const(img->names, sec.name);
    g_array_append_val(img->sections, sec);
}

/* Return the bytes of all sections that have some. */
static uint64_t fill_sections(GsImage *img, Elf *elf)
{
    Elf_Scn *scn = NULL;
    size_t strings = 0;
    uint64_t all = 0;
    GElf_Shdr sh;

    elf_getshdrstrndx(elf, &strings);
    for (unsigned i = 0; i < SECTIONS_MAX && (scn = elf_nextscn(elf, scn)) &&
         gelf_getshdr(scn, &sh); i++) {
        const char *name = elf_strptr(elf, strings, sh.sh_name);

        if (sh.sh_flags & SHF_ALLOC) {
            add_section(img, (GsSection) {
                .name = name && strlen(name) <= NAME_MAX_LEN ? name : "",
                .va = sh.sh_addr, .len = sh.sh_size,
                .exec = sh.sh_flags & SHF_EXECINSTR,
            }, sh.sh_offset, sh.sh_type != SHT_NOBITS, &all);
        }
    }
    return all;
}

static uint64_t fill_segments(GsImage *img, Elf *elf)
{
    uint64_t all = 0;
    size_t n = 0;
    GElf_Phdr ph;

    elf_getphdrnum(elf, &n);
    for (size_t i = 0; i < MIN(n, SECTIONS_MAX) && gelf_getphdr(elf, i, &ph);
         i++) {
        if (ph.p_type == PT_LOAD) {
            add_section(img, (GsSection) {
                .name = "", .va = ph.p_vaddr, .len = ph.p_filesz,
                .exec = ph.p_flags & PF_X,
            }, ph.p_offset, true, &all);
        }
    }
    return all;
}

bool gs_image_fill_elf(GsImage *img, GError **errp)
{
    size_t len;
    const uint8_t *data = g_bytes_get_data(img->bytes, &len);
    uint64_t all;
    Elf *elf;

    if (!check_header(data, len, errp)) {
        return false;
    }
    img->machine = gs_u16_at(data + offsetof(Elf64_Ehdr, e_machine));
    elf = gs_elf_begin(data, len);
    all = fill_sections(img, elf);
    if (!img->sections->len) {
        all += fill_segments(img, elf);
    }
    elf_end(elf);
    if (!img->sections->len) {
        return gs_fail(errp, GS_ERROR_FORMAT,
                       "ELF: no loaded section lies inside the file");
    }
    if (all / SHARERS_MAX > len) {
        return gs_fail(errp, GS_ERROR_FORMAT, "ELF: sections of %"
                       G_GINT64_MODIFIER "u bytes in a file of %zu", all, len);
    }
    return true;
}
