/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What other rooms register with a tracer: boot parts are made once, and are
 * told when a boot ends; checks run with `ka check`; idle work runs.
 */
#include "tests/lib/test-main.h"
#include "kalloc-tracer/snapshot/snapshot.h"
#include "kalloc-tracer/tracer/tracer.h"

/* ---- a part ------------------------------------------------------------- */

static unsigned n_made, n_freed;

typedef struct Part {
    GString *ends;          /* a letter for each boot that ended */
    bool broken;
} Part;

static void *part_new(KtBudget *budget)
{
    Part *p = g_new0(Part, 1);

    g_assert_nonnull(budget);
    p->ends = g_string_new(NULL);
    n_made++;
    return p;
}

static void part_free(void *opaque)
{
    Part *p = opaque;

    g_string_free(p->ends, TRUE);
    g_free(p);
    n_freed++;
}

static void part_reset(void *opaque, KtBootEnd why)
{
    Part *p = opaque;

    g_string_append_c(p->ends, "rcl"[why]);
}

static char *part_check(void *opaque, KtCheckReport *report)
{
    const Part *p = opaque;

    report->calls += 3;
    return p->broken ? g_strdup("a part is broken") : NULL;
}

static const KtBootPart row = {
    .name = "test",
    .new = part_new,
    .free = part_free,
    .reset = part_reset,
    .rule = KT_CHECK_CALLS,
    .check = part_check,
};

static const KtBootPart bare_row = { .name = "bare", .new = part_new };

static KtTracer *new_tracer(void)
{
    const KtConfig config = KT_CONFIG_DEFAULT;

    n_made = n_freed = 0;
    return kt_tracer_new(&config, NULL);
}

/* ---- tests -------------------------------------------------------------- */

TEST(a_part_is_made_once, "/registry/once")
{
    g_autoptr(KtTracer) t = new_tracer();
    Part *p = kt_tracer_part(t, &row);

    g_assert_nonnull(p);
    g_assert_true(kt_tracer_part(t, &row) == p);
    g_assert_cmpuint(n_made, ==, 1);
    kt_tracer_free(g_steal_pointer(&t));
    g_assert_cmpuint(n_freed, ==, 1);
}

static gpointer get_part(gpointer t)
{
    return kt_tracer_part(t, &row);
}

TEST(threads_get_the_same_part, "/registry/threads")
{
    g_autoptr(KtTracer) t = new_tracer();
    GThread *thread[8];

    for (unsigned i = 0; i < G_N_ELEMENTS(thread); i++) {
        thread[i] = g_thread_new("part", get_part, t);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(thread); i++) {
        g_assert_true(g_thread_join(thread[i]) == kt_tracer_part(t, &row));
    }
    g_assert_cmpuint(n_made, ==, 1);
}

static void load_itself(KtTracer *t)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    GsBytes in;

    kt_snapshot_save(t, gs_stream_to_array, bytes);
    in = (GsBytes) { bytes->data, bytes->len };
    g_assert_true(kt_snapshot_load(t, gs_stream_from_bytes, &in, NULL));
}

TEST(ends_of_boots, "/registry/ends")
{
    g_autoptr(KtTracer) t = new_tracer();
    const Part *p = kt_tracer_part(t, &row);

    kt_tracer_reset(t);
    kt_tracer_clear(t);
    load_itself(t);
    kt_tracer_reset_unknown(t);
    g_assert_cmpstr(p->ends->str, ==, "rcll");
}

/* `ka clear` stays in the same boot. */
TEST(epochs, "/registry/epochs")
{
    g_autoptr(KtTracer) t = new_tracer();
    uint64_t first = kt_tracer_epoch(t);

    kt_tracer_clear(t);
    g_assert_cmpuint(kt_tracer_epoch(t), ==, first);
    kt_tracer_reset(t);
    g_assert_cmpuint(kt_tracer_epoch(t), ==, first + 1);
    load_itself(t);
    g_assert_cmpuint(kt_tracer_epoch(t), ==, first + 2);
    kt_tracer_reset_unknown(t);
    g_assert_cmpuint(kt_tracer_epoch(t), ==, first + 3);
}

static void found(KtCheckRule rule, const char *where, void *opaque)
{
    g_string_append_printf(opaque, "%s: %s", kt_check_name(rule), where);
}

static uint64_t check(KtTracer *t, GString *out)
{
    const KtCheckFns fns = { .violation = found, .opaque = out };
    KtCheckReport report;

    kt_query_begin(t);
    kt_query_check(t, &fns, &report);
    kt_query_end(t);
    g_assert_cmpuint(report.calls, ==, 3);
    return report.violations;
}

TEST(a_part_is_checked, "/registry/check")
{
    g_autoptr(KtTracer) t = new_tracer();
    g_autoptr(GString) out = g_string_new(NULL);
    Part *p = kt_tracer_part(t, &row);

    g_assert_cmpuint(check(t, out), ==, 0);
    p->broken = true;
    g_assert_cmpuint(check(t, out), ==, 1);
    g_assert_cmpstr(out->str, ==, "calls.table: a part is broken");
}

/* Functions of a row are optional, but for the one that makes the part. */
TEST(a_row_may_be_bare, "/registry/bare")
{
    g_autoptr(KtTracer) t = new_tracer();
    Part *p = kt_tracer_part(t, &bare_row);

    kt_tracer_reset(t);
    g_assert_cmpstr(p->ends->str, ==, "");
    kt_tracer_free(g_steal_pointer(&t));
    g_assert_cmpuint(n_freed, ==, 0);
    part_free(p);
}

static void count(void *opaque)
{
    __atomic_add_fetch((unsigned *)opaque, 1, __ATOMIC_RELAXED);
}

TEST(idle_work_runs, "/registry/idle")
{
    g_autoptr(KtTracer) t = new_tracer();
    unsigned n = 0;

    kt_tracer_on_idle(t, count, &n);
    kt_tracer_start(t);
    while (__atomic_load_n(&n, __ATOMIC_RELAXED) < 3) {
        g_usleep(1000);
    }
    kt_tracer_stop(t);
}
