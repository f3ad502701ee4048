/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka trace: the live trace of events.
 *
 * Called through mc_run(). Entries are copied in batches, and printed without
 * the tracer's lock. A listing ends with the entry that was the newest one when
 * it began, so it ends even if the guest allocates all the time.
 *
 * Without --after, entries are printed that no `ka trace` printed before: the
 * trace has one place for all users. With --after, a reader keeps its own
 * place, and a last line says where the next call goes on. That is how the
 * program ka follows the trace.
 */
#include "monitor-cmds/commands/commands.h"
#include "monitor-cmds/output/block-row.h"

#include <string.h>

#define BATCH 1024

static const char nothing[] = "nothing is traced; ka trace on begins";

static bool is_live(const McOut *out, GError **errp)
{
    if (out->ctx->journal) {
        g_set_error(errp, MC_ERROR, MC_ERROR_UNKNOWN,
                    "a running VM is traced; of a journal, ka events lists the "
                    "events");
    }
    return !out->ctx->journal;
}

static KtTraceInfo info_of(const McOut *out)
{
    KtTraceInfo info;

    kt_query_begin(out->ctx->tracer);
    kt_query_trace_info(out->ctx->tracer, &info);
    kt_query_end(out->ctx->tracer);
    return info;
}

/* ---- ka trace ------------------------------------------------------------ */

/**
 * struct Listing - a listing of the trace
 * @entry: (owned) of KtTraced, a batch
 * @at: number of the last entry that was looked at
 * @missing: entries that were overwritten before they were looked at
 * @shown: lines; @events: those that are no marks
 */
typedef struct Listing {
    McOut *out;
    KtTraceInfo info;
    const GsKernel *symbols;
    GArray *entry;
    uint64_t at;
    uint64_t missing;
    uint64_t shown, events;
} Listing;

/* ---- rows ---------------------------------------------------------------- */

static const McObject end_object = MC_LINE_OBJECT("trace_end",
    "ka trace, at the end",
    MC_COLUMN(Listing, events, NUMBER, "% event{|s}", "number of events"),
    MC_KEY("overwritten", Listing, missing, NUMBER, ", % overwritten",
           "entries that newer ones replaced before they were printed"),
    MC_KEY("on", Listing, info.on, NUMBER, NULL,
           "1, or 0 if the trace has ended"),
    MC_ONLY_TEXT("; the trace has ended", MC_UNLESS(Listing, info.on)));

typedef struct NextRow {
    const char *next;
    bool more;
    uint64_t overwritten;
} NextRow;

static const McObject next_object = MC_LINE_OBJECT("trace_next",
    "ka trace --after, at the end",
    MC_COLUMN(NextRow, next, WORD, "-- next %", "where to go on"),
    MC_COLUMN(NextRow, more, NUMBER, " more %",
              "1 if there are more already"),
    MC_COLUMN(NextRow, overwritten, NUMBER, " overwritten %",
              "as in trace_end"));

MC_OBJECTS(mc_trace_objects, &mc_traced_object, &end_object, &next_object);

/* ---- the listing --------------------------------------------------------- */

static void print_entry(Listing *l, const KtTraced *e, uint64_t number)
{
    static const char *const marks[] = {
        [KT_TRACED_RESET] = "reset", [KT_TRACED_CLEAR] = "clear",
        [KT_TRACED_LOAD] = "load",
    };
    McOut *out = l->out;

    out->symbols = number < l->info.boot ? NULL : l->symbols;
    if (e->kind == KT_TRACED_EVENT) {
        mc_print_event(out, &e->ev, &e->block);
        l->events++;
    } else {
        mc_print_control(out, marks[e->kind], 0);
    }
    l->shown++;
}

/* Copy a batch of at most @max entries. Return false if there are no more. */
static bool next_batch(Listing *l, uint64_t max)
{
    KtTracer *t = l->out->ctx->tracer;
    uint64_t missing;

    kt_query_begin(t);
    l->at = kt_query_trace(t, l->at, MIN(max, BATCH), l->entry, &missing);
    kt_query_end(t);
    l->missing += missing;
    return l->entry->len;
}

static void list(Listing *l, uint64_t limit)
{
    while (l->shown < limit && l->at < l->info.last &&
           next_batch(l, MIN(limit - l->shown, l->info.last - l->at))) {
        uint64_t first = l->at + 1 - l->entry->len;

        for (unsigned i = 0; i < l->entry->len && !l->out->closed; i++) {
            print_entry(l, &g_array_index(l->entry, KtTraced, i), first + i);
        }
    }
}

/* What a listing of one user does not show, the next one does. */
static void store_place(const Listing *l)
{
    KtTracer *t = l->out->ctx->tracer;

    kt_query_begin(t);
    kt_trace_set_place(t, l->at);
    kt_query_end(t);
}

