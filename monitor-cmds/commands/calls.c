/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka calls: watch functions, and list their calls.
 *
 * Called through mc_run(). Records are copied, and printed without a lock.
 */
#include "monitor-cmds/commands/commands.h"
#include "monitor-cmds/output/format-calls.h"

#include <string.h>

/* Modules that a remark names. */
#define NAMES_MAX 12u

/* A function that is called more often than this slows the guest. */
#define OFTEN_PER_SECOND 200000u

static bool is_live(const McOut *out, GError **errp)
{
    if (out->ctx->journal) {
        g_set_error(errp, MC_ERROR, MC_ERROR_UNKNOWN,
                    "functions are watched in a running VM; of a journal, ka "
                    "calls lists the calls");
    }
    return !out->ctx->journal;
}

/* ---- rows ---------------------------------------------------------------- */

typedef struct NextRow {
    const char *next;
    unsigned more, ended;
    uint64_t overwritten;
} NextRow;

static const McObject next_object = MC_LINE_OBJECT("calls_next",
    "ka calls --after, at the end",
    MC_COLUMN(NextRow, next, WORD, "-- next %", "where to go on"),
    MC_COLUMN(NextRow, more, NUMBER, " more %",
              "1 if there are more already"),
    MC_COLUMN(NextRow, ended, NUMBER, " ended %", "sessions that ended"),
    MC_COLUMN(NextRow, overwritten, NUMBER, " overwritten %",
              "calls replaced by newer ones before they were read"));

static const McObject request_object = MC_OBJECT("call_request",
    "ka calls points, first: a request of ka calls add",
    MC_COLUMN(KtWatchInfo, id, NUMBER, "%: ", "its number"),
    MC_COLUMN(KtWatchInfo, text, TEXT, "ka calls add %", "its words"),
    MC_KEY("points", KtWatchInfo, n_points, NUMBER,
           " (% function{|s})", "number of functions that it matches"));

typedef struct PointRow {
    KtPointInfo p;
    uint64_t per_second;
} PointRow;

MC_GETTER(args_from)
{
    v->s = ((const PointRow *)row)->p.name.proto ? "types" : "registers";
    return true;
}

static const McColumn point_columns[] = {
    MC_KEY(NULL, PointRow, p.va, ADDRESS, "% ", NULL, .head = "va"),
    MC_KEY("function", PointRow, p.name.name, TEXT, "%", "its name",
           .head = "function"),
    MC_KEY("module", PointRow, p.name.module, TEXT, "[%]", "its module",
           .flags = MC_OMIT, .head = "module"),
    MC_GET("args_from", get_args_from, WORD, NULL, "types or registers"),
    MC_KEY("va", PointRow, p.va, ADDRESS, NULL, "its address"),
    MC_KEY("request", PointRow, p.request, NUMBER, " request=%",
           "id of the request", .head = "request"),
    MC_KEY("calls", PointRow, p.calls, NUMBER, " calls=%",
           "number of entries", .head = "calls"),
    MC_COLUMN(PointRow, per_second, NUMBER, " per_second=%",
              "entries in a second", .head = "per_second"),
    MC_KEY("derefs", PointRow, p.n_derefs, NUMBER, " derefs=%",
           "values of --deref that its calls have",
           .flags = MC_ZERO | MC_OMIT),
    MC_ONLY_TEXT(" raw registers", MC_UNLESS(PointRow, p.name.proto)),
    MC_END
};
static const McObject point_object = {
    "call_point", "ka calls points: a watched function", { point_columns },
    .is_table = true,
};

MC_OBJECTS(mc_calls_objects,
           &mc_call_object, &mc_session_object, &next_object, &request_object,
           &point_object);

/* ---- ka calls ------------------------------------------------------------ */

/**
 * struct Listing - a listing of calls
 * @rows: (owned) of McCallRow: calls that match, as many as the limit allows
 * @left: calls that match and are beyond the limit
 * @ended: ends of sessions, also those that do not match
 * @more: there are more finished calls, which the next --after lists
 */
typedef struct Listing {
    McOut *out;
    const McArgs *args;
    GArray *rows;
    uint64_t left;
    unsigned ended;
    bool more;
} Listing;

