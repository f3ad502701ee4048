/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka check: run the tracer's self-check and print each violation.
 *
 * Called through mc_run(). The state must not change during the check, so the
 * tracer's lock is held until the check ends. A long check prints its progress
 * under that lock.
 */
#include "monitor-cmds/commands/commands.h"

typedef struct Violation {
    KtCheckRule rule;
    char *where;
} Violation;

typedef struct Checking {
    McOut *out;
    GArray *found;          /* Violation */
    gint64 printed_at;
} Checking;

static void clear_violation(gpointer v)
{
    g_free(((Violation *)v)->where);
}

static void add(KtCheckRule rule, const char *where, void *opaque)
{
    Checking *c = opaque;
    Violation v = { rule, g_strdup(where) };

    g_array_append_val(c->found, v);
}

static void progress(uint64_t done, uint64_t total, void *opaque)
{
    Checking *c = opaque;
    gint64 now = g_get_monotonic_time();

    if (now - c->printed_at >= MC_PROGRESS_US) {
        c->printed_at = now;
        mc_out_printf(c->out, "... %" PRIu64 " of %" PRIu64, done, total);
        mc_out_flush(c->out);
    }
}

static void print_found(McOut *out, const GArray *found, const char *when)
{
    for (unsigned i = 0; i < found->len; i++) {
        const Violation *v = &g_array_index(found, Violation, i);

        mc_out_printf(out, "%s%s: %s: %s", when, kt_check_name(v->rule),
                      kt_check_text(v->rule), v->where);
    }
}

static void print_sum(McOut *out, const KtCheckReport *r, unsigned rules)
{
    if (r->violations) {
        mc_out_printf(out, "%" PRIu64 " violations of %u rules in:",
                      r->violations, rules);
    }
    mc_out_printf(out, "%s%" PRIu64 " blocks, %" PRIu64 " nodes, %" PRIu64
                  " places in lists, %" PRIu64 " past lives, %" PRIu64
                  " errors, %" PRIu64 " calls under way",
                  r->violations ? "  " : "ok: ", r->blocks, r->nodes, r->index,
                  r->history, r->errors, r->calls);
}

static GArray *new_list(void)
{
    GArray *list = g_array_new(FALSE, FALSE, sizeof(Violation));

    g_array_set_clear_func(list, clear_violation);
    return list;
}

bool mc_cmd_check(McOut *out, const McArgs *args, GError **errp)
{
    KtTracer *t = out->ctx->tracer;
    g_autoptr(GArray) found = new_list();
    g_autoptr(GArray) earlier = new_list();
    Checking now = { out, found, g_get_monotonic_time() };
    Checking before = { out, earlier };
    const KtCheckFns fns = { add, progress, &now };
    KtCheckReport report;

    kt_query_begin(t);
    kt_query_check(t, &fns, &report);
    kt_query_checked(t, add, &before);
    kt_query_end(t);
    print_found(out, earlier, "found while running: ");
    print_found(out, found, "");
    print_sum(out, &report, found->len);
    return true;
}
