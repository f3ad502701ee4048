/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A kernel's names as bytes, and back: the "stored kernels" of gs.h. Called by
 * the writer of a journal and by its reader, in their threads.
 *
 * A stored kernel has no types, no unwind tables and no image: it answers what
 * commands ask about addresses and names. Its bytes come from a file:
 * untrusted.
 */
#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/modules/modules.h"
#include "guest-symbols/base/printable.h"
#include "guest-symbols/symbols/symtab.h"

#include <string.h>

#define SAVED_VERSION 1
#define BANNER_MAX 4096

typedef enum SavedFlag {
    SAVED_MEMORY = 1 << 0,
    SAVED_PLAIN = 1 << 1,
    SAVED_BTF = 1 << 2,
    SAVED_IMAGE = 1 << 3,
    SAVED_BANNER = 1 << 4,
    SAVED_BY_FRAMES = 1 << 5,
    SAVED_BY_NOTHING = 1 << 6,
    SAVED_EXPORTS = 1 << 7,
    SAVED_ELF_SYMBOLS = 1 << 8,
    SAVED_TYPES_FILE = 1 << 9,
} SavedFlag;

/* ---- writing ---- */

static uint32_t flags_of(const GsKernel *k)
{
    return (k->memory ? SAVED_MEMORY : 0) | (k->plain ? SAVED_PLAIN : 0) |
           (gs_kernel_has_btf(k) ? SAVED_BTF : 0) |
           (k->image || k->saved.image ? SAVED_IMAGE : 0) |
           (k->banner ? SAVED_BANNER : 0) |
           (gs_kernel_has_all_symbols(k) ? 0 : SAVED_EXPORTS) |
           (k->elf_symbols ? SAVED_ELF_SYMBOLS : 0) |
           (k->unwind_by == GS_UNWIND_BY_FRAMES ? SAVED_BY_FRAMES : 0) |
           (k->unwind_by == GS_UNWIND_BY_NOTHING ? SAVED_BY_NOTHING : 0) |
           (k->btf_from_file || k->saved.types_file ? SAVED_TYPES_FILE : 0);
}

void gs_kernel_save(const GsKernel *k, GByteArray *to)
{
    GsOut out = gs_out(to);

    gs_out_u32(&out, SAVED_VERSION);
    gs_out_u32(&out, flags_of(k));
    gs_out_str(&out, k->arch->name);
    gs_out_str(&out, k->banner ? k->banner : "");
    gs_out_u32(&out, k->page_shift);
    gs_out_u64(&out, k->slide);
    gs_out_u64(&out, k->start);
    gs_out_u64(&out, k->low);
    for (size_t i = 0; i < G_N_ELEMENTS(k->text); i++) {
        gs_out_u64(&out, k->text[i].start);
        gs_out_u64(&out, k->text[i].end);
    }
    gs_out_u64(&out, gs_kernel_symbol_bytes(k));
    gs_symtab_save(k->symtab, &out);
}

static void put_ranges(GsOut *out, const GsRange *r, size_t n)
{
    gs_out_u32(out, n);
    for (size_t i = 0; i < n; i++) {
        gs_out_u64(out, r[i].start);
        gs_out_u64(out, r[i].end);
    }
}

static void put_module(uint64_t module_va, const GsModuleInfo *info,
                       void *opaque)
{
    GsOut *out = opaque;

    gs_out_u64(out, module_va);
    gs_out_str(out, info->name);
    put_ranges(out, info->mem, info->n_mem);
    put_ranges(out, info->text, info->n_text);
    gs_out_u32(out, info->n_syms);
    for (size_t i = 0; i < info->n_syms; i++) {
        gs_out_u64(out, info->syms[i].va - info->mem[0].start);
    }
    for (size_t i = 0; i < info->n_syms; i++) {
        gs_out_u8(out, info->syms[i].type);
        gs_out_str(out, info->syms[i].name);
    }
    gs_out_u32(out, info->load);
    gs_out_u32(out, info->until);
}

bool gs_kernel_save_module(const GsKernel *k, uint64_t module_va,
                           GByteArray *to)
{
    GsOut out = gs_out(to);

    return gs_modules_with(k->modules, module_va, put_module, &out);
}

bool gs_kernel_save_nth_module(const GsKernel *k, unsigned i, GByteArray *to)
{
    GsOut out = gs_out(to);

    return gs_modules_with_nth(k->modules, i, put_module, &out);
}

/* ---- reading ---- */

static bool is_name(const char *s, size_t max)
{
    return s && strlen(s) <= max && gs_is_printable(s);
}

static bool take_ranges(GsBytes *c, GsRange *r, size_t *n)
{
    *n = gs_bytes_u32(c);
    if (*n > GS_MODULE_MAX_MEM) {
        return false;
    }
    for (size_t i = 0; i < *n; i++) {
        r[i].start = gs_bytes_u64(c);
        r[i].end = gs_bytes_u64(c);
        if (r[i].start >= r[i].end) {
            return false;
        }
    }
    return true;
}

static bool set_fail(GError **errp, const GsBytes *c, const char *what)
{
    return gs_fail(errp, GS_ERROR_FORMAT, "%s: %s", c->what, what);
}

