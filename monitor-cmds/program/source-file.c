/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Debug information by libdw and libdwfl: see source-lines.h.
 *
 * Opening a file reads its symbols and where its compilation units are. The
 * lines of a unit are read when an address in it is first asked for, and stay.
 *
 * An address can be in functions that were inlined into each other:
 *
 *     DW_TAG_subprogram          outer()     line L3: where middle() is called
 *       DW_TAG_inlined_subroutine  middle()  line L2: where inner() is called
 *         DW_TAG_inlined_subroutine  inner() line L1: of the line table
 */
#include "monitor-cmds/program/source-lines.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The longest text of the file that is kept. */
#define MAX_TEXT    4096u

/** struct Unit - code of a compilation unit: [@start, @end) is from @die */
typedef struct Unit {
    uint64_t start, end;
    Dwarf_Die die;
} Unit;

/**
 * struct KaSourceFile - @module: the file in @dwfl
 * @bias: address of the file = address of its debug information + @bias
 * @symbols: KaFileSymbol, by name; @units: Unit, by address
 * @root: (nullable) folder of the kernel's source, with a slash at its end
 * @paths: path of the file -> path as it is printed
 */
struct KaSourceFile {
    Dwfl *dwfl;
    Dwfl_Module *module;
    Dwarf_Addr bias;
    GArray *symbols;
    GArray *units;
    char *root;
    GHashTable *paths;
};

/* ---- symbols ------------------------------------------------------------- */

static int compare_symbols(gconstpointer a, gconstpointer b)
{
    const KaFileSymbol *x = a, *y = b;
    int rc = strcmp(x->name, y->name);

    return rc ? rc : x->va < y->va ? -1 : x->va > y->va;
}

static bool is_wanted(const GElf_Sym *sym, GElf_Word section)
{
    int type = GELF_ST_TYPE(sym->st_info);

    return section != SHN_UNDEF &&
           (type == STT_FUNC || type == STT_NOTYPE || type == STT_OBJECT);
}

static void read_symbols(KaSourceFile *f)
{
    int n = dwfl_module_getsymtab(f->module);

    for (int i = 0; i < n; i++) {
        GElf_Sym sym;
        GElf_Addr va;
        GElf_Word section;
        const char *name = dwfl_module_getsym_info(f->module, i, &sym, &va,
                                                   &section, NULL, NULL);

        if (name && *name && is_wanted(&sym, section)) {
            KaFileSymbol s = { name, va, sym.st_size, section };

            g_array_append_val(f->symbols, s);
        }
    }
    g_array_sort(f->symbols, compare_symbols);
}

