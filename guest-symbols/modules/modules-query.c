/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the table of modules is asked: names of addresses, addresses of names,
 * and modules one by one. Any thread; each function takes the table's lock.
 */
#include "guest-symbols/base/sorted.h"
#include "guest-symbols/modules/modules-internal.h"
#include "guest-symbols/types/btf.h"

#include <string.h>

G_STATIC_ASSERT(GS_MODULE_AREAS_MAX == GS_MODULE_MAX_MEM);

/* ---- symbols ---------------------------------------------------------- */

static void fill_symbol(const Module *mod, const Sym *s, GsSymbol *out)
{
    out->va = s->va;
    out->size = s->size;
    out->module = mod->name;
    out->load = mod->load;
    out->type = s->type;
    g_strlcpy(out->name, s->name, sizeof(out->name));
}

static const Span *span_at_locked(const GsModules *m, uint64_t va)
{
    const Span *spans = (const Span *)m->spans->data;
    size_t n = gs_sorted_up_to(spans, m->spans->len, sizeof(Span), va);

    return n && va < spans[n - 1].end ? &spans[n - 1] : NULL;
}

/* Returns: how many of @mod's symbols lie below @va. */
static size_t n_below(const Module *mod, uint64_t va)
{
    return gs_sorted_below(mod->syms, mod->n_syms, sizeof(Sym), va);
}

/* An area in time: from the load of its module until that of the next one over
 * it. A module that is past is found here; there are few, and most addresses
 * are found in the spans. */
static const Module *past_at_locked(const GsModules *m, uint64_t va,
                                    uint32_t era, Span *out)
{
    for (guint i = m->past->len; i-- > 0;) {
        const Module *mod = m->past->pdata[i];

        for (size_t j = 0; j < mod->n_mem; j++) {
            const GsRange *r = &mod->mem[j];

            if (gs_range_has(*r, va) && era >= mod->load && era < mod->until) {
                *out = (Span) { r->start, r->end, mod };
                return mod;
            }
        }
    }
    return NULL;
}

/* Returns: the module that @va was in when @era was, and its area in @out; NULL
 * if there is none. */
static const Module *module_at_locked(const GsModules *m, uint64_t va,
                                      uint32_t era, Span *out)
{
    const Span *span = span_at_locked(m, va);

    if (span && span->module->load <= era) {
        *out = *span;
        return span->module;
    }
    return past_at_locked(m, va, era, out);
}

bool gs_modules_symbolize(const GsModules *m, uint64_t va, uint32_t era,
                          GsSymbol *out)
{
    HOLD_LOCK(m);
    Span area;
    const Module *mod = module_at_locked(m, va, era, &area);
    const Sym *s;
    size_t i;

    if (!mod) {
        return false;
    }
    i = va == UINT64_MAX ? mod->n_syms : n_below(mod, va + 1);
    if (!i) {
        return false;
    }
    s = &mod->syms[n_below(mod, mod->syms[i - 1].va)];
    if (s->va < area.start || va - s->va >= s->size) {
        return false;
    }
    fill_symbol(mod, s, out);
    return true;
}

uint32_t gs_modules_load_at(const GsModules *m, uint64_t va, uint32_t era)
{
    HOLD_LOCK(m);
    Span area;
    const Module *mod = module_at_locked(m, va, era, &area);

    return mod ? mod->load : 0;
}

/* Most frames are in the kernel's image, before or behind all modules. */
static bool is_near_locked(const GsModules *m, uint64_t pc)
{
    const Span *span = (const Span *)m->spans->data;

    return m->spans->len && pc >= span[0].start &&
           pc <= span[m->spans->len - 1].end;
}

/* A return address may be the first byte behind the code, if the call is its
 * last instruction. */
static uint32_t load_of_frame_locked(const GsModules *m, uint64_t pc)
{
    const Span *span;

    if (!is_near_locked(m, pc)) {
        return 0;
    }
    span = span_at_locked(m, pc);
    if (!span && pc) {
        span = span_at_locked(m, pc - 1);
    }
    return span ? span->module->load : 0;
}

GsStackEra gs_modules_era(const GsModules *m, const uint64_t *frames,
                          unsigned n)
{
    HOLD_LOCK(m);
    GsStackEra era = { 0 };

    for (unsigned i = 0; i < n; i++) {
        uint32_t load = load_of_frame_locked(m, frames[i]);

        era.all = MAX(era.all, load);
        era.first = i ? era.first : load;
    }
    return era;
}

