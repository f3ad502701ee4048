/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka report: ask a journal or a running VM for its sums and errors, and write
 * them as a page for browsers. Called by main() of the program `ka`, on its
 * only thread.
 *
 * With --findings FILE the page has what scripts/sweep found, which is more
 * than a journal or VM tells: the end of the run, and the scan for leaks. With
 * --base FILE the page compares with another journal, which is read whole.
 * The sums are those of `ka top` by stack, caller, cache, task, module and
 * size, the errors are those of `ka error`. The page is written here, and not
 * by QEMU: the user of a monitor names no path to QEMU.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "monitor-cmds/program/json-line.h"
#include "monitor-cmds/program/ka.h"
#include "monitor-cmds/report/report-data.h"

#define SUMS "top --by stack -s -j -n 0"

/* By what the page has tables. */
static const McBy tables[] = {
    MC_BY_CALLER, MC_BY_CACHE, MC_BY_TASK, MC_BY_MODULE, MC_BY_SIZE,
};

/* Return (owned) the answer to @line. Note on the page if there is none. */
static char *ask(const KaSource *s, McReport *r, const char *line)
{
    char *answer = ka_source_query_maybe(s, line);
    g_autofree char *refused = ka_answer_error(answer);

    if (refused) {
        mc_heap_profile_note(r->profile, "not on this page: ka %s: %s", line,
                             refused);
    } else if (!*answer) {
        mc_heap_profile_note(r->profile, "missing: ka %s was not answered",
                             line);
    }
    return answer;
}

static void read_tables(const KaSource *s, McReport *r)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(tables); i++) {
        const char *by = mc_by_name(tables[i]);
        g_autofree char *line = g_strdup_printf("top --by %s -s -j -n 0", by);
        g_autofree char *answer = ask(s, r, line);

        ka_report_read_table(r, by, answer);
    }
}

static void read_errors(const KaSource *s, McReport *r)
{
    g_autofree char *line = g_strdup_printf("error -s -v -j -n %u",
                                            MC_REPORT_CARDS);
    g_autofree char *answer = ask(s, r, line);

    ka_report_read_errors(r, answer);
}

static void read_map(const KaSource *s, McReport *r)
{
    g_autofree char *answer = ask(s, r, "map -s -j");

    ka_report_read_map(r, answer);
}

/* There is no answer if the kernel printed nothing. */
static void read_log(const KaSource *s, McReport *r)
{
    g_autofree char *line = g_strdup_printf("log -j -n %u", MC_REPORT_LINES);
    g_autofree char *answer = ka_source_query_maybe(s, line);

    ka_report_read_log(r, answer);
}

/* Ask what leaked. No scan of everything is made here: that is for the user to
 * say. There is no answer about modules if none was unloaded. */
static void read_leaks(const KaSource *s, McReport *r)
{
    g_autofree char *scan = g_strdup_printf("leak list -s -v -j -n %u",
                                            MC_REPORT_GROUPS / 2);
    g_autofree char *left = g_strdup_printf("leak module -s -v -j -n %u",
                                            MC_REPORT_GROUPS / 2);
    g_autofree char *scan_answer = ka_source_query_maybe(s, scan);
    g_autofree char *left_answer = ka_source_query_maybe(s, left);
    g_autofree char *refused = ka_answer_error(left_answer);

    if (refused) {
        mc_heap_profile_note(r->profile, "not on this page: ka %s: %s", left,
                             refused);
    }
    ka_report_read_scan(r, scan_answer, s->file);
    ka_report_read_left(r, left_answer);
}

/* Read the journal once more, for its timeline. */
static void read_time(const KaSource *s, McReport *r)
{
    g_autoptr(McHeapProfile) caches = mc_heap_profile_new();
    const McExport e = {
        .profile = caches, .journal = s->file, .until_us = s->until_us,
        .kernel = ka_source_kernel(s),
    };
    const bool is_base = r->joined && !r->base;
    g_autoptr(McTimeSteps) steps = is_base ? NULL : mc_time_steps_new();
    g_autoptr(GError) error = NULL;
    McTimeline *t;

    if (!s->replay ||
        ka_source_fill(s, "top --by cache -s -j -n 0", caches) != KA_ANSWERED) {
        return;
    }
    t = mc_timeline_new(&e, steps, &error);
    if (t) {
        mc_report_set_time(r, t, g_steal_pointer(&steps));
    } else {
        mc_heap_profile_note(r->profile, "not on this page: a timeline: %s",
                             error->message);
    }
}

