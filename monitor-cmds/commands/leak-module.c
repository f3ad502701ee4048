/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka leak module: blocks that modules had not freed when they were unloaded.
 *
 * Called through mc_run(). The tracer makes a report at each unload. This file
 * finds out which of the reported blocks are still live: for one report at a
 * time, it copies under the tracer's lock and prints without it.
 */
#include "monitor-cmds/commands/commands.h"

#include <string.h>

/** struct Group - the @n blocks of one allocation stack; @newest of them */
typedef struct Group {
    KtBlock newest;
    uint64_t n;
} Group;

/**
 * struct Report - one report, as it is printed
 * @name: (owned) name of the module
 * @groups: Group
 * @by_stack: stack id -> index in @groups plus one
 * @names: names of the module's functions at the time of the unload
 * @frees: KtError, the module's frees of addresses that were not allocated
 */
typedef struct Report {
    const McArgs *args;
    KtTracer *t;
    KtModuleReport head;
    char *name;
    McModule sum;
    GArray *groups;
    GHashTable *by_stack;
    GHashTable *names;
    GArray *frees;
} Report;

static void report_deinit(Report *r)
{
    g_clear_pointer(&r->name, g_free);
    g_clear_pointer(&r->groups, g_array_unref);
    g_clear_pointer(&r->by_stack, g_hash_table_unref);
    g_clear_pointer(&r->names, g_hash_table_unref);
    g_clear_pointer(&r->frees, g_array_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Report, report_deinit)

static void report_init(Report *r, McOut *out, const McArgs *args)
{
    *r = (Report) {
        .args = args,
        .t = out->ctx->tracer,
        .groups = g_array_new(FALSE, FALSE, sizeof(Group)),
        .by_stack = g_hash_table_new(NULL, NULL),
        .frees = g_array_new(FALSE, FALSE, sizeof(KtError)),
    };
}

/* ---- what is in it ------------------------------------------------------- */

static void add_to_group(Report *r, const KtBlock *b)
{
    gpointer stack = GUINT_TO_POINTER(b->alloc_stack.v);
    guint at = GPOINTER_TO_UINT(g_hash_table_lookup(r->by_stack, stack));
    Group *g;

    if (!at) {
        Group first = { *b, 1 };

        g_array_append_val(r->groups, first);
        g_hash_table_insert(r->by_stack, stack,
                            GUINT_TO_POINTER(r->groups->len));
        return;
    }
    g = &g_array_index(r->groups, Group, at - 1);
    g->n++;
    if (b->alloc_us > g->newest.alloc_us) {
        g->newest = *b;
    }
}

static bool add_leak(const KtBlock *b, void *opaque)
{
    Report *r = opaque;

    r->sum.withdrawn--;
    r->sum.blocks++;
    r->sum.bytes += b->requested;
    if (mc_filter_block(&r->args->filter, r->t, b, false)) {
        r->sum.matching++;
        add_to_group(r, b);
    }
    return true;
}

static bool add_free(const KtError *e, void *opaque)
{
    Report *r = opaque;

    if (mc_filter_error(&r->args->filter, r->t, e)) {
        g_array_append_vals(r->frees, e, 1);
    }
    return true;
}

/** struct Wanted - search for the first report after number @after, of module
 *  @name */
typedef struct Wanted {
    const char *name;
    uint64_t after;
    Report *r;
    bool found;
} Wanted;

static bool is_wanted(const KtModuleReport *head, void *opaque)
{
    Wanted *w = opaque;

    if (head->id <= w->after || (w->name && strcmp(head->name, w->name))) {
        return true;
    }
    w->r->head = *head;
    w->r->name = g_strdup(head->name);
    w->r->head.name = w->r->name;
    w->found = true;
    return false;
}

/* Find the next report after number @after. */
static bool next_report(Report *r, uint64_t after)
{
    Wanted w = { r->args->name, after, r, false };

    kt_query_begin(r->t);
    kt_query_modules(r->t, is_wanted, &w);
    if (w.found) {
        r->sum.report = &r->head;
        r->sum.filtered = mc_filter_is_set(&r->args->filter);
        r->sum.withdrawn = r->head.found - r->head.not_kept;
        kt_query_module_leaks(r->t, r->head.id, add_leak, r);
        kt_query_module_frees(r->t, r->head.id, add_free, r);
        r->names = kt_query_module_names(r->t, r->head.id);
    }
    kt_query_end(r->t);
    return w.found;
}

/* ---- printing ------------------------------------------------------------ */

/* Print the lines of blocks, at most args->limit of them. */
static void print_rows(McOut *out, const Report *r, uint64_t *shown,
                       uint64_t *more)
{
    for (unsigned i = 0; i < r->groups->len + r->frees->len; i++) {
        McRow row = { 0 };

        if (*shown == r->args->limit) {
            *more += 1;
            continue;
        }
        *shown += 1;
        if (i < r->groups->len) {
            const Group *g = &g_array_index(r->groups, Group, i);

            row = (McRow) { .block = &g->newest, .same = g->n - 1 };
        } else {
            const KtError *e = &g_array_index(r->frees, KtError,
                                              i - r->groups->len);

            row = (McRow) {
                .block = e->has_block ? &e->block : NULL, .error = e };
        }
        out->format->row(out, &row);
    }
}

static void print_nothing(McOut *out, const McArgs *args)
{
    g_autofree char *quoted = args->name ? mc_quote(args->name) : NULL;
    g_autofree char *text = NULL;
    bool loaded;

    if (!args->name) {
        out->format->none(out, "no module was unloaded");
        return;
    }
    kt_query_begin(out->ctx->tracer);
    loaded = kt_query_module_loaded(out->ctx->tracer, args->name);
    kt_query_end(out->ctx->tracer);
    text = g_strdup_printf(loaded ? "module %s is loaded; it is checked "
                           "when it is unloaded" :
                           "no module %s was unloaded", quoted);
    out->format->none(out, text);
}

bool mc_cmd_leak_module(McOut *out, const McArgs *args, GError **errp)
{
    uint64_t shown = 0, more = 0, id = 0;
    bool any = false;

    while (!out->closed) {
        g_auto(Report) r;

        report_init(&r, out, args);
        if (!next_report(&r, id)) {
            break;
        }
        any = true;
        id = r.head.id;
        out->format->module(out, &r.sum);
        out->names = r.names;
        print_rows(out, &r, &shown, &more);
        out->names = NULL;
    }
    if (!any) {
        print_nothing(out, args);
    } else if (more) {
        out->format->more(out, more);
    }
    return true;
}
