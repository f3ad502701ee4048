/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of modules as a stream, for snapshots of the VM, and back.
 *
 * The stream is untrusted: the limits are those for modules that are read from
 * guest memory, and names must be printable. Areas must not overlap, but that
 * is not checked: comparing each with all others would take half a minute for
 * a stream of a few bytes a module. A stream that violates it gets wrong
 * names, nothing worse.
 */
#include <string.h>

#include "guest-symbols/modules/modules-internal.h"
#include "guest-symbols/base/printable.h"

#define MAX_ORC (1u << 20)      /* entries of one module */

/* ---- writing ------------------------------------------------------------ */

static void pack_ranges(const GsRange *r, size_t n, GsOut *p)
{
    gs_out_varint(p, n);
    for (size_t i = 0; i < n; i++) {
        gs_out_varint(p, r[i].start);
        gs_out_varint(p, r[i].end - r[i].start);
    }
}

static void pack_symbols(const Module *mod, GsOut *p)
{
    uint64_t last = mod->n_mem ? mod->mem[0].start : 0;

    gs_out_varint(p, mod->n_syms);
    for (size_t i = 0; i < mod->n_syms; i++) {
        gs_out_step(p, last, mod->syms[i].va);
        gs_out_bytes(p, &mod->syms[i].type, 1);
        gs_out_text(p, mod->syms[i].name);
        last = mod->syms[i].va;
    }
}

static void pack_orc(const GsOrcTable *t, GsOut *p)
{
    size_t n = t ? gs_orc_table_n(t) : 0;
    uint64_t last = 0;

    gs_out_varint(p, n);
    for (size_t i = 0; i < n; i++) {
        uint64_t va;
        const GsOrcRule *rule = gs_orc_table_nth(t, i, &va);

        gs_out_step(p, last, va);
        gs_out_bytes(p, rule, sizeof(*rule));
        last = va;
    }
}

static void pack_module(const Module *mod, GsOrcSet *orc, GsOut *p)
{
    g_autoptr(GsOrcTable) table =
        mod->live ? gs_orc_set_module_table(orc, mod->va) : NULL;

    gs_out_varint(p, mod->va);
    gs_out_text(p, mod->name);
    gs_out_varint(p, mod->until ? GS_MODULE_PAST :
                     mod->live ? GS_MODULE_LIVE : GS_MODULE_DEAD);
    gs_out_varint(p, mod->load);
    gs_out_varint(p, mod->until);
    pack_ranges(mod->mem, mod->n_mem, p);
    pack_ranges(mod->text, mod->n_text, p);
    pack_symbols(mod, p);
    pack_orc(table, p);
}

void gs_modules_pack(const GsModules *m, GsOrcSet *orc, GsOut *p)
{
    HOLD_LOCK(m);

    gs_out_varint(p, m->past->len + m->all->len);
    for (guint i = 0; i < m->past->len; i++) {
        pack_module(m->past->pdata[i], orc, p);
    }
    for (guint i = 0; i < m->all->len; i++) {
        pack_module(m->all->pdata[i], orc, p);
    }
}

/* ---- reading ------------------------------------------------------------ */

static size_t unpack_ranges(GsRange *r, GsBytes *u)
{
    size_t n = gs_bytes_upto(u, GS_MODULE_MAX_MEM, "a module's areas");

    for (size_t i = 0; i < n; i++) {
        uint64_t start = gs_bytes_varint(u, UINT64_MAX);
        uint64_t len = gs_bytes_varint(u, UINT64_MAX);

        if (!len || len > UINT32_MAX || start > UINT64_MAX - len) {
            gs_bytes_fail(u, "a module's area is empty or too large");
        }
        r[i] = (GsRange) { start, start + len };
    }
    return gs_bytes_ok(u) ? n : 0;
}

/* Names are appended to one array; while it grows, GsModuleSymbol.name is an
 * offset in it. */
typedef struct Symbols {
    GArray *list;           /* GsModuleSymbol, of names the offsets */
    GByteArray *names;
} Symbols;

static void unpack_symbol(Symbols *s, const GsModuleInfo *info, uint64_t *va,
                          GsBytes *u)
{
    char name[GS_SYMBOL_NAME_MAX + 1];
    GsModuleSymbol sym;

    *va = sym.va = gs_bytes_step(u, *va);
    gs_bytes_copy(u, &sym.type, 1);
    gs_bytes_text(u, name, sizeof(name), "a symbol's name");
    if (!gs_is_printable(name) || !g_ascii_isprint(sym.type)) {
        gs_bytes_fail(u, "a symbol's name or type cannot be printed");
        return;
    }
    sym.name = GSIZE_TO_POINTER(s->names->len);
    if (!gs_ranges_have(info->mem, info->n_mem, sym.va)) {
        gs_bytes_fail(u, "a symbol outside of its module");
        return;
    }
    g_byte_array_append(s->names, (uint8_t *)name, strlen(name) + 1);
    g_array_append_val(s->list, sym);
}

