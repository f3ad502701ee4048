/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Answers questions about a kernel in run-time addresses.
 *
 * The tables of image/, symbols/ and types/ use link-time addresses and never
 * change; modules/ and orc/ use run-time addresses and have their own locks.
 * This file adds the slide, and asks the kernel proper before its modules. Any
 * thread, except for gs_kernel_set_slide() and gs_kernel_unpack_modules().
 */
#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/modules/modules.h"
#include "guest-symbols/orc/orc.h"
#include "guest-symbols/symbols/symtab.h"
#include "guest-symbols/types/btf.h"

#include <string.h>

/* Bytes of an ORC entry: an address, a rule, and a share of the index. */
#define ORC_ROW_BYTES 13

void gs_kernel_free(GsKernel *k)
{
    if (!k) {
        return;
    }
    gs_orc_set_free(k->orc);
    gs_modules_free(k->modules);
    gs_btf_free(k->btf);
    gs_symtab_free(k->symtab);
    gs_symtab_free(k->exported);
    gs_image_free(k->image);
    g_free(k->banner);
    g_strfreev(k->outermost);
    g_free(k);
}

const GsArch *gs_kernel_arch(const GsKernel *k)
{
    return k->arch;
}

unsigned gs_kernel_page_shift(const GsKernel *k)
{
    return k->page_shift;
}

const char *gs_kernel_banner(const GsKernel *k)
{
    return k->banner;
}

uint64_t gs_kernel_banner_va(const GsKernel *k)
{
    return k->banner_va ? k->banner_va + k->slide : 0;
}

/* ---- slide ---- */

void gs_kernel_set_slide(GsKernel *k, uint64_t slide)
{
    k->slide = slide;
    gs_modules_clear(k->modules);
    gs_orc_set_set_slide(k->orc, slide);
}

uint64_t gs_kernel_slide(const GsKernel *k)
{
    return k->slide;
}

static void slide_symbol(const GsKernel *k, GsSymbol *sym)
{
    if (gs_symbol_slides(sym->va)) {
        sym->va += k->slide;
    }
}

/* ---- text ---- */

bool gs_kernel_text_range(const GsKernel *k, uint64_t *start, uint64_t *end)
{
    const GsRange *text = &k->text[0], *init = &k->text[1];

    if (!text->end) {
        return false;
    }
    *start = text->start;
    *end = text->end;
    if (init->end) {
        *start = MIN(*start, init->start);
        *end = MAX(*end, init->end);
    }
    *start += k->slide;
    *end += k->slide;
    return true;
}

bool gs_kernel_is_text(const GsKernel *k, uint64_t va)
{
    return gs_ranges_have(k->text, G_N_ELEMENTS(k->text), va - k->slide) ||
           gs_modules_is_text(k->modules, va);
}

/*
 * The letter says which section nm found the symbol in. It is a code letter for
 * .data as well if a part of .data is executable (x86-64, 7.3), and a weak
 * symbol may be either. Some code is outside all text labels. So a symbol is
 * code if its letter says so and the data labels do not enclose it.
 */
bool gs_kernel_is_code(const GsKernel *k, const GsSymbol *sym)
{
    return strchr("tTwWiI", sym->type) &&
           !gs_ranges_have(k->data, G_N_ELEMENTS(k->data), sym->va - k->slide);
}

bool gs_kernel_in_image(const GsKernel *k, uint64_t va)
{
    return gs_orc_set_in_image(k->orc, va) || gs_kernel_is_text(k, va);
}

uint64_t gs_kernel_start(const GsKernel *k)
{
    return k->start;
}

uint64_t gs_kernel_lowest(const GsKernel *k)
{
    return k->low ? k->low : 1ull << 63;
}

bool gs_kernel_is_plain(const GsKernel *k)
{
    return k->plain;
}

const char *gs_kernel_symbols_from(const GsKernel *k)
{
    return k->plain || k->elf_symbols ? "ELF" :
           gs_symtab_is_exact(k->symtab) ? "exports" :
           k->image || k->memory || k->saved.image ? "kallsyms" : "System.map";
}

bool gs_kernel_has_all_symbols(const GsKernel *k)
{
    return !gs_symtab_is_exact(k->symtab);
}

bool gs_kernel_read_image(const GsKernel *k, uint64_t va, void *buf,
                          size_t len)
{
    return k->image && gs_image_read(k->image, va, buf, len);
}

/* ---- symbols ---- */

size_t gs_kernel_n_symbols(const GsKernel *k)
{
    return gs_symtab_n(k->symtab) + gs_modules_counts(k->modules).symbols;
}

