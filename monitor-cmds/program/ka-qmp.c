/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka -q: run one command in a QEMU process, through QMP's
 * human-monitor-command on a unix socket. Called by main() of the program
 * `ka`, on its only thread.
 *
 * A talk with QEMU, one JSON object a line:
 *
 *   QEMU: {"QMP": {...}}                          greeting
 *   ka:   {"execute": "qmp_capabilities"}
 *   QEMU: {"return": {}}
 *   ka:   {"execute": "human-monitor-command", "arguments": {...}}
 *   QEMU: {"event": "RESUME", ...}                may come between any two
 *   QEMU: {"return": "text of the answer\r\n"}
 *
 * QEMU greets a second client only after the first one has disconnected.
 * Therefore the greeting has a time limit, which is short if one client has the
 * socket all the time (client_of()); clients that ask one short question
 * each wait for each other. An answer has no limit: `ka leak scan` can run for
 * minutes.
 */
#include <errno.h>
#include <gio/gio.h>
#include <gio/gunixsocketaddress.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "monitor-cmds/program/json-line.h"
#include "monitor-cmds/program/ka.h"
#include "monitor-cmds/program/peer.h"

/* ---- who has the socket -------------------------------------------------- */

/*
 * /proc/net/unix has a line for each end of a connection. The end that QEMU
 * accepted has the path of QEMU's socket, and an inode. A client that still
 * waits has a line with this path, too, but no inode:
 *
 *   Num       RefCount Protocol Flags    Type St Inode Path
 *   00000000: 00000002 00000000 00010000 0001 01  5001 /run/qmp.sock  (listens)
 *   00000000: 00000003 00000000 00000000 0001 03  5010 /run/qmp.sock  (serves)
 *   00000000: 00000002 00000000 00000000 0001 03     0 /run/qmp.sock  (waits)
 */
#define TABLE       "/proc/net/unix"
#define STATE       5u      /* fields of a line, from 0 on */
#define INODE       6u
#define CONNECTED   3u      /* a state */

/* QEMU's path may be another name of the same file, or a relative one. */
static bool same_socket(const char *a, const char *b)
{
    struct stat x, y;

    return !strcmp(a, b) ||
           (stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev &&
            x.st_ino == y.st_ino);
}

/* Return the value of the @n-th field of a line, and where the field ends. */
static uint64_t field(const char *line, unsigned n, unsigned base,
                      const char **end)
{
    for (; n; n--) {
        line += strspn(line, " ");
        line += strcspn(line, " ");
    }
    return g_ascii_strtoull(line, (char **)end, base);
}

/* Return the inode of a line's end if it is an accepted one of @path, else 0.
 * @line has no newline. */
static uint64_t accepted_on(const char *line, const char *path)
{
    const char *end;
    uint64_t state = field(line, STATE, 16, &end);
    uint64_t inode = field(line, INODE, 10, &end);

    return state == CONNECTED && inode && *end == ' ' &&
           same_socket(end + 1, path) ? inode : 0;
}

/* Return a number for the client that is served on the unix socket @path, 0
 * if there is none or it is not known. */
static uint64_t client_of(const char *path)
{
    FILE *table = fopen(TABLE, "re");
    uint64_t inode = 0;
    char *line = NULL;
    size_t room = 0;
    ssize_t len;

    while (table && !inode && (len = getline(&line, &room, table)) > 0) {
        line[len - (line[len - 1] == '\n')] = 0;
        inode = accepted_on(line, path);
    }
    free(line);
    if (table) {
        fclose(table);
    }
    return inode;
}

#define GREETING_S  10u
/* The same, while the client that was there before has the socket. */
#define HELD_S      1u
/* The longest line that is read. */
#define MAX_LINE    (1u << 30)

/**
 * struct KaPeer - a connection to QEMU
 * @holder: the client that had the socket before, see client_of(); 0: none
 * @taken: @holder still has it
 * @quiet: print no errors
 */
struct KaPeer {
    const char *path;
    uint64_t holder;
    bool taken;
    bool quiet;
    GSocket *socket;
    GSocketConnection *connection;
    GDataInputStream *in;
    JsonParser *parser;     /* owns the last message */
};

int ka_peer_fail(const KaPeer *p, const char *what)
{
    if (!p->quiet) {
        fprintf(stderr, "ka: %s: %s\n", p->path, what);
    }
    return KA_NO_ANSWER;
}

