/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads a module from its ELF file, which is in guest memory while the module
 * is loaded. For kernels without types: nothing of struct module is read but
 * the name, which may be anywhere in it (RANDSTRUCT).
 *
 * load_module() in kernel/module/main.c works on the file in memory. It sets
 * the addresses in the section headers to where the sections are, and the
 * values in the symbol table to addresses, before it calls
 *
 *     module_finalize(ELF header, section headers, struct module)
 *
 * So the file has all that the kernel itself uses: the memory, the symbols
 * (those that kallsyms does not keep, too) and the ORC.
 *
 * The arguments are believed if they agree with each other:
 *
 *     section headers  are where the ELF header says
 *     struct module    is the section .gnu.linkonce.this_module
 *     the name         is in .modinfo and in struct module
 *
 * libelf is of no use here: the headers have addresses in the guest, and no
 * offsets in the file.
 *
 * Called by module-add.c in a vCPU thread, without a lock; nothing here is
 * shared. Sizes and pointers come from the guest: each is capped before use.
 */
#include "guest-symbols/base/sorted.h"
#include "guest-symbols/modules/module-read.h"
#include "guest-symbols/modules/modules-internal.h"

#include <elf.h>
#include <string.h>

#define NAMES_MAX       (1u << 20)      /* of sections */
#define MAX_MODINFO     (1u << 20)
#define MAX_STRUCT      65536u
#define ORC_IP_SIZE     4u
#define ORC_SIZE        6u
#define NAME_KEY        "name="
/* Sections of one area follow each other, up to the alignment of a page.
 * Between two areas of vmalloc() there is a page that is not mapped. */
#define GAP             4096u

/* A section header, in host byte order. */
typedef struct Section {
    uint64_t va, size, flags;
    uint32_t type, link;
    const char *name;
} Section;

/* @header: its address; @sections: @n headers; @names: NUL at the end,
 * @names_len without it */
typedef struct File {
    const GsMem *mem;
    uint64_t header;
    Elf64_Shdr *sections;
    unsigned n;
    char *names;
    size_t names_len;
} File;

