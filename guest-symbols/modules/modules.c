/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of modules: which module is where, and its symbols. Owns
 * GsModules.
 *
 * The vCPU thread that runs the guest's module loader adds and drops modules;
 * the monitor's thread asks. One mutex covers everything: no event comes
 * through here. A dropped module is "dead" but stays in the table, so that
 * backtraces through it keep their names. If something is loaded over it, it is
 * "past": only backtraces of its time find it (gs_modules_symbolize()). So is
 * the init code of a module, which is freed after the load.
 *
 * Loads have numbers 1, 2, 3 ... in their order, also over boots. A module that
 * is loaded again as it was to where it was, and that nothing was loaded over
 * in between, keeps its number: a loop of loads and unloads adds nothing.
 *
 * Names are interned for the life of the table, because GsSymbol borrows them.
 * The guest decides how much all this is, so the pool of names, the number of
 * modules and their rows (symbols and ORC entries) are capped: the oldest past
 * ones are removed, then the longest dead; if there are too many live ones, the
 * next is refused.
 *
 * Lock order: GsModules.lock, then the lock of the GsOrcSet.
 */
#include "guest-symbols/base/sorted.h"
#include "guest-symbols/modules/modules-internal.h"

#include <string.h>

#define ORC_SIZE 6              /* bytes of an entry of .orc_unwind */

static const char exchanged[] =
    "the types of the kernel were exchanged after this module was loaded";
static const char no_memory[] =
    "there was no memory for the types of this module";

/* ---- life ------------------------------------------------------------- */

static void module_free(gpointer p)
{
    Module *mod = p;

    if (mod) {
        g_free(mod->syms);
        gs_module_types_clear(&mod->types, NULL);
        g_free(mod);
    }
}

GsModules *gs_modules_new(void)
{
    GsModules *m = g_new0(GsModules, 1);

    pthread_mutex_init(&m->lock, NULL);
    m->all = g_ptr_array_new_with_free_func(module_free);
    m->past = g_ptr_array_new_with_free_func(module_free);
    m->spans = g_array_new(false, false, sizeof(Span));
    m->names = gs_name_pool_new(MAX_NAMES);
    m->max_rows = MAX_ROWS;
    return m;
}

void gs_modules_free(GsModules *m)
{
    if (!m) {
        return;
    }
    g_ptr_array_free(m->all, true);
    g_ptr_array_free(m->past, true);
    g_array_free(m->spans, true);
    gs_name_pool_free(m->names);
    pthread_mutex_destroy(&m->lock);
    g_free(m);
}

void gs_modules_set_room(GsModules *m, uint64_t bytes)
{
    HOLD_LOCK(m);

    gs_name_pool_set_room(m->names, bytes / 2);
    m->max_rows = MIN(m->rows + bytes / 2 / ROW_BYTES, MAX_ROWS);
}

uint64_t gs_modules_bytes(const GsModules *m)
{
    HOLD_LOCK(m);

    return (uint64_t)m->rows * ROW_BYTES +
           (uint64_t)(m->all->len + m->past->len) * MODULE_BYTES +
           gs_name_pool_bytes(m->names);
}

void gs_modules_clear(GsModules *m)
{
    HOLD_LOCK(m);

    g_array_set_size(m->spans, 0);
    g_ptr_array_set_size(m->all, 0);
    g_ptr_array_set_size(m->past, 0);
    m->rows = m->past_rows = 0;
}

unsigned gs_modules_n_evicted(GsModules *m)
{
    HOLD_LOCK(m);
    unsigned n = m->n_evicted;

    m->n_evicted = 0;
    return n;
}

unsigned gs_modules_n_untyped(GsModules *m)
{
    HOLD_LOCK(m);
    unsigned n = m->n_untyped;

    m->n_untyped = 0;
    return n;
}

/* ---- building a module ------------------------------------------------ */

static uint64_t area_end(const Module *mod, uint64_t va)
{
    for (size_t i = 0; i < mod->n_mem; i++) {
        if (gs_range_has(mod->mem[i], va)) {
            return mod->mem[i].end;
        }
    }
    return va;
}

static int sym_cmp(const void *pa, const void *pb, void *unused)
{
    const Sym *a = pa, *b = pb;

    return a->va < b->va ? -1 : a->va > b->va;
}

static void size_symbols(Module *mod)
{
    uint64_t next = 0;

    for (size_t i = mod->n_syms; i-- > 0;) {
        Sym *s = &mod->syms[i];
        uint64_t end = area_end(mod, s->va);

        if (i + 1 < mod->n_syms && mod->syms[i + 1].va != s->va) {
            next = mod->syms[i + 1].va;
        }
        if (next > s->va && next < end) {
            end = next;
        }
        s->size = MIN(end - s->va, UINT32_MAX);
    }
}