/* ---- the socket ---------------------------------------------------------- */

static bool is_late(const GError *error)
{
    return g_error_matches(error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT) ||
           g_error_matches(error, G_IO_ERROR, G_IO_ERROR_WOULD_BLOCK);
}

/* Call @step with a limit in seconds. Stop early if the client that was there
 * before is there still. */
static bool in_time(KaPeer *p,
                    bool (*step)(const KaPeer *, unsigned, GError **),
                    GError **error)
{
    if (p->holder) {
        if (step(p, HELD_S, error)) {
            return true;
        }
        p->taken = is_late(*error) && client_of(p->path) == p->holder;
        if (p->taken || !is_late(*error)) {
            return false;
        }
        p->holder = 0;
        g_clear_error(error);
    }
    return step(p, GREETING_S, error);
}

/* If the queue of waiting clients is full, connect() of a non-blocking unix
 * socket fails at once, so try again until the limit. */
static bool connect_step(const KaPeer *p, unsigned seconds, GError **error)
{
    g_autoptr(GSocketAddress) addr = g_unix_socket_address_new(p->path);
    const gint64 end = g_get_monotonic_time() + seconds * G_USEC_PER_SEC;

    g_socket_set_timeout(p->socket, seconds);
    while (!g_socket_connect(p->socket, addr, NULL, error)) {
        if (!g_error_matches(*error, G_IO_ERROR, G_IO_ERROR_WOULD_BLOCK) ||
            g_get_monotonic_time() >= end) {
            return false;
        }
        g_clear_error(error);
        g_usleep(G_USEC_PER_SEC / 20);
    }
    return true;
}

static bool open_peer(KaPeer *p, GError **error)
{
    if (strlen(p->path) >= sizeof(((struct sockaddr_un *)0)->sun_path)) {
        g_set_error_literal(error, G_IO_ERROR, G_IO_ERROR_FILENAME_TOO_LONG,
                            g_strerror(ENAMETOOLONG));
        return false;
    }
    p->socket = g_socket_new(G_SOCKET_FAMILY_UNIX, G_SOCKET_TYPE_STREAM,
                             G_SOCKET_PROTOCOL_DEFAULT, error);
    p->holder = client_of(p->path);
    if (!p->socket || !in_time(p, connect_step, error)) {
        return false;
    }
    p->connection =
        g_socket_connection_factory_create_connection(p->socket);
    p->in = g_data_input_stream_new(
        g_io_stream_get_input_stream(G_IO_STREAM(p->connection)));
    p->parser = json_parser_new();
    return true;
}

static void close_peer(KaPeer *p)
{
    g_clear_object(&p->parser);
    g_clear_object(&p->in);
    g_clear_object(&p->connection);
    g_clear_object(&p->socket);
}

/* Read until the buffer holds a whole line. Return false at the end of the
 * connection: QEMU ended before it had sent the whole line. */
static bool fill_line(GBufferedInputStream *in, GError **error)
{
    size_t searched = 0, n, room = g_buffered_input_stream_get_buffer_size(in);
    const char *bytes = g_buffered_input_stream_peek_buffer(in, &n);

    while (!memchr(bytes + searched, '\n', n - searched)) {
        searched = n;
        if (n >= MAX_LINE) {
            g_set_error(error, G_IO_ERROR, G_IO_ERROR_MESSAGE_TOO_LARGE,
                        "a line of more than %u MiB", MAX_LINE >> 20);
            return false;
        }
        if (n == room) {
            room *= 2;
            g_buffered_input_stream_set_buffer_size(in, room);
        }
        if (g_buffered_input_stream_fill(in, -1, NULL, error) <= 0) {
            return false;
        }
        bytes = g_buffered_input_stream_peek_buffer(in, &n);
    }
    return true;
}

static char *read_line(const KaPeer *p, size_t *len, GError **error)
{
    return fill_line(G_BUFFERED_INPUT_STREAM(p->in), error) ?
           g_data_input_stream_read_line(p->in, len, NULL, error) : NULL;
}

/* Return false if QEMU has gone; GSocket sends without SIGPIPE. */
static bool send_line(const KaPeer *p, const char *text)
{
    GOutputStream *out =
        g_io_stream_get_output_stream(G_IO_STREAM(p->connection));

    return g_output_stream_write_all(out, text, strlen(text), NULL, NULL, NULL);
}

