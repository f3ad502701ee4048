/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The page: no name gets out of its place, and limits are kept and counted. */
#include "tests/lib/test-main.h"
#include "tests/lib/export-world.h"
#include "monitor-cmds/report/report-data.h"

#include <stdlib.h>
#include <string.h>

/* (owned) The page. */
static char *page_of(McReport *r)
{
    char *bytes = NULL, *copy;
    size_t n = 0;
    FILE *to = open_memstream(&bytes, &n);

    mc_write_report(r, to);
    g_assert_cmpint(fclose(to), ==, 0);
    copy = g_strndup(bytes, n);
    free(bytes);
    return copy;
}

static unsigned count(const char *text, const char *word)
{
    unsigned n = 0;

    for (; (text = strstr(text, word)); text++) {
        n++;
    }
    return n;
}

/* Add a card whose texts are all this one. */
static void add_card(McReport *r, const char *text)
{
    McReportCard *c = mc_report_card(r);
    unsigned id = mc_report_text(r, text);

    if (!c) {
        return;
    }
    c->title = c->fold = c->exact = c->kind = c->block = c->address = id;
    g_array_append_val(c->alt, id);
    c->part[MC_CARD_ERROR].when = id;
    c->part[MC_CARD_ERROR].frame = g_array_new(FALSE, FALSE, sizeof(unsigned));
    g_array_append_val(c->part[MC_CARD_ERROR].frame, id);
}

#define MARKUP "</script><img src=x onerror=alert(1)>\"'&<!--]]>\x01\xff\n"

TEST(names_stay_text, "/report-html/names")
{
    g_autoptr(McReport) r = mc_report_new();
    g_autoptr(McReport) clean = mc_report_new();
    McReportRow row = { 0 };
    g_autofree char *page = NULL, *other = page_of(clean);
    unsigned n;

    mc_heap_profile_free(r->profile);
    r->profile = export_hostile(&n);
    g_free(r->source);
    g_free(r->command);
    r->source = g_strdup(MARKUP);
    r->command = g_strdup(MARKUP);
    row.name = mc_report_text(r, MARKUP);
    mc_report_row(mc_report_table(r, "task"), &row);
    add_card(r, MARKUP);
    page = page_of(r);
    g_assert_true(g_str_is_ascii(page));
    g_assert_cmpuint(count(page, "<img"), ==, 0);
    g_assert_cmpuint(count(page, "<b>"), ==, 0);
    g_assert_cmpuint(count(page, "<!--"), ==, count(other, "<!--"));
    g_assert_cmpuint(count(page, "<script"), ==, count(other, "<script"));
    g_assert_cmpuint(count(page, "</script"), ==, 2);
}

TEST(rows_beyond_the_limit_are_added_up, "/report-html/rows")
{
    g_autoptr(McReport) r = mc_report_new();
    McReportTable *t = mc_report_table(r, "caller");
    McReportRow row = { .known = ~0u };

    for (unsigned i = 0; i < MC_REPORT_ROWS + 3; i++) {
        row.value[MC_TOP_live] = i;
        row.value[MC_TOP_peak] = i;
        mc_report_row(t, &row);
    }
    g_assert_cmpuint(t->row->len, ==, MC_REPORT_ROWS);
    g_assert_cmpuint(t->more, ==, 3);
    g_assert_cmpint(t->rest.value[MC_TOP_live], ==, 3 * MC_REPORT_ROWS + 3);
    g_assert_true(t->rest.known >> MC_TOP_live & 1);
    g_assert_false(t->rest.known >> MC_TOP_peak & 1);
}

TEST(cards_beyond_the_limit_are_counted, "/report-html/cards")
{
    g_autoptr(McReport) r = mc_report_new();

    for (unsigned i = 0; i < MC_REPORT_CARDS + 7; i++) {
        add_card(r, "x");
    }
    g_assert_cmpuint(r->card->len, ==, MC_REPORT_CARDS);
    g_assert_cmpuint(r->errors, ==, MC_REPORT_CARDS + 7);
}

TEST(readers_without_scripts_get_the_first_stacks, "/report-html/no-scripts")
{
    g_autoptr(McReport) r = mc_report_new();
    g_autofree char *page = NULL;

    for (unsigned i = 0; i < MC_REPORT_PLAIN_ROWS + 9; i++) {
        export_stack(r->profile, "leaf+0x10 root+0x20[ext4]", 64, 1);
    }
    mc_heap_profile_note(r->profile, "missing: something");
    page = page_of(r);
    g_assert_cmpuint(count(page, "leaf+0x10\nroot+0x20 [ext4]"), ==,
                     MC_REPORT_PLAIN_ROWS);
    g_assert_nonnull(strstr(page, "The first 50 of 59 stacks"));
    g_assert_nonnull(strstr(page, "<li>missing: something</li>"));
}

/* (owned) The summary of a job. */
static char *summary_of(unsigned failing, unsigned hidden, const char *problem)
{
    g_autoptr(McReport) r = mc_report_new();

    r->job = mc_job_new(r);
    r->job->failing = failing;
    r->job->hidden = hidden;
    r->job->problem = mc_report_text(r, problem);
    return mc_job_summary(r);
}

TEST(only_a_clean_job_found_nothing, "/report-html/job-summary")
{
    for (unsigned i = 0; i < 8; i++) {
        g_autofree char *text = summary_of(i & 1, i & 2, i & 4 ? "hung" : "");

        g_assert_cmpint(!strcmp(text, "No errors were found."), ==, i == 0);
        g_assert_cmpint(strstr(text, "not complete: hung") != NULL, ==,
                        i >> 2 & 1);
        g_assert_cmpint(g_str_has_prefix(text, "1 finding"), ==, i & 1);
    }
}

TEST(a_job_is_text_and_has_limits, "/report-html/job")
{
    g_autoptr(McReport) r = mc_report_new();
    g_autofree char *long_text = g_strnfill(MC_JOB_LINES + 3, '\n');
    g_autofree char *page = NULL;

    r->job = mc_job_new(r);
    r->job->failing = 1;
    mc_job_text(r, &r->job->detail, long_text);
    for (unsigned i = 0; i < MC_JOB_CARDS + 7; i++) {
        McJobCard *c = mc_job_add(r->job);

        if (c) {
            c->name = c->kind = c->fold = mc_report_text(r, MARKUP);
            mc_job_text(r, &c->text, MARKUP);
        }
    }
    g_assert_cmpuint(r->job->detail.line->len, ==, MC_JOB_LINES);
    g_assert_cmpuint(r->job->detail.more, ==, 3);
    g_assert_cmpuint(r->job->more, ==, 7);
    page = page_of(r);
    g_assert_true(g_str_is_ascii(page));
    g_assert_cmpuint(count(page, "<img"), ==, 0);
    g_assert_null(strstr(page, "No errors were found"));
}
