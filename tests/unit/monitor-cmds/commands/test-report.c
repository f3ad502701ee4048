/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Errors that are printed when they are found: each once, in order, at most so
 * many a second and a list; a new list begins anew.
 */
#include "monitor-cmds/mc.h"
#include "tests/lib/events.h"
#include "tests/lib/test-main.h"

#include <string.h>

#define SECOND ((int64_t)G_USEC_PER_SEC)

typedef struct Sink {
    unsigned calls, reports, notes;
    GString *last;
} Sink;

static unsigned count(const char *text, const char *word)
{
    unsigned n = 0;

    while ((text = strstr(text, word))) {
        text += strlen(word);
        n++;
    }
    return n;
}

static bool take(void *opaque, const char *text)
{
    Sink *s = opaque;

    s->calls++;
    s->reports += count(text, "BUG: KASAN: ");
    s->notes += count(text, "ka: more errors");
    g_string_assign(s->last, text);
    return true;
}

/* Report at a time; return the number of reports that were printed. */
static unsigned report(McReporter *r, TestWorld *w, Sink *s, int64_t now_us)
{
    McContext ctx = *test_world_context(w);
    unsigned before = s->reports;

    ctx.puts = take;
    ctx.puts_opaque = s;
    mc_report(r, &ctx, now_us);
    return s->reports - before;
}

/* Free @n unknown addresses: an error each. */
static void make_errors(TestWorld *w, unsigned n)
{
    static unsigned made = 1;

    for (unsigned i = 0; i < n; i++, made++) {
        g_autofree char *line = g_strdup_printf(
            "free va=ffff8880%08x us=%u\n", made * 16, made);

        test_world_events(w, line);
    }
}

TEST(test_each_once, "/report/each-once")
{
    g_autoptr(TestWorld) w = test_world_new("complete\n");
    g_autoptr(McReporter) r = mc_reporter_new();
    g_autoptr(GString) text = g_string_new(NULL);
    Sink s = { .last = text };

    g_assert_false(mc_report_due(r, test_world_tracer(w)));
    make_errors(w, 1);
    g_assert_true(mc_report_due(r, test_world_tracer(w)));
    g_assert_cmpuint(report(r, w, &s, 0), ==, 1);
    g_assert_false(mc_report_due(r, test_world_tracer(w)));
    g_assert_cmpuint(report(r, w, &s, 0), ==, 0);
    make_errors(w, 2);
    g_assert_cmpuint(report(r, w, &s, 0), ==, 2);
    /* A whole report a call. */
    g_assert_cmpuint(s.calls, ==, 3);
    g_assert_true(g_str_has_prefix(text->str, "["));
    g_assert_true(g_str_has_suffix(text->str, "==\n"));
}

TEST(test_rate, "/report/rate")
{
    g_autoptr(TestWorld) w = test_world_new("complete\n");
    g_autoptr(McReporter) r = mc_reporter_new();
    g_autoptr(GString) text = g_string_new(NULL);
    Sink s = { .last = text };

    make_errors(w, MC_REPORTS_A_SECOND + 5);
    g_assert_cmpuint(report(r, w, &s, 0), ==, MC_REPORTS_A_SECOND);
    g_assert_cmpuint(report(r, w, &s, SECOND - 1), ==, 0);
    g_assert_true(mc_report_due(r, test_world_tracer(w)));
    g_assert_cmpuint(report(r, w, &s, SECOND), ==, 5);
    g_assert_false(mc_report_due(r, test_world_tracer(w)));
}

TEST(test_limit, "/report/limit")
{
    g_autoptr(TestWorld) w = test_world_new("complete\n");
    g_autoptr(McReporter) r = mc_reporter_new();
    g_autoptr(GString) text = g_string_new(NULL);
    Sink s = { .last = text };

    make_errors(w, MC_REPORTS + 50);
    for (int i = 0; i < 100; i++) {
        report(r, w, &s, i * SECOND);
    }
    g_assert_cmpuint(s.reports, ==, MC_REPORTS);
    g_assert_cmpuint(s.notes, ==, 1);
    g_assert_false(mc_report_due(r, test_world_tracer(w)));
    /* The next boot. */
    test_world_events(w, "reset\ncomplete\n");
    make_errors(w, 1);
    g_assert_true(mc_report_due(r, test_world_tracer(w)));
    g_assert_cmpuint(report(r, w, &s, 200 * SECOND), ==, 1);
}

/* The same number of errors in another list. */
TEST(test_other_list, "/report/other-list")
{
    g_autoptr(TestWorld) w = test_world_new("complete\n");
    g_autoptr(McReporter) r = mc_reporter_new();
    g_autoptr(GString) text = g_string_new(NULL);
    Sink s = { .last = text };

    make_errors(w, 3);
    g_assert_cmpuint(report(r, w, &s, 0), ==, 3);
    test_world_events(w, "reset\ncomplete\n");
    g_assert_true(mc_report_due(r, test_world_tracer(w)));
    g_assert_cmpuint(report(r, w, &s, 0), ==, 0);
    g_assert_false(mc_report_due(r, test_world_tracer(w)));
    make_errors(w, 2);
    g_assert_cmpuint(report(r, w, &s, 0), ==, 2);
}
