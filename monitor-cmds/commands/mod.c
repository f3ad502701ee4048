/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka mod: the modules of the guest.
 *
 * Called through mc_run(). Sums are copied under one hold of the tracer's lock;
 * all is printed without it. The guest may run meanwhile.
 */
#include "monitor-cmds/commands/commands.h"

#include <string.h>

#include "monitor-cmds/table/top-table.h"

/** struct Listing - @sums: accounts by module */
typedef struct Listing {
    McOut *out;
    const McArgs *args;
    KtModuleList *modules;
    McTopTable *sums;
    uint64_t shown, more;
} Listing;

static void listing_deinit(Listing *l)
{
    g_clear_pointer(&l->modules, kt_module_list_free);
    g_clear_pointer(&l->sums, mc_top_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Listing, listing_deinit)

/* ---- what modules allocated ---------------------------------------------- */

static bool add_account(const KtAccountKey *key, const KtAccount *a,
                        void *opaque)
{
    McTopTable *sums = opaque;

    mc_top_add(sums, sums->tracer, key, a, false);
    return true;
}

/* As ka top --by module: the first frame that is in a module says which. */
static McTopTable *sum_up(const McOut *out)
{
    McTopTable *sums = mc_top_new(out->ctx->tracer, mc_symbols(out->ctx),
                                  MC_BY_MODULE);

    kt_query_begin(sums->tracer);
    kt_query_accounts(sums->tracer, NULL, mc_by_account(MC_BY_MODULE),
                      add_account, sums);
    kt_query_end(sums->tracer);
    return sums;
}

static KtAccount sums_of(const Listing *l, const char *name)
{
    GHashTableIter iter;
    gpointer value;

    g_hash_table_iter_init(&iter, l->sums->rows);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const McTopRow *row = value;

        if (!strcmp(row->module, name)) {
            return row->a;
        }
    }
    return (KtAccount) { 0 };
}

/* ---- a module ------------------------------------------------------------ */

/** struct Row - a module; @unloaded_us: UINT64_MAX if it is not known */
typedef struct Row {
    uint64_t va;
    const char *name, *state;
    uint64_t size, refs, code;
    const char *users, *types, *where, *only_in;
    uint64_t unloaded_us;
    uint64_t blocks, live, allocs;
} Row;

static const McColumn name_columns[] = {
    MC_COLUMN(Row, va, POINTER, "%", "of the struct module", .head = "va",
              .flags = MC_WIDE),
    MC_COLUMN(Row, name, WORD, " %", "its name", .head = "name"),
    MC_COLUMN(Row, state, TEXT, " %",
              "Live, Loading, Unloading, or unloaded", .head = "state"),
    MC_END
};
static const McColumn kernel_columns[] = {
    MC_COLUMN(Row, size, NUMBER, " size=%", "as in /proc/modules",
              .flags = MC_MOST, .head = "size", .unit = MC_SIZE),
    MC_COLUMN(Row, refs, NUMBER, " refs=%", "as in /proc/modules",
              .flags = MC_MOST, .head = "refs"),
    MC_COLUMN(Row, users, WORD, " users=%",
              "names of the modules that use it, joined by commas, or none",
              .head = "users", .flags = MC_WIDE),
    MC_COLUMN(Row, code, POINTER, " code=%", "address of its code",
              .flags = MC_MOST, .head = "code"),
    MC_END
};
static const McColumn unload_columns[] = {
    MC_COLUMN(Row, unloaded_us, NUMBER, NULL, "of an unloaded one",
              .flags = MC_MOST, .head = "unloaded", .unit = MC_AGE),
    MC_KEY(NULL, Row, unloaded_us, NUMBER, "@%us", NULL,
           .flags = MC_MOST | MC_OMIT, .head = ""),
    MC_END
};
static const McColumn sum_columns[] = {
    MC_COLUMN(Row, blocks, NUMBER, " live=%",
              "live blocks that it allocated", .head = "blocks"),
    MC_COLUMN(Row, live, NUMBER, "/%", "their bytes", .head = "live",
              .unit = MC_SIZE),
    MC_COLUMN(Row, allocs, NUMBER, " allocs=%", "its allocations",
              .head = "allocs"),
    MC_END
};
static const McColumn more_columns[] = {
    MC_COLUMN(Row, types, TEXT, " types=%", "yes or no", .head = "types",
              .flags = MC_WIDE),
    MC_COLUMN(Row, where, TEXT, NULL,
              "both, table, list (what ka saw loaded, the kernel's list)"),
    MC_KEY(NULL, Row, only_in, TEXT, " only-in-%", NULL, .flags = MC_OMIT),
    MC_END
};
static const McObject loaded_object = {
    "loaded_module", "ka mod; null: not known",
    { name_columns, kernel_columns, sum_columns, more_columns },
    .line = true, .is_table = true,
};
static const McObject unloaded_object = {
    "loaded_module", "ka mod; null: not known",
    { name_columns, unload_columns, sum_columns }, .line = true,
    .is_table = true,
};

