/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka leak module: blocks that modules had not freed when they were unloaded.
 *
 * Called through mc_run(). The tracer makes a report at each unload. This file
 * finds out which of the reported blocks are still live, and, if there is a VM,
 * which of them are still in use: one search for the blocks of all reports. For
 * one report at a time, it copies under the tracer's lock and prints without
 * it.
 */
#include "monitor-cmds/commands/commands.h"

#include <stdlib.h>
#include <string.h>

/* ---- the row of a module ------------------------------------------------- */

/* Append ", <n> <what>"; nothing if @n is 0. */
static void put_part(GString *s, uint64_t n, const char *what)
{
    if (n) {
        g_string_append_printf(s, ", %" PRIu64 " %s", n, what);
    }
}

static void put_blocks(const McOut *o, GString *s, uint64_t n,
                       const char *what, uint64_t bytes)
{
    g_string_append_printf(s, "%" PRIu64 " %s %s, ", n,
                           n == 1 ? "block" : "blocks", what);
    mc_put_bytes(o, s, bytes);
}

/* Print what was not freed: as one number, or, if it is known what is still in
 * use, as two. */
static void put_unfreed(const McOut *o, GString *s, const McModuleRow *m)
{
    if (m->blocks && !m->classified) {
        put_blocks(o, s, m->blocks, "not freed", m->bytes);
        return;
    }
    if (m->leaked) {
        put_blocks(o, s, m->leaked, "leaked", m->leaked_bytes);
    } else {
        g_string_append(s, m->report->not_kept ? "no leaks listed" :
                                                 "no leaks");
    }
    if (m->kept) {
        g_string_append(s, "; ");
        put_blocks(o, s, m->kept, "still in use", m->kept_bytes);
    }
}

/* (owned) */
static char *module_text(const McOut *o, const McModuleRow *m)
{
    const KtModuleReport *r = m->report;
    GString *s = g_string_new("module ");

    mc_put_word(s, r->name);
    g_string_append_printf(s, " unloaded@%" PRIu64 "us: ", r->us);
    put_unfreed(o, s, m);
    if (m->filtered && m->blocks) {
        g_string_append_printf(s, ", %" PRIu64 " match the options",
                               m->matching);
    }
    put_part(s, m->withdrawn, "freed since");
    put_part(s, r->bad_frees, "freed without an allocation");
    put_part(s, r->unsure, "may have been freed unseen");
    put_part(s, r->not_kept, "not listed, no memory");
    if (m->no_pages) {
        g_string_append(s, " (pages are not looked at: pages=on)");
    }
    return g_string_free(s, FALSE);
}

#define M(key_, member_, help_) \
    MC_VIA(key_, McModuleRow, report, member_, NUMBER, NULL, help_)
#define N(member_, help_, ...) \
    MC_COLUMN(McModuleRow, member_, NUMBER, NULL, help_, __VA_ARGS__)

MC_GETTER(pages)
{
    v->u = !((const McModuleRow *)row)->no_pages;
    return true;
}

static const McObject module_object = MC_OBJECT("module",
    "ka leak module, before its blocks",
    MC_VIA("name", McModuleRow, report, name, TEXT, NULL, "its name"),
    MC_VIA("loaded_us", McModuleRow, report, loaded_us, NUMBER, NULL,
           "null if the load was not recorded", .flags = MC_ZERO),
    M("id", id, "number of the report"),
    M("unloaded_us", us, "time of the unload"),
    N(blocks, "not freed until now"),
    N(bytes, "their bytes"),
    N(withdrawn, "freed since the unload"),
    M("bad_frees", bad_frees, "frees of addresses that were not allocated"),
    M("unsure", unsure, "blocks that may have been freed unseen"),
    M("not_listed", not_kept,
      "blocks that are only counted, because the memory limit was reached"),
    N(leaked, "blocks to which nothing in use refers (these four only with "
      "the memory of a VM)", MC_IF(McModuleRow, classified)),
    N(leaked_bytes, "their bytes", MC_IF(McModuleRow, classified)),
    N(kept, "blocks that are still in use", MC_IF(McModuleRow, classified)),
    N(kept_bytes, "their bytes", MC_IF(McModuleRow, classified)),
    N(matching, "those of blocks that match the options",
      MC_IF(McModuleRow, filtered)),
    MC_GET("pages", get_pages, NUMBER, NULL,
           "1 if pages of the page allocator count, 0 if they are not looked "
           "at"));

