/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Makes the debug file of a kernel: sections, symbols and call frame
 * information of the kernel and its modules. Called by commands, on any
 * thread; modules are copied under the lock of their table.
 *
 * Sections say where code is. A debugger names an address only if it is in a
 * section, and a function only in a section of code:
 *
 *     .data     .text       .data.2       .init.text     .data.3
 *     |--------|===========|-------------|==============|-------|
 *     first    _stext      _etext        _sinittext             last symbol
 *     symbol
 *
 * If several symbols have one address, ka names the address by the first. It
 * has the size and is global, and the others have none and are local: gdb names
 * an address by a symbol with a size, lldb by a global one.
 */
#include "guest-symbols/export/cfi-maker.h"
#include "guest-symbols/export/elf-file.h"
#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/modules/modules.h"

#include <elf.h>
#include <string.h>

/* A section of the file. */
typedef struct Area {
    uint64_t start, end;
    GsElfSection section;
    bool code;
} Area;

/**
 * struct Maker - the file that is being made
 * @names: (owned) of all sections
 * @areas: Area, those of the kernel or of one module
 * @starts: uint64_t, ascending: symbols of code in these areas
 * @rules, @maker: (nullable) what makes call frame information
 * @va: address of the symbol before, if it is in an area
 * @first: number of the first symbol at @va
 * @module: (nullable) the module
 * @room: bytes of code that may still be read
 */
typedef struct Maker {
    const GsKernel *k;
    GsElfFile *elf;
    GsCfi cfi;
    const GsCfiMaker *rules;
    void *maker;
    GHashTable *names;
    GArray *areas;
    GArray *starts;
    uint64_t va;
    size_t first;
    const char *module;
    size_t room;
    GsDebugFile *out;
} Maker;

/* ---- areas -------------------------------------------------------------- */

/* Return (owned by @m) a name that no section has yet: lldb takes sections of
 * one name for the first of them. */
static const char *section_name(Maker *m, const char *name)
{
    char *first = g_strconcat(name, m->module ? "." : NULL, m->module, NULL);
    char *full = g_strdup(first);

    for (unsigned i = 2; !g_hash_table_add(m->names, full); i++) {
        full = g_strdup_printf("%s.%u", first, i);
    }
    g_free(first);
    return full;
}

static void add_area(Maker *m, uint64_t start, uint64_t end, bool code,
                     const char *name)
{
    Area area = { start, end, 0, code };

    if (start < end) {
        area.section = gs_elf_file_add_section(m->elf, section_name(m, name),
                                               start, end, code);
        g_array_append_val(m->areas, area);
    }
}

/* Add [@start, @end) as code in the @n ranges @text, which are ascending, and
 * as data beside them. */
static void add_areas(Maker *m, uint64_t start, uint64_t end,
                      const GsRange *text, size_t n)
{
    for (size_t i = 0; i < n && start < end; i++) {
        uint64_t from = CLAMP(text[i].start, start, end);
        uint64_t to = CLAMP(text[i].end, from, end);

        add_area(m, start, from, false, ".data");
        add_area(m, from, to, true, i ? ".init.text" : ".text");
        start = to;
    }
    add_area(m, start, end, false, ".data");
}

static const Area *area_of(const Maker *m, uint64_t va)
{
    for (unsigned i = 0; i < m->areas->len; i++) {
        const Area *a = &g_array_index(m->areas, Area, i);

        if (va >= a->start && va < a->end) {
            return a;
        }
    }
    return NULL;
}

static void begin_areas(Maker *m)
{
    g_array_set_size(m->areas, 0);
    g_array_set_size(m->starts, 0);
    m->va = 0;
}

/* ---- symbols ------------------------------------------------------------ */

static void add_symbol(Maker *m, const char *name, uint64_t va, uint64_t size,
                       char type)
{
    const Area *a = area_of(m, va);
    bool again = a && va == m->va;
    size_t i = gs_elf_file_add_symbol(m->elf, &(GsElfSymbol) {
        .name = name, .va = va, .size = again ? 0 : size,
        .section = a ? a->section : GS_ELF_ABS, .function = a && a->code,
        .global = g_ascii_isupper(type) && !again,
    });
    if (again) {
        gs_elf_file_set_global(m->elf, m->first);
    } else if (a) {
        m->va = va;
        m->first = i;
    }
    if (a && a->code && !again) {
        g_array_append_val(m->starts, va);
    }
}

