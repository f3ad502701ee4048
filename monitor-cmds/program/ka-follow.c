/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka -q SOCKET log|calls|trace --follow [-o FILE] [-p PROGRAM]... [OPTION...]:
 * copy the guest's log, the calls of watched functions, or the live trace from
 * a running VM until the VM ends, or a signal comes.
 *
 * A monitor command prints what there is and ends. So this program repeats the
 * command, and each time asks for the records that came since the last time:
 *
 *     ka:   log --after 0      QEMU: lines 1 to 5000, "-- next 5000"
 *     ka:   log --after 5000   QEMU: lines 5001 to 5012, "-- next 5012"
 *     ka:   log --after 5012   QEMU: "-- next 5012"; then ka waits 200 ms
 *
 * The place in the calls has a number for each vCPU, and says what happened:
 *
 *     ka:   calls --after 3.7  QEMU: calls,
 *                                    "-- next 9.7 more 0 ended 1 overwritten 0"
 *
 * The place in the trace is a number, as in the log, with the same last line.
 *
 * Each question is a connection of its own, so that other clients get the
 * socket in between. Called by main() on the program's only thread.
 */
#include <errno.h>
#include <glib.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "monitor-cmds/program/ka.h"

#define LINES   5000u       /* of the log or the trace, in one answer */
#define WAIT_US 200000

/*
 * How a command answers --after.
 * @limit: it is asked for LINES lines, not for all
 * @next: in JSON, before the place to go on
 * @figures: the last line says whether there is more, and what is missing
 * @missing: what is missing, and what would keep more
 * @rows: what is copied
 * @left: what goes on in the VM when the copy has ended
 */
static const struct {
    bool limit;
    const char *next;
    bool figures;
    const char *missing[2];
    const char *rows, *left;
} forms[] = {
    [KA_LOG] = {
        true, "\"kind\":\"next\",\"value\":", .rows = "lines",
        .left = "recording goes on",
    },
    [KA_CALLS] = {
        false, "\"next\":\"", true, { "calls", "calls=SIZE" }, "calls",
        "functions stay watched until ka calls del all",
    },
    [KA_TRACE] = {
        true, "\"next\":\"", true, { "events", "--ring" }, "events",
        "a trace goes on until ka trace off",
    },
};

/* One that gets the copy. @to: NULL: reads no more. @pid: of a program, else
 * 0 */
typedef struct Reader {
    const char *name;
    FILE *to;
    GPid pid;
} Reader;

/**
 * struct Copy - the copy
 * @readers: of Reader
 * @open: readers that still read
 * @failed: a file cannot be written
 * @place: (owned) where to go on
 * @more: there is more at once
 * @ended: sessions that ended
 * @overwritten: calls or events that are missing
 * @shown: number of log lines, calls or events that were printed
 * @lost: number of log lines that are missing
 */
typedef struct Copy {
    const KaFollow *what;
    const char *socket;
    GArray *readers;
    unsigned open;
    bool failed;
    char *place;
    bool more;
    uint64_t ended, overwritten;
    uint64_t shown, lost;
} Copy;

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    stopped = 1;
}

static int fail_write(const char *path)
{
    fprintf(stderr, "ka: %s: %s\n", path, g_strerror(errno));
    return KA_NO_ANSWER;
}

/* ---- answers ------------------------------------------------------------- */

/* Return the value behind @text or behind @json, NULL if there is neither. */
static const char *value_of(const char *line, const char *text,
                            const char *json)
{
    const char *at = strstr(line, *line == '{' ? json : text);

    return at ? at + strlen(*line == '{' ? json : text) : NULL;
}

static uint64_t number_of(const char *line, const char *text, const char *json)
{
    const char *at = value_of(line, text, json);

    return at ? g_ascii_strtoull(at, NULL, 10) : 0;
}

/* Store what the last line of an answer says, @at: from the place on. */
static void store_next(Copy *c, const char *line, const char *at)
{
    g_autofree char *before = c->place;

    c->place = g_strndup(at, strspn(at, "0123456789."));
    if (c->what->what == KA_TRACE) {
        c->shown += g_ascii_strtoull(c->place, NULL, 10) -
                    g_ascii_strtoull(before, NULL, 10) -
                    number_of(line, " overwritten ", "\"overwritten\":");
    }
    if (forms[c->what->what].figures) {
        c->more = number_of(line, " more ", "\"more\":");
        c->ended += number_of(line, " ended ", "\"ended\":");
        c->overwritten += number_of(line, " overwritten ", "\"overwritten\":");
    } else {
        c->more = g_ascii_strtoull(c->place, NULL, 10) -
                  g_ascii_strtoull(before, NULL, 10) >= LINES;
    }
}