bool gs_kernel_lookup(const GsKernel *k, const char *name, GsSymbol *out)
{
    const char *colon = strchr(name, ':');

    if (colon) {
        g_autofree char *module = g_strndup(name, colon - name);

        return gs_modules_lookup(k->modules, module, colon + 1, out);
    }
    if (gs_symtab_lookup(k->symtab, name, out)) {
        slide_symbol(k, out);
        return true;
    }
    return gs_modules_lookup(k->modules, NULL, name, out);
}

uint64_t gs_kernel_address(const GsKernel *k, const char *name)
{
    GsSymbol sym;

    return gs_kernel_lookup(k, name, &sym) ? sym.va : 0;
}

bool gs_kernel_variable(const GsKernel *k, const char *name, GsSymbol *out)
{
    if (gs_kernel_lookup(k, name, out)) {
        return true;
    }
    if (!k->exported || !gs_symtab_lookup(k->exported, name, out)) {
        return false;
    }
    slide_symbol(k, out);
    return true;
}

/* Adds the slide to each symbol before the caller's function gets it. */
typedef struct Visitor {
    const GsKernel *k;
    GsSymbolFn fn;
    void *opaque;
    bool stopped;
} Visitor;

static bool visit(const GsSymbol *sym, void *opaque)
{
    Visitor *v = opaque;
    GsSymbol slid = *sym;

    slide_symbol(v->k, &slid);
    v->stopped = !v->fn(&slid, v->opaque);
    return !v->stopped;
}

/* @ever: unloaded modules, too */
static unsigned foreach_named(const GsKernel *k, const char *name, bool ever,
                              GsSymbolFn fn, void *opaque)
{
    Visitor v = { .k = k, .fn = fn, .opaque = opaque };
    unsigned n = gs_symtab_foreach_named(k->symtab, name, visit, &v);

    if (v.stopped) {
        return n;
    }
    return n + gs_modules_foreach_named(k->modules, name, ever, fn, opaque);
}

unsigned gs_kernel_foreach_named(const GsKernel *k, const char *name,
                                 GsSymbolFn fn, void *opaque)
{
    return foreach_named(k, name, false, fn, opaque);
}

unsigned gs_kernel_foreach_ever_named(const GsKernel *k, const char *name,
                                      GsSymbolFn fn, void *opaque)
{
    return foreach_named(k, name, true, fn, opaque);
}

static void visit_row(uint64_t va, const char *text, size_t len, void *opaque)
{
    Visitor *v = opaque;
    GsSymbol sym = { .va = va, .type = text[0] };

    if (!v->stopped) {
        g_strlcpy(sym.name, text + 1, MIN(len, sizeof(sym.name)));
        visit(&sym, v);
    }
}

void gs_kernel_foreach_symbol(const GsKernel *k, GsSymbolFn fn, void *opaque)
{
    Visitor v = { .k = k, .fn = fn, .opaque = opaque };

    gs_symtab_foreach(k->symtab, visit_row, &v);
}

bool gs_kernel_symbolize_at(const GsKernel *k, uint64_t va, uint32_t era,
                            GsSymbol *out)
{
    if (gs_symtab_symbolize(k->symtab, va - k->slide, out)) {
        slide_symbol(k, out);
        return true;
    }
    return gs_modules_symbolize(k->modules, va, era, out);
}

bool gs_kernel_symbolize(const GsKernel *k, uint64_t va, GsSymbol *out)
{
    return gs_kernel_symbolize_at(k, va, GS_ERA_NOW, out);
}

char **gs_kernel_suggest(const GsKernel *k, const char *name, unsigned max)
{
    return gs_symtab_suggest(k->symtab, name, max);
}

/* ---- modules ---- */

bool gs_kernel_module(const GsKernel *k, uint64_t module_va, GsModule *out)
{
    return gs_modules_get(k->modules, module_va, out);
}

bool gs_kernel_nth_module(const GsKernel *k, unsigned i, GsModule *out)
{
    return gs_modules_nth(k->modules, i, out);
}

bool gs_kernel_module_at(const GsKernel *k, uint64_t va, GsModule *out)
{
    return gs_modules_at(k->modules, va, out);
}

void gs_kernel_module_symbols(const GsKernel *k, uint64_t module_va,
                              GsModuleSymbolFn fn, void *opaque)
{
    gs_modules_foreach_symbol(k->modules, module_va, fn, opaque);
}

size_t gs_kernel_n_modules(const GsKernel *k)
{
    return gs_modules_counts(k->modules).modules;
}

void gs_kernel_set_module_room(GsKernel *k, uint64_t bytes)
{
    gs_modules_set_room(k->modules, bytes);
}

void gs_kernel_drop_module(GsKernel *k, uint64_t module_va)
{
    gs_modules_drop(k->modules, k->orc, module_va);
}