/* ---- call frame information --------------------------------------------- */

/* Write the rules of the areas of code. @module: address of the struct module,
 * 0: the kernel. Called without locks: guest memory may be read. */
static void add_rules(Maker *m, uint64_t module)
{
    for (unsigned i = 0; m->maker && i < m->areas->len; i++) {
        const Area *a = &g_array_index(m->areas, Area, i);

        if (a->code) {
            m->rules->add(m->maker, &(GsCfiCode) {
                .range = { a->start, a->end },
                .start = (const uint64_t *)m->starts->data,
                .n = m->starts->len, .module = module, .room = &m->room,
            });
        }
    }
}

/* ---- the kernel --------------------------------------------------------- */

static bool is_absolute(const Maker *m, const GsSymbol *sym)
{
    return strchr("aA", sym->type) || sym->va < gs_kernel_lowest(m->k);
}

/**
 * struct Image - the symbols of the kernel proper
 * @va: uint64_t, ascending: their addresses, each once
 * @i: the one of the symbol before
 */
typedef struct Image {
    Maker *m;
    GArray *va;
    unsigned i;
} Image;

static uint64_t nth_va(const Image *image, unsigned i)
{
    return g_array_index(image->va, uint64_t, i);
}

static bool add_address(const GsSymbol *sym, void *opaque)
{
    Image *image = opaque;
    unsigned n = image->va->len;

    if (!is_absolute(image->m, sym) && (!n || nth_va(image, n - 1) < sym->va)) {
        g_array_append_val(image->va, sym->va);
    }
    return true;
}

/* A symbol ends where the next one begins, or at the end of its section. */
static uint64_t size_up_to_next(Image *image, uint64_t va)
{
    const Area *a = area_of(image->m, va);
    unsigned next;

    while (image->i + 1 < image->va->len && nth_va(image, image->i) < va) {
        image->i++;
    }
    next = image->i + 1;
    if (!a) {
        return 0;
    }
    return (next < image->va->len ? MIN(nth_va(image, next), a->end) :
                                    a->end) - va;
}

static bool add_kernel_symbol(const GsSymbol *sym, void *opaque)
{
    Image *image = opaque;
    Maker *m = image->m;

    if (is_absolute(m, sym)) {
        gs_elf_file_add_symbol(m->elf, &(GsElfSymbol) {
            .name = sym->name, .va = sym->va, .section = GS_ELF_ABS,
            .global = g_ascii_isupper(sym->type) });
    } else {
        add_symbol(m, sym->name, sym->va, size_up_to_next(image, sym->va),
                   sym->type);
    }
    return true;
}

/* Return how many ranges of code the kernel has; if they are not known, all is
 * code. */
static size_t find_text(const GsKernel *k, GsRange extent, GsRange text[2])
{
    size_t n = 0;

    for (size_t i = 0; i < G_N_ELEMENTS(k->text); i++) {
        if (k->text[i].start < k->text[i].end) {
            text[n++] = (GsRange) { k->text[i].start + k->slide,
                                    k->text[i].end + k->slide };
        }
    }
    if (n == 2 && text[1].start < text[0].start) {
        GsRange first = text[1];

        text[1] = text[0];
        text[0] = first;
    }
    if (!n) {
        text[n++] = extent;
    }
    return n;
}

static void add_kernel(Maker *m)
{
    g_autoptr(GArray) va = g_array_new(false, false, sizeof(uint64_t));
    Image image = { m, va, 0 };
    GsRange all, text[2];
    size_t n;

    gs_kernel_foreach_symbol(m->k, add_address, &image);
    if (!va->len) {
        return;
    }
    all = (GsRange) { nth_va(&image, 0), nth_va(&image, va->len - 1) + 1 };
    n = find_text(m->k, all, text);
    begin_areas(m);
    add_areas(m, all.start, all.end, text, n);
    gs_kernel_foreach_symbol(m->k, add_kernel_symbol, &image);
    add_rules(m, 0);
}

/* ---- modules ------------------------------------------------------------ */