void mc_print_module(McOut *out, const McModuleRow *m)
{
    g_autofree char *text = module_text(out, m);

    mc_print_line(out, &module_object, m, text);
}

#define OWNERS_MAX 64   /* blocks that own one another */

/** struct Group - the @n blocks of one line: of one allocation stack, and all
 *  leaked, in use, or neither is known; @newest of them, and what is known of
 *  it; @bytes: of all; @held: number of blocks that only these hold */
typedef struct Group {
    KtBlock newest;
    const KtReached *known;
    uint64_t n, bytes, held;
} Group;

/**
 * struct Report - one report, as it is printed
 * @known: KtReached by address: what is known of the blocks of all reports
 * @name: (owned) name of the module
 * @left: KtBlock, those that match the options
 * @caches: the kmem_caches of @left
 * @groups: Group
 * @by_key: class and stack id -> index in @groups plus one
 * @by_va: address of a block -> the same
 * @frees: KtError, the module's frees of addresses that were not allocated
 */
typedef struct Report {
    const McArgs *args;
    KtTracer *t;
    const GArray *known;
    KtModuleReport head;
    char *name;
    McModuleRow sum;
    GArray *left;
    McCacheParts *caches;
    GArray *groups;
    GHashTable *by_key;
    GHashTable *by_va;
    GArray *frees;
} Report;