static bool is_of_module(const McArgs *args, const McOut *out,
                          const KtCall *call)
{
    GsSymbol sym;

    return !args->module ||
           (out->ctx->kernel &&
            gs_kernel_symbolize_at(out->ctx->kernel, call->caller, call->era,
                                   &sym) &&
            sym.module && mc_match(args->module, sym.module));
}

/* Marks of sessions have no function and no caller. */
static bool is_of_function(const Listing *l, const KtCall *call)
{
    KtPointName name = { .name = "?" };

    if (call->flags & (KT_CALL_BEGIN | KT_CALL_END)) {
        return !l->args->function;
    }
    kt_call_point_name(l->out->ctx->tracer, call->point, &name);
    return (!l->args->function || mc_match(l->args->function, name.name)) &&
           is_of_module(l->args, l->out, call);
}

static bool matches(const Listing *l, const KtCall *call)
{
    const McFilter *f = &l->args->filter;
    uint64_t us = call->start_ns / 1000;

    return kt_block_spec_time(&f->spec, us) &&
           (!mc_given(l->args, MC_OPT_CPU) || l->args->all_cpus ||
            call->cpu == l->args->cpu) &&
           kt_block_filter_task(f->block, call->task) &&
           is_of_function(l, call);
}

/* Make rows of the calls that match, at most @limit. Other programs want names
 * of callers. */
static void add_rows(Listing *l, const KtCallList *list, uint64_t limit)
{
    const McContext *ctx = l->out->ctx;
    const GsKernel *k = l->args->form == MC_FORM_TEXT ? l->out->symbols :
                                                        ctx->kernel;

    for (unsigned i = 0; i < list->calls->len; i++) {
        const KtCallView *v = &g_array_index(list->calls, KtCallView, i);
        McCallRow row;

        l->ended += !!(v->call->flags & KT_CALL_END);
        if (!matches(l, v->call)) {
            continue;
        }
        if (l->rows->len >= limit) {
            l->left++;
            continue;
        }
        mc_call_row(&row, ctx->tracer, k, v);
        g_array_append_val(l->rows, row);
    }
}

static void print_lines(McOut *out, const GArray *rows, uint64_t left)
{
    for (unsigned i = 0; i < rows->len && !out->closed; i++) {
        mc_print_call(out, &g_array_index(rows, McCallRow, i));
    }
    if (left) {
        mc_more(out, left);
    }
}

static void print_none(McOut *out, const McArgs *args)
{
    KtCallsStats stats;

    kt_calls_stats(out->ctx->tracer, &stats);
    mc_remark(out, stats.kept + stats.unfinished ?
              "no calls match" : stats.bytes ?
              "no calls were recorded" :
              out->ctx->journal ? "the journal has no calls" :
              "no calls: ka calls add <func> watches a function");
}

static void print_listing(Listing *l)
{
    const GArray *rows = l->rows;
    McCallList list = { .rows = rows };
    KtCallsStats stats;

    kt_calls_stats(l->out->ctx->tracer, &stats);
    list.written = stats.recorded;
    list.n_cpus = stats.n_cpus;
    if (l->args->form == MC_FORM_FTRACE) {
        mc_calls_as_ftrace(l->out, &list);
    } else if (l->args->form == MC_FORM_CHROME) {
        mc_calls_as_chrome(l->out, &list);
    } else if (rows->len) {
        print_lines(l->out, rows, l->left);
    } else {
        print_none(l->out, l->args);
    }
}

/* ---- ka calls --after ---------------------------------------------------- */

/* Read "12.40", a number for each vCPU, or "0". */
static bool parse_place(const char *text, uint64_t *seq, unsigned n,
                        GError **errp)
{
    g_auto(GStrv) words = g_strsplit(text, ".", -1);
    unsigned len = g_strv_length(words);

    if (len != n && strcmp(text, "0")) {
        g_set_error(errp, MC_ERROR, MC_ERROR_SYNTAX,
                    "--after %s: expected 0, or the place of the last answer, "
                    "which has %u numbers", text, n);
        return false;
    }
    for (unsigned i = 0; i < MIN(len, n); i++) {
        if (!mc_parse_decimal(words[i], "", &seq[i], errp)) {
            return false;
        }
    }
    return true;
}

static void print_next(const Listing *l, const uint64_t *seq, unsigned n,
                       uint64_t lost)
{
    g_autoptr(GString) place = g_string_new(NULL);

    for (unsigned i = 0; i < n; i++) {
        g_string_append_printf(place, "%s%" PRIu64, i ? "." : "", seq[i]);
    }
    mc_print(l->out, &next_object, &(NextRow) {
        place->str, l->more, l->ended, lost });
}

