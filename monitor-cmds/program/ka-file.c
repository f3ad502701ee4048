/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka -f: read a journal file into a tracer, and run one command on it.
 *
 * Called by main() of the program `ka`, on its only thread. One line on stderr
 * says what is missing in the file.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "monitor-cmds/program/ka.h"
#include "monitor-cmds/mc.h"

#define PROGRESS_US G_USEC_PER_SEC

static bool print(void *opaque, const char *text)
{
    int *error = opaque;

    if (ka_put(text)) {
        return true;
    }
    *error = errno;
    return false;
}

bool ka_flush(int error)
{
    if (!error && !fflush(stdout)) {
        return true;
    }
    fprintf(stderr, "ka: stdout: %s\n", strerror(error ? error : errno));
    return false;
}

/* ---- progress ------------------------------------------------------------ */

typedef struct Progress {
    gint64 begun, printed;
    bool terminal;
} Progress;

static void on_progress(void *opaque, uint64_t done, uint64_t total)
{
    Progress *p = opaque;
    gint64 now;

    if (!p->terminal) {
        return;
    }
    now = g_get_monotonic_time();
    if (now - p->begun >= PROGRESS_US && now - p->printed >= PROGRESS_US / 4) {
        p->printed = now;
        fprintf(stderr, "\rka: reading %3" PRIu64 "%% ",
                total ? done * 100 / total : 100);
    }
}

static void end_progress(const Progress *p)
{
    if (p->printed) {
        fputs("\r\033[K", stderr);
    }
}

/* ---- what is missing ----------------------------------------------------- */

static void put_missing(GString *s, const KtReplayInfo *info)
{
    g_string_append_printf(s, "the last %" PRIu64 " bytes",
                           info->missing_bytes);
    if (info->missing_known) {
        g_string_append_printf(s, " and %s%" PRIu64 " events",
                               info->missing_least ? "at least " : "",
                               info->missing_events);
    } else {
        g_string_append(s, " and an unknown number of events");
    }
    g_string_append_printf(s, " are missing; answers are as of %" PRIu64 "us",
                           info->read_us);
}

/* Return (owned) what a full disk left out, NULL if nothing. */
static char *gap_text(const KtReplayInfo *info)
{
    return !info->gap_events ? NULL :
           g_strdup_printf("%" PRIu64 " events were not written because the "
                           "disk was full: allocations and frees of this time "
                           "are not known", info->gap_events);
}

/* Return (owned) what is missing at the end, NULL if nothing. */
static char *end_text(const KtReplayInfo *info)
{
    g_autoptr(GString) s = g_string_new(NULL);

    /* the file has everything up to the requested time, or to its end */
    if (info->reached || (info->ended && !info->damage)) {
        return NULL;
    }
    g_string_append(s, info->damage ? info->damage :
                    "it was not closed: the VM was killed, or still runs");
    g_string_append(s, ": ");
    put_missing(s, info);
    return g_string_free(g_steal_pointer(&s), FALSE);
}

char *ka_missing_text(const KtReplayInfo *info)
{
    g_autofree char *gap = gap_text(info), *end = end_text(info);

    return gap && end ? g_strconcat(gap, "; ", end, NULL) :
           gap ? g_steal_pointer(&gap) : g_steal_pointer(&end);
}

void ka_warn_missing(const char *path, const KtReplayInfo *info)
{
    g_autofree char *gap = gap_text(info), *end = end_text(info);

    if (gap) {
        fprintf(stderr, "ka: %s: %s\n", path, gap);
    }
    if (end) {
        fprintf(stderr, "ka: %s: %s\n", path, end);
    }
}

static void print_holding(const KtReplayInfo *info)
{
    g_autoptr(GDateTime) begun = g_date_time_new_from_unix_local(info->begun);
    g_autofree char *when = begun ? g_date_time_format(begun, "%F %T") : NULL;

    printf("journal: begun %s, %" PRIu64 " bytes, %" PRIu64 " events from "
           "%" PRIu64 "us to %" PRIu64 "us, %s\n", when ? when : "?",
           info->bytes, info->events, info->first_us, info->last_us,
           info->damage ? "damaged" : info->ended ? "closed in order" :
           "not closed");
}

/* ---- asking -------------------------------------------------------------- */

static bool is_events(const char *line)
{
    return !strcmp(line, "events") || g_str_has_prefix(line, "events ");
}

static McContext context_of(const KaSource *s, const KtStatus *status)
{
    return (McContext) {
        .tracer = kt_replay_tracer(s->replay),
        .kernel = kt_replay_kernel(s->replay),
        .why_no_kernel = status->why_no_kernel,
        .kernel_found = status->kernel_found,
        .puts = print,
        .n_hooks = status->n_hooks,
        .hook = status->hook,
        .hook_opaque = status->opaque,
        .journal = s->file,
        .until_us = s->until_us,
    };
}

static bool collect(void *opaque, const char *text)
{
    g_string_append(opaque, text);
    return true;
}

/* Run the command, and print the answer, or append it to @answer. */
static int run_line(const KaSource *s, const char *line, GString *answer)
{
    McContext ctx;
    KtStatus status;
    int rc, error = 0;

    kt_replay_status(s->replay, &status);
    ctx = context_of(s, &status);
    ctx.puts_opaque = &error;
    if (answer) {
        ctx.puts = collect;
        ctx.puts_opaque = answer;
    }
    rc = mc_run(&ctx, line);
    if (!*line) {
        print_holding(kt_replay_info(s->replay));
    }
    if (!ka_flush(error)) {
        return KA_NO_ANSWER;
    }
    return rc == 1 ? KA_BAD_LINE : KA_ANSWERED;
}

/* Let the journal's kernel use the types of a file. */
static bool use_types(KtReplay *r, const char *path)
{
    g_autoptr(GError) err = NULL;
    g_autoptr(GsTypesFile) types = path ? gs_types_file_open(path, &err) : NULL;
    bool ok = !path || (types && kt_replay_set_types(r, types, &err));

    if (!ok) {
        fprintf(stderr, "ka: --types %s: %s\n", path, err->message);
    }
    return ok;
}

KtReplay *ka_read_file(const KaSource *s, bool apply)
{
    g_autoptr(GError) err = NULL;
    KtReplay *r = kt_replay_open(s->file, &err);
    Progress p = {
        .begun = g_get_monotonic_time(), .terminal = isatty(STDERR_FILENO),
    };
    const KtReplayPlan plan = {
        .until_us = s->until_us,
        .since_us = UINT64_MAX,
        .apply = apply,
        .progress = on_progress,
        .opaque = &p,
    };

    if (!r) {
        fprintf(stderr, "ka: %s\n", err->message);
        return NULL;
    }
    kt_replay_run(r, &plan);
    end_progress(&p);
    ka_warn_missing(s->file, kt_replay_info(r));
    return r;
}

int ka_query_replay(const KaSource *s, const char *line, char **answer)
{
    GString *text = g_string_new(NULL);
    int rc = run_line(s, line, text);

    *answer = g_string_free(text, rc == KA_NO_ANSWER);
    return rc;
}

int ka_ask_file(const KaSource *s, const char *line, const char *types)
{
    g_autoptr(KtReplay) r = ka_read_file(s, !is_events(line));
    KaSource source = *s;

    if (!r || !use_types(r, types)) {
        return KA_NO_ANSWER;
    }
    source.replay = r;
    return run_line(&source, line, NULL);
}