/* Find the last line of an answer, which says where to go on, and cut it off.
 * Return false if it does not. */
static bool cut_next(Copy *c, char *answer)
{
    char *line = answer + strlen(answer);
    const char *at;

    while (line > answer && line[-1] == '\n') {
        *--line = 0;
    }
    line = strrchr(answer, '\n');
    line = line ? line + 1 : answer;
    at = value_of(line, "-- next ", forms[c->what->what].next);
    if (at) {
        store_next(c, line, at);
        *line = 0;
    }
    return at;
}

/* Is a line a row, and not a mark between rows, a comment of ftrace's form, or
 * the end of a row? */
static bool is_row(const Copy *c, const char *line)
{
    if (*line == '{') {
        return !strstr(line, "\"type\":\"mark\"");
    }
    return *line && *line != '#' && !g_str_has_prefix(line, "-- ") &&
           (*line != ' ' || c->what->what == KA_LOG ||
            strstr(c->what->line, "--format"));
}

/* Count the rows of an answer of which the last line was cut off. Entries of
 * the trace are counted by their numbers. */
static void count_rows(Copy *c, const char *answer)
{
    g_auto(GStrv) lines = c->what->what != KA_TRACE ?
                          g_strsplit(answer, "\n", -1) : NULL;

    for (unsigned i = 0; lines && lines[i]; i++) {
        c->shown += is_row(c, lines[i]);
        if (c->what->what == KA_LOG && !is_row(c, lines[i])) {
            c->lost += number_of(lines[i], "-- lost ",
                                 "\"kind\":\"lost\",\"value\":") +
                       number_of(lines[i], "-- evicted ",
                                 "\"kind\":\"evicted\",\"value\":");
        }
    }
}

static char *question_of(const Copy *c)
{
    return forms[c->what->what].limit ?
           g_strdup_printf("%s --after %s -n %u", c->what->line, c->place,
                           LINES) :
           g_strdup_printf("%s --after %s", c->what->line, c->place);
}

/* ---- readers ------------------------------------------------------------- */

static int close_reader(Copy *c, Reader *r)
{
    bool ok = r->to == stdout || !fclose(r->to);

    r->to = NULL;
    c->open--;
    return ok || r->pid ? KA_ANSWERED : fail_write(r->name);
}

/* A program that reads no more ends for itself only. */
static int write_to(Copy *c, Reader *r, const char *text)
{
    if (!r->to || (fputs(text, r->to) >= 0 && !fflush(r->to))) {
        return KA_ANSWERED;
    }
    if (r->pid && errno == EPIPE) {
        fprintf(stderr, "ka: program \"%s\" reads no more\n", r->name);
        return close_reader(c, r);
    }
    c->failed = true;
    return fail_write(r->name);
}

static int write_all(Copy *c, const char *text)
{
    int rc = KA_ANSWERED;

    for (unsigned i = 0; i < c->readers->len && rc == KA_ANSWERED; i++) {
        rc = write_to(c, &g_array_index(c->readers, Reader, i), text);
    }
    return rc;
}

static void add_reader(Copy *c, const char *name, FILE *to, GPid pid)
{
    const Reader r = { name, to, pid };

    g_array_append_val(c->readers, r);
    c->open++;
}

static bool open_file(Copy *c, const char *path)
{
    FILE *to = fopen(path, "we");

    if (to) {
        add_reader(c, path, to, 0);
    }
    return to;
}

/* In the new process. A signal of the terminal is for ka; a program ends when
 * its input does. */
static void set_signals_of_program(gpointer opaque)
{
    signal(SIGINT, SIG_IGN);
    signal(SIGPIPE, SIG_DFL);
}

static bool start_program(Copy *c, const char *line)
{
    const char *argv[] = { "/bin/sh", "-c", line, NULL };
    g_autoptr(GError) error = NULL;
    GPid pid;
    int fd;

    if (!g_spawn_async_with_pipes(NULL, (char **)argv, NULL,
                                  G_SPAWN_DO_NOT_REAP_CHILD,
                                  set_signals_of_program, NULL, &pid, &fd,
                                  NULL, NULL, &error)) {
        fprintf(stderr, "ka: program \"%s\": %s\n", line, error->message);
        return false;
    }
    add_reader(c, line, fdopen(fd, "w"), pid);
    return true;
}