static bool better(const Sym *a, const Sym *b)
{
    bool global_a = g_ascii_isupper(a->type);
    bool global_b = g_ascii_isupper(b->type);

    return global_a != global_b ? global_a : a->va < b->va;
}

/* @name and @module are interned: equal strings have equal addresses. */
static bool find_named_locked(const GPtrArray *modules, const char *module,
                              const char *name, bool live, GsSymbol *out)
{
    const Module *owner = NULL;
    const Sym *best = NULL;

    for (guint i = 0; i < modules->len; i++) {
        const Module *mod = modules->pdata[i];

        if (mod->live != live || (module && mod->name != module)) {
            continue;
        }
        for (size_t j = 0; j < mod->n_syms; j++) {
            const Sym *s = &mod->syms[j];

            if (s->name == name && (!best || better(s, best))) {
                best = s;
                owner = mod;
            }
        }
    }
    if (best) {
        fill_symbol(owner, best, out);
    }
    return best != NULL;
}

bool gs_modules_lookup(const GsModules *m, const char *module,
                       const char *name, GsSymbol *out)
{
    HOLD_LOCK(m);

    name = gs_name_pool_find(m->names, name);
    if (!name) {
        return false;
    }
    if (module) {
        module = gs_name_pool_find(m->names, module);
        if (!module) {
            return false;
        }
    }
    return find_named_locked(m->all, module, name, true, out) ||
           find_named_locked(m->all, module, name, false, out) ||
           find_named_locked(m->past, module, name, false, out);
}

/* Names are interned: they outlive the module. @by: its name and load */
typedef struct Named {
    Sym sym;
    Module by;
} Named;

static void add_named_locked(const GPtrArray *modules, const char *name,
                             bool ever, GArray *found)
{
    for (guint i = 0; name && i < modules->len; i++) {
        const Module *mod = modules->pdata[i];

        for (size_t j = 0; (mod->live || ever) && j < mod->n_syms; j++) {
            if (mod->syms[j].name == name) {
                Named named = { mod->syms[j], *mod };

                g_array_append_val(found, named);
            }
        }
    }
}

static GArray *all_named(const GsModules *m, const char *name, bool ever)
{
    GArray *found = g_array_new(false, false, sizeof(Named));
    HOLD_LOCK(m);

    name = gs_name_pool_find(m->names, name);
    add_named_locked(m->all, name, ever, found);
    if (ever) {
        add_named_locked(m->past, name, ever, found);
    }
    g_array_sort(found, gs_sorted_compare);
    return found;
}

static unsigned foreach_found(const GArray *found, GsSymbolFn fn, void *opaque)
{
    bool more = true;
    unsigned n = 0;

    while (more && n < found->len) {
        const Named *named = &g_array_index(found, Named, n++);
        GsSymbol sym;

        fill_symbol(&named->by, &named->sym, &sym);
        more = fn(&sym, opaque);
    }
    return n;
}

unsigned gs_modules_foreach_named(const GsModules *m, const char *name,
                                  bool ever, GsSymbolFn fn, void *opaque)
{
    g_autoptr(GArray) found = all_named(m, name, ever);

    return foreach_found(found, fn, opaque);
}

GsModuleCounts gs_modules_counts(const GsModules *m)
{
    HOLD_LOCK(m);
    GsModuleCounts n = { 0 };

    for (guint i = 0; i < m->all->len; i++) {
        const Module *mod = m->all->pdata[i];

        if (mod->live) {
            n.modules++;
            n.typed += mod->types.raw || mod->types.btf;
            n.symbols += mod->n_syms;
        }
    }
    return n;
}

bool gs_modules_is_text(const GsModules *m, uint64_t va)
{
    HOLD_LOCK(m);
    const Span *span = span_at_locked(m, va);

    return span && span->module->live &&
           gs_ranges_have(span->module->text, span->module->n_text, va);
}

/* ---- one module ------------------------------------------------------- */

/* Returns: false if there is no module. */
static bool copy_out(const Module *mod, GsModule *out)
{
    if (!mod) {
        return false;
    }
    *out = (GsModule) {
        .va = mod->va, .name = mod->name, .live = mod->live
    };
    for (size_t i = 0; i < mod->n_mem; i++) {
        out->area[out->n++] = (GsModuleArea) {
            mod->mem[i].start, mod->mem[i].end };
    }
    return true;
}

