/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka top, ka mark, ka diff: who uses memory, and what grew.
 *
 * Called through mc_run(). All accounts are copied under one hold of the
 * tracer's lock, so they are of the same moment. Accounts have neither times
 * nor pairs of keys (such as task and cache). So lifetimes, and with a filter
 * all amounts, are counted from blocks and past lives, in batches.
 */
#include "monitor-cmds/commands/commands.h"

#include <string.h>

#include "monitor-cmds/table/top-table.h"

#define TOP_ROWS 20         /* number of rows without -n */

MC_OBJECTS(mc_top_objects, &mc_top_all_object, &mc_top_object,
           &mc_stray_object, &mc_stray_stack_object);
MC_OBJECTS(mc_diff_objects, &mc_diff_all_object, &mc_diff_object);
MC_OBJECTS(mc_mark_objects, &mc_mark_object);

/* ---- rows of blocks ------------------------------------------------------ */

typedef struct Walk {
    McTopTable *table;
    const McFilter *filter;     /* NULL: count only lifetimes */
    McBlockWalk blocks;
} Walk;

static void count(void *opaque, const KtBlock *b)
{
    const Walk *w = opaque;

    if (!w->filter || mc_filter_block(w->filter, b, false)) {
        mc_top_count(w->table, b, w->filter != NULL);
    }
}

/* Count a past life. A life at an address that the walk has done already is
 * skipped: it was counted as a live block, or began after the walk. */
static bool count_past(const KtBlock *b, void *opaque)
{
    Walk *w = opaque;

    if (!w->blocks.resumed || b->va > w->blocks.behind) {
        count(w, b);
    }
    return true;
}

/* Count each life once, although blocks are freed during the walk. For this,
 * all new past lives are counted before each batch of blocks. */
static void walk_all(Walk *w, McOut *out)
{
    KtTracer *t = w->table->tracer;
    uint64_t past = 0;
    bool more;

    w->blocks = (McBlockWalk) { .visit = count, .opaque = w };
    do {
        kt_query_begin(t);
        more = kt_query_past(t, &past, MC_BATCH_VISITS, count_past, w);
        if (!more) {
            mc_block_walk_batch(&w->blocks, t);
            more = w->blocks.stopped;
        }
        kt_query_end(t);
    } while (more && !out->closed);
}

/* ---- accounts ------------------------------------------------------------ */

typedef struct Adding {
    McTopTable *table;
    KtTracer *from;
    bool subtract;
} Adding;

static bool add_account(const KtAccountKey *key, const KtAccount *a,
                        void *opaque)
{
    const Adding *adding = opaque;

    mc_top_add(adding->table, adding->from, key, a, adding->subtract);
    return true;
}

static void add_totals(McTopTable *table, const KtTotals *t, bool subtract)
{
    const uint64_t sign = subtract ? UINT64_MAX : 1;
    KtAccount *all = &table->all.a;
    uint64_t unknown = table->totals.backing_unknown;

    all->allocs += sign * t->sum.allocs;
    all->asked += sign * t->sum.asked;
    all->reserved += sign * t->sum.reserved;
    all->frees += sign * t->sum.frees;
    all->freed_asked += sign * t->sum.freed_asked;
    all->freed_reserved += sign * t->sum.freed_reserved;
    all->cross += sign * t->sum.cross;
    all->peak = t->sum.peak;
    table->all.peak_known = table->all.cross_known = true;
    unknown = MAX(unknown, t->backing_unknown);
    table->totals = *t;
    table->totals.backing_unknown = unknown;
}

/* Add the accounts of @from at a mark. Return false if there is no such
 * mark. */
static bool add_accounts(McTopTable *table, KtTracer *from, const char *point,
                         bool subtract)
{
    Adding adding = { table, from, subtract };
    KtTotals totals;
    bool found;

    kt_query_begin(from);
    found = kt_query_totals(from, point, &totals);
    if (found) {
        kt_query_accounts(from, point, mc_by_account(table->by), add_account,
                          &adding);
        add_totals(table, &totals, subtract);
    }
    kt_query_end(from);
    return found;
}

static McTopTable *new_table(McOut *out, const McArgs *args, GError **errp)
{
    const GsKernel *k = args->by == MC_BY_MODULE ? mc_symbols(out->ctx) :
                                                   NULL;

    if (args->by == MC_BY_MODULE && !k) {
        mc_fail_unknown(errp, "--by module: needs symbols, which are not "
                        "known%s%s", out->ctx->why_no_kernel ? ": " : "",
                        out->ctx->why_no_kernel ? out->ctx->why_no_kernel : "");
        return NULL;
    }
    return mc_top_new(out->ctx->tracer, k, args->by);
}

