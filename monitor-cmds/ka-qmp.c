/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka -q: a command of a running VM, by QMP's human-monitor-command on a unix
 * socket. QEMU sends one JSON object a line; of it only the text of a return
 * or an error is of interest.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <glib.h>

#include "ka.h"

#define GREETING_S  10u

/* ---- JSON ---------------------------------------------------------------- */

static const char *skip_blanks(const char *p)
{
    return p + strspn(p, " \t\r\n");
}

static int hex4(const char *p)
{
    int v = 0;

    for (unsigned i = 0; i < 4; i++) {
        int digit = g_ascii_xdigit_value(p[i]);

        if (digit < 0) {
            return -1;
        }
        v = v << 4 | digit;
    }
    return v;
}

/* The character behind a backslash; NULL for none. */
static const char *take_escape(const char *p, GString *out)
{
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    const char *known = *p ? strchr(from, *p) : NULL;
    int code;

    if (known) {
        g_string_append_c(out, to[known - from]);
        return p + 1;
    }
    if (*p != 'u') {
        if (*p) {
            g_string_append_c(out, *p);
        }
        return *p ? p + 1 : NULL;
    }
    code = hex4(p + 1);
    if (code <= 0) {
        return NULL;
    }
    g_string_append_unichar(out, code);
    return p + 5;
}

/* A string; returns what follows it, NULL if it is none. */
static const char *take_string(const char *p, GString *out)
{
    g_string_truncate(out, 0);
    if (*p++ != '"') {
        return NULL;
    }
    while (p && *p && *p != '"') {
        size_t plain = strcspn(p, "\\\"");

        g_string_append_len(out, p, plain);
        p += plain;
        if (*p == '\\') {
            p = take_escape(p + 1, out);
        }
    }
    return p && *p == '"' ? p + 1 : NULL;
}

/* What follows a value of any kind. */
static const char *skip_value(const char *p)
{
    g_autoptr(GString) word = g_string_new(NULL);
    unsigned depth = 0;

    do {
        if (*p == '"') {
            p = take_string(p, word);
            if (!p) {
                return NULL;
            }
        } else if (!*p) {
            return NULL;
        } else {
            depth += *p == '{' || *p == '[';
            depth -= depth && (*p == '}' || *p == ']');
            p++;
        }
    } while (depth || !strchr(",}", *p));
    return p;
}

/* Where the value of @key of the object at @p begins, NULL if it has none. */
static const char *find_key(const char *p, const char *key)
{
    g_autoptr(GString) word = g_string_new(NULL);

    p = skip_blanks(p);
    if (*p != '{') {
        return NULL;
    }
    do {
        p = take_string(skip_blanks(p + 1), word);
        p = p ? skip_blanks(p) : NULL;
        if (!p || *p != ':') {
            return NULL;
        }
        p = skip_blanks(p + 1);
        if (!strcmp(word->str, key)) {
            return p;
        }
        p = skip_value(p);
        p = p ? skip_blanks(p) : NULL;
    } while (p && *p == ',');
    return NULL;
}

static void put_json(GString *s, const char *text)
{
    g_string_append_c(s, '"');
    for (; *text; text++) {
        unsigned char c = *text;

        if (c == '"' || c == '\\') {
            g_string_append_c(s, '\\');
        }
        if (c < 0x20) {
            g_string_append_printf(s, "\\u%04x", c);
        } else {
            g_string_append_c(s, c);
        }
    }
    g_string_append_c(s, '"');
}

/* ---- QMP ----------------------------------------------------------------- */

typedef struct Peer {
    const char *path;
    int fd;
    FILE *in;               /* only read: a stream that is both may lose
                               what it has read when it writes */
    char *line;             /* the last one */
    size_t room;
} Peer;

static int fail(const Peer *p, const char *what)
{
    fprintf(stderr, "ka: %s: %s\n", p->path, what);
    return KA_NO_ANSWER;
}