/* @rows: (in, out) how many more rows all modules may have */
static uint64_t unpack_n_rows(GsBytes *u, uint64_t max, uint64_t *rows,
                              const char *what)
{
    uint64_t n = gs_bytes_upto(u, MIN(max, *rows), what);

    *rows -= n;
    return n;
}

static void unpack_symbols(GsModuleInfo *info, GsBytes *u, uint64_t *rows)
{
    uint64_t n = unpack_n_rows(u, MAX_ROWS, rows, "a module's symbols");
    uint64_t va = info->n_mem ? info->mem[0].start : 0;
    Symbols s = {
        g_array_new(FALSE, FALSE, sizeof(GsModuleSymbol)), g_byte_array_new()
    };

    for (uint64_t i = 0; i < n && gs_bytes_ok(u); i++) {
        if (s.names->len > MAX_NAMES) {
            gs_bytes_fail(u, "a module's names are too long");
            break;
        }
        unpack_symbol(&s, info, &va, u);
    }
    info->n_syms = s.list->len;
    info->syms = (GsModuleSymbol *)g_array_free(s.list, FALSE);
    info->strtab = (char *)g_byte_array_free(s.names, FALSE);
    for (size_t i = 0; i < info->n_syms; i++) {
        info->syms[i].name = info->strtab +
                             GPOINTER_TO_SIZE(info->syms[i].name);
    }
}

/* Returns: (owned) NULL if the module has no ORC, or @u has failed. */
static GsOrcTable *unpack_orc(GsModuleInfo *info, GsBytes *u, uint64_t *rows)
{
    uint64_t n = unpack_n_rows(u, MAX_ORC, rows, "a module's unwind rules");
    g_autoptr(GArray) vas = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    g_autoptr(GArray) rules = g_array_new(FALSE, FALSE, sizeof(GsOrcRule));
    GsOrcTable *t = NULL;
    uint64_t va = 0;

    for (uint64_t i = 0; i < n && gs_bytes_ok(u); i++) {
        GsOrcRule rule;

        va = gs_bytes_step(u, va);
        gs_bytes_copy(u, &rule, sizeof(rule));
        g_array_append_val(vas, va);
        g_array_append_val(rules, rule);
    }
    if (n && gs_bytes_ok(u)) {
        info->n_orc = n;
        t = gs_orc_table_new_rules((uint64_t *)vas->data,
                                   (GsOrcRule *)rules->data, n);
        if (!t) {
            gs_bytes_fail(u, "unwind rules of a module that are none");
        }
    }
    return t;
}

static GsModuleState unpack_state(GsModuleInfo *info, GsBytes *u, bool loads)
{
    GsModuleState state = gs_bytes_upto(u, loads ? GS_MODULE_PAST :
                                        GS_MODULE_LIVE, "a flag");

    if (loads) {
        info->load = gs_bytes_upto(u, GS_ERA_NOW, "the number of a load");
        info->until = gs_bytes_upto(u, GS_ERA_NOW, "the number of a load");
    }
    return state;
}

/* Returns: false if a loaded module does not fit. */
static bool unpack_module(GsModules *m, GsOrcSet *orc, GsBytes *u,
                          bool loads, uint64_t *rows)
{
    uint64_t va = gs_bytes_varint(u, UINT64_MAX);
    g_autoptr(GsModuleInfo) info = g_new0(GsModuleInfo, 1);
    g_autoptr(GsOrcTable) table = NULL;
    GsModuleState state;
    bool live;

    gs_bytes_text(u, info->name, sizeof(info->name), "a module's name");
    if (!gs_is_printable(info->name)) {
        gs_bytes_fail(u, "a module's name cannot be printed");
    }
    state = unpack_state(info, u, loads);
    live = state == GS_MODULE_LIVE;
    info->n_mem = unpack_ranges(info->mem, u);
    if (!info->n_mem) {
        gs_bytes_fail(u, "a module without areas");
    }
    info->n_text = unpack_ranges(info->text, u);
    unpack_symbols(info, u, rows);
    table = unpack_orc(info, u, rows);
    if (!gs_bytes_ok(u)) {
        return true;
    }
    if (!gs_modules_append(m, va, info, state)) {
        return !live;
    }
    if (live) {
        gs_orc_set_append_module(orc, va, info->text, info->n_text, table);
    }
    return true;
}

/* The room is set again before each module, as when they were loaded. */
unsigned gs_modules_unpack(GsModules *m, GsOrcSet *orc, GsBytes *u,
                           uint64_t bytes, bool loads)
{
    uint64_t n = gs_bytes_upto(u, MAX_MODULES + MAX_PAST,
                               "the number of modules");
    uint64_t rows = MAX_ROWS;
    unsigned refused = 0;

    for (uint64_t i = 0; i < n && gs_bytes_ok(u); i++) {
        gs_modules_set_room(m, bytes - MIN(bytes, gs_modules_bytes(m)));
        refused += !unpack_module(m, orc, u, loads, &rows);
    }
    gs_modules_index(m);
    gs_orc_set_publish(orc);
    return refused;
}