static void print_end(const Listing *l)
{
    if (l->at < l->info.last) {
        mc_more(l->out, l->info.last - l->at);
    }
    mc_print(l->out, &end_object, l);
}

static void print_next(const Listing *l)
{
    g_autofree char *next = g_strdup_printf("%" PRIu64, l->at);

    mc_print(l->out, &next_object, &(NextRow) {
        next, l->at < l->info.last, l->missing });
}

static bool check_place(const McArgs *args, GError **errp)
{
    bool ok = !args->place || !strchr(args->place, '.');

    if (!ok) {
        g_set_error(errp, MC_ERROR, MC_ERROR_SYNTAX,
                    "--after %s: an entry has one number", args->place);
    }
    return ok;
}

bool mc_cmd_trace(McOut *out, const McArgs *args, GError **errp)
{
    bool after = mc_given(args, MC_OPT_AFTER);
    g_autoptr(GArray) entry = g_array_new(false, false, sizeof(KtTraced));
    Listing l = { .out = out, .entry = entry, .symbols = out->symbols };

    if (!is_live(out, errp) || !check_place(args, errp)) {
        return false;
    }
    l.info = info_of(out);
    if (!l.info.any && after) {
        g_set_error(errp, MC_ERROR, MC_ERROR_UNKNOWN, nothing);
        return false;
    }
    if (!l.info.any) {
        mc_remark(out, nothing);
        return true;
    }
    l.at = after ? args->after : l.info.place;
    list(&l, args->limit);
    if (after) {
        print_next(&l);
    } else {
        store_place(&l);
        print_end(&l);
    }
    return true;
}

/* ---- ka trace on, ka trace off ------------------------------------------- */

static KtTraceSpec make_spec(const McArgs *args, KtCodeRange *code)
{
    KtTraceSpec spec = {
        .block = args->filter.spec,
        .ring = mc_given(args, MC_OPT_RING) ? args->ring : KT_TRACE_RING,
    };

    spec.block.code = code;
    spec.block.n_code = args->pcs->len;
    for (unsigned i = 0; i < args->pcs->len; i++) {
        const McCode *c = &g_array_index(args->pcs, McCode, i);

        code[i] = (KtCodeRange) { c->lo, c->hi };
    }
    return spec;
}

/* Return (owned) the filters in words. */
static char *describe(const KtBlockSpec *s)
{
    GString *text = g_string_new(NULL);

    if (s->has_pid) {
        kt_add_part(text, "pid %" PRIu64, s->pid);
    } else if (s->task) {
        kt_add_part(text, "%s", s->task);
    }
    if (s->cache) {
        kt_add_part(text, "%s", s->cache);
    }
    if (s->layer != KT_LAYER_NONE) {
        kt_add_part(text, "%s", kt_layer_name(s->layer));
    }
    if (s->has_size) {
        kt_add_part(text, "%" PRIx64 "-%" PRIx64 " bytes", s->size_lo,
                    s->size_hi);
    }
    for (unsigned i = 0; i < s->n_code; i++) {
        kt_add_part(text, "allocated in %" PRIx64 "-%" PRIx64,
                    s->code[i].lo, s->code[i].hi);
    }
    if (!text->len) {
        kt_add_part(text, "everything");
    }
    return g_string_free(text, FALSE);
}

bool mc_cmd_trace_on(McOut *out, const McArgs *args, GError **errp)
{
    g_autofree KtCodeRange *code = g_new(KtCodeRange, args->pcs->len);
    const KtTraceSpec spec = make_spec(args, code);
    g_autofree char *what = describe(&spec.block);
    KtTracer *t = out->ctx->tracer;

    if (!is_live(out, errp) || !kt_trace_start(t, &spec, errp)) {
        return false;
    }
    mc_out_printf(out, "tracing %s, to a ring of %" PRIu64 " events%s%s%s",
                  what, spec.ring,
                  kt_block_spec_knows_cache(&spec.block, t) ? "" :
                  "; no cache of this name is known yet",
                  kt_block_spec_knows_task(&spec.block, t) ? "" :
                  "; no such task is known yet",
                  kt_tracer_enabled(t) ? "" :
                  "; nothing is recorded before ka on");
    return true;
}

bool mc_cmd_trace_off(McOut *out, const McArgs *args, GError **errp)
{
    KtTraceInfo info;
    uint64_t left;

    if (!is_live(out, errp)) {
        return false;
    }
    if (!kt_trace_stop(out->ctx->tracer)) {
        mc_out_printf(out, "nothing was traced");
        return true;
    }
    info = info_of(out);
    left = info.last - info.place;
    mc_out_printf(out, "the trace has ended; %" PRIu64 " new entr%s for "
                  "ka trace", left, left == 1 ? "y" : "ies");
    return true;
}
