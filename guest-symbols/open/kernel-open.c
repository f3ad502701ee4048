/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Opens Linux kernel files: reads the file, decodes its tables (symbols,
 * types, ORC) and finds the address ranges that other files ask for. Called
 * by any thread; holds no state besides the kernel that is made.
 */
#include "guest-symbols/arch/arch.h"
#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/api/gs-types.h"
#include "guest-symbols/modules/modules.h"
#include "guest-symbols/orc/orc.h"
#include "guest-symbols/symbols/symtab.h"
#include "guest-symbols/types/btf.h"

#define FILE_SIZE_MAX   (2ull << 30)
#define BTF_SEARCH_MAX  (64u << 20)

/* ---- the file ---- */

GBytes *gs_kernel_read_file(const char *path, GError **errp)
{
    g_autoptr(GBytes) bytes = gs_file_read(path, FILE_SIZE_MAX, errp);

    if (bytes && !g_bytes_get_size(bytes)) {
        return gs_fail(errp, GS_ERROR_FORMAT, "empty file");
    }
    return g_steal_pointer(&bytes);
}

/* ---- its tables ---- */

/* Searches for types in an image whose sections have no names. */
static void search_btf(GsKernel *k)
{
    size_t room = BTF_SEARCH_MAX;

    for (size_t i = 0; !k->btf && i < k->image->sections->len; i++) {
        const GsSection *s = gs_image_nth_section(k->image, i);

        gs_guest_copy_need(k->image->copy, s->va, s->len);
        if (s->data && !*s->name) {
            k->btf = gs_btf_search(s->data, s->len, &room, &k->btf_left_out);
        }
    }
}

/* A section without a type is the same as no section. */
static bool load_btf(GsKernel *k, GError **errp)
{
    uint64_t va;
    const uint8_t *data;
    size_t len;

    if (!gs_image_section(k->image, ".BTF", &va, &data, &len)) {
        search_btf(k);
        return true;
    }
    k->btf = gs_btf_new(data, len, errp);
    if (k->btf && gs_btf_is_empty(k->btf)) {
        g_clear_pointer(&k->btf, gs_btf_free);
        return true;
    }
    return k->btf != NULL;
}

/* The labels around the sections of an image whose sections have no names. */
static const struct {
    const char *name;
    const char *start;
    const char *end;
    bool exec;
} labelled[] = {
    { ".text", "_stext", "_etext", true },
    { ".init.text", "_sinittext", "_einittext", true },
    { ".orc_unwind_ip", "__start_orc_unwind_ip", "__stop_orc_unwind_ip" },
    { ".orc_unwind", "__start_orc_unwind", "__stop_orc_unwind" },
    { ".orc_header", "__start_orc_header", "__stop_orc_header" },
    { ".BTF", "__start_BTF", "__stop_BTF" },
};

static void name_sections(GsKernel *k)
{
    for (size_t i = 0; i < G_N_ELEMENTS(labelled); i++) {
        GsSymbol from, to;

        if (gs_symtab_lookup(k->symtab, labelled[i].start, &from) &&
            gs_symtab_lookup(k->symtab, labelled[i].end, &to)) {
            gs_image_add_section(k->image, labelled[i].name, from.va, to.va,
                                 labelled[i].exec);
        }
    }
}

static void name_part(GsKernel *k, const char *name, uint64_t va, size_t len)
{
    gs_image_add_section(k->image, name, va, va + len, false);
}

/* Without KALLSYMS_ALL there are no labels around the unwind tables. */
static void search_orc(GsKernel *k)
{
    const GsSection *s = k->image->sections->len ?
                             gs_image_nth_section(k->image, 0) : NULL;
    const uint8_t *data;
    GsOrcRaw raw;
    uint64_t va;
    size_t len;

    if (!s || !k->arch || !k->arch->has_orc ||
        gs_image_section(k->image, ".orc_unwind_ip", &va, &data, &len)) {
        return;
    }
    gs_guest_copy_need(k->image->copy, s->va, s->len);
    if (gs_orc_find(s, &raw)) {
        uint64_t behind = raw.ip_va + raw.ip_len;

        name_part(k, ".orc_unwind_ip", raw.ip_va, raw.ip_len);
        name_part(k, ".orc_unwind", behind, raw.orc_len);
        name_part(k, ".orc_header", raw.ip_va - raw.header_len,
                  raw.header_len);
    }
}

