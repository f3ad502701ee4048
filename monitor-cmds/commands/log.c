/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka log: list the lines of the guest kernel's log.
 *
 * Called through mc_run(). Lines are copied in batches, without the tracer's
 * lock. A listing ends with the line that was the newest one when it began, so
 * it ends even if the guest prints all the time.
 *
 * Without --after the newest -n lines are printed: the lines that match are
 * counted first, and the first ones of them are left out. With --after the
 * oldest -n lines are printed, and a last line says where the next call goes
 * on. That is how the program ka follows the log.
 */
#include "monitor-cmds/commands/commands.h"
#include "monitor-cmds/output/block-row.h"
#include "monitor-cmds/output/ftrace-text.h"
#include "monitor-cmds/output/log-row.h"

#include <string.h>

#define BATCH 512

/**
 * struct Log - state of a listing
 * @modules: stack id -> (owned) name of its innermost module, or ""
 * @last: number of the last line to list
 * @at: number of the last line that was looked at
 * @evicted: lines that were evicted before they were read
 * @matching: lines that match, so far
 * @skip: so many of them are not printed
 * @boot: of the line before
 * @print: print, and do not count only
 */
typedef struct Log {
    McOut *out;
    const McArgs *args;
    const GsKernel *kernel;
    GHashTable *modules;
    KtLogBatch batch;
    uint64_t last, at;
    uint64_t evicted;
    uint64_t matching, skip, shown;
    uint32_t boot;
    bool any, print;
} Log;

static void log_deinit(Log *l)
{
    g_hash_table_unref(l->modules);
    kt_log_batch_deinit(&l->batch);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Log, log_deinit)

MC_OBJECTS(mc_log_objects, &mc_log_object);

/* ---- which lines --------------------------------------------------------- */

/* Return (owned) the name of the innermost module of a stack, "" for none. A
 * return address can be behind its function, so the byte before is asked. */
static char *find_module(const Log *l, KtStackId id)
{
    McStack stack = mc_stack(l->out->ctx->tracer, id);
    GsSymbol sym;

    for (unsigned i = 0; l->kernel && i < stack.n; i++) {
        McFrame f = mc_frame(&stack, i);

        if (gs_kernel_symbolize_at(l->kernel, f.pc - 1, f.era, &sym) &&
            sym.module) {
            return g_strdup(sym.module);
        }
    }
    return g_strdup("");
}

/* Return (borrowed) the module of a line, NULL if there is none. */
static const char *module_of(Log *l, const KtLogLine *line)
{
    gpointer key = GUINT_TO_POINTER(line->stack.v);
    char *name = g_hash_table_lookup(l->modules, key);

    if (!line->stack.v) {
        return NULL;
    }
    if (!name) {
        name = find_module(l, line->stack);
        g_hash_table_insert(l->modules, key, name);
    }
    return *name ? name : NULL;
}

static int64_t caller_pid(const KtLogLine *line)
{
    bool known = line->flags & KT_LOG_CALLER &&
                 !(line->caller & KT_LOG_CALLER_CPU);

    return known ? (int64_t)line->caller : -1;
}

static bool matches(Log *l, const KtLogLine *line)
{
    const McArgs *args = l->args;
    const char *module;

    if (line->level > args->level ||
        !kt_block_filter_time(args->filter.block, line->us) ||
        !mc_filter_task(&args->filter, line->task,
                        caller_pid(line))) {
        return false;
    }
    module = args->module ? module_of(l, line) : NULL;
    return !args->module || (module && mc_match(args->module, module));
}

/* ---- printing ------------------------------------------------------------ */

static bool is_text(const Log *l)
{
    return l->args->form == MC_FORM_TEXT && !mc_given(l->args, MC_OPT_JSON);
}

/* JSON has these as keys of the line, and ftrace's readers know no such
 * lines. */
static void print_breaks(const Log *l, const KtLogLine *line)
{
    if (is_text(l) && l->any && line->boot != l->boot) {
        mc_print_control(l->out, "reset", line->boot);
    }
    if (is_text(l) && line->lost) {
        mc_print_control(l->out, "lost", line->lost);
    }
}

