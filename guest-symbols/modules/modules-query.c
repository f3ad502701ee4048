/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Queries that copy one module out of the table of modules: its name, areas
 * and symbols. Any thread; each takes the table's lock.
 */
#include "guest-symbols/modules/modules-internal.h"

#include <string.h>

G_STATIC_ASSERT(GS_MODULE_AREAS_MAX == GS_MODULE_MAX_MEM);

static void copy_out(const Module *mod, GsModule *out)
{
    *out = (GsModule) {
        .va = mod->va, .name = mod->name, .live = mod->live
    };
    for (size_t i = 0; i < mod->n_mem; i++) {
        out->area[out->n++] = (GsModuleArea) {
            mod->mem[i].start, mod->mem[i].end };
    }
}

static const Module *find_locked(const GsModules *m, uint64_t module_va)
{
    for (guint i = 0; i < m->all->len; i++) {
        const Module *mod = m->all->pdata[i];

        if (mod->live && mod->va == module_va) {
            return mod;
        }
    }
    return NULL;
}

bool gs_modules_get(const GsModules *m, uint64_t module_va, GsModule *out)
{
    HOLD_LOCK(m);
    const Module *mod = find_locked(m, module_va);

    if (mod) {
        copy_out(mod, out);
    }
    return mod;
}

bool gs_modules_nth(const GsModules *m, unsigned i, GsModule *out)
{
    HOLD_LOCK(m);

    if (i >= m->all->len) {
        return false;
    }
    copy_out(m->all->pdata[i], out);
    return true;
}

static void hand_over(const Module *mod, GsModuleFn fn, void *opaque)
{
    g_autoptr(GArray) syms = g_array_new(false, false, sizeof(GsModuleSymbol));
    GsModuleInfo info = { .n_mem = mod->n_mem, .n_text = mod->n_text };

    for (size_t i = 0; i < mod->n_syms; i++) {
        const Sym *s = &mod->syms[i];
        GsModuleSymbol sym = { s->va, s->name, s->type };

        g_array_append_val(syms, sym);
    }
    g_strlcpy(info.name, mod->name, sizeof(info.name));
    memcpy(info.mem, mod->mem, sizeof(info.mem));
    memcpy(info.text, mod->text, sizeof(info.text));
    info.syms = (GsModuleSymbol *)syms->data;
    info.n_syms = mod->n_syms;
    fn(mod->va, &info, opaque);
}

bool gs_modules_with(const GsModules *m, uint64_t module_va, GsModuleFn fn,
                     void *opaque)
{
    HOLD_LOCK(m);
    const Module *mod = find_locked(m, module_va);

    if (mod) {
        hand_over(mod, fn, opaque);
    }
    return mod;
}

bool gs_modules_with_nth(const GsModules *m, unsigned i, GsModuleFn fn,
                         void *opaque)
{
    HOLD_LOCK(m);

    if (i >= m->all->len) {
        return false;
    }
    hand_over(m->all->pdata[i], fn, opaque);
    return true;
}

void gs_modules_foreach_symbol(const GsModules *m, uint64_t module_va,
                               GsModuleSymbolFn fn, void *opaque)
{
    HOLD_LOCK(m);
    const Module *mod = find_locked(m, module_va);

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

    for (guint i = 0; i < m->spans->len; i++) {
        const Span *s = &g_array_index(m->spans, Span, i);

        if (va >= s->start && va < s->end) {
            copy_out(s->module, out);
            return true;
        }
    }
    return false;
}