static int open_all(Copy *c)
{
    const KaFollow *f = c->what;

    if (f->path && !open_file(c, f->path)) {
        return fail_write(f->path);
    }
    for (unsigned i = 0; i < f->programs->len; i++) {
        if (!start_program(c, f->programs->pdata[i])) {
            return KA_NO_ANSWER;
        }
    }
    if (!c->open) {
        add_reader(c, "stdout", stdout, 0);
    }
    return KA_ANSWERED;
}

/* Wait until a program has ended. Return false, and say it, if it failed. */
static bool wait_for(const Reader *r)
{
    int status = 0;

    while (waitpid(r->pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (status) {
        fprintf(stderr, "ka: program \"%s\" ended with %s %d\n", r->name,
                WIFSIGNALED(status) ? "signal" : "status",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
    g_spawn_close_pid(r->pid);
    return !status;
}

/* Close all before the first wait. Returns: @rc, or that a file could not be
 * written, or that a program failed. */
static int close_all(Copy *c, int rc)
{
    for (unsigned i = 0; i < c->readers->len; i++) {
        Reader *r = &g_array_index(c->readers, Reader, i);

        if (r->to && close_reader(c, r) != KA_ANSWERED) {
            rc = KA_NO_ANSWER;
        }
    }
    for (unsigned i = 0; i < c->readers->len; i++) {
        const Reader *r = &g_array_index(c->readers, Reader, i);

        if (r->pid && !wait_for(r) && rc == KA_ANSWERED) {
            rc = KA_NO_ANSWER;
        }
    }
    return rc;
}

/* ---- the copy ------------------------------------------------------------ */

/* Ask once, and write the answer. @begun: there was one before. Returns: an
 * exit status. */
static int step(Copy *c, bool begun)
{
    g_autofree char *question = question_of(c);
    g_autofree char *answer = NULL;
    int rc = ka_query_vm(c->socket, question, begun, &answer);

    c->more = false;
    if (rc != KA_ANSWERED) {
        if (answer) {
            fputs(answer, stdout);
        }
        return rc;
    }
    if (!cut_next(c, answer)) {
        fprintf(stderr, "ka: %s: an answer without its end\n", c->socket);
        return KA_BAD_LINE;
    }
    count_rows(c, answer);
    return write_all(c, answer);
}

/* At the end of a session, go on until its calls on all vCPUs are there. */
static bool goes_on(const Copy *c)
{
    return !stopped && c->open &&
           (c->more || ((!c->what->session || !c->ended) &&
                        ka_vm_is_there(c->socket)));
}

/* The end of the VM is the end of the copy. While another client has the socket
 * for long, we try again. */
static int follow(Copy *c)
{
    bool begun = false;

    do {
        int rc;

        if (begun && !c->more) {
            g_usleep(WAIT_US);
        }
        rc = step(c, begun);
        if (rc == KA_BAD_LINE || c->failed || (rc != KA_ANSWERED && !begun)) {
            return rc;
        }
        begun = true;
    } while (goes_on(c));
    return KA_ANSWERED;
}

/* The first signal ends the copy in order, a second one at once. */
static void watch_signals(void)
{
    const struct sigaction act = {
        .sa_handler = on_signal, .sa_flags = SA_RESTART | SA_RESETHAND,
    };

    signal(SIGPIPE, SIG_IGN);
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
}

/* Say what was copied, what is missing, and what goes on. */
static void print_end(const Copy *c)
{
    fprintf(stderr, "ka: follow ended: %" G_GUINT64_FORMAT " %s shown, %"
            G_GUINT64_FORMAT " lost; %s\n", c->shown,
            forms[c->what->what].rows, c->overwritten + c->lost,
            ka_vm_is_there(c->socket) ? forms[c->what->what].left :
            "the VM has ended");
}

int ka_follow(const char *socket, const KaFollow *f)
{
    g_autoptr(GArray) readers = g_array_new(false, false, sizeof(Reader));
    Copy c = { .what = f, .socket = socket, .readers = readers };
    bool copied;
    int rc;

    watch_signals();
    rc = open_all(&c);
    c.place = g_strdup("0");
    if (rc == KA_ANSWERED) {
        rc = follow(&c);
    }
    g_free(c.place);
    copied = rc == KA_ANSWERED;
    rc = close_all(&c, rc);
    if (c.overwritten) {
        fprintf(stderr, "ka: %" G_GUINT64_FORMAT " %s were replaced by newer "
                "ones before they were read; a larger %s keeps more\n",
                c.overwritten, forms[f->what].missing[0],
                forms[f->what].missing[1]);
    }
    if (copied) {
        print_end(&c);
    }
    return rc;
}