void gs_kernel_pack_modules(const GsKernel *k, GsOut *out)
{
    gs_modules_pack(k->modules, k->orc, out);
}

uint32_t gs_kernel_load_at(const GsKernel *k, uint64_t pc, uint32_t era)
{
    uint32_t load = gs_modules_load_at(k->modules, pc, era);

    return load || !pc ? load : gs_modules_load_at(k->modules, pc - 1, era);
}

GsStackEra gs_kernel_era(const GsKernel *k, const uint64_t *frames, unsigned n)
{
    unsigned i = 0;

    while (i < n && gs_orc_set_in_image(k->orc, frames[i])) {
        i++;
    }
    return i < n ? gs_modules_era(k->modules, frames, n) : (GsStackEra) { 0 };
}

unsigned gs_kernel_n_evicted_modules(GsKernel *k)
{
    return gs_modules_n_evicted(k->modules);
}

unsigned gs_kernel_n_untyped_modules(GsKernel *k)
{
    return gs_modules_n_untyped(k->modules);
}

unsigned gs_kernel_unpack_modules(GsKernel *k, GsBytes *in, uint64_t room,
                                  bool loads)
{
    uint64_t bytes = gs_modules_bytes(k->modules);
    unsigned refused;

    gs_kernel_set_slide(k, k->slide);
    refused = gs_modules_unpack(k->modules, k->orc, in,
                                bytes + MIN(room, UINT64_MAX - bytes), loads);
    if (!gs_bytes_ok(in)) {
        gs_kernel_set_slide(k, k->slide);
    }
    return refused;
}

/* ---- types ---- */

bool gs_kernel_has_btf(const GsKernel *k)
{
    return (k->btf && !k->btf_from_file) || k->saved.btf;
}

bool gs_kernel_btf_left_out(const GsKernel *k)
{
    return !k->btf && k->btf_left_out;
}

bool gs_kernel_member(const GsKernel *k, const char *type, const char *member,
                      uint32_t *offset, uint32_t *size)
{
    return k->btf && gs_btf_member(k->btf, type, member, offset, size);
}

bool gs_kernel_bit_field(const GsKernel *k, const char *type,
                         const char *member, uint32_t *bit, uint32_t *bits)
{
    return k->btf && gs_btf_bit_field(k->btf, type, member, bit, bits);
}

bool gs_kernel_type_size(const GsKernel *k, const char *type, uint32_t *size)
{
    return k->btf && gs_btf_type_size(k->btf, type, size);
}

char *gs_kernel_member_at(const GsKernel *k, const char *type, uint32_t at)
{
    return k->btf ? gs_btf_member_at(k->btf, type, at) : NULL;
}

void gs_kernel_pointers_at(const GsKernel *k, const char *type, uint32_t at,
                           GsPointeeFn fn, void *opaque)
{
    if (k->btf) {
        gs_btf_pointers_at(k->btf, type, at, fn, opaque);
    }
}

bool gs_kernel_enum_value(const GsKernel *k, const char *name, int64_t *value)
{
    return k->btf && gs_btf_enum_value(k->btf, name, value);
}

int gs_kernel_func_param(const GsKernel *k, const char *func,
                         const char *param)
{
    return k->btf ? gs_btf_func_param(k->btf, func, param) : -1;
}

/* ---- tags in pointers, see gs-tags.h ---- */

bool gs_kernel_tags_pointers(const GsKernel *k)
{
    /* mm/kasan/sw_tags.c, which exports it; mm/kasan/hw_tags.c */
    static const char *const names[] = {
        "__hwasan_tag_memory", "kasan_init_hw_tags",
    };
    GsSymbol sym;

    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        if (gs_kernel_lookup(k, names[i], &sym)) {
            return true;
        }
    }
    return false;
}

uint64_t gs_kernel_tag_bits(const GsKernel *k)
{
    return k->arch->tag_bits && gs_kernel_tags_pointers(k) ?
               k->arch->tag_bits : 0;
}

/* ---- memory ---- */

uint64_t gs_kernel_bytes(const GsKernel *k)
{
    const GsOrcTable *orc = gs_orc_set_table(k->orc);

    return gs_symtab_bytes(k->symtab) +
           (k->exported ? gs_symtab_bytes(k->exported) : 0) +
           (k->btf ? gs_btf_bytes(k->btf) : 0) +
           (orc ? gs_orc_table_n(orc) * ORC_ROW_BYTES : 0) +
           gs_modules_bytes(k->modules);
}

size_t gs_kernel_symbol_bytes(const GsKernel *k)
{
    return k->saved.on ? k->saved.symbol_bytes : gs_symtab_bytes(k->symtab);
}