static void report_deinit(Report *r)
{
    g_clear_pointer(&r->name, g_free);
    g_clear_pointer(&r->left, g_array_unref);
    g_clear_pointer(&r->caches, mc_cache_parts_free);
    g_clear_pointer(&r->groups, g_array_unref);
    g_clear_pointer(&r->by_key, g_hash_table_unref);
    g_clear_pointer(&r->by_va, g_hash_table_unref);
    g_clear_pointer(&r->frees, g_array_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Report, report_deinit)

static void report_init(Report *r, McOut *out, const McArgs *args,
                        const GArray *known)
{
    *r = (Report) {
        .args = args,
        .t = out->ctx->tracer,
        .known = known,
        .left = g_array_new(FALSE, FALSE, sizeof(KtBlock)),
        .caches = mc_cache_parts_new(out->ctx->tracer, out->ctx->kernel),
        .groups = g_array_new(FALSE, FALSE, sizeof(Group)),
        .by_key = g_hash_table_new(NULL, NULL),
        .by_va = g_hash_table_new(gs_number_hash, g_int64_equal),
        .frees = g_array_new(FALSE, FALSE, sizeof(KtError)),
    };
}

/* ---- what is in use ------------------------------------------------------ */

static int by_va(const void *key, const void *at)
{
    uint64_t va = *(const uint64_t *)key, x = ((const KtReached *)at)->va;

    return (va > x) - (va < x);
}

/* Return what is known of a block, NULL if nothing is. */
static const KtReached *find_known(const Report *r, uint64_t va)
{
    return !r->known->len ? NULL :
           bsearch(&va, r->known->data, r->known->len, sizeof(KtReached),
                   by_va);
}

static KtReach reach_of(const KtReached *known)
{
    return known ? known->reach : KT_REACH_UNKNOWN;
}

/* Return the address of the block that owns this one, or its own. The owner of
 * a block in use may have an owner itself. */
static uint64_t holder_of(const Report *r, const KtReached *known)
{
    uint64_t va = known->va;

    if (known->reach == KT_REACH_LOST) {
        return known->owner;
    }
    for (unsigned i = 0; known && known->among && i < OWNERS_MAX; i++) {
        va = known->holder.owner.va;
        known = find_known(r, va);
    }
    return known && !known->among ? va : 0;
}

/* Return the address of the block at whose line this one is counted, or its
 * own: the kmem_cache that it belongs to, or its owner. */
static uint64_t owner_of(const Report *r, const KtBlock *b,
                         const KtReached *known)
{
    uint64_t cache;

    if (!known || mc_given(r->args, MC_OPT_ALL)) {
        return b->va;
    }
    cache = mc_cache_parts_find(r->caches, b);
    return cache && reach_of(find_known(r, cache)) == known->reach ?
               cache :
               holder_of(r, known);
}

/* ---- what is in it ------------------------------------------------------- */

static void add_to_group(Report *r, const KtBlock *b, const KtReached *known)
{
    gpointer key = GSIZE_TO_POINTER((gsize)b->alloc_stack.v << 2 |
                                    reach_of(known));
    bool alone = mc_given(r->args, MC_OPT_ALL);
    guint at = alone ? 0 :
               GPOINTER_TO_UINT(g_hash_table_lookup(r->by_key, key));
    Group *g;

    if (!at) {
        g_array_append_val(r->groups, ((Group) { *b, known, 0, 0, 0 }));
        at = r->groups->len;
        g_hash_table_insert(r->by_key, key, GUINT_TO_POINTER(at));
    }
    g = &g_array_index(r->groups, Group, at - 1);
    g->n++;
    g->bytes += b->requested;
    if (b->alloc_us > g->newest.alloc_us) {
        g->newest = *b;
        g->known = known;
    }
    g_hash_table_insert(r->by_va, (gpointer)&b->va, GUINT_TO_POINTER(at));
}

/* Make the lines. Blocks that others own are counted at the line of their
 * owner, if the owner has a line in this report. */
static void make_groups(Report *r)
{
    for (unsigned i = 0; i < r->left->len; i++) {
        mc_cache_parts_add(r->caches, &g_array_index(r->left, KtBlock, i));
    }
    for (unsigned pass = 0; pass < 2; pass++) {
        for (unsigned i = 0; i < r->left->len; i++) {
            const KtBlock *b = &g_array_index(r->left, KtBlock, i);
            const KtReached *known = find_known(r, b->va);
            uint64_t owner = owner_of(r, b, known);
            bool owned = owner != b->va;
            guint at = !owned || !pass ? 0 : GPOINTER_TO_UINT(
                           g_hash_table_lookup(r->by_va, &owner));

            if (at) {
                g_array_index(r->groups, Group, at - 1).held++;
            } else if (owned == (pass == 1)) {
                add_to_group(r, b, known);
            }
        }
    }
}

/* Order of the lines: leaks, blocks in use, others. */
static int by_class(const void *a, const void *b)
{
    static const int order[] = {
        [KT_REACH_LOST] = 0, [KT_REACH_KEPT] = 1, [KT_REACH_UNKNOWN] = 2,
    };
    const Group *x = a, *y = b;
    int class = order[reach_of(x->known)] - order[reach_of(y->known)];

    return class ? class : (x->newest.va > y->newest.va) -
                           (x->newest.va < y->newest.va);
}

static void count_block(McModuleRow *sum, const KtBlock *b, KtReach reach)
{
    sum->withdrawn--;
    sum->blocks++;
    sum->bytes += b->requested;
    if (reach == KT_REACH_LOST) {
        sum->leaked++;
        sum->leaked_bytes += b->requested;
    } else if (reach == KT_REACH_KEPT) {
        sum->kept++;
        sum->kept_bytes += b->requested;
    }
}

static bool add_leak(const KtBlock *b, void *opaque)
{
    Report *r = opaque;

    count_block(&r->sum, b, reach_of(find_known(r, b->va)));
    if (mc_filter_block(&r->args->filter, b, false)) {
        r->sum.matching++;
        g_array_append_vals(r->left, b, 1);
    }
    return true;
}

static bool add_free(const KtError *e, void *opaque)
{
    Report *r = opaque;

    if (mc_filter_error(&r->args->filter, e)) {
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
    }
    kt_query_end(r->t);
    return w.found;
}

/* ---- classes ------------------------------------------------------------- */

static bool add_known(const KtBlock *b, void *opaque)
{
    KtReached r = { .va = b->va, .layer = b->layer };

    g_array_append_val((GArray *)opaque, r);
    return true;
}

/* Return (owned) all blocks of the reports that are printed. */
static GArray *list_blocks(McOut *out, const McArgs *args)
{
    GArray *all = g_array_new(FALSE, FALSE, sizeof(KtReached));
    KtTracer *t = out->ctx->tracer;
    Report r = { .args = args, .t = t };
    Wanted w = { args->name, 0, &r, true };

    kt_query_begin(t);
    while (w.found) {
        w.found = false;
        kt_query_modules(t, is_wanted, &w);
        g_clear_pointer(&r.name, g_free);
        w.after = r.head.id;
        if (w.found) {
            kt_query_module_leaks(t, r.head.id, add_known, all);
        }
    }
    kt_query_end(t);
    return all;
}

/* Find out which blocks are in use. If that is impossible, print why: all
 * blocks stay unknown. Return true if it is known. */
static bool classify(McOut *out, const McArgs *args, GArray *blocks)
{
    McProgress progress;
    KtLeakPlan plan = mc_leak_plan(out, out->ctx->vm,
                                   mc_given(args, MC_OPT_JSON), &progress);
    g_autoptr(GError) err = NULL;

    if (!plan.vm || !blocks->len) {
        return plan.vm;
    }
    if (kt_leak_classify(out->ctx->tracer, &plan, blocks, &err)) {
        return true;
    }
    mc_remarkf(out, "it is not known which blocks are in use: %s",
               err->message);
    return false;
}

/* Does ka trace the page allocator? */
static bool traces_pages(const McContext *ctx)
{
    McHookStatus h;

    for (unsigned i = 0; i < ctx->n_hooks; i++) {
        if (ctx->hook(ctx->hook_opaque, i, &h) && h.hits &&
            (g_str_has_prefix(h.name, "__alloc_pages") ||
             g_str_has_prefix(h.name, "__alloc_frozen_pages"))) {
            return true;
        }
    }
    return false;
}

MC_OBJECTS(mc_leak_module_objects, &module_object);

/* ---- printing ------------------------------------------------------------ */

static void print_group(McOut *out, const Group *g)
{
    KtReach reach = reach_of(g->known);
    g_autofree char *by = NULL, *in = NULL;
    McLeakRow row = { .b.block = &g->newest, .same_stack = g->n - 1,
                      .same_bytes = g->bytes };

    if (reach == KT_REACH_LOST) {
        row.leak = kt_leak_hold_name(g->known->hold);
        row.held = g->held;
    } else if (reach == KT_REACH_KEPT) {
        const KtRef *ref = &g->known->holder;
        bool is = ref->place < KT_PLACE__COUNT;

        by = is ? mc_ref_place(out, ref) : NULL;
        in = is ? mc_ref_owner(out, ref) : NULL;
        row.kept = is ? kt_place_name(ref->place) : "otherwise";
        row.kept_by = by;
        row.kept_in = in;
        row.held = g->held;
    }
    mc_print_leak(out, &row);
}

/* Print the lines of blocks, at most args->limit of them. */
static void print_rows(McOut *out, const Report *r, uint64_t *shown,
                       uint64_t *more)
{
    g_array_sort(r->groups, by_class);
    for (unsigned i = 0; i < r->groups->len + r->frees->len; i++) {
        if (*shown == r->args->limit) {
            *more += 1;
            continue;
        }
        *shown += 1;
        if (i < r->groups->len) {
            print_group(out, &g_array_index(r->groups, Group, i));
        } else {
            mc_print_error(out, &g_array_index(r->frees, KtError,
                                               i - r->groups->len), NULL);
        }
    }
}

static void print_nothing(McOut *out, const McArgs *args)
{
    g_autofree char *quoted = args->name ? mc_quote(args->name) : NULL;
    bool loaded;

    if (!args->name) {
        mc_remark(out, "no module was unloaded");
        return;
    }
    kt_query_begin(out->ctx->tracer);
    loaded = kt_query_module_loaded(out->ctx->tracer, args->name);
    kt_query_end(out->ctx->tracer);
    mc_remarkf(out, loaded ? "module %s is loaded; it is checked when it is "
               "unloaded" : "no module %s was unloaded", quoted);
}

bool mc_cmd_leak_module(McOut *out, const McArgs *args, GError **errp)
{
    g_autoptr(GArray) known = list_blocks(out, args);
    bool classified = classify(out, args, known);
    bool no_pages = !traces_pages(out->ctx), any = false;
    uint64_t shown = 0, more = 0, id = 0;

    while (!out->closed) {
        g_auto(Report) r;

        report_init(&r, out, args, known);
        if (!next_report(&r, id)) {
            break;
        }
        any = true;
        id = r.head.id;
        r.sum.classified = classified;
        r.sum.no_pages = no_pages;
        make_groups(&r);
        mc_print_module(out, &r.sum);
        print_rows(out, &r, &shown, &more);
    }
    if (!any) {
        print_nothing(out, args);
        return true;
    }
    if (more) {
        mc_more(out, more);
    }
    mc_remark_missing(out);
    return true;
}
