/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Print an answer, on a terminal with colours: the state and the range of a
 * block, kinds of errors, what happened to a block, modules of frames.
 *
 * Called by main() of the program `ka` and the parts that print answers, on its
 * only thread. The monitor never prints colours, so lines are recognised by
 * their form. An answer has printable ASCII only; the only control bytes of the
 * output are those of this file.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "monitor-cmds/program/ka.h"

#define BOLD   "\033[1m"
#define DIM    "\033[2m"
#define RED    "\033[1;31m"
#define GREEN  "\033[32m"
#define YELLOW "\033[33m"
#define CYAN   "\033[36m"
#define PLAIN  "\033[0m"

/* Indentation of the long form, see output/row-long.c. */
#define DETAIL_INDENT 8
#define FRAME_INDENT  12

static bool colored;

bool ka_set_color(const char *when)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

    if (!when || !strcmp(when, "auto")) {
        colored = isatty(STDOUT_FILENO) && !(no_color && *no_color) &&
                  g_strcmp0(term, "dumb");
        return true;
    }
    colored = !strcmp(when, "always");
    return colored || !strcmp(when, "never");
}

static void put(GString *to, const char *color, const char *text, size_t len)
{
    g_string_append(to, color);
    g_string_append_len(to, text, len);
    g_string_append(to, PLAIN);
}

/* Append the kind of an error at the begin of a line, and the blanks behind.
 * Return their length, 0 if there is none. */
static size_t put_kind(GString *to, const char *line)
{
    size_t len = strcspn(line, " ");
    size_t all = len + strspn(line + len, " ");
    g_autofree char *word = g_strndup(line, len);
    KtErrorKind kind;

    if (!kt_error_parse(word, &kind)) {
        return 0;
    }
    put(to, RED, line, len);
    g_string_append_len(to, line + len, all - len);
    return all;
}

/* Return the length of the state and the range of a block, 0 if there is none
 * at the begin of @text. */
static size_t block_length(const char *text)
{
    size_t digits = *text && strchr("AFP-", *text) && text[1] == ' ' ?
                    strspn(text + 2, "0123456789abcdef") : 0;

    return digits == 16 ? 2 + strcspn(text + 2, " ") : 0;
}

static const char *state_color(char state)
{
    return state == 'A' ? GREEN : state == 'F' ? YELLOW :
           state == 'P' ? CYAN : BOLD;
}

/* A detail of the long form: "freed at 5us, ..." or "cache   kmalloc-64". */
static void put_detail(GString *to, const char *text)
{
    static const char *const deeds[] = {
        "allocated", "queued", "freed", "removed", "neighbour", NULL,
    };
    size_t len = strcspn(text, " ");
    g_autofree char *word = g_strndup(text, len);
    KtErrorKind kind;

    put(to, kt_error_parse(word, &kind) ? RED :
        g_strv_contains(deeds, word) ? BOLD : DIM, text, len);
    g_string_append(to, text + len);
}

/* A frame: "function+0x10[module]  file:line". */
static void put_frame(GString *to, const char *text)
{
    size_t end = strcspn(text, " ");
    size_t len = MIN(strcspn(text, "["), end);

    g_string_append_len(to, text, len);
    if (len < end) {
        put(to, CYAN, text + len, end - len);
    }
    if (text[end]) {
        put(to, DIM, text + end, strlen(text + end));
    }
}

/* Return the length of the margin "> +8" of the block that was asked for. */
static size_t margin_length(const char *line)
{
    const char *end = line[0] == '>' && line[1] == ' ' ? strchr(line + 2, ' ') :
                                                         line;

    return end ? (size_t)(end - line) : strlen(line);
}

/* Append a line, without its newline. */
static void put_line(GString *to, const char *line)
{
    size_t indent = margin_length(line);
    size_t len;

    line += put_kind(to, line);
    indent += strspn(line + indent, " ");
    len = block_length(line + indent);
    g_string_append_len(to, line, indent);
    line += indent;
    if (len) {
        put(to, state_color(*line), line, len);
        g_string_append(to, line + len);
    } else if (indent == DETAIL_INDENT) {
        put_detail(to, line);
    } else if (indent == FRAME_INDENT) {
        put_frame(to, line);
    } else {
        g_string_append(to, line);
    }
}

bool ka_put(const char *text)
{
    g_autoptr(GString) s = NULL;
    g_auto(GStrv) lines = NULL;

    if (!colored) {
        return fputs(text, stdout) >= 0;
    }
    s = g_string_new(NULL);
    lines = g_strsplit(text, "\n", -1);
    for (unsigned i = 0; lines[i]; i++) {
        g_string_append(s, i ? "\n" : "");
        if (*lines[i] == '{') {
            g_string_append(s, lines[i]);
        } else {
            put_line(s, lines[i]);
        }
    }
    return fputs(s->str, stdout) >= 0;
}