/* ---- printing ------------------------------------------------------------ */

static void print_table(McOut *out, const McArgs *args, McTopTable *table)
{
    g_autoptr(GPtrArray) rows = mc_top_sorted(table, args->sort);
    uint64_t limit = mc_given(args, MC_OPT_LIMIT) ? args->limit : TOP_ROWS;

    mc_print_top_head(out, table);
    for (unsigned i = 0; mc_goes_on(out, i, rows->len, limit); i++) {
        mc_print_top_row(out, table, rows->pdata[i]);
    }
    if (rows->len) {
        mc_remark_missing(out);
    } else if (!out->closed) {
        g_autofree char *why = mc_why_nothing(out);

        mc_remarkf(out, "%s%s%s", table->diff ?
                   "nothing was allocated or freed in between" :
                   "nothing was allocated", mc_filter_is_set(&args->filter) ?
                   " that matches the options" : "", why);
    }
}

static void print_unknown(McOut *out, const KtTotals *t)
{
    if (t->backing_unknown && !out->json) {
        mc_out_printf(out, "pages of %" PRIu64 " %s may be counted twice: it "
                      "is not known whether other layers got them",
                      t->backing_unknown,
                      t->backing_unknown == 1 ? "backtrace" : "backtraces");
    }
}

static void print_unsized(McOut *out, const KtTotals *t)
{
    if (t->unsized) {
        mc_out_printf(out, "blocks whose sizes are not known, and count 0 "
                      "bytes: %" PRIu64, t->unsized);
    }
}

static void print_backing(McOut *out, const KtTotals *t)
{
    if (t->backing_blocks) {
        g_string_append_printf(out->line, "pages of other layers, not in "
                               "\"all\": %" PRIu64 " %s, ", t->backing_blocks,
                               t->backing_blocks == 1 ? "block" : "blocks");
        mc_put_bytes(out, out->line, t->backing);
        mc_out_end_line(out);
    }
}

/* Print the parts of the totals that are no plain allocation or free. JSON has
 * them as keys. */
static void print_notes(McOut *out, const KtTotals *t)
{
    if (out->json) {
        return;
    }
    if (t->resizes) {
        mc_out_printf(out, "resized in place: %" PRIu64 " times, %"
                              PRIu64 " bytes more, %" PRIu64 " less",
                              t->resizes, t->grown, t->shrunk);
    }
    if (t->splits) {
        mc_out_printf(out, "parts of pages among the allocations: %"
                              PRIu64, t->splits);
    }
    if (t->lost) {
        mc_out_printf(out, "counted as freed, but freed unseen: %"
                              PRIu64 " blocks, %" PRIu64 " bytes asked for, %"
                              PRIu64 " reserved", t->lost, t->lost_asked,
                              t->lost_reserved);
    }
    if (t->stray) {
        mc_out_printf(out, "frees without a recorded allocation: %"
                              PRIu64 ", see --stray", t->stray);
    }
    print_backing(out, t);
    print_unknown(out, t);
    print_unsized(out, t);
}

/* Note how many blocks and past lives were evicted, during the count
 * included. */
static void note_dropped(McTopTable *table)
{
    KtTracer *t = table->tracer;

    table->counted = true;
    table->dropped = kt_tracer_counter(t, KT_CNT_EVICT_HISTORY) +
                     kt_tracer_counter(t, KT_CNT_EVICT_FREED) +
                     kt_tracer_counter(t, KT_CNT_DROP_BLOCK);
}

static void print_dropped(McOut *out, uint64_t n)
{
    if (n && !out->json) {
        mc_out_printf(out, "counted from blocks and past lives; %"
                              PRIu64 " of these were evicted", n);
    }
}

/* ---- frees without an allocation ----------------------------------------- */

static bool add_stray(const KtStray *s, void *opaque)
{
    g_array_append_vals(opaque, s, 1);
    return true;
}

static gint compare_strays(gconstpointer a, gconstpointer b, gpointer tracer)
{
    const KtStray *x = a, *y = b;
    uint64_t n = x->unknown + x->invalid + x->pages;
    uint64_t m = y->unknown + y->invalid + y->pages;

    return n != m ? (n > m ? -1 : 1) :
           mc_top_compare_stacks(tracer, x->stack, y->stack);
}

