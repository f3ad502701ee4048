/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Types from a file, see gs-types-file.h. libelf reads ELF files section by
 * section, so that a vmlinux of a gigabyte is not in memory as a whole.
 */
#include "guest-symbols/arch/arch.h"
#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/base/printable.h"
#include "guest-symbols/image/elf-sections.h"
#include "guest-symbols/modules/modules.h"
#include "guest-symbols/types/btf.h"
#include "guest-symbols/types/btf-records.h"
#include "guest-symbols/types/dwarf-types.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define BANNER_MAX      512
#define BANNER          "linux_banner"

struct GsTypesFile {
    GsBtf *btf;
    const GsArch *arch;
    char *banner;
};

/* ---- ELF ---- */

/* Find a symbol; false if the file is stripped. */
static bool symbol_named(Elf *elf, const char *name, GElf_Sym *sym)
{
    GElf_Shdr shdr;
    Elf_Scn *scn = gs_elf_section(elf, NULL, SHT_SYMTAB, &shdr);
    Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;

    for (int i = 0; data && gelf_getsym(data, i, sym); i++) {
        const char *at = elf_strptr(elf, shdr.sh_link, sym->st_name);

        if (at && !strcmp(at, name)) {
            return true;
        }
    }
    return false;
}

/* Return the text at @va in a section; NULL for a separate debug file, whose
 * sections are empty. */
static char *text_at(Elf *elf, unsigned section, uint64_t va)
{
    Elf_Scn *scn = elf_getscn(elf, section);
    GElf_Shdr shdr;
    Elf_Data *data;
    uint64_t off;

    if (!scn || !gelf_getshdr(scn, &shdr) || shdr.sh_type == SHT_NOBITS) {
        return NULL;
    }
    data = elf_getdata(scn, NULL);
    off = va - shdr.sh_addr;
    if (!data || !data->d_buf || off >= data->d_size) {
        return NULL;
    }
    return g_strndup((char *)data->d_buf + off,
                     MIN(data->d_size - off, BANNER_MAX));
}

static char *find_banner(Elf *elf)
{
    GElf_Sym sym;
    char *text = symbol_named(elf, BANNER, &sym) ?
                 text_at(elf, sym.st_shndx, sym.st_value) : NULL;

    if (text) {
        text[strcspn(text, "\n")] = '\0';
        if (!gs_is_printable(text)) {
            g_clear_pointer(&text, g_free);
        }
    }
    return text;
}

static GsBtf *btf_of_section(Elf_Scn *scn, GError **errp)
{
    Elf_Data *data = elf_getdata(scn, NULL);

    if (!data || !data->d_buf) {
        return gs_fail(errp, GS_ERROR_FORMAT, "its .BTF section is empty");
    }
    return gs_btf_new(data->d_buf, data->d_size, errp);
}

static GsBtf *btf_of_dwarf(Elf *elf, GError **errp)
{
    g_autoptr(GByteArray) raw = gs_dwarf_types(elf, errp);

    return raw ? gs_btf_new(raw->data, raw->len, errp) : NULL;
}

static bool has_dwarf(Elf *elf)
{
    GElf_Shdr shdr;

    return gs_elf_section(elf, ".debug_info", 0, &shdr) ||
           gs_elf_section(elf, ".zdebug_info", 0, &shdr);
}

static bool read_elf(GsTypesFile *f, Elf *elf, GError **errp)
{
    GElf_Ehdr ehdr;
    GElf_Shdr shdr;
    Elf_Scn *scn;

    if (!gelf_getehdr(elf, &ehdr) ||
        ehdr.e_ident[EI_CLASS] != ELFCLASS64 ||
        ehdr.e_ident[EI_DATA] != ELFDATA2LSB) {
        return gs_fail(errp, GS_ERROR_FORMAT,
                       "not an ELF file of 64 bits, little-endian");
    }
    scn = gs_elf_section(elf, ".BTF", 0, &shdr);
    if (!scn && !has_dwarf(elf)) {
        return gs_fail(errp, GS_ERROR_FORMAT,
                       "this ELF file has no types: it needs a .BTF section, "
                       "or debug info (CONFIG_DEBUG_INFO)");
    }
    f->arch = gs_arch_of_machine(ehdr.e_machine);
    f->banner = find_banner(elf);
    f->btf = scn ? btf_of_section(scn, errp) : btf_of_dwarf(elf, errp);
    return f->btf != NULL;
}