static void print_line(Log *l, const KtLogLine *line, const char *text)
{
    McLogRow row = { .line = line, .text = text };
    char comm[17];

    print_breaks(l, line);
    mc_log_row(l->out->ctx->tracer, &row, comm);
    row.module = module_of(l, line);
    if (l->args->form == MC_FORM_FTRACE) {
        mc_ftrace_log(l->out, &row);
    } else {
        mc_print_log(l->out, &row);
    }
    l->boot = line->boot;
    l->any = true;
    l->shown++;
}

/* Handle a line. Return false if no further line is wanted. */
static bool on_line(Log *l, const KtLogLine *line, const char *text)
{
    bool forward = mc_given(l->args, MC_OPT_AFTER);

    if (line->number > l->last ||
        (forward && l->print && l->shown == l->args->limit)) {
        return false;
    }
    l->evicted += line->number - l->at - 1;
    l->at = line->number;
    if (matches(l, line) && l->matching++ >= l->skip && l->print) {
        print_line(l, line, text);
    }
    return !l->out->closed;
}

static void walk(Log *l, bool print)
{
    KtTracer *t = l->out->ctx->tracer;
    bool more = true;

    l->at = l->args->after;
    l->matching = l->evicted = 0;
    l->print = print;
    while (more && kt_log_read(t, l->at, BATCH, &l->batch)) {
        const char *text = (const char *)l->batch.text->data;

        for (unsigned i = 0; more && i < l->batch.line->len; i++) {
            const KtLogLine *line = &g_array_index(l->batch.line, KtLogLine,
                                                   i);

            more = on_line(l, line, text);
            text += line->len;
        }
    }
}

/* ---- the command --------------------------------------------------------- */

static void print_none(Log *l)
{
    const McContext *ctx = l->out->ctx;
    const char *why = ctx->why_no_log;
    g_autofree char *text = g_strconcat("no lines", why ? ": " : "",
                                        why ? why : "", NULL);

    mc_remark(l->out, text);
}

static unsigned n_vcpus(const McContext *ctx)
{
    return ctx->vm ? ctx->vm->n_vcpus : 0;
}

static void list_newest(Log *l)
{
    uint64_t n;

    walk(l, false);
    n = l->matching;
    l->skip = n - MIN(n, l->args->limit);
    if (l->args->form == MC_FORM_FTRACE) {
        mc_ftrace_header(l->out, n - l->skip, l->last, n_vcpus(l->out->ctx));
    } else if (!n) {
        print_none(l);
    }
    walk(l, true);
}

static void list_after(Log *l)
{
    if (l->args->form == MC_FORM_FTRACE && !l->args->after) {
        mc_ftrace_header(l->out, l->last, l->last, n_vcpus(l->out->ctx));
    }
    walk(l, true);
    if (l->evicted && l->args->form != MC_FORM_FTRACE) {
        mc_print_control(l->out, "evicted", l->evicted);
    }
    mc_print_control(l->out, "next", l->at);
}

bool mc_cmd_log(McOut *out, const McArgs *args, GError **errp)
{
    g_auto(Log) l = {
        .out = out, .args = args, .kernel = mc_symbols(out->ctx),
        .modules = g_hash_table_new_full(gs_number_hash_direct, NULL, NULL,
                                         g_free),
        .last = kt_log_last(out->ctx->tracer),
    };

    if (args->form == MC_FORM_TEXT) {
        mc_remark_module(out, args->module);
    }
    kt_log_batch_init(&l.batch);
    if (args->form == MC_FORM_FTRACE && mc_given(args, MC_OPT_JSON)) {
        g_set_error(errp, MC_ERROR, MC_ERROR_SYNTAX,
                    "\"--format ftrace\" has no JSON form; omit -j");
        return false;
    }
    if (args->place && strchr(args->place, '.')) {
        g_set_error(errp, MC_ERROR, MC_ERROR_SYNTAX,
                    "--after %s: a line has one number", args->place);
        return false;
    }
    if (mc_given(args, MC_OPT_AFTER)) {
        list_after(&l);
    } else {
        list_newest(&l);
    }
    return true;
}