static uint64_t caller_of(KtTracer *t, KtStackId id)
{
    McStack stack = mc_stack(t, id);
    McFrame caller = mc_caller(&stack);

    return mc_top_caller_number(caller.pc, caller.era);
}

/* Join rows of the same caller, at the position of the caller's first row. */
static void join_callers(KtTracer *t, GArray *list)
{
    g_autoptr(GHashTable) at = g_hash_table_new(gs_number_hash_direct,
                                                NULL);
    KtStray *s = (KtStray *)list->data;
    unsigned n = 0;

    for (unsigned i = 0; i < list->len; i++) {
        gpointer caller = GSIZE_TO_POINTER(caller_of(t, s[i].stack));
        guint place = GPOINTER_TO_UINT(g_hash_table_lookup(at, caller));

        if (!place) {
            s[n++] = s[i];
            g_hash_table_insert(at, caller, GUINT_TO_POINTER(n));
            continue;
        }
        s[place - 1].unknown += s[i].unknown;
        s[place - 1].invalid += s[i].invalid;
        s[place - 1].pages += s[i].pages;
    }
    g_array_set_size(list, n);
}

#define STRAY_OPTS \
    (1u << MC_OPT_STRAY | 1u << MC_OPT_BY | 1u << MC_OPT_LIMIT | \
     1u << MC_OPT_SYMBOLS | 1u << MC_OPT_VERBOSE | 1u << MC_OPT_JSON | \
     1u << MC_OPT_LONG | 1u << MC_OPT_PC)

/* Refuse options that do not fit --stray: stray frees are only counted, without
 * blocks and times. */
static bool may_be_stray(const McArgs *args, GError **errp)
{
    if (!mc_has_only(args, STRAY_OPTS, "--stray: groups only by who "
                     "freed", errp)) {
        return false;
    }
    if (args->by != MC_BY_CALLER && args->by != MC_BY_STACK) {
        return mc_fail_syntax(errp, "--stray: is by caller or stack, not by %s",
                              mc_by_name(args->by));
    }
    return true;
}

static bool list_strays(McOut *out, const McArgs *args, GError **errp)
{
    KtTracer *t = out->ctx->tracer;
    g_autoptr(GArray) list = g_array_new(FALSE, FALSE, sizeof(KtStray));
    uint64_t limit = mc_given(args, MC_OPT_LIMIT) ? args->limit : TOP_ROWS;

    if (!may_be_stray(args, errp)) {
        return false;
    }
    kt_query_begin(t);
    kt_query_stray(t, add_stray, list);
    kt_query_end(t);
    if (args->by == MC_BY_CALLER) {
        join_callers(t, list);
    }
    g_array_sort_with_data(list, compare_strays, t);
    for (unsigned i = 0; mc_goes_on(out, i, list->len, limit); i++) {
        mc_print_top_stray(out, &g_array_index(list, KtStray, i),
                           args->by == MC_BY_STACK);
    }
    if (!list->len) {
        mc_remark(out, "no frees without a recorded allocation");
    }
    return true;
}

/* ---- ka top -------------------------------------------------------------- */

bool mc_cmd_top(McOut *out, const McArgs *args, GError **errp)
{
    bool filtered = mc_filter_is_set(&args->filter);
    g_autoptr(McTopTable) table = NULL;
    KtTotals totals;
    Walk w = { .filter = filtered ? &args->filter : NULL };

    if (mc_given(args, MC_OPT_STRAY)) {
        return list_strays(out, args, errp);
    }
    table = new_table(out, args, errp);
    if (!table) {
        return false;
    }
    w.table = table;
    table->one_layer = filtered && args->filter.spec.layer == KT_LAYER_PAGES;
    if (!filtered) {
        add_accounts(table, out->ctx->tracer, NULL, false);
    }
    kt_query_begin(out->ctx->tracer);
    kt_query_totals(out->ctx->tracer, NULL, &totals);
    kt_query_end(out->ctx->tracer);
    table->all.now = totals.us;
    walk_all(&w, out);
    if (filtered) {
        note_dropped(table);
    }
    print_table(out, args, table);
    if (filtered) {
        print_dropped(out, table->dropped);
    } else {
        print_notes(out, &table->totals);
    }
    return true;
}

/* ---- ka mark ------------------------------------------------------------- */

static void clear_mark(gpointer p)
{
    g_free((char *)((KtMarkInfo *)p)->name);
}

static bool add_mark(const KtMarkInfo *p, void *opaque)
{
    KtMarkInfo copy = { g_strdup(p->name), p->totals };

    g_array_append_val((GArray *)opaque, copy);
    return true;
}