static Module *module_new_locked(GsModules *m, uint64_t va,
                                 const GsModuleInfo *info, GError **errp)
{
    Module *mod = g_new0(Module, 1);
    bool room;

    mod->va = va;
    mod->live = true;
    mod->rows = info->n_syms + info->n_orc;
    mod->n_mem = info->n_mem;
    memcpy(mod->mem, info->mem, sizeof(mod->mem));
    mod->n_text = info->n_text;
    memcpy(mod->text, info->text, sizeof(mod->text));
    mod->syms = g_new(Sym, MAX(info->n_syms, 1));
    mod->name = gs_name_pool_intern(m->names, info->name);
    room = mod->name != NULL;
    for (size_t i = 0; room && i < info->n_syms; i++) {
        const GsModuleSymbol *s = &info->syms[i];
        const char *name = gs_name_pool_intern(m->names, s->name);

        room = name != NULL;
        mod->syms[mod->n_syms++] = (Sym) { s->va, name, 0, s->type };
    }
    if (!room) {
        module_free(mod);
        return gs_fail(errp, GS_ERROR_GUEST,
                       "module %s: no room for yet more symbol names",
                       info->name);
    }
    /* Of the names of one address the kernel prints the first in the table
     * (find_kallsyms_symbol(): init_module is an alias behind the module's own
     * name), so the order must be kept. */
    g_qsort_with_data(mod->syms, mod->n_syms, sizeof(Sym), sym_cmp, NULL);
    size_symbols(mod);
    return mod;
}

/* Give a module its types, if there is room for them. Nothing is evicted for
 * types. */
static void adopt_types_locked(GsModules *m, Module *mod, GsModuleInfo *info)
{
    size_t bytes = gs_module_types_bytes(&info->types);
    size_t rows = (bytes + ROW_BYTES - 1) / ROW_BYTES;

    if (m->rows + mod->rows + rows > m->max_rows) {
        gs_module_types_clear(&info->types, no_memory);
        rows = 0;
    }
    m->n_untyped += info->types.why && !gs_module_types_is_none(&info->types);
    gs_module_types_move(&mod->types, &info->types);
    mod->type_rows = rows;
    mod->rows += rows;
}

void gs_modules_drop_types_locked(GsModules *m, Module *mod, const char *why)
{
    m->rows -= mod->type_rows;
    mod->rows -= mod->type_rows;
    mod->type_rows = 0;
    gs_module_types_clear(&mod->types, why);
}

/* ---- changing the registry -------------------------------------------- */

static void rebuild_spans_locked(GsModules *m)
{
    g_array_set_size(m->spans, 0);
    for (guint i = 0; i < m->all->len; i++) {
        const Module *mod = m->all->pdata[i];

        for (size_t j = 0; j < mod->n_mem; j++) {
            Span s = { mod->mem[j].start, mod->mem[j].end, mod };

            g_array_append_val(m->spans, s);
        }
    }
    g_array_sort(m->spans, gs_sorted_compare);
}

static bool overlaps(const Module *mod, const GsRange *r)
{
    for (size_t i = 0; i < mod->n_mem; i++) {
        if (mod->mem[i].start < r->end && r->start < mod->mem[i].end) {
            return true;
        }
    }
    return false;
}

/* Keep those of @n ranges that overlap @taken, or, without @inside, the
 * others. */
static size_t keep_ranges(GsRange *r, size_t n, const GsRange *taken,
                          bool inside)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        if ((r[i].start < taken->end && taken->start < r[i].end) == inside) {
            r[kept++] = r[i];
        }
    }
    return kept;
}

static void keep_symbols(Module *mod)
{
    size_t kept = 0;

    for (size_t i = 0; i < mod->n_syms; i++) {
        if (gs_ranges_have(mod->mem, mod->n_mem, mod->syms[i].va)) {
            mod->syms[kept++] = mod->syms[i];
        }
    }
    mod->n_syms = kept;
}

/* Moves from @mod to @past its areas in @taken, which another module uses now:
 * the init code, for example. */
