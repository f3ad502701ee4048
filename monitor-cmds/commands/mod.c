/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka mod: the modules of the guest.
 *
 * Called through mc_run(). Sums are copied under one hold of the tracer's lock;
 * all is printed without it. The guest may run meanwhile.
 */
#include "monitor-cmds/commands/commands.h"
#include "monitor-cmds/commands/object-row.h"

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

/* As ka top --by module: the module that has the first frame. */
static McTopTable *sum_up(const McOut *out)
{
    McTopTable *sums = mc_top_new(out->ctx->tracer, mc_symbols(out->ctx),
                                  MC_BY_MODULE);

    kt_query_begin(sums->tracer);
    kt_query_accounts(sums->tracer, NULL, KT_BY_CALLER, add_account, sums);
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

static void put_sums(McObjectRow *r, const KtAccount *a)
{
    uint64_t blocks = a->allocs - a->frees;
    uint64_t bytes = a->reserved - a->freed_reserved;

    g_string_append_printf(r->text, " live=%" PRIu64 "/%" PRIu64
                           " allocs=%" PRIu64, blocks, bytes, a->allocs);
    mc_object_add(r, "blocks", true, blocks);
    mc_object_add(r, "live", true, bytes);
    mc_object_add(r, "allocs", true, a->allocs);
}

/* ---- a module ------------------------------------------------------------ */

static void begin(McObjectRow *r, uint64_t va, const char *name)
{
    mc_object_row_init(r);
    mc_put_hex(r->text, va, 16);
    r->figure[r->n++] = (McStat) { .key = "va", .u = va, .hex = true };
    g_string_append_c(r->text, ' ');
    mc_put_word(r->text, *name ? name : "-");
    mc_object_add_word(r, "name", *name ? name : NULL);
}

static void put_users(McObjectRow *r, const KtModuleInfo *m)
{
    g_autoptr(GString) users = g_string_new(NULL);
    bool known = m->known & KT_MODULE_USERS;

    for (unsigned i = 0; i < m->n_users; i++) {
        g_string_append_printf(users, "%s%s", i ? "," : "", m->user[i]);
    }
    mc_object_put_word(r, "users", !known ? NULL :
                       users->len ? users->str : "none");
}

static void put_where(const Listing *l, McObjectRow *r, const KtModuleInfo *m)
{
    const char *where = l->modules->why_no_list ? NULL :
                        m->in_table && m->in_list ? "both" :
                        m->in_table ? "table" : "list";

    if (where && strcmp(where, "both")) {
        g_string_append_printf(r->text, " only-in-%s", where);
    }
    mc_object_add_word(r, "where", where);
}

static void print_module(const Listing *l, const KtModuleInfo *m)
{
    KtAccount sums = sums_of(l, m->name);
    const char *state = kt_module_state(m);
    bool has_areas = m->known & KT_MODULE_AREAS;
    g_auto(McObjectRow) r;

    begin(&r, m->va, m->name);
    g_string_append_printf(r.text, " %s", state ? state : "-");
    mc_object_add_word(&r, "state", state);
    mc_object_put_number(&r, "size", has_areas, kt_module_size(m));
    mc_object_put_number(&r, "refs", m->known & KT_MODULE_REFS, m->refs);
    put_users(&r, m);
    mc_object_put_address(&r, "code", has_areas, m->text);
    put_sums(&r, &sums);
    mc_object_put_word(&r, "types", !(m->known & KT_MODULE_TYPES) ? NULL :
                       m->has_types ? "yes" : "no");
    put_where(l, &r, m);
    mc_object_print(l->out, MC_OBJ_LOADED_MODULE, &r);
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
    KtAccount sums = sums_of(l, m->name);
    Report report = { .name = m->name };
    g_auto(McObjectRow) r;

    kt_query_begin(t);
    kt_query_modules(t, on_report, &report);
    kt_query_end(t);
    begin(&r, m->va, m->name);
    g_string_append(r.text, " unloaded");
    mc_object_add_word(&r, "state", "unloaded");
    if (report.found) {
        g_string_append_printf(r.text, "@%" PRIu64 "us", report.last.us);
    }
    mc_object_add(&r, "unloaded_us", report.found, report.last.us);
    put_sums(&r, &sums);
    mc_object_print(l->out, MC_OBJ_LOADED_MODULE, &r);
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
    l->out->format->sum(l->out, MC_OBJ_LOADED_MODULES, (McStat[]) {
        { .key = "modules", .u = n },
        { .key = "only_table", .u = table, .unknown = why },
        { .key = "only_list", .u = list, .unknown = why },
    }, 3, text->str);
}

bool mc_cmd_mod(McOut *out, const McArgs *args, GError **errp)
{
    KtObjects o = { out->ctx->tracer, mc_symbols(out->ctx), out->ctx->vm };
    g_auto(Listing) l = { .out = out, .args = args };
    g_autofree char *quoted = args->name ? mc_quote(args->name) : NULL;

    if (!o.kernel) {
        g_set_error(errp, MC_ERROR, MC_ERROR_UNKNOWN,
                    "\"mod\": needs symbols, which are not known%s%s",
                    out->ctx->why_no_kernel ? ": " : "",
                    out->ctx->why_no_kernel ? out->ctx->why_no_kernel : "");
        return false;
    }
    l.modules = kt_module_list_new(&o);
    l.sums = sum_up(out);
    list_loaded(&l);
    if (args->name || out->verbose) {
        list_unloaded(&l);
    }
    if (args->name && !l.shown && !out->closed) {
        g_set_error(errp, MC_ERROR, MC_ERROR_UNKNOWN,
                    "%s: no module of this name is or was loaded", quoted);
        return false;
    }
    if (l.more) {
        out->format->more(out, l.more);
    }
    if (!args->name && !out->closed) {
        print_summary(&l);
    }
    return true;
}