static void file_clear(File *f)
{
    g_free(f->sections);
    g_free(f->names);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(File, file_clear)

/* ---- sections --------------------------------------------------------- */

/* @i: below File.n */
static Section section(const File *f, unsigned i)
{
    const Elf64_Shdr *sh = &f->sections[i];
    uint32_t name = GUINT32_FROM_LE(sh->sh_name);

    return (Section) {
        .va = GUINT64_FROM_LE(sh->sh_addr),
        .size = GUINT64_FROM_LE(sh->sh_size),
        .flags = GUINT64_FROM_LE(sh->sh_flags),
        .type = GUINT32_FROM_LE(sh->sh_type),
        .link = GUINT32_FROM_LE(sh->sh_link),
        .name = f->names && name < f->names_len ? f->names + name : "",
    };
}

static bool find(const File *f, const char *name, Section *out)
{
    for (unsigned i = 1; i < f->n; i++) {
        *out = section(f, i);
        if (!strcmp(out->name, name)) {
            return true;
        }
    }
    return false;
}

static bool is_header(const Elf64_Ehdr *h, const GsModuleFile *at)
{
    return !memcmp(h->e_ident, ELFMAG, SELFMAG) &&
           h->e_ident[EI_CLASS] == ELFCLASS64 &&
           h->e_ident[EI_DATA] == ELFDATA2LSB &&
           GUINT16_FROM_LE(h->e_type) == ET_REL &&
           GUINT16_FROM_LE(h->e_shentsize) == sizeof(Elf64_Shdr) &&
           GUINT16_FROM_LE(h->e_shstrndx) < GUINT16_FROM_LE(h->e_shnum) &&
           at->header + GUINT64_FROM_LE(h->e_shoff) == at->sections;
}

static bool open_file(File *f, const GsModuleFile *at, GError **errp)
{
    Elf64_Ehdr h;
    Section names;

    if (!f->mem->read(f->mem->opaque, at->header, &h, sizeof(h)) ||
        !is_header(&h, at)) {
        return gs_module_fail(errp, "no ELF file", at->header);
    }
    f->n = GUINT16_FROM_LE(h.e_shnum);
    f->sections = gs_module_dup(f->mem, at->sections,
                                f->n * sizeof(Elf64_Shdr),
                                "unreadable section headers", errp);
    if (!f->sections) {
        return false;
    }
    names = section(f, GUINT16_FROM_LE(h.e_shstrndx));
    f->names = gs_module_dup_some(f->mem, names.va,
                                  MIN(names.size, NAMES_MAX), &f->names_len);
    return f->names || gs_module_fail(errp, "no section names", names.va);
}

/* ---- name ------------------------------------------------------------- */

/* Find a string that begins with NAME_KEY; strings end with a NUL. */
static bool find_name(GsModuleInfo *info, const char *text, size_t len)
{
    for (size_t at = 0; at < len; at += strlen(text + at) + 1) {
        if (g_str_has_prefix(text + at, NAME_KEY)) {
            const char *name = text + at + strlen(NAME_KEY);

            return *name && g_strlcpy(info->name, name, sizeof(info->name)) <
                                sizeof(info->name);
        }
    }
    return false;
}

static bool read_name(GsModuleInfo *info, const File *f, const Section *self,
                      GError **errp)
{
    size_t len = MIN(self->size, MAX_STRUCT), got = 0;
    g_autofree char *bytes = gs_module_dup(f->mem, self->va, len,
                                           "unreadable struct module", errp);
    g_autofree char *text = NULL;
    Section modinfo;

    if (!bytes) {
        return false;
    }
    if (find(f, ".modinfo", &modinfo)) {
        text = gs_module_dup_some(f->mem, modinfo.va,
                                  MIN(modinfo.size, MAX_MODINFO), &got);
    }
    if (!text || !find_name(info, text, got) ||
        !memmem(bytes, len, info->name, strlen(info->name) + 1)) {
        return gs_module_fail(errp, "two names, or none", self->va);
    }
    gs_module_make_printable(info->name);
    return true;
}

/* ---- memory ----------------------------------------------------------- */

/* Join ranges to areas. Returns: false if there are too many. */
static bool join(GArray *ranges, GsRange out[GS_MODULE_MAX_MEM], size_t *n)
{
    g_array_sort(ranges, gs_sorted_compare);
    for (guint i = 0; i < ranges->len; i++) {
        const GsRange *r = &g_array_index(ranges, GsRange, i);

        if (*n && r->start - MIN(r->start, out[*n - 1].end) < GAP) {
            out[*n - 1].end = MAX(out[*n - 1].end, r->end);
        } else if (*n == GS_MODULE_MAX_MEM) {
            return false;
        } else {
            out[(*n)++] = *r;
        }
    }
    return true;
}

static bool read_mem(GsModuleInfo *info, const File *f, GError **errp)
{
    g_autoptr(GArray) all = g_array_new(false, false, sizeof(GsRange));
    g_autoptr(GArray) text = g_array_new(false, false, sizeof(GsRange));

    for (unsigned i = 1; i < f->n; i++) {
        const Section s = section(f, i);
        const GsRange r = { s.va, s.va + s.size };

        if (!(s.flags & SHF_ALLOC) || !s.size) {
            continue;
        }
        if (!gs_module_is_area(s.va, s.size)) {
            return gs_module_fail(errp, "absurd section of a module", s.va);
        }
        g_array_append_val(all, r);
        if (s.flags & SHF_EXECINSTR) {
            g_array_append_val(text, r);
        }
    }
    return (all->len && join(all, info->mem, &info->n_mem) &&
            join(text, info->text, &info->n_text)) ||
           gs_module_fail(errp, "no memory areas, or too many", f->header);
}

/* ---- tables ----------------------------------------------------------- */

static bool read_symbols(GsModuleInfo *info, const File *f, GError **errp)
{
    for (unsigned i = 1; i < f->n; i++) {
        const Section s = section(f, i);

        if (s.type == SHT_SYMTAB && s.link < f->n) {
            const GsModuleSymbolsAt at = {
                .symtab = s.va, .n = s.size / sizeof(Elf64_Sym),
                .strtab = section(f, s.link).va,
            };

            return gs_module_read_symbols(info, f->mem, &at, errp);
        }
    }
    return true;
}

static bool read_orc(GsModuleInfo *info, const File *f, GError **errp)
{
    Section ip, orc;

    if (!find(f, ".orc_unwind_ip", &ip) || !find(f, ".orc_unwind", &orc)) {
        return true;
    }
    if (ip.size / ORC_IP_SIZE != orc.size / ORC_SIZE) {
        return gs_module_fail(errp, "ORC tables of different lengths", ip.va);
    }
    return gs_module_read_orc(info, f->mem, ip.va, orc.va,
                              ip.size / ORC_IP_SIZE, errp);
}

/* ---- whole ------------------------------------------------------------ */

GsModuleInfo *gs_module_read_elf(const GsMem *mem, uint64_t module_va,
                                 const GsModuleFile *at, GError **errp)
{
    g_autoptr(GsModuleInfo) info = g_new0(GsModuleInfo, 1);
    g_auto(File) f = { .mem = mem, .header = at->header };
    Section self;

    if (!open_file(&f, at, errp)) {
        return NULL;
    }
    if (!find(&f, ".gnu.linkonce.this_module", &self) ||
        self.va != module_va) {
        gs_module_fail(errp, "an ELF file of another module", at->header);
        return NULL;
    }
    if (!read_mem(info, &f, errp) || !read_name(info, &f, &self, errp) ||
        !read_symbols(info, &f, errp) || !read_orc(info, &f, errp)) {
        return NULL;
    }
    return g_steal_pointer(&info);
}