const KaFileSymbol *ka_source_file_symbols(const KaSourceFile *f,
                                           const char *name, unsigned *n)
{
    const KaFileSymbol *all = (const KaFileSymbol *)f->symbols->data;
    unsigned low = 0, high = f->symbols->len;

    while (low < high) {
        unsigned mid = low + (high - low) / 2;

        if (strcmp(all[mid].name, name) < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    for (*n = 0; low + *n < f->symbols->len &&
                 !strcmp(all[low + *n].name, name);) {
        *n += 1;
    }
    return *n ? &all[low] : NULL;
}

/* ---- texts --------------------------------------------------------------- */

static char *text_in(Elf_Scn *section, uint64_t from, const char *begin)
{
    Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
    const char *bytes, *at;
    size_t len;

    if (!data || !data->d_buf || from >= data->d_size) {
        return NULL;
    }
    bytes = data->d_buf;
    at = memmem(bytes + from, data->d_size - from, begin, strlen(begin));
    if (!at) {
        return NULL;
    }
    for (len = 0; len < MAX_TEXT && at + len < bytes + data->d_size; len++) {
        if (!g_ascii_isprint(at[len])) {
            break;
        }
    }
    return g_strndup(at, len);
}

static Elf_Scn *section_named(Elf *elf, const char *name)
{
    size_t strings;
    Elf_Scn *section = NULL;

    if (elf_getshdrstrndx(elf, &strings)) {
        return NULL;
    }
    while ((section = elf_nextscn(elf, section))) {
        GElf_Shdr header;
        const char *its = !gelf_getshdr(section, &header) ? NULL :
                          elf_strptr(elf, strings, header.sh_name);

        if (!g_strcmp0(its, name)) {
            return section;
        }
    }
    return NULL;
}

char *ka_source_file_text(const KaSourceFile *f, const char *where,
                          const char *begin)
{
    GElf_Addr bias;
    Elf *elf = dwfl_module_getelf(f->module, &bias);
    unsigned n = 0;
    const KaFileSymbol *s = ka_source_file_symbols(f, where, &n);
    GElf_Shdr header;
    Elf_Scn *section;

    if (!elf) {
        return NULL;
    }
    if (!n) {
        return text_in(section_named(elf, where), 0, begin);
    }
    section = elf_getscn(elf, s->section);
    if (!section || !gelf_getshdr(section, &header) ||
        header.sh_type == SHT_NOBITS || s->va - bias < header.sh_addr) {
        return NULL;
    }
    return text_in(section, s->va - bias - header.sh_addr, begin);
}

char *ka_source_file_build_id(const KaSourceFile *f)
{
    GElf_Addr bias;
    Elf *elf = dwfl_module_getelf(f->module, &bias);
    const void *bits = NULL;
    ssize_t n = elf ? dwelf_elf_gnu_build_id(elf, &bits) : 0;
    GString *hex;

    if (n <= 0) {
        return NULL;
    }
    hex = g_string_new(NULL);
    for (ssize_t i = 0; i < n; i++) {
        g_string_append_printf(hex, "%02x", ((const uint8_t *)bits)[i]);
    }
    return g_string_free(hex, FALSE);
}

/* ---- paths --------------------------------------------------------------- */

/* Return (owned) the whole path of a file that the compiler named @path. */
static char *whole_path(Dwarf_Die *unit, const char *path)
{
    Dwarf_Attribute attr;
    const char *folder =
        dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &attr));

    return g_canonicalize_filename(path, folder && *folder == '/' ? folder :
                                         "/");
}

static void put_printable(GString *to, const char *path)
{
    for (size_t i = 0; path[i] && i < MAX_TEXT; i++) {
        unsigned char c = path[i];

        if (c > 0x20 && c < 0x7f) {
            g_string_append_c(to, c);
        } else {
            g_string_append_printf(to, "\\x%02x", c);
        }
    }
}

/* Return (owned) the folder of the unit, with a slash at its end. */
static char *folder_of(Dwarf_Die *unit)
{
    g_autofree char *dot = whole_path(unit, ".");

    return g_strconcat(dot, g_str_has_suffix(dot, "/") ? "" : "/", NULL);
}

/* Return (borrowed) the path to print. */
static const char *short_path(KaSourceFile *f, Dwarf_Die *unit,
                              const char *path)
{
    g_autofree char *whole = whole_path(unit, path);
    char *known = g_hash_table_lookup(f->paths, whole);
    g_autofree char *folder = known ? NULL : folder_of(unit);
    const char *at = whole;
    GString *text;

    if (known) {
        return known;
    }
    if (f->root && g_str_has_prefix(whole, f->root)) {
        at += strlen(f->root);
    } else if (!f->root && g_str_has_prefix(whole, folder)) {
        at += strlen(folder);
    }
    text = g_string_new(NULL);
    put_printable(text, at);
    known = g_string_free(text, FALSE);
    g_hash_table_insert(f->paths, g_steal_pointer(&whole), known);
    return known;
}

/* The kernel's source is where its init/main.c is. */
static void find_root(KaSourceFile *f, Dwarf_Die *unit)
{
    static const char suffix[] = "/init/main.c";
    const char *name = dwarf_diename(unit);
    g_autofree char *whole = name && g_str_has_suffix(name, suffix + 1) ?
                             whole_path(unit, name) : NULL;

    if (whole && !f->root && g_str_has_suffix(whole, suffix)) {
        f->root = g_strndup(whole, strlen(whole) - strlen(suffix) + 1);
    }
}