bool gs_modules_get(const GsModules *m, uint64_t module_va, GsModule *out)
{
    HOLD_LOCK(m);

    return copy_out(gs_modules_live(m, module_va), out);
}

static const Module *nth_locked(const GsModules *m, unsigned i)
{
    if (i < m->past->len) {
        return m->past->pdata[i];
    }
    i -= m->past->len;
    return i < m->all->len ? m->all->pdata[i] : NULL;
}

bool gs_modules_nth(const GsModules *m, unsigned i, GsModule *out)
{
    HOLD_LOCK(m);

    return copy_out(nth_locked(m, i), out);
}

/* Returns: false if there is no module. */
static bool hand_over(const Module *mod, GsModuleFn fn, void *opaque)
{
    g_autoptr(GArray) syms = g_array_new(false, false, sizeof(GsModuleSymbol));
    GsModuleInfo info = { 0 };

    if (!mod) {
        return false;
    }
    for (size_t i = 0; i < mod->n_syms; i++) {
        const Sym *s = &mod->syms[i];
        GsModuleSymbol sym = { s->va, s->name, s->type };

        g_array_append_val(syms, sym);
    }
    g_strlcpy(info.name, mod->name, sizeof(info.name));
    info.load = mod->load;
    info.until = mod->until;
    info.n_mem = mod->n_mem;
    info.n_text = mod->n_text;
    memcpy(info.mem, mod->mem, sizeof(info.mem));
    memcpy(info.text, mod->text, sizeof(info.text));
    info.syms = (GsModuleSymbol *)syms->data;
    info.n_syms = mod->n_syms;
    fn(mod->va, &info, opaque);
    return true;
}

bool gs_modules_with(const GsModules *m, uint64_t module_va, GsModuleFn fn,
                     void *opaque)
{
    HOLD_LOCK(m);

    return hand_over(gs_modules_live(m, module_va), fn, opaque);
}

bool gs_modules_with_nth(const GsModules *m, unsigned i, GsModuleFn fn,
                         void *opaque)
{
    HOLD_LOCK(m);

    return hand_over(nth_locked(m, i), fn, opaque);
}

void gs_modules_foreach_symbol(const GsModules *m, uint64_t module_va,
                               GsModuleSymbolFn fn, void *opaque)
{
    HOLD_LOCK(m);
    const Module *mod = gs_modules_live(m, module_va);

    for (size_t i = 0; mod && i < mod->n_syms; i++) {
        const Sym *s = &mod->syms[i];

        if (!fn(&(GsModuleSymbol) { s->va, s->name, s->type }, opaque)) {
            return;
        }
    }
}

bool gs_modules_at(const GsModules *m, uint64_t va, GsModule *out)
{
    HOLD_LOCK(m);
    const Span *s = span_at_locked(m, va);

    return copy_out(s ? s->module : NULL, out);
}

/* ---- types ------------------------------------------------------------ */

static Module *live_named_locked(const GsModules *m, const char *name)
{
    for (guint i = m->all->len; i-- > 0;) {
        Module *mod = m->all->pdata[i];

        if (mod->live && !strcmp(mod->name, name)) {
            return mod;
        }
    }
    return NULL;
}

/* Parsed types take other memory than was estimated. */
static void recount_types_locked(GsModules *m, Module *mod)
{
    size_t rows = (gs_module_types_bytes(&mod->types) + ROW_BYTES - 1) /
                  ROW_BYTES;

    m->rows += rows - mod->type_rows;
    mod->rows += rows - mod->type_rows;
    mod->type_rows = rows;
}

GsBtf *gs_modules_types(GsModules *m, const char *name, GsBtf *kernel,
                        const char **why)
{
    HOLD_LOCK(m);
    Module *mod = live_named_locked(m, name);
    bool was_raw = mod && mod->types.raw;
    GsBtf *btf;

    if (!mod) {
        *why = "this module is not loaded";
        return NULL;
    }
    btf = gs_module_types_parse(&mod->types, kernel);
    recount_types_locked(m, mod);
    m->n_untyped += was_raw && !btf;
    *why = btf ? NULL : mod->types.why ? mod->types.why :
           "the types of this module are not known: it was not seen to load";
    return btf ? gs_btf_ref(btf) : NULL;
}