/* Print all marks, or the mark of a name. Return the number of marks
 * printed. */
static unsigned print_marks(McOut *out, const char *name)
{
    g_autoptr(GArray) list = g_array_new(FALSE, FALSE, sizeof(KtMarkInfo));
    unsigned n = 0;

    g_array_set_clear_func(list, clear_mark);
    kt_query_begin(out->ctx->tracer);
    kt_query_marks(out->ctx->tracer, add_mark, list);
    kt_query_end(out->ctx->tracer);
    for (unsigned i = 0; i < list->len; i++) {
        const KtMarkInfo *p = &g_array_index(list, KtMarkInfo, i);

        if (!name || !strcmp(p->name, name)) {
            mc_print_top_mark(out, p);
            n++;
        }
    }
    return n;
}

static bool no_such_mark(const char *name, GError **errp)
{
    g_autofree char *quoted = mc_quote(name);

    return mc_fail_unknown(errp, "%s: no such mark; ka mark lists them",
                           quoted);
}

static bool check_name(const McOut *out, const char *name, GError **errp)
{
    g_autofree char *quoted = mc_quote(name);

    if (out->ctx->journal) {
        return mc_fail_unknown(errp, "\"mark\" is for a running VM; of a "
                               "journal ka diff takes times: @us");
    }
    for (const char *p = name; *p; p++) {
        if (!g_ascii_isgraph(*p) || *name == '@' ||
            strlen(name) > KT_MARK_NAME_MAX) {
            return mc_fail_syntax(errp, "%s: the name of a mark has at most %d "
                                  "visible ASCII characters, the first is no @",
                                  quoted, KT_MARK_NAME_MAX);
        }
    }
    return true;
}

bool mc_cmd_mark(McOut *out, const McArgs *args, GError **errp)
{
    KtTracer *t = out->ctx->tracer;
    bool drop = mc_given(args, MC_OPT_DROP);
    const char *name = args->words->len > 1 ? args->words->pdata[1] : NULL;

    if (!name && drop) {
        return mc_fail_syntax(errp, "\"-d\": needs the name of a mark");
    }
    if (!name) {
        if (!print_marks(out, NULL)) {
            mc_remark(out, "no marks");
        }
        return true;
    }
    if (!check_name(out, name, errp)) {
        return false;
    }
    if (drop) {
        return kt_tracer_drop_mark(t, name) || no_such_mark(name, errp);
    }
    if (!kt_tracer_set_mark(t, name, errp)) {
        return false;
    }
    print_marks(out, name);
    return true;
}

/* ---- ka diff ------------------------------------------------------------- */

static bool add_time(McOut *out, McTopTable *table, const char *word,
                     bool subtract, GError **errp)
{
    KtReplayPlan plan = { .apply = true };
    g_autoptr(KtReplay) r = NULL;

    if (!mc_parse_decimal(word + 1, "us", &plan.until_us, errp)) {
        return false;
    }
    if (!out->ctx->journal) {
        return mc_fail_unknown(errp, "\"%s\": a running VM has no sums of a "
                               "time; use ka mark, or its journal", word);
    }
    plan.until_us = MIN(plan.until_us, out->ctx->until_us);
    r = kt_replay_open(out->ctx->journal, errp);
    if (!r) {
        return false;
    }
    kt_replay_run(r, &plan);
    return add_accounts(table, kt_replay_tracer(r), NULL, subtract);
}

static bool add_named(McOut *out, McTopTable *table, const char *word,
                      bool subtract, GError **errp)
{
    if (*word == '@') {
        return add_time(out, table, word, subtract, errp);
    }
    return add_accounts(table, out->ctx->tracer, word, subtract) ||
           no_such_mark(word, errp);
}

bool mc_cmd_diff(McOut *out, const McArgs *args, GError **errp)
{
    char **word = (char **)args->words->pdata + 1;
    g_autoptr(McTopTable) table = new_table(out, args, errp);

    if (!table) {
        return false;
    }
    table->diff = true;
    if (!mc_top_shows(table, args->sort, true)) {
        return mc_fail_syntax(errp, "--sort %s: ka diff has no such field",
                              mc_top_columns[args->sort].key);
    }
    if (!add_named(out, table, word[0], true, errp)) {
        return false;
    }
    if (args->words->len > 2) {
        if (!add_named(out, table, word[1], false, errp)) {
            return false;
        }
    } else {
        add_accounts(table, out->ctx->tracer, NULL, false);
    }
    print_table(out, args, table);
    print_unknown(out, &table->totals);
    return true;
}
