/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The program `ka`: run a command of the monitor on a journal file, or in a
 * running VM through its QMP socket. One thread.
 */
#include <glib.h>
#include <stdio.h>
#include <string.h>

#include "monitor-cmds/program/ka.h"
#include "monitor-cmds/mc.h"

static const char usage[] =
    "usage: ka -f FILE [--at US] [COMMAND...]   query a journal file\n"
    "       ka -q SOCKET [COMMAND...]           query a running VM by QMP\n"
    "       ka -q SOCKET log --follow [-o FILE] [OPTION...]\n"
    "                                           copy the guest's log, until\n"
    "                                           the VM ends\n"
    "       ka -f FILE --cells                  all events, for programs\n"
    "  -f FILE    a journal, made with the plugin's option journal=FILE\n"
    "  --at US    answer as of this guest microsecond\n"
    "  -q SOCKET  QMP's unix socket (qemu -qmp unix:SOCKET,server=on)\n"
    "  COMMAND    as in the monitor, without the leading ka; ka -f FILE help\n"
    "             lists the commands. Without a command: the run-down, and\n"
    "             what the file contains\n"
    "Exit status: 0 answered, 1 bad command line, 2 nothing was answered. If\n"
    "the file is damaged or was never closed, the readable part answers, and\n"
    "stderr says what is missing.\n";

typedef struct Options {
    const char *file;
    const char *socket;
    uint64_t until_us;
    bool cells;
    bool help;
} Options;

static int fail(const char *text, const char *word)
{
    fprintf(stderr, "ka: %s%s%s; ka --help explains\n", text,
            word ? ": " : "", word ? word : "");
    return KA_BAD_LINE;
}

static bool parse_us(const char *word, uint64_t *us)
{
    char *end;

    if (!g_ascii_isdigit(*word)) {
        return false;
    }
    *us = g_ascii_strtoull(word, &end, 10);
    return !*end || !strcmp(end, "us");
}

/* Return the variable for the option's value, NULL if @word has no value. */
static const char **value_of(Options *o, const char *word)
{
    return !strcmp(word, "-f") ? &o->file :
           !strcmp(word, "-q") ? &o->socket : NULL;
}

/* Parse the program's own options, which come first. Return the index of the
 * first word of the command, 0 after an error, which is printed. */
static int parse(Options *o, int argc, char **argv)
{
    int i = 1;

    for (; i < argc && argv[i][0] == '-'; i++) {
        const char **value = value_of(o, argv[i]);
        bool at = !strcmp(argv[i], "--at");

        if ((value || at) && i + 1 == argc) {
            fail("a value is missing after", argv[i]);
            return 0;
        }
        if (value) {
            *value = argv[++i];
        } else if (at && !parse_us(argv[++i], &o->until_us)) {
            fail("--at takes decimal microseconds, not", argv[i]);
            return 0;
        } else if (!strcmp(argv[i], "--cells")) {
            o->cells = true;
        } else if (!at && (o->file || o->socket) && !o->cells) {
            break;              /* ka -f FILE --cache task_struct */
        } else if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
            o->help = true;
        } else if (!at) {
            fail("no such option", argv[i]);
            return 0;
        }
    }
    return i;
}

/* Return (owned) a command line of the words; those with blanks are quoted. */
static char *join_words(char **words)
{
    GString *line = g_string_new(NULL);

    for (unsigned i = 0; words[i]; i++) {
        const char *quote = !strpbrk(words[i], " \t\r\n") ? "" :
                            strchr(words[i], '\'') ? "\"" : "'";

        g_string_append_printf(line, "%s%s%s%s", i ? " " : "", quote, words[i],
                               quote);
    }
    return g_string_free(line, FALSE);
}

/* Is it "log --follow"? If so, remove --follow and -o FILE from the words.
 * Returns: false if the command is another, or after an error: *@rc is set. */
static bool is_follow(char **word, const char **path, int *rc)
{
    char **to = word;
    bool follow = false;

    if (g_strcmp0(*word, "log")) {
        return false;
    }
    for (char **from = word; *from; from++) {
        if (!strcmp(*from, "--follow")) {
            follow = true;
        } else if (!strcmp(*from, "-o") && from[1]) {
            *path = *++from;
        } else {
            *to++ = *from;
        }
    }
    *to = NULL;
    if (*path && !follow) {
        *rc = fail("-o FILE needs log --follow", NULL);
    }
    return follow;
}

static int ask_vm(const Options *o, char **word)
{
    const char *path = NULL;
    int rc = KA_ANSWERED;
    bool follow = is_follow(word, &path, &rc);
    g_autofree char *line = join_words(word);

    if (rc != KA_ANSWERED) {
        return rc;
    }
    return follow ? ka_follow(o->socket, line, path) :
                    ka_ask_vm(o->socket, line);
}

int main(int argc, char **argv)
{
    Options o = { .until_us = UINT64_MAX };
    int first = parse(&o, argc, argv);
    g_autofree char *line = NULL;

    if (!first) {
        return KA_BAD_LINE;
    }
    if (o.help) {
        fputs(usage, stdout);
        return ka_flush(0) ? KA_ANSWERED : KA_NO_ANSWER;
    }
    if (!o.file == !o.socket) {
        return fail("ask either a file (-f) or a VM (-q)", NULL);
    }
    if (o.socket && (o.cells || o.until_us != UINT64_MAX)) {
        return fail("--at and --cells are for files", NULL);
    }
    if (o.cells && o.until_us != UINT64_MAX) {
        return fail("--cells are all events; --at is for answers", NULL);
    }
    if (o.cells && argv[first]) {
        return fail("--cells takes no command", argv[first]);
    }
    if (o.socket) {
        return ask_vm(&o, argv + first);
    }
    line = join_words(argv + first);
    return o.cells ? ka_dump_file(o.file) :
                     ka_ask_file(o.file, line, o.until_us);
}