/* Return (owned) a word for a shell; with quotes only if it needs them. */
static char *shell_word(const char *word)
{
    for (const char *c = word; *c; c++) {
        if (!g_ascii_isalnum(*c) && !strchr("._-+", *c)) {
            return g_shell_quote(word);
        }
    }
    return g_strdup(word);
}

/* Name the journal or socket, and the command line that goes on with it. The
 * page does not have the folder: it is sent to others. */
static void name_source(const KaSource *s, McReport *r)
{
    g_autofree char *name = g_path_get_basename(s->file ? s->file : s->socket);
    g_autofree char *quoted = shell_word(name);
    g_autoptr(GString) command = g_string_new("ka ");

    g_string_append_printf(command, "%s %s", s->file ? "-f" : "-q", quoted);
    if (s->file && s->until_us != UINT64_MAX) {
        g_string_append_printf(command, " --at %" PRIu64, s->until_us);
    }
    g_free(r->command);
    g_free(r->source);
    r->command = g_string_free(g_steal_pointer(&command), FALSE);
    r->source = g_steal_pointer(&name);
}

static int write_page(const KaExport *what, McReport *r)
{
    KaOutput out;

    if (!ka_output_begin(&out, what->path)) {
        return KA_NO_ANSWER;
    }
    mc_write_report(r, out.to);
    return ka_output_end(&out, true) ? KA_ANSWERED : KA_NO_ANSWER;
}

/* Find the journal of --base. Return false if there are other words: they are
 * help, or a bad line that the parser explains. */
static bool find_base(char **word, const char **base)
{
    *base = word[1] && !strcmp(word[1], "--base") ? word[2] : NULL;
    return *base ? !word[3] : !word[1];
}

static int read_report(const KaSource *s, McReport *r)
{
    int rc = ka_source_fill(s, SUMS, r->profile);

    if (rc == KA_ANSWERED) {
        name_source(s, r);
        read_tables(s, r);
        read_errors(s, r);
        read_time(s, r);
    }
    return rc;
}

/* Read the journal with which the page compares. */
static int read_base(McReport *r, const char *path)
{
    KaSource s = { .file = path, .until_us = UINT64_MAX };
    int rc;

    if (!ka_source_open(&s)) {
        return KA_NO_ANSWER;
    }
    rc = read_report(&s, mc_report_add_base(r));
    ka_source_close(&s);
    return rc;
}

/* Read the findings of the job, before the journal, which takes longer. */
static bool read_job(const KaExport *what, McReport *r)
{
    g_autoptr(GError) error = NULL;

    if (!what->findings || ka_report_read_job(r, what->findings, &error)) {
        return true;
    }
    fprintf(stderr, "ka: report: %s\n", error->message);
    return false;
}

int ka_report(const KaExport *what, char **word)
{
    g_autoptr(McReport) r = mc_report_new();
    KaSource s = what->source;
    const char *base;
    int rc = KA_ANSWERED;

    if (!find_base(word, &base)) {
        return KA_NOT_HERE;
    }
    if (!what->path && isatty(STDOUT_FILENO)) {
        fputs("ka: report: this is a page for browsers; write it with -o "
              "FILE.html\n", stderr);
        return KA_BAD_LINE;
    }
    if (!read_job(what, r)) {
        return KA_NO_ANSWER;
    }
    if (base) {
        rc = read_base(r, base);
    }
    if (rc != KA_ANSWERED || !ka_source_open(&s)) {
        return KA_NO_ANSWER;
    }
    rc = read_report(&s, r);
    if (rc == KA_ANSWERED) {
        read_leaks(&s, r);
        read_map(&s, r);
        read_log(&s, r);
        rc = write_page(what, r);
    }
    ka_source_close(&s);
    return rc;
}