static void place_image(GsKernel *k)
{
    const char *start = k->arch ? k->arch->image_start : NULL;
    GsSymbol sym;

    if (start && gs_symtab_lookup(k->symtab, start, &sym)) {
        gs_image_rebase(k->image, sym.va);
    }
}

static bool has_start(const GsKernel *k)
{
    GsSymbol sym;

    return k->symtab && gs_symtab_lookup(k->symtab, "start_kernel", &sym);
}

/* A vmlinux without kallsyms may have the symbols for debuggers. */
static void load_elf_symbols(GsKernel *k, GBytes *bytes)
{
    k->symtab = gs_kernel_elf_symbols(bytes, k->image, NULL);
    k->elf_symbols = has_start(k);
    if (!k->elf_symbols) {
        g_clear_pointer(&k->symtab, gs_symtab_free);
    }
}

/* In guest memory the exports are enough to hook most allocators. In a file
 * they are not: nothing would say where the kernel starts. @bytes: (nullable)
 * the file */
static bool load_symbols(GsKernel *k, GBytes *bytes, GError **errp)
{
    g_autoptr(GError) err = NULL;
    GsGuestCopy *copy = k->image->copy;

    if (!k->hide_kallsyms) {
        k->symtab = gs_kallsyms_decode(k->image, &err);
    }
    if (!k->symtab && bytes) {
        load_elf_symbols(k, bytes);
    }
    if (!k->symtab && copy) {
        k->symtab = gs_exports_decode(k->image, &k->exports_at);
    }
    if (!k->symtab && copy && (!err || err->code == GS_ERROR_NO_SYMBOLS)) {
        g_set_error(errp, GS_ERROR, GS_ERROR_NO_SYMBOLS,
                    "this kernel has no symbol table (no kallsyms: "
                    "CONFIG_KALLSYMS); give kernel=FILE (its vmlinux or "
                    "System.map)");
    } else if (!k->symtab) {
        g_propagate_error(errp, g_steal_pointer(&err));
    }
    return k->symtab != NULL;
}

/* Does the table @opaque lack the symbol? */
static bool is_new(uint64_t va, const char *name, void *opaque)
{
    GsSymbol sym;

    return !gs_symtab_lookup(opaque, name, &sym);
}

/* Without KALLSYMS_ALL, kallsyms has functions only. Variables that modules
 * need are exported, though. */
static void load_exported(GsKernel *k)
{
    g_autoptr(GsSymtab) all = NULL;
    GsSymbol sym;
    uint64_t at;

    if (k->exports_at || gs_symtab_lookup(k->symtab, "_edata", &sym)) {
        return;
    }
    all = gs_exports_decode(k->image, &at);
    if (all) {
        k->exported = gs_symtab_filter(all, is_new, k->symtab);
    }
}

static void find_templates(GsKernel *k)
{
    static const char *const names[] = {
        "ftrace_caller", "ftrace_regs_caller"
    };

    G_STATIC_ASSERT(G_N_ELEMENTS(names) == G_N_ELEMENTS(k->templates));
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        GsTemplate *t = &k->templates[i];
        GsSymbol sym;

        if (gs_symtab_lookup(k->symtab, names[i], &sym) &&
            gs_image_read(k->image, sym.va, t->bytes, sizeof(t->bytes))) {
            t->va = sym.va;
        }
    }
}

bool gs_kernel_load_tables(GsKernel *k, GError **errp)
{
    place_image(k);
    if (k->image->copy) {
        name_sections(k);
        search_orc(k);
        load_exported(k);
    }
    find_templates(k);
    k->banner = gs_banner_find(k->image, k->symtab, &k->banner_va);
    if (!k->banner) {
        return gs_fail(errp, GS_ERROR_FORMAT,
                       "no \"Linux version\" banner in the image");
    }
    return load_btf(k, errp) &&
           gs_orc_set_load_image(k->orc, k->image, errp);
}

static bool load_all(GsKernel *k, GBytes *bytes, GError **errp)
{
    return load_symbols(k, bytes, errp) && gs_kernel_load_tables(k, errp);
}

/* Labels that the kernel's linker scripts place. */
typedef struct Labels {
    const char *start;
    const char *end;
} Labels;