/* ---- QMP's messages ------------------------------------------------------ */

/* Return the next message that has @key or is an error; skip events. Return
 * NULL if the connection ends first. */
static JsonObject *next(const KaPeer *p, const char *key, GError **error)
{
    size_t len;
    char *line;

    while ((line = read_line(p, &len, error)) != NULL) {
        JsonObject *message = ka_json_parse(p->parser, line, len);

        g_free(line);
        if (message && (json_object_has_member(message, key) ||
                        json_object_has_member(message, "error"))) {
            return message;
        }
    }
    return NULL;
}

static char *monitor_line(const char *command)
{
    g_autoptr(JsonBuilder) b = json_builder_new_immutable();
    g_autoptr(JsonNode) root = NULL;
    g_autofree char *json = NULL;

    json_builder_begin_object(b);
    json_builder_set_member_name(b, "execute");
    json_builder_add_string_value(b, "human-monitor-command");
    json_builder_set_member_name(b, "arguments");
    json_builder_begin_object(b);
    json_builder_set_member_name(b, "command-line");
    json_builder_add_string_value(b, command);
    json_builder_end_object(b);
    json_builder_end_object(b);
    root = json_builder_get_root(b);
    json = json_to_string(root, FALSE);
    return g_strconcat(json, "\n", NULL);
}

static char *command_line(const char *line)
{
    g_autofree char *command = g_strconcat("ka", *line ? " " : "", line, NULL);

    return monitor_line(command);
}

/* Print why there is no answer: @message is an error of QMP, or NULL. */
static int print_error(const KaPeer *p, JsonObject *message,
                       const GError *error)
{
    JsonNode *node = message ? json_object_get_member(message, "error") : NULL;
    const char *desc = node && JSON_NODE_HOLDS_OBJECT(node) ?
                       ka_json_text(json_node_get_object(node), "desc") : NULL;

    if (!desc && error &&
        g_error_matches(error, G_IO_ERROR, G_IO_ERROR_MESSAGE_TOO_LARGE)) {
        desc = error->message;
    }
    return ka_peer_fail(p, desc ? desc : "QEMU closed the connection");
}

/* ---- the answer ---------------------------------------------------------- */

static const char *last_line(const char *text)
{
    size_t at = strlen(text);

    while (at && strchr("\r\n", text[at - 1])) {
        at--;
    }
    while (at && text[at - 1] != '\n') {
        at--;
    }
    return text + at;
}

/* Return true if the monitor refused the command line, or mc_run() gave up.
 * The last line says so; lines of progress can come before it. */
static bool is_refusal(const char *text)
{
    const char *line = last_line(text);

    return g_str_has_prefix(line, "ka: ") ||
           g_str_has_prefix(line, "{\"fail\":") ||
           g_str_has_prefix(line, "unknown command");
}

/* Return true if the last line is the sum of ka slab check, and not zero. */
static bool has_findings(const char *text)
{
    static const char json[] = "\"type\":\"slab_check\",\"findings\":";
    const char *line = last_line(text), *at = strstr(line, json);

    return g_str_has_prefix(line, "! ") || (at && at[strlen(json)] != '0');
}

/* Copy the text of an answer. The monitor ends its lines for a terminal. */
static int take_answer(const KaPeer *p, const char *text, char **answer)
{
    GString *s;

    if (!text) {
        return ka_peer_fail(p, "an answer that is no text");
    }
    s = g_string_sized_new(strlen(text));
    for (const char *from = text; *from; from++) {
        if (*from != '\r') {
            g_string_append_c(s, *from);
        }
    }
    *answer = g_string_free(s, FALSE);
    return is_refusal(*answer) ? KA_BAD_LINE :
           has_findings(*answer) ? KA_FOUND : KA_ANSWERED;
}

static int fail_to_greet(const KaPeer *p, const GError *error)
{
    g_autofree char *busy = g_strdup_printf(
        "no greeting in %u s: another client has this socket, or QEMU is busy",
        GREETING_S);

    if (p->taken) {
        return ka_peer_fail(p, "another client has this socket, and QEMU "
                            "serves one at a time; end that client, or give "
                            "QEMU a second -qmp socket");
    }
    return ka_peer_fail(p, is_late(error) ? busy : "nobody there speaks QMP");
}