/* QEMU greets a second client when the first one has gone. */
static void set_patience(int fd, time_t seconds)
{
    const struct timeval limit = { .tv_sec = seconds };

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

static int connect_to(const char *path)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    int fd;

    if (strlen(path) >= sizeof(addr.sun_path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    g_strlcpy(addr.sun_path, path, sizeof(addr.sun_path));
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -1;
    }
    set_patience(fd, GREETING_S);
    if (connect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
        close(fd);
        return -1;
    }
    return fd;
}

/* A line without an end is one that QEMU did not live to end. */
static bool read_line(Peer *p)
{
    ssize_t n = getline(&p->line, &p->room, p->in);

    return n > 0 && p->line[n - 1] == '\n';
}

/* The next line with @key; events and the like in between are none of ours.
 * An error ends it as well. */
static const char *next(Peer *p, const char *key)
{
    while (read_line(p)) {
        const char *at = find_key(p->line, key);

        if (at || find_key(p->line, "error")) {
            return at;
        }
    }
    free(p->line);
    p->line = NULL;
    p->room = 0;
    return NULL;
}

/* A QEMU that has gone is an answer, not a signal. */
static bool send_line(const Peer *p, const char *text)
{
    size_t left = strlen(text);

    while (left) {
        ssize_t n = send(p->fd, text, left, MSG_NOSIGNAL);

        if (n < 0) {
            return false;
        }
        text += n;
        left -= n;
    }
    return true;
}

static int tell_error(const Peer *p)
{
    g_autoptr(GString) text = g_string_new(NULL);
    const char *error = p->line ? find_key(p->line, "error") : NULL;
    const char *desc = error ? find_key(error, "desc") : NULL;

    if (desc && take_string(desc, text)) {
        return fail(p, text->str);
    }
    return fail(p, "QEMU closed the connection");
}

static const char *last_line(const GString *text)
{
    size_t at = text->len;

    while (at && strchr("\r\n", text->str[at - 1])) {
        at--;
    }
    while (at && text->str[at - 1] != '\n') {
        at--;
    }
    return text->str + at;
}

/* As mc_run() and the monitor tell a line that they cannot read, or a search
 * that was given up: in the last line, behind those of its progress. */
static bool is_refusal(const GString *text)
{
    const char *line = last_line(text);

    return g_str_has_prefix(line, "ka: ") ||
           g_str_has_prefix(line, "{\"fail\":") ||
           g_str_has_prefix(line, "unknown command");
}

static int print_answer(const Peer *p, const char *at)
{
    g_autoptr(GString) text = g_string_new(NULL);
    const char *from;

    if (!take_string(at, text)) {
        return fail(p, "an answer that is no text");
    }
    /* The monitor ends its lines for a terminal. */
    for (from = text->str; *from; from++) {
        if (*from != '\r') {
            putchar(*from);
        }
    }
    if (!ka_flush(0)) {
        return KA_NO_ANSWER;
    }
    return is_refusal(text) ? KA_BAD_LINE : KA_ANSWERED;
}

static int fail_to_greet(const Peer *p, int error)
{
    g_autofree char *busy = g_strdup_printf(
        "no greeting in %u s: another client has this socket, or QEMU is busy",
        GREETING_S);

    return fail(p, error == EAGAIN ? busy : "nobody there speaks QMP");
}

static int ask(Peer *p, const char *line)
{
    g_autofree char *command = g_strconcat("ka", *line ? " " : "", line, NULL);
    g_autoptr(GString) json = g_string_new(
        "{\"execute\":\"human-monitor-command\",\"arguments\":"
        "{\"command-line\":");
    const char *at;

    put_json(json, command);
    g_string_append(json, "}}\n");
    errno = 0;
    if (!next(p, "QMP")) {
        return fail_to_greet(p, errno);
    }
    set_patience(p->fd, 0);
    if (!send_line(p, "{\"execute\":\"qmp_capabilities\"}\n") ||
        !next(p, "return") || !send_line(p, json->str)) {
        return tell_error(p);
    }
    at = next(p, "return");
    return at ? print_answer(p, at) : tell_error(p);
}

int ka_ask_vm(const char *path, const char *line)
{
    Peer p = { .path = path, .fd = connect_to(path) };
    int rc;

    if (p.fd < 0) {
        return errno == EAGAIN ? fail_to_greet(&p, errno) :
                                 fail(&p, strerror(errno));
    }
    p.in = fdopen(p.fd, "r");
    rc = ask(&p, line);
    fclose(p.in);
    free(p.line);
    return rc;
}