static const Labels text_labels[] = {
    { "_stext", "_etext" },
    { "_sinittext", "_einittext" },
};
static const Labels data_labels[] = {
    { "_sdata", "_edata" },
    { "__start_rodata", "__end_rodata" },
};

static void find_ranges(const GsKernel *k, const Labels *labels, size_t n,
                        GsRange *out)
{
    for (size_t i = 0; i < n; i++) {
        GsSymbol from, to;

        if (gs_symtab_lookup(k->symtab, labels[i].start, &from) &&
            gs_symtab_lookup(k->symtab, labels[i].end, &to) &&
            gs_symbol_slides(from.va) && from.va < to.va) {
            out[i] = (GsRange) { from.va, to.va };
        }
    }
}

static void find_text(GsKernel *k)
{
    G_STATIC_ASSERT(G_N_ELEMENTS(text_labels) == G_N_ELEMENTS(k->text));

    find_ranges(k, text_labels, G_N_ELEMENTS(text_labels), k->text);
    if (k->exports_at) {
        /* all code is in front of the exports */
        k->text[0] = (GsRange) { gs_image_nth_section(k->image, 0)->va,
                                 k->exports_at };
    }
}

void gs_kernel_find_data(GsKernel *k)
{
    G_STATIC_ASSERT(G_N_ELEMENTS(data_labels) == G_N_ELEMENTS(k->data));

    find_ranges(k, data_labels, G_N_ELEMENTS(data_labels), k->data);
}

/* ---- opening ---- */

static bool load(GsKernel *k, GBytes *bytes, GError **errp)
{
    size_t len;
    const uint8_t *data = g_bytes_get_data(bytes, &len);

    if (!gs_systemmap_is(data, len)) {
        k->image = gs_image_new(bytes, errp);
        k->arch = k->image ? gs_arch_of_machine(k->image->machine)
                           : NULL;
        return k->image && load_all(k, bytes, errp);
    }
    k->symtab = gs_systemmap_decode(data, len, errp);
    return k->symtab != NULL;
}

GsKernel *gs_kernel_new_empty(void)
{
    GsKernel *k = g_new0(GsKernel, 1);

    k->orc = gs_orc_set_new();
    k->modules = gs_modules_new();
    return k;
}

/* Sets what follows from the tables. */
static void finish(GsKernel *k)
{
    GsSymbol start;

    if (!k->arch) {
        k->arch = gs_arch_of_symbols(k->symtab);
    }
    if (gs_symtab_lookup(k->symtab, "start_kernel", &start)) {
        k->start = start.va;
    }
    find_text(k);
    gs_kernel_find_data(k);
    k->page_shift = k->arch->page_shift ? k->arch->page_shift(k) : 12;
    gs_kernel_find_unwinder(k);
}

GsKernel *gs_kernel_new_from_image(const GsArch *arch, GsImage *img,
                                   bool no_kallsyms, GError **errp)
{
    g_autoptr(GsKernel) k = gs_kernel_new_empty();

    k->image = img;
    k->arch = arch;
    k->hide_kallsyms = no_kallsyms;
    if (!load_all(k, NULL, errp)) {
        return NULL;
    }
    finish(k);
    return g_steal_pointer(&k);
}

static GsKernel *kernel_from_bytes(GBytes *bytes, GError **errp)
{
    g_autoptr(GsKernel) k = gs_kernel_new_empty();

    if (!load(k, bytes, errp)) {
        return NULL;
    }
    finish(k);
    return g_steal_pointer(&k);
}

GsKernel *gs_kernel_open(const char *path, GError **errp)
{
    g_autoptr(GBytes) bytes = gs_kernel_read_file(path, errp);
    GsKernel *k = NULL;

    if (bytes) {
        k = kernel_from_bytes(bytes, errp);
    }
    if (!k) {
        g_prefix_error(errp, "%s: ", path);
    }
    return k;
}

GsKernel *gs_kernel_new_from_data(const void *data, size_t len,
                                  const char *name, GError **errp)
{
    g_autoptr(GBytes) bytes = g_bytes_new(data, len);
    GsKernel *k = kernel_from_bytes(bytes, errp);

    if (!k) {
        g_prefix_error(errp, "%s: ", name);
    }
    return k;
}
