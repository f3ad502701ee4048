/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka -q SOCKET log --follow [-o FILE] [OPTION...]: copy the guest's log from a
 * running VM until the VM ends.
 *
 * A monitor command has to end. So we ask again and again for the lines after
 * the last one that we have:
 *
 *     ka:   log --after 0      QEMU: lines 1 to 5000, "-- next 5000"
 *     ka:   log --after 5000   QEMU: lines 5001 to 5012, "-- next 5012"
 *     ka:   log --after 5012   QEMU: "-- next 5012"; then we wait a moment
 *
 * Each question is a connection of its own, so that other clients get the
 * socket in between. Called by main() on the program's only thread.
 */
#include <errno.h>
#include <glib.h>
#include <stdio.h>
#include <string.h>

#include "monitor-cmds/program/ka.h"

#define LINES   5000u       /* in one answer */
#define WAIT_US 200000

/* Find the last line of an answer, which says where to go on, and cut it off.
 * Return false if it does not. */
static bool cut_next(char *answer, uint64_t *next)
{
    static const char text[] = "-- next ";
    static const char json[] = "\"kind\":\"next\",\"value\":";
    char *line = answer + strlen(answer), *at;

    while (line > answer && line[-1] == '\n') {
        *--line = 0;
    }
    line = strrchr(answer, '\n');
    line = line ? line + 1 : answer;
    at = g_str_has_prefix(line, text) ? line + strlen(text) :
                                        strstr(line, json);
    if (!at) {
        return false;
    }
    at += *at == '"' ? strlen(json) : 0;
    *next = g_ascii_strtoull(at, NULL, 10);
    *line = 0;
    return true;
}

static int fail_write(const char *path)
{
    fprintf(stderr, "ka: %s: %s\n", path ? path : "standard output",
            g_strerror(errno));
    return KA_NO_ANSWER;
}

/* Ask once, and write the lines. @begun: there was an answer before; @after:
 * (in, out) Returns: an exit status. */
static int step(const char *socket, const char *line, bool begun, FILE *to,
                const char *path, uint64_t *after)
{
    g_autofree char *question = g_strdup_printf(
        "%s --after %" G_GUINT64_FORMAT " -n %u", line, *after, LINES);
    g_autofree char *answer = NULL;
    int rc = ka_query_vm(socket, question, begun, &answer);

    if (rc != KA_ANSWERED) {
        if (answer) {
            fputs(answer, stdout);
        }
        return rc;
    }
    if (!cut_next(answer, after)) {
        fprintf(stderr, "ka: %s: an answer without its end\n", socket);
        return KA_NO_ANSWER;
    }
    return fputs(answer, to) < 0 || fflush(to) ? fail_write(path) :
                                                 KA_ANSWERED;
}

/* The end of the VM is the end of the copy. While another client has the socket
 * for long, we try again. */
static int follow(const char *socket, const char *line, FILE *to,
                  const char *path)
{
    uint64_t after = 0, before;
    bool begun = false;
    int rc;

    do {
        before = after;
        rc = step(socket, line, begun, to, path, &after);
        if (rc == KA_BAD_LINE || (rc != KA_ANSWERED && !begun) ||
            ferror(to)) {
            return rc;
        }
        begun = true;
        if (after - before < LINES) {
            g_usleep(WAIT_US);
        }
    } while (ka_vm_is_there(socket));
    return KA_ANSWERED;
}

int ka_follow(const char *socket, const char *line, const char *path)
{
    FILE *to = path ? fopen(path, "we") : stdout;
    int rc;

    if (!to) {
        return fail_write(path);
    }
    rc = follow(socket, line, to, path);
    if (path && fclose(to) && rc == KA_ANSWERED) {
        return fail_write(path);
    }
    return rc;
}