static void take_range_locked(GsModules *m, Module *mod, const GsRange *taken,
                              uint32_t load)
{
    Module *past;

    if (!overlaps(mod, taken)) {
        return;
    }
    past = g_memdup2(mod, sizeof(*mod));
    past->live = false;
    past->until = load;
    past->types = (GsModuleTypes) { 0 };
    past->type_rows = 0;
    past->syms = g_memdup2(mod->syms, MAX(mod->n_syms, 1) * sizeof(Sym));
    past->n_mem = keep_ranges(past->mem, past->n_mem, taken, true);
    past->n_text = keep_ranges(past->text, past->n_text, taken, true);
    keep_symbols(past);
    past->syms = g_renew(Sym, past->syms, MAX(past->n_syms, 1));
    past->rows = past->n_syms;
    mod->n_mem = keep_ranges(mod->mem, mod->n_mem, taken, false);
    mod->n_text = keep_ranges(mod->text, mod->n_text, taken, false);
    keep_symbols(mod);
    mod->rows -= MIN(mod->rows - mod->type_rows, past->rows);
    m->past_rows += past->rows;
    g_ptr_array_add(m->past, past);
}

static void remove_locked(GsModules *m, guint i)
{
    m->rows -= ((const Module *)m->all->pdata[i])->rows;
    g_ptr_array_remove_index(m->all, i);
}

static void evict_past_locked(GsModules *m)
{
    const Module *oldest = m->past->pdata[0];

    m->rows -= oldest->rows;
    m->past_rows -= oldest->rows;
    g_ptr_array_remove_index(m->past, 0);
    m->n_evicted++;
}

static void take_ranges_locked(GsModules *m, const Module *by)
{
    for (guint i = m->all->len; i-- > 0;) {
        Module *mod = m->all->pdata[i];

        for (size_t j = 0; j < by->n_mem; j++) {
            take_range_locked(m, mod, &by->mem[j], by->load);
        }
        if (!mod->n_mem) {
            remove_locked(m, i);
        }
    }
}

static void bound_past_locked(GsModules *m, size_t rows)
{
    while (m->past->len &&
           (m->past->len > MAX_PAST || m->rows + rows > m->max_rows ||
            m->past_rows > m->max_rows / PAST_SHARE)) {
        evict_past_locked(m);
    }
}

/* Makes room for a module of @rows by removing the oldest past ones, then the
 * longest dead. */
static void bound_dead_locked(GsModules *m, size_t rows)
{
    size_t n_dead = 0;
    guint i = 0;

    bound_past_locked(m, rows);
    for (guint j = 0; j < m->all->len; j++) {
        n_dead += !((const Module *)m->all->pdata[j])->live;
    }
    while (i < m->all->len && n_dead &&
           (n_dead > MAX_DEAD || m->all->len >= MAX_MODULES ||
            m->rows + rows > m->max_rows)) {
        if (((const Module *)m->all->pdata[i])->live) {
            i++;
            continue;
        }
        remove_locked(m, i);
        n_dead--;
        m->n_evicted++;
    }
}

Module *gs_modules_live(const GsModules *m, uint64_t module_va)
{
    for (guint i = 0; i < m->all->len; i++) {
        Module *mod = m->all->pdata[i];

        if (mod->live && mod->va == module_va) {
            return mod;
        }
    }
    return NULL;
}

static void retire_locked(GsModules *m, uint64_t module_va)
{
    Module *mod = gs_modules_live(m, module_va);

    if (mod) {
        mod->live = false;
        gs_modules_drop_types_locked(m, mod, NULL);
    }
}

/* Types are worth less than names. */
static void drop_all_types_locked(GsModules *m)
{
    for (guint i = 0; i < m->all->len; i++) {
        Module *mod = m->all->pdata[i];

        m->n_untyped += mod->type_rows != 0;
        gs_modules_drop_types_locked(m, mod, no_memory);
    }
}

/* @mod: taken. */
static bool append_locked(GsModules *m, Module *mod, GError **errp)
{
    bound_dead_locked(m, mod->rows);
    if (m->rows + mod->rows > m->max_rows) {
        drop_all_types_locked(m);
    }
    if (m->all->len >= MAX_MODULES || m->rows + mod->rows > m->max_rows) {
        g_set_error(errp, GS_ERROR, GS_ERROR_GUEST,
                    "module %s: no room, %u modules are loaded", mod->name,
                    m->all->len);
        module_free(mod);
        return false;
    }
    m->rows += mod->rows;
    g_ptr_array_add(m->all, mod);
    return true;
}

/* Sets @table to NULL for a module without ORC. */
static bool decode_orc(const GsOrcSet *orc, const GsModuleInfo *info,
                       GsOrcTable **table, GError **errp)
{
    GsOrcRaw raw = {
        .ip_va = info->orc_ip_va,
        .ip = info->orc_ip, .ip_len = info->n_orc * 4,
        .orc = info->orc, .orc_len = info->n_orc * ORC_SIZE,
    };

    *table = NULL;
    if (!info->n_orc) {
        return true;
    }
    *table = gs_orc_table_new(&raw, gs_orc_set_layout(orc), errp);
    return *table != NULL;
}

