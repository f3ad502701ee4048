/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * report=kasan: errors are printed when they are found, as "ka error --format
 * kasan" does it. See mc.h.
 *
 * The list of errors is the queue: what the rate does not allow now is printed
 * later. The tracer's lock is held while errors are copied, not while they are
 * printed.
 */
#include "monitor-cmds/commands/commands.h"
#include "monitor-cmds/output/block-row.h"

/**
 * struct McReporter - how far the list of errors was printed
 * @last: the error that was printed last; its id is 0 if there is none
 * @listed: length of the list at the last look
 * @printed: reports of this list
 * @second, @in_second: the second of the host's clock in which the last report
 *                      was printed, and the number of its reports
 * @ended: the limit of the list was reached, and said
 */
struct McReporter {
    KtError last;
    uint64_t listed;
    unsigned printed;
    int64_t second;
    unsigned in_second;
    bool ended;
};

McReporter *mc_reporter_new(void)
{
    return g_new0(McReporter, 1);
}

void mc_reporter_free(McReporter *r)
{
    g_free(r);
}

/* ---- which errors -------------------------------------------------------- */

typedef struct News {
    const McReporter *r;
    GArray *rows;
    unsigned room;
    uint64_t listed;
    bool known;     /* the error that was printed last is in the list */
} News;

static bool is_same(const KtError *a, const KtError *b)
{
    return a->id == b->id && a->kind == b->kind && a->va == b->va &&
           a->us == b->us;
}

static bool look(const KtError *e, void *opaque)
{
    News *n = opaque;

    n->listed++;
    n->known = n->known || is_same(e, &n->r->last);
    if (e->id > n->r->last.id && n->rows->len < n->room) {
        g_array_append_vals(n->rows, e, 1);
    }
    return true;
}

static void look_at_all(News *n, KtTracer *t)
{
    n->listed = 0;
    g_array_set_size(n->rows, 0);
    kt_query_begin(t);
    kt_query_errors(t, 0, UINT64_MAX, look, n);
    kt_query_end(t);
}

/* Begin anew: the VM was reset, or another list was loaded. */
static void restart(McReporter *r)
{
    r->last = (KtError) { 0 };
    r->printed = 0;
    r->ended = false;
}

/* Return how many reports may be printed now. */
static unsigned room(McReporter *r, int64_t now_us)
{
    int64_t second = now_us / G_USEC_PER_SEC;

    if (second != r->second) {
        r->second = second;
        r->in_second = 0;
    }
    return MIN(MC_REPORTS_A_SECOND - r->in_second, MC_REPORTS - r->printed);
}

bool mc_report_due(const McReporter *r, KtTracer *t)
{
    KtStats stats;

    kt_query_begin(t);
    kt_query_stats(t, &stats);
    kt_query_end(t);
    return stats.errors != r->listed ||
           (r->last.id < stats.errors && !r->ended);
}

/* ---- printing ------------------------------------------------------------ */

static bool append(void *opaque, const char *text)
{
    g_string_append(opaque, text);
    return true;
}

/* Print one report by one call of @ctx->puts, so that other output does not
 * come between its lines. */
static void print_report(const McContext *ctx, const KtError *e)
{
    g_autoptr(GString) text = g_string_new(NULL);
    McContext own = *ctx;
    McOut out;

    own.puts = append;
    own.puts_opaque = text;
    mc_out_init(&out, &own);
    mc_print_kasan(&out, e);
    mc_out_deinit(&out);
    ctx->puts(ctx->puts_opaque, text->str);
}

void mc_report(McReporter *r, const McContext *ctx, int64_t now_us)
{
    g_autoptr(GArray) rows = g_array_new(FALSE, FALSE, sizeof(KtError));
    News n = { .r = r, .rows = rows, .room = room(r, now_us) };

    look_at_all(&n, ctx->tracer);
    if (r->last.id && !n.known) {
        restart(r);
        n.room = room(r, now_us);
        look_at_all(&n, ctx->tracer);
    }
    r->listed = n.listed;
    for (unsigned i = 0; i < rows->len; i++) {
        const KtError *e = &g_array_index(rows, KtError, i);

        print_report(ctx, e);
        r->last = *e;
        r->printed++;
        r->in_second++;
    }
    if (r->printed == MC_REPORTS && !r->ended && r->last.id < n.listed) {
        r->ended = true;
        ctx->puts(ctx->puts_opaque, "ka: more errors are not reported here: "
                  "ka error lists them\n");
    }
}