static void print_part(Listing *l, unsigned n_cpus, bool goes_on)
{
    KtCallsStats stats;

    kt_calls_stats(l->out->ctx->tracer, &stats);
    if (l->args->form == MC_FORM_FTRACE) {
        mc_calls_as_ftrace(l->out, &(McCallList) {
            l->rows, stats.recorded, n_cpus, goes_on });
    } else {
        print_lines(l->out, l->rows, 0);
    }
}

static bool list_after(Listing *l, GError **errp)
{
    KtTracer *t = l->out->ctx->tracer;
    g_autofree uint64_t *seq = NULL;
    g_auto(KtCallList) list = { 0 };
    KtCallsStats stats;
    uint64_t lost;

    if (l->args->form == MC_FORM_CHROME || mc_given(l->args, MC_OPT_LIMIT)) {
        g_set_error(errp, MC_ERROR, MC_ERROR_SYNTAX,
                    mc_given(l->args, MC_OPT_LIMIT) ?
                    "ka calls --after has no limit; omit -n" :
                    "--format chrome is one array; omit --after");
        return false;
    }
    kt_calls_stats(t, &stats);
    seq = g_new0(uint64_t, stats.n_cpus);
    if (!parse_place(l->args->place, seq, stats.n_cpus, errp)) {
        return false;
    }
    lost = kt_query_calls_after(t, seq, stats.n_cpus, &l->more, &list);
    add_rows(l, &list, UINT64_MAX);
    print_part(l, stats.n_cpus, strcmp(l->args->place, "0"));
    print_next(l, seq, stats.n_cpus, lost);
    return true;
}

bool mc_cmd_calls(McOut *out, const McArgs *args, GError **errp)
{
    g_autoptr(GArray) rows = g_array_new(false, false, sizeof(McCallRow));
    g_auto(KtCallList) list = { 0 };
    Listing l = { .out = out, .args = args, .rows = rows };

    if (args->form != MC_FORM_TEXT && mc_given(args, MC_OPT_JSON)) {
        g_set_error(errp, MC_ERROR, MC_ERROR_SYNTAX,
                    "-j prints the form text; omit --format %s",
                    mc_form_name(args->form));
        return false;
    }
    if (mc_given(args, MC_OPT_AFTER)) {
        return list_after(&l, errp);
    }
    if (args->form == MC_FORM_TEXT) {
        mc_remark_module(out, args->module);
    }
    kt_query_calls(out->ctx->tracer, &list);
    add_rows(&l, &list, args->limit);
    print_listing(&l);
    return true;
}

/* ---- requests ------------------------------------------------------------ */

static bool find_request(const KtWatchInfo *info, void *opaque)
{
    KtWatchInfo *want = opaque;

    if (info->id == want->id) {
        want->n_points = info->n_points;
    }
    return info->id != want->id;
}

void mc_remark_waits(McOut *out, const char *condition)
{
    const GsKernel *k = mc_symbols(out->ctx);
    g_autofree char *modules = condition && k ?
                               kt_condition_waits(condition, k) : NULL;

    if (modules) {
        mc_remarkf(out, "the condition waits for modules that are not loaded: "
                   "%s", modules);
    }
}

/* Append the names of loaded modules, at most NAMES_MAX. */
static void put_loaded(GString *to, const GsKernel *k)
{
    unsigned n = 0;
    GsModule m;

    for (unsigned i = 0; gs_kernel_nth_module(k, i, &m); i++) {
        if (m.live && n++ < NAMES_MAX) {
            g_string_append(to, n == 1 ? " " : ", ");
            mc_put_word(to, m.name);
        }
    }
    g_string_append(to, n > NAMES_MAX ? ", ..." : n ? "" : " none");
}

void mc_remark_module(McOut *out, const char *module)
{
    const GsKernel *k = mc_symbols(out->ctx);
    g_autoptr(GString) text = g_string_new(NULL);
    g_autofree char *quoted = mc_quote(module ? module : "");
    bool was = false;
    GsModule m;

    if (!module || !k) {
        return;
    }
    for (unsigned i = 0; gs_kernel_nth_module(k, i, &m); i++) {
        if (mc_match(module, m.name)) {
            if (m.live) {
                return;
            }
            was = true;
        }
    }
    g_string_printf(text, "no module %s is loaded%s; loaded:", quoted,
                    was ? " any more" : " yet");
    put_loaded(text, k);
    mc_remark(out, text->str);
}