/* ---- files ---- */

static bool read_open_elf(GsTypesFile *f, int fd, GError **errp)
{
    bool ok = false;
    Elf *elf;

    elf_version(EV_CURRENT);
    elf = elf_begin(fd, ELF_C_READ, NULL);
    if (elf) {
        ok = read_elf(f, elf, errp);
        elf_end(elf);
    } else {
        g_set_error(errp, GS_ERROR, GS_ERROR_FORMAT, "%s", elf_errmsg(-1));
    }
    return ok;
}

static bool read_raw(GsTypesFile *f, const char *path, GError **errp)
{
    g_autoptr(GBytes) bytes = gs_kernel_read_file(path, errp);
    const uint8_t *data;
    size_t len;

    if (bytes) {
        data = g_bytes_get_data(bytes, &len);
        f->btf = gs_btf_new(data, len, errp);
    }
    return f->btf != NULL;
}

typedef enum Form {
    FORM_UNREADABLE,
    FORM_OTHER,
    FORM_BTF,
    FORM_ELF,
} Form;

static Form form_of(int fd, GError **errp)
{
    static const uint8_t btf[] = { GS_BTF_MAGIC & 0xff, GS_BTF_MAGIC >> 8 };
    uint8_t head[SELFMAG];
    struct stat st;

    if (fd < 0 || fstat(fd, &st)) {
        g_set_error(errp, GS_ERROR, GS_ERROR_IO, "%s", g_strerror(errno));
        return FORM_UNREADABLE;
    }
    if (!S_ISREG(st.st_mode)) {
        g_set_error(errp, GS_ERROR, GS_ERROR_IO, "not a regular file");
        return FORM_UNREADABLE;
    }
    if (pread(fd, head, sizeof(head), 0) != sizeof(head)) {
        return FORM_OTHER;
    }
    return !memcmp(head, ELFMAG, SELFMAG) ? FORM_ELF :
           !memcmp(head, btf, sizeof(btf)) ? FORM_BTF : FORM_OTHER;
}

static bool read_file(GsTypesFile *f, const char *path, int fd, GError **errp)
{
    switch (form_of(fd, errp)) {
    case FORM_ELF:
        return read_open_elf(f, fd, errp);
    case FORM_BTF:
        return read_raw(f, path, errp);
    case FORM_OTHER:
        return gs_fail(errp, GS_ERROR_FORMAT,
                       "not a file with types: use BTF, or an ELF file with a "
                       ".BTF section or with debug info");
    default:
        return false;
    }
}

GsTypesFile *gs_types_file_open(const char *path, GError **errp)
{
    g_autoptr(GsTypesFile) f = g_new0(GsTypesFile, 1);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool ok = read_file(f, path, fd, errp);

    if (fd >= 0) {
        close(fd);
    }
    if (ok && gs_btf_is_empty(f->btf)) {
        g_set_error(errp, GS_ERROR, GS_ERROR_FORMAT, "it has no types");
        ok = false;
    }
    if (!ok) {
        g_prefix_error(errp, "%s: ", path);
        return NULL;
    }
    return g_steal_pointer(&f);
}

void gs_types_file_free(GsTypesFile *f)
{
    if (f) {
        gs_btf_free(f->btf);
        g_free(f->banner);
        g_free(f);
    }
}

const GsArch *gs_types_file_arch(const GsTypesFile *f)
{
    return f->arch;
}

const char *gs_types_file_banner(const GsTypesFile *f)
{
    return f->banner;
}

/* ---- a kernel's ---- */

void gs_kernel_set_types(GsKernel *k, const GsTypesFile *f)
{
    if (k->btf && !k->btf_from_file) {
        return;
    }
    g_clear_pointer(&k->btf, gs_btf_free);
    k->btf = f ? gs_btf_ref(f->btf) : NULL;
    k->btf_from_file = f;
    gs_modules_drop_shape(k->modules);
}