typedef struct EndRow {
    unsigned modules, only_table, only_list;
} EndRow;

static const McObject end_object = MC_LINE_OBJECT("loaded_modules",
    "ka mod, at the end",
    MC_COLUMN(EndRow, modules, NUMBER, NULL, "how many are loaded"),
    MC_COLUMN(EndRow, only_table, NUMBER, NULL,
              "hidden from the kernel's list", .flags = MC_MOST),
    MC_COLUMN(EndRow, only_list, NUMBER, NULL, "their load was not seen",
              .flags = MC_MOST));

MC_OBJECTS(mc_mod_objects, &loaded_object, &unloaded_object, &end_object);

static void put_sums(Row *row, const Listing *l)
{
    const KtAccount a = sums_of(l, row->name ? row->name : "");

    row->blocks = a.allocs - a.frees;
    row->live = a.reserved - a.freed_reserved;
    row->allocs = a.allocs;
}

/* (owned) */
static char *users_of(const KtModuleInfo *m)
{
    GString *users = g_string_new(NULL);

    for (unsigned i = 0; i < m->n_users; i++) {
        g_string_append_printf(users, "%s%s", i ? "," : "", m->user[i]);
    }
    return g_string_free(users, FALSE);
}

static void print_module(const Listing *l, const KtModuleInfo *m)
{
    g_autofree char *users = users_of(m);
    bool has_areas = m->known & KT_MODULE_AREAS;
    Row row = {
        .va = m->va, .name = *m->name ? m->name : NULL,
        .state = kt_module_state(m),
        .size = has_areas ? kt_module_size(m) : UINT64_MAX,
        .refs = m->known & KT_MODULE_REFS ? (uint64_t)m->refs : UINT64_MAX,
        .users = !(m->known & KT_MODULE_USERS) ? NULL :
                 m->n_users ? users : "none",
        .code = has_areas ? m->text : UINT64_MAX,
        .types = !(m->known & KT_MODULE_TYPES) ? NULL :
                 m->has_types ? "yes" : "no",
        .where = l->modules->why_no_list ? NULL :
                 m->in_table && m->in_list ? "both" :
                 m->in_table ? "table" : "list",
    };

    row.only_in = g_strcmp0(row.where, "both") ? row.where : NULL;
    put_sums(&row, l);
    mc_print(l->out, &loaded_object, &row);
}

/* Print the areas of a module: those of its struct module, or if that is not
 * readable those of the table. */
static void print_areas(McOut *out, const KtModuleInfo *m)
{
    GsModule known;

    for (unsigned i = 0; i < m->n_areas; i++) {
        mc_object_print_block(out, m->area[i].label, m->area[i].start);
    }
    if (!m->n_areas && mc_symbols(out->ctx) &&
        gs_kernel_module(mc_symbols(out->ctx), m->va, &known)) {
        for (unsigned i = 0; i < known.n; i++) {
            mc_object_print_block(out, "area", known.area[i].start);
        }
    }
}

/* ---- unloaded modules ---------------------------------------------------- */

/** struct Report - the last report of module @name */
typedef struct Report {
    const char *name;
    bool found;
    KtModuleReport last;
} Report;

static bool on_report(const KtModuleReport *head, void *opaque)
{
    Report *r = opaque;

    if (!strcmp(head->name, r->name)) {
        r->found = true;
        r->last = *head;
    }
    return true;
}

static void print_unloaded(const Listing *l, const GsModule *m)
{
    KtTracer *t = l->out->ctx->tracer;
    Report report = { .name = m->name };
    Row row = { .va = m->va, .name = m->name, .state = "unloaded" };

    kt_query_begin(t);
    kt_query_modules(t, on_report, &report);
    kt_query_end(t);
    row.unloaded_us = report.found ? report.last.us : UINT64_MAX;
    put_sums(&row, l);
    mc_print(l->out, &unloaded_object, &row);
}