static void add_module_areas(Maker *m, const GsModuleInfo *info)
{
    for (size_t i = 0; i < info->n_mem; i++) {
        GsRange text[GS_MODULE_MAX_MEM];
        size_t n = 0;

        for (size_t j = 0; j < info->n_text; j++) {
            if (info->text[j].start >= info->mem[i].start &&
                info->text[j].start < info->mem[i].end) {
                text[n++] = info->text[j];
            }
        }
        add_areas(m, info->mem[i].start, info->mem[i].end, text, n);
    }
}

/* Return the bytes from symbol @i up to the next one, or to the end of its
 * area. */
static uint64_t size_of(const Maker *m, const GsModuleInfo *info, size_t i)
{
    uint64_t va = info->syms[i].va;
    const Area *a = area_of(m, va);
    size_t next = i;

    while (next < info->n_syms && info->syms[next].va == va) {
        next++;
    }
    if (a && next < info->n_syms && info->syms[next].va < a->end) {
        return info->syms[next].va - va;
    }
    return a ? a->end - va : 0;
}

static void add_module_symbols(G_GNUC_UNUSED uint64_t module_va,
                               const GsModuleInfo *info, void *opaque)
{
    Maker *m = opaque;

    if (info->until) {
        m->out->n_covered += info->n_syms;
        return;
    }
    m->module = info->name;
    add_module_areas(m, info);
    for (size_t i = 0; i < info->n_syms; i++) {
        add_symbol(m, info->syms[i].name, info->syms[i].va,
                   size_of(m, info, i), info->syms[i].type);
    }
    m->module = NULL;
    m->out->n_modules++;
}

static void add_modules(Maker *m, bool unloaded)
{
    GsModule module;

    for (unsigned i = 0; gs_modules_nth(m->k->modules, i, &module); i++) {
        begin_areas(m);
        if (module.live) {
            gs_modules_with(m->k->modules, module.va, add_module_symbols, m);
            add_rules(m, module.va);
        } else if (unloaded) {
            gs_modules_with_nth(m->k->modules, i, add_module_symbols, m);
        }
    }
}

/* ---- the file ----------------------------------------------------------- */

static void fill(Maker *m, const GsMem *mem, bool unloaded)
{
    m->rules = gs_cfi_maker_find(m->k);
    if (m->rules) {
        m->maker = m->rules->begin(&m->cfi, m->k, mem);
    }
    add_kernel(m);
    add_modules(m, unloaded);
}

bool gs_kernel_debug_file(const GsKernel *k, const GsMem *mem, bool unloaded,
                          GsDebugFile *out, GError **errp)
{
    g_autoptr(GsElfFile) elf = gs_elf_file_new(k->arch->machine);
    g_autoptr(GByteArray) frames = g_byte_array_new();
    g_autoptr(GArray) areas = g_array_new(false, false, sizeof(Area));
    g_autoptr(GArray) starts = g_array_new(false, false, sizeof(uint64_t));
    g_autoptr(GHashTable) names = g_hash_table_new_full(g_str_hash, g_str_equal,
                                                        g_free, NULL);
    Maker m = {
        .k = k, .elf = elf, .cfi = gs_cfi(frames, k->arch->code_align),
        .names = names, .areas = areas, .starts = starts,
        .room = GS_CFI_CODE_MAX, .out = out,
    };

    *out = (GsDebugFile) { 0 };
    fill(&m, mem, unloaded);
    out->n_symbols = gs_elf_file_n_symbols(elf);
    out->n_ranges = m.cfi.n;
    out->unwind = m.maker ? m.rules->made_of : "nothing";
    out->no_unwinder = mem && k->unwind_by == GS_UNWIND_BY_NOTHING;
    g_free(m.maker);
    out->bytes = m.cfi.out.failed ? NULL : gs_elf_file_end(elf, frames);
    if (!out->bytes) {
        g_set_error(errp, GS_ERROR, GS_ERROR_UNSUPPORTED,
                    "the file would be larger than 2 GiB");
    }
    return out->bytes;
}

void gs_debug_file_deinit(GsDebugFile *f)
{
    g_clear_pointer(&f->bytes, g_byte_array_unref);
}

uint64_t gs_kernel_stamp(const GsKernel *k)
{
    uint64_t n = atomic_load(gs_orc_set_generation(k->orc));

    return (k->slide >> 12) << 32 | (n & UINT32_MAX);
}