/* Names are interned: equal strings have equal addresses. */
static bool is_same(const Module *a, const Module *b)
{
    if (a->name != b->name || a->n_mem != b->n_mem ||
        a->n_syms != b->n_syms ||
        memcmp(a->mem, b->mem, a->n_mem * sizeof(*a->mem))) {
        return false;
    }
    for (size_t i = 0; i < a->n_syms; i++) {
        if (a->syms[i].va != b->syms[i].va ||
            a->syms[i].name != b->syms[i].name) {
            return false;
        }
    }
    return true;
}

/* Loads that cannot be numbered any more have the greatest number. */
static uint32_t next_load_locked(GsModules *m)
{
    m->last_load = MIN(m->last_load + 1, GS_ERA_NOW - 1);
    return m->last_load;
}

/* A dead module that is loaded again is replaced: the new one has its
 * number. */
static void number_locked(GsModules *m, Module *mod, uint32_t load)
{
    for (guint i = 0; i < m->all->len && !mod->load; i++) {
        const Module *dead = m->all->pdata[i];

        if (!dead->live && is_same(dead, mod)) {
            mod->load = dead->load;
            remove_locked(m, i);
        }
    }
    if (load) {
        mod->load = MIN(load, GS_ERA_NOW - 1);
        m->last_load = MAX(m->last_load, mod->load);
    } else if (!mod->load) {
        mod->load = next_load_locked(m);
    }
}

static bool add_locked(GsModules *m, GsOrcSet *orc, uint64_t module_va,
                       GsModuleInfo *info, GsOrcTable *table, GError **errp)
{
    Module *mod = module_new_locked(m, module_va, info, errp);
    bool added;

    if (!mod) {
        return false;
    }
    retire_locked(m, module_va);
    number_locked(m, mod, info->load);
    adopt_types_locked(m, mod, info);
    take_ranges_locked(m, mod);
    added = append_locked(m, mod, errp);
    rebuild_spans_locked(m);
    if (added) {
        gs_orc_set_add_module(orc, module_va, info->text, info->n_text, table);
    } else {
        gs_orc_set_drop_module(orc, module_va);
    }
    return added;
}

bool gs_modules_add(GsModules *m, GsOrcSet *orc, uint64_t module_va,
                    GsModuleInfo *info, GError **errp)
{
    g_autoptr(GsOrcTable) table = NULL;

    if (info->until) {
        return gs_modules_append(m, module_va, info, GS_MODULE_PAST);
    }
    if (!decode_orc(orc, info, &table, errp)) {
        return false;
    }
    HOLD_LOCK(m);
    return add_locked(m, orc, module_va, info, table, errp);
}

bool gs_modules_append(GsModules *m, uint64_t module_va,
                       const GsModuleInfo *info, GsModuleState state)
{
    HOLD_LOCK(m);
    Module *mod = module_new_locked(m, module_va, info, NULL);

    if (!mod) {
        return false;
    }
    mod->live = state == GS_MODULE_LIVE;
    mod->load = info->load ? MIN(info->load, GS_ERA_NOW - 1) :
                             next_load_locked(m);
    m->last_load = MAX(m->last_load, mod->load);
    if (state != GS_MODULE_PAST) {
        return append_locked(m, mod, NULL);
    }
    mod->until = info->until;
    m->rows += mod->rows;
    m->past_rows += mod->rows;
    g_ptr_array_add(m->past, mod);
    bound_past_locked(m, 0);
    return true;
}

void gs_modules_index(GsModules *m)
{
    HOLD_LOCK(m);

    rebuild_spans_locked(m);
}

void gs_modules_drop(GsModules *m, GsOrcSet *orc, uint64_t module_va)
{
    HOLD_LOCK(m);

    retire_locked(m, module_va);
    gs_orc_set_drop_module(orc, module_va);
}

bool gs_modules_shape(GsModules *m, const GsBtf *btf, GsModuleShape *shape,
                      GError **errp)
{
    HOLD_LOCK(m);

    if (!m->has_shape) {
        m->has_shape = gs_module_shape_init(&m->shape, btf, errp);
    }
    *shape = m->shape;
    return m->has_shape;
}

void gs_modules_drop_shape(GsModules *m)
{
    HOLD_LOCK(m);

    m->has_shape = false;
    for (guint i = 0; i < m->all->len; i++) {
        gs_modules_drop_types_locked(m, m->all->pdata[i], exchanged);
    }
}