static bool take_head(GsBytes *c, GsKernel *k, GError **errp)
{
    uint32_t version = gs_bytes_u32(c);
    uint32_t flags = gs_bytes_u32(c);
    const char *arch = gs_bytes_str(c, SIZE_MAX, NULL);
    const char *banner = gs_bytes_str(c, SIZE_MAX, NULL);

    if (version != SAVED_VERSION || !arch || !banner) {
        return set_fail(errp, c, "not a kernel of this version");
    }
    k->arch = gs_arch_find(arch);
    if (!k->arch || !is_name(banner, BANNER_MAX)) {
        return set_fail(errp, c, "an architecture or banner that is none");
    }
    k->banner = flags & SAVED_BANNER ? g_strdup(banner) : NULL;
    k->memory = flags & SAVED_MEMORY;
    k->plain = flags & SAVED_PLAIN;
    k->unwind_by = flags & SAVED_BY_FRAMES ? GS_UNWIND_BY_FRAMES :
                   flags & SAVED_BY_NOTHING ? GS_UNWIND_BY_NOTHING :
                                              GS_UNWIND_BY_ARCH;
    k->elf_symbols = flags & SAVED_ELF_SYMBOLS;
    k->saved.exports = flags & SAVED_EXPORTS;
    k->saved.on = true;
    k->saved.btf = flags & SAVED_BTF;
    k->saved.types_file = flags & SAVED_TYPES_FILE;
    k->saved.image = flags & SAVED_IMAGE;
    k->page_shift = gs_bytes_u32(c);
    k->slide = gs_bytes_u64(c);
    k->start = gs_bytes_u64(c);
    k->low = gs_bytes_u64(c);
    for (size_t i = 0; i < G_N_ELEMENTS(k->text); i++) {
        k->text[i].start = gs_bytes_u64(c);
        k->text[i].end = gs_bytes_u64(c);
    }
    k->saved.symbol_bytes = gs_bytes_u64(c);
    return true;
}

GsKernel *gs_kernel_new_saved(const void *data, size_t len, GError **errp)
{
    g_autoptr(GsKernel) k = gs_kernel_new_empty();
    GsBytes c;

    gs_bytes_init(&c, data, len, "saved kernel");
    if (!take_head(&c, k, errp)) {
        return NULL;
    }
    k->symtab = gs_symtab_load(&c, errp);
    if (!k->symtab) {
        return NULL;
    }
    if (k->saved.exports) {
        gs_symtab_set_exact(k->symtab);
    }
    if (!k->plain) {
        gs_kernel_find_data(k);
    }
    return g_steal_pointer(&k);
}

static bool take_symbols(GsBytes *c, GsModuleInfo *info)
{
    info->n_syms = gs_bytes_u32(c);
    if (info->n_syms > gs_bytes_left(c) / sizeof(uint64_t)) {
        return false;
    }
    info->syms = g_new0(GsModuleSymbol, MAX(info->n_syms, 1));
    for (size_t i = 0; i < info->n_syms; i++) {
        info->syms[i].va = info->mem[0].start + gs_bytes_u64(c);
        if (!gs_ranges_have(info->mem, info->n_mem, info->syms[i].va)) {
            return false;
        }
    }
    for (size_t i = 0; i < info->n_syms; i++) {
        info->syms[i].type = gs_bytes_u8(c);
        info->syms[i].name = gs_bytes_str(c, SIZE_MAX, NULL);
        if (!g_ascii_isprint(info->syms[i].type) ||
            !is_name(info->syms[i].name, GS_SYMBOL_NAME_MAX)) {
            return false;
        }
    }
    return true;
}

static bool take_module(GsBytes *c, GsModuleInfo *info)
{
    const char *name = gs_bytes_str(c, SIZE_MAX, NULL);

    if (!is_name(name, GS_MODULE_NAME_MAX - 1)) {
        return false;
    }
    g_strlcpy(info->name, name, sizeof(info->name));
    return take_ranges(c, info->mem, &info->n_mem) && info->n_mem &&
           take_ranges(c, info->text, &info->n_text) && take_symbols(c, info);
}

/* Older versions did not write the numbers of loads. */
static void take_loads(GsBytes *c, GsModuleInfo *info)
{
    if (gs_bytes_left(c)) {
        info->load = gs_bytes_u32(c);
        info->until = gs_bytes_u32(c);
    }
}

bool gs_kernel_load_module(GsKernel *k, const void *data, size_t len,
                           GError **errp)
{
    GsModuleInfo info = { 0 };
    uint64_t module_va;
    GsBytes c;
    bool ok;

    gs_bytes_init(&c, data, len, "saved module");
    module_va = gs_bytes_u64(&c);
    ok = take_module(&c, &info);
    take_loads(&c, &info);
    if (!ok) {
        set_fail(errp, &c, "makes no sense");
    }
    ok = ok && gs_bytes_check(&c, errp) &&
         gs_modules_add(k->modules, k->orc, module_va, &info, errp);
    g_free(info.syms);
    return ok;
}