/* ---- compilation units --------------------------------------------------- */

static int compare_units(gconstpointer a, gconstpointer b)
{
    const Unit *x = a, *y = b;

    return x->start < y->start ? -1 : x->start > y->start;
}

static void read_unit(KaSourceFile *f, Dwarf_Die *die)
{
    Dwarf_Addr base, start, end;
    ptrdiff_t at = 0;

    while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
        if (start < end) {
            Unit u = { start, end, *die };

            g_array_append_val(f->units, u);
        }
    }
    find_root(f, die);
}

static bool read_units(KaSourceFile *f)
{
    Dwarf_Die *die = NULL;
    Dwarf_Addr bias = 0;

    if (!dwfl_module_getdwarf(f->module, &f->bias)) {
        return false;
    }
    while ((die = dwfl_module_nextcu(f->module, die, &bias))) {
        read_unit(f, die);
    }
    g_array_sort(f->units, compare_units);
    return f->units->len;
}

/* Return the unit that has the address, NULL if none has. */
static Unit *unit_at(const KaSourceFile *f, uint64_t va)
{
    unsigned low = 0, high = f->units->len;
    Unit *u;

    while (low < high) {
        unsigned mid = low + (high - low) / 2;

        if (g_array_index(f->units, Unit, mid).start <= va) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    u = low ? &g_array_index(f->units, Unit, low - 1) : NULL;
    return u && va < u->end ? u : NULL;
}

/* ---- places -------------------------------------------------------------- */

/* Set the file and the line of @p by the line table. */
static void read_line(KaSourceFile *f, Dwarf_Die *unit, Dwarf_Addr at,
                      KaPlace *p)
{
    Dwarf_Line *line = dwarf_getsrc_die(unit, at);
    const char *path = line ? dwarf_linesrc(line, NULL, NULL) : NULL;
    int number = 0;

    *p = (KaPlace) { 0 };
    if (path && !dwarf_lineno(line, &number) && number > 0) {
        p->file = short_path(f, unit, path);
        p->line = (unsigned)number;
    }
}

static bool read_number(Dwarf_Die *die, unsigned name, Dwarf_Word *out)
{
    Dwarf_Attribute attr;

    return !dwarf_formudata(dwarf_attr(die, name, &attr), out);
}

/* Set the file and the line of @p to where an inlined function is called. */
static void read_call(KaSourceFile *f, Dwarf_Die *unit, Dwarf_Die *inlined,
                      KaPlace *p)
{
    Dwarf_Word file, line;
    Dwarf_Files *files;
    size_t n;
    const char *path;

    *p = (KaPlace) { 0 };
    if (!read_number(inlined, DW_AT_call_file, &file) ||
        !read_number(inlined, DW_AT_call_line, &line) || !line ||
        line > G_MAXINT || dwarf_getsrcfiles(unit, &files, &n) || file >= n) {
        return;
    }
    path = dwarf_filesrc(files, file, NULL, NULL);
    if (path) {
        p->file = short_path(f, unit, path);
        p->line = (unsigned)line;
    }
}

/* Return (borrowed) the name of a function, NULL if it is not known or has
 * other characters than names. */
static const char *name_of(Dwarf_Die *die)
{
    const char *name = dwarf_diename(die);

    for (const char *c = name; c && *c; c++) {
        if (*c <= 0x20 || *c >= 0x7f) {
            return NULL;
        }
    }
    return name && *name ? name : NULL;
}

/* Return the scopes of an address, the innermost first: (out, free()) *@out.
 * dwarf_getscopes() leaves out what an inlined function is in. */
static int scopes_at(Dwarf_Die *unit, Dwarf_Addr at, Dwarf_Die **out)
{
    Dwarf_Die *found = NULL, inner;
    int n = dwarf_getscopes(unit, at, &found);

    *out = NULL;
    if (n <= 0) {
        return 0;
    }
    inner = found[0];
    free(found);
    n = dwarf_getscopes_die(&inner, out);
    return n < 0 ? 0 : n;
}

void ka_source_file_places(KaSourceFile *f, uint64_t va, GArray *out)
{
    Dwarf_Addr at = va - f->bias;
    Unit *u = unit_at(f, at);
    Dwarf_Die *scope = NULL;
    KaPlace p;
    int n;

    if (!u) {
        return;
    }
    read_line(f, &u->die, at, &p);
    n = scopes_at(&u->die, at, &scope);
    for (int i = 0; i < n; i++) {
        int tag = dwarf_tag(&scope[i]);

        p.function = name_of(&scope[i]);
        if (tag == DW_TAG_subprogram) {
            break;
        }
        if (tag == DW_TAG_inlined_subroutine) {
            g_array_append_val(out, p);
            read_call(f, &u->die, &scope[i], &p);
        }
        p.function = NULL;
    }
    free(scope);
    g_array_append_val(out, p);
}

/* ---- the file ------------------------------------------------------------ */

static int no_other_elf(Dwfl_Module *module, void **data, const char *name,
                        Dwarf_Addr base, char **path, Elf **elf)
{
    return -1;
}

/* The user names the file that has it: no other is searched, nor asked for. */
static int no_other_debuginfo(Dwfl_Module *module, void **data,
                              const char *name, Dwarf_Addr base,
                              const char *path, const char *link,
                              GElf_Word crc, char **out)
{
    return -1;
}

static bool is_relocatable(int fd)
{
    unsigned char head[18];

    return pread(fd, head, sizeof(head), 0) == sizeof(head) &&
           !memcmp(head, ELFMAG, SELFMAG) &&
           head[head[EI_DATA] == ELFDATA2MSB ? 17 : 16] == ET_REL;
}

static bool report(KaSourceFile *f, const char *path, int fd)
{
    static const Dwfl_Callbacks callbacks = {
        .find_elf = no_other_elf,
        .find_debuginfo = no_other_debuginfo,
        .section_address = dwfl_offline_section_address,
    };

    f->dwfl = dwfl_begin(&callbacks);
    if (!f->dwfl) {
        return false;
    }
    /* libdw owns the descriptor if it takes the file */
    f->module = is_relocatable(fd) ?
                dwfl_report_offline(f->dwfl, "file", path, fd) :
                dwfl_report_elf(f->dwfl, "file", path, fd, 0, true);
    return !dwfl_report_end(f->dwfl, NULL, NULL) && f->module;
}

/* Open the file. Return (static or of libdw) an error, or NULL. */
static const char *open_file(KaSourceFile *f, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        return g_strerror(errno);
    }
    if (!report(f, path, fd)) {
        if (!f->module) {
            close(fd);
        }
        return dwfl_errmsg(-1);
    }
    if (!read_units(f)) {
        return "it has no debug information (DWARF)";
    }
    read_symbols(f);
    return f->symbols->len ? NULL : "it has no symbols";
}

KaSourceFile *ka_source_file_open(const char *path, char **why)
{
    g_autoptr(KaSourceFile) f = g_new0(KaSourceFile, 1);
    const char *error;

    f->symbols = g_array_new(FALSE, FALSE, sizeof(KaFileSymbol));
    f->units = g_array_new(FALSE, FALSE, sizeof(Unit));
    f->paths = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    error = open_file(f, path);
    if (error) {
        *why = g_strdup(error);
        return NULL;
    }
    return g_steal_pointer(&f);
}

void ka_source_file_free(KaSourceFile *f)
{
    if (!f) {
        return;
    }
    g_array_unref(f->symbols);
    g_array_unref(f->units);
    g_hash_table_unref(f->paths);
    g_free(f->root);
    if (f->dwfl) {
        dwfl_end(f->dwfl);
    }
    g_free(f);
}
