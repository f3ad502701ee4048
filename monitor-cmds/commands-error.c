/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka error: suspected errors, oldest first, in batches by their number.
 *
 * Rows are copied under the tracer's lock and printed without it.
 */
#include "commands.h"

/**
 * struct Errors - a listing under way
 * @last: number of the error looked at last
 * @filtered: errors that the options kept out
 */
typedef struct Errors {
    KtTracer *t;
    const McFilter *filter;
    GArray *rows;
    uint64_t last;
    uint64_t filtered;
    bool stopped;
} Errors;

static bool collect(const KtError *e, void *opaque)
{
    Errors *s = opaque;

    if (e->id <= s->last) {
        return true;
    }
    if (s->rows->len >= MC_BATCH_ROWS) {
        s->stopped = true;
        return false;
    }
    s->last = e->id;
    if (mc_filter_error(s->filter, s->t, e)) {
        g_array_append_vals(s->rows, e, 1);
    } else {
        s->filtered++;
    }
    return true;
}

static void next_batch(Errors *s, const McRange *r)
{
    g_array_set_size(s->rows, 0);
    s->stopped = false;
    kt_query_begin(s->t);
    kt_query_errors(s->t, r->lo, r->hi, collect, s);
    kt_query_end(s->t);
}

static uint64_t print_errors(McOut *out, Errors *s, const McArgs *args,
                             uint64_t *more)
{
    uint64_t shown = 0;

    do {
        next_batch(s, &args->va);
        for (unsigned i = 0; i < s->rows->len && !out->closed; i++) {
            const KtError *e = &g_array_index(s->rows, KtError, i);

            if (shown == args->limit) {
                *more += s->rows->len - i;
                break;
            }
            out->format->row(out, &(McRow) {
                .error = e, .block = e->has_block ? &e->block : NULL });
            shown++;
        }
    } while (s->stopped && !out->closed);
    return shown;
}

/* "no errors" must not be mistaken for "nothing was looked at". */
static void print_clean(McOut *out, const Errors *s, const McArgs *args)
{
    g_autoptr(GString) text = g_string_new("no errors");
    g_autofree char *why = mc_why_nothing(out);
    KtStats stats;

    kt_query_begin(s->t);
    kt_query_stats(s->t, &stats);
    kt_query_end(s->t);
    if (args->has_va) {
        g_autofree char *range = mc_range_text(&args->va);

        g_string_append(text, range);
    }
    if (s->filtered) {
        g_string_append_printf(text, " that match the options, %" PRIu64
                               " others", s->filtered);
    }
    g_string_append_printf(text, "; %" PRIu64 " events checked%s",
                           stats.events, why);
    out->format->clean(out, stats.events, text->str);
}

bool mc_cmd_error(McOut *out, const McArgs *args, GError **errp)
{
    g_autoptr(GArray) rows = g_array_new(FALSE, FALSE, sizeof(KtError));
    Errors s = {
        .t = out->ctx->tracer, .filter = &args->filter, .rows = rows,
    };
    uint64_t more = 0;
    uint64_t shown = print_errors(out, &s, args, &more);

    if (!shown && !out->closed) {
        print_clean(out, &s, args);
    } else if (more) {
        out->format->more(out, more);
    }
    return true;
}