static bool greet_step(const KaPeer *p, unsigned seconds, GError **error)
{
    JsonObject *message;

    g_socket_set_timeout(p->socket, seconds);
    message = next(p, "QMP", error);
    return message && json_object_has_member(message, "QMP");
}

int ka_peer_ask(const KaPeer *p, const char *line, char **answer)
{
    g_autofree char *command = command_line(line);
    g_autoptr(GError) error = NULL;
    JsonObject *got = send_line(p, command) ? next(p, "return", &error) : NULL;

    return got && json_object_has_member(got, "return") ?
           take_answer(p, ka_json_text(got, "return"), answer) :
           print_error(p, got, error);
}

JsonObject *ka_peer_execute(const KaPeer *p, const char *command)
{
    g_autofree char *line = g_strconcat(command, "\n", NULL);
    g_autoptr(GError) error = NULL;
    JsonObject *got = send_line(p, line) ? next(p, "return", &error) : NULL;

    if (!got || !json_object_has_member(got, "return")) {
        print_error(p, got, error);
        return NULL;
    }
    return got;
}

int ka_peer_monitor(const KaPeer *p, const char *line)
{
    g_autofree char *command = monitor_line(line);
    JsonObject *got = ka_peer_execute(p, g_strchomp(command));
    const char *text = got ? ka_json_text(got, "return") : NULL;

    return !text ? KA_NO_ANSWER : *text ? ka_peer_fail(p, text) : KA_ANSWERED;
}

int ka_peer_wait(const KaPeer *p, const char *event)
{
    g_autoptr(GError) error = NULL;
    JsonObject *got;

    g_socket_set_timeout(p->socket, 1);
    do {
        got = next(p, "event", &error);
    } while (got && g_strcmp0(ka_json_text(got, "event"), event));
    g_socket_set_timeout(p->socket, 0);
    return got || is_late(error) ? KA_ANSWERED : print_error(p, NULL, error);
}

static int ask(KaPeer *p, const char *line, char **answer)
{
    g_autoptr(GError) error = NULL;
    JsonObject *got;

    if (!in_time(p, greet_step, &error)) {
        return fail_to_greet(p, error);
    }
    g_socket_set_timeout(p->socket, 0);
    if (!send_line(p, "{\"execute\":\"qmp_capabilities\"}\n")) {
        return print_error(p, NULL, NULL);
    }
    got = next(p, "return", &error);
    if (!got || !json_object_has_member(got, "return")) {
        return print_error(p, got, error);
    }
    return g_str_has_prefix(line, "goto ") ? ka_goto(p, line, answer) :
                                             ka_peer_ask(p, line, answer);
}

int ka_query_vm(const char *path, const char *line, bool quiet, char **answer)
{
    g_autoptr(GError) error = NULL;
    KaPeer p = { .path = path, .quiet = quiet };
    int rc;

    *answer = NULL;
    if (open_peer(&p, &error)) {
        rc = ask(&p, line, answer);
    } else if (is_late(error)) {
        rc = fail_to_greet(&p, error);
    } else {
        rc = ka_peer_fail(&p, error->message);
    }
    close_peer(&p);
    return rc;
}

int ka_ask_vm(const char *path, const char *line)
{
    g_autofree char *answer = NULL;
    int rc = ka_query_vm(path, line, false, &answer);

    if (answer) {
        int error = ka_put(answer) ? 0 : errno;

        rc = ka_flush(error) ? rc : KA_NO_ANSWER;
    }
    return rc;
}

bool ka_vm_is_there(const char *path)
{
    g_autoptr(GSocketAddress) addr = g_unix_socket_address_new(path);
    g_autoptr(GSocket) socket = g_socket_new(G_SOCKET_FAMILY_UNIX,
                                             G_SOCKET_TYPE_STREAM,
                                             G_SOCKET_PROTOCOL_DEFAULT, NULL);
    g_autoptr(GError) error = NULL;

    /* a full queue of waiting clients is no answer, but a sign of life */
    g_socket_set_blocking(socket, FALSE);
    return g_socket_connect(socket, addr, NULL, &error) ||
           g_error_matches(error, G_IO_ERROR, G_IO_ERROR_WOULD_BLOCK) ||
           g_error_matches(error, G_IO_ERROR, G_IO_ERROR_PENDING);
}