bool mc_cmd_calls_add(McOut *out, const McArgs *args, GError **errp)
{
    const KtWatchSpec spec = {
        .functions = args->name, .module = args->module,
        .condition = args->condition, .derefs = args->derefs,
        .longer_ns = args->longer_us * 1000,
        .errors = mc_given(args, MC_OPT_ERRORS),
        .stack = mc_given(args, MC_OPT_STACK),
    };
    const McContext *ctx = out->ctx;
    KtWatchInfo info = { 0 };

    if (!is_live(out, errp)) {
        return false;
    }
    info.id = kt_calls_add(ctx->tracer, ctx->kernel_found ? ctx->kernel : NULL,
                           &spec, errp);
    if (!info.id) {
        return false;
    }
    kt_calls_requests(ctx->tracer, find_request, &info);
    mc_out_printf(out, "request %u: %u function%s watched%s", info.id,
                  info.n_points, info.n_points == 1 ? " is" : "s are",
                  info.n_points ? "" : ctx->kernel_found ?
                  "; the module is not loaded yet" :
                  "; the kernel is not known yet");
    mc_remark_waits(out, spec.condition);
    mc_remark_module(out, spec.module);
    return true;
}

bool mc_cmd_calls_del(McOut *out, const McArgs *args, GError **errp)
{
    bool all = !strcmp(args->name, "all");
    uint64_t id = 0;
    unsigned n;

    if (!is_live(out, errp) ||
        (!all && !mc_parse_decimal(args->name, "", &id, errp))) {
        return false;
    }
    n = all || (id && id <= UINT32_MAX) ?
        kt_calls_remove(out->ctx->tracer, id) : 0;
    if (!n && !all) {
        g_set_error(errp, MC_ERROR, MC_ERROR_UNKNOWN,
                    "there is no request %s; ka calls points lists them",
                    args->name);
        return false;
    }
    mc_out_printf(out, "%u request%s ended", n, n == 1 ? "" : "s");
    return true;
}

bool mc_cmd_calls_clear(McOut *out, const McArgs *args, GError **errp)
{
    KtCallsStats stats;

    if (!is_live(out, errp)) {
        return false;
    }
    kt_calls_stats(out->ctx->tracer, &stats);
    kt_calls_clear(out->ctx->tracer);
    mc_out_printf(out, "dropped %" PRIu64 " calls", stats.kept);
    return true;
}

/* ---- ka calls points ----------------------------------------------------- */

typedef struct Points {
    McOut *out;
    uint64_t now_ns;
    unsigned requests;
    GString *often;
} Points;

static bool print_request(const KtWatchInfo *info, void *opaque)
{
    Points *p = opaque;

    mc_print(p->out, &request_object, info);
    p->requests++;
    return true;
}

static bool print_point(const KtPointInfo *info, void *opaque)
{
    Points *p = opaque;
    uint64_t ns = p->now_ns > info->since_ns ? p->now_ns - info->since_ns : 0;
    uint64_t ms = ns / 1000000;
    uint64_t per_second = ms ? info->calls * 1000 / ms : 0;

    mc_print(p->out, &point_object, &(PointRow) { *info, per_second });
    if (per_second > OFTEN_PER_SECOND) {
        g_string_append_printf(p->often, "%s%s", p->often->len ? ", " : "",
                               info->name.name);
    }
    return true;
}

bool mc_cmd_calls_points(McOut *out, const McArgs *args, GError **errp)
{
    g_autoptr(GString) often = g_string_new(NULL);
    Points p = { .out = out, .often = often };

    if (!is_live(out, errp)) {
        return false;
    }
    p.now_ns = kt_calls_last_ns(out->ctx->tracer);
    kt_calls_requests(out->ctx->tracer, print_request, &p);
    kt_calls_points(out->ctx->tracer, print_point, &p);
    if (!p.requests) {
        mc_remark(out, "no function is watched");
    }
    if (often->len && !mc_given(args, MC_OPT_JSON)) {
        mc_out_printf(out, "more than %u calls a second slow the guest: %s",
                      OFTEN_PER_SECOND, often->str);
    }
    return true;
}