/* ---- the command --------------------------------------------------------- */

static bool is_wanted(const Listing *l, const char *name)
{
    return !l->args->name || mc_match(l->args->name, name);
}

/* Return false if the limit is reached. */
static bool may_print(Listing *l)
{
    if (l->shown == l->args->limit) {
        l->more++;
        return false;
    }
    l->shown++;
    return !l->out->closed;
}

static void list_loaded(Listing *l)
{
    bool areas = l->args->name || l->out->verbose ||
                 mc_given(l->args, MC_OPT_SYMBOLS);

    for (unsigned i = 0; i < l->modules->module->len; i++) {
        const KtModuleInfo *m = &g_array_index(l->modules->module,
                                               KtModuleInfo, i);

        if (is_wanted(l, m->name) && may_print(l)) {
            print_module(l, m);
            if (areas) {
                print_areas(l->out, m);
            }
        }
    }
}

/* Of a module that was loaded several times, only the last time is listed. */
static bool is_last_unload(const GsKernel *k, unsigned at, const GsModule *m)
{
    GsModule later;

    if (m->live || !strcmp(m->name, "bpf")) {
        return false;
    }
    while (gs_kernel_nth_module(k, ++at, &later)) {
        if (!strcmp(later.name, m->name)) {
            return false;
        }
    }
    return true;
}

static void list_unloaded(Listing *l)
{
    const GsKernel *k = mc_symbols(l->out->ctx);
    GsModule m;

    for (unsigned i = 0; k && gs_kernel_nth_module(k, i, &m); i++) {
        if (is_last_unload(k, i, &m) && is_wanted(l, m.name) &&
            may_print(l)) {
            print_unloaded(l, &m);
        }
    }
}

static void put_no_types(const Listing *l, GString *text)
{
    if (l->out->ctx->vm && !gs_kernel_has_types(mc_symbols(l->out->ctx))) {
        g_string_append(text, " (CONFIG_DEBUG_INFO_BTF), see types=FILE: of a "
                        "module only name, memory and allocations are known");
    }
}

static void print_summary(const Listing *l)
{
    unsigned n = l->modules->module->len, table = 0, list = 0;
    const char *why = l->modules->why_no_list;
    g_autoptr(GString) text = g_string_new(NULL);

    for (unsigned i = 0; i < n; i++) {
        const KtModuleInfo *m = &g_array_index(l->modules->module,
                                               KtModuleInfo, i);

        table += !why && !m->in_list;
        list += !m->in_table;
    }
    g_string_append_printf(text, "%u %s loaded; ", n,
                           n == 1 ? "module is" : "modules are");
    if (why) {
        g_string_append_printf(text, "the kernel's list was not compared: %s",
                               why);
        put_no_types(l, text);
    } else if (table || list) {
        g_string_append_printf(text, "%u hidden from the kernel's list, %u "
                               "whose load was not seen", table, list);
    } else {
        g_string_append(text, "the kernel's list has the same");
    }
    mc_print_line(l->out, &end_object, &(EndRow) {
        n, why ? UINT_MAX : table, why ? UINT_MAX : list }, text->str);
}

bool mc_cmd_mod(McOut *out, const McArgs *args, GError **errp)
{
    KtObjects o = mc_objects(out);
    g_auto(Listing) l = { .out = out, .args = args };
    g_autofree char *quoted = args->name ? mc_quote(args->name) : NULL;

    if (!o.kernel) {
        return mc_fail_unknown(errp, "\"mod\": needs symbols, which are not "
                               "known%s%s", out->ctx->why_no_kernel ? ": " : "",
                               out->ctx->why_no_kernel ?
                               out->ctx->why_no_kernel : "");
    }
    l.modules = kt_module_list_new(&o);
    l.sums = sum_up(out);
    list_loaded(&l);
    if (args->name || out->verbose) {
        list_unloaded(&l);
    }
    if (args->name && !l.shown && !out->closed) {
        return mc_fail_unknown(errp, "%s: no module of this name is or was "
                               "loaded", quoted);
    }
    if (l.more) {
        mc_more(out, l.more);
    }
    if (!args->name && !out->closed) {
        print_summary(&l);
    }
    return true;
}
