/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Answers with lines of source: --vmlinux and --modules. Called by main() of
 * the program `ka`, on its only thread.
 *
 * The command runs with --pc, in a journal or in a VM, and its answer gets the
 * lines here: QEMU reads no debug information. `ka lines` does the same with
 * answers that others have asked for.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "monitor-cmds/program/source-lines.h"
#include "monitor-cmds/program/ka.h"
#include "monitor-cmds/table/tables.h"

#define JSON    mc_options[MC_OPT_JSON].spelling
#define LONG    mc_options[MC_OPT_LONG].spelling
#define PC      mc_options[MC_OPT_PC].spelling
#define SYMBOLS mc_options[MC_OPT_SYMBOLS].spelling

/* The most that answers of others may be. */
#define MOST_INPUT   ((size_t)1 << 30)

static bool has_word(char **word, const char *what)
{
    return g_strv_contains((const char *const *)word, what);
}

bool ka_has_stacks(char **word)
{
    return has_word(word, JSON) || has_word(word, LONG);
}

KaLines *ka_source_lines(const KaSource *s, const KaLinesFiles *files)
{
    g_autofree char *stat = ka_source_query_maybe(s, "stat -j");
    g_autofree char *base = ka_source_query_maybe(s, "base -v -j");

    return ka_lines_open(files, stat, base);
}

/* Return (owned) the words with what adds the addresses. */
static char *line_with_pc(char **word)
{
    g_autofree char *line = ka_join_words(word);

    return g_strconcat(line, " ", PC, has_word(word, JSON) ? " " : "",
                       has_word(word, JSON) ? SYMBOLS : "", NULL);
}

int ka_ask_with_lines(const KaExport *what, char **word)
{
    g_autofree char *line = line_with_pc(word), *answer = NULL, *text = NULL;
    g_autoptr(KaLines) lines = NULL;
    KaSource s = what->source;
    int rc, error;

    if (!ka_source_open(&s)) {
        return KA_NO_ANSWER;
    }
    rc = ka_source_query(&s, line, &answer);
    if (answer) {
        lines = ka_source_lines(&s, what->lines);
        text = ka_lines_add(lines, answer, has_word(word, PC));
        error = ka_put(text) ? 0 : errno;
        rc = ka_flush(error) ? rc : KA_NO_ANSWER;
    }
    ka_source_close(&s);
    return rc;
}

/* ---- answers of others --------------------------------------------------- */

/* Read standard input. Return (owned) NULL after an error, which is printed. */
static char *read_input(void)
{
    g_autoptr(GString) text = g_string_new(NULL);
    char buf[8192];
    size_t n;

    while ((n = fread(buf, 1, sizeof(buf), stdin)) && text->len <= MOST_INPUT) {
        g_string_append_len(text, buf, n);
    }
    if (ferror(stdin) || text->len > MOST_INPUT) {
        fprintf(stderr, "ka: standard input: %s\n", ferror(stdin) ?
                strerror(errno) : "it has more than 1 GiB");
        return NULL;
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

int ka_add_lines(const KaLinesFiles *files)
{
    g_autofree char *answers = read_input(), *text = NULL;
    g_autoptr(KaLines) lines = NULL;
    int error;

    if (!answers) {
        return KA_NO_ANSWER;
    }
    lines = ka_lines_open(files, answers, answers);
    text = ka_lines_add(lines, answers, false);
    error = ka_put(text) ? 0 : errno;
    return ka_flush(error) && lines ? KA_ANSWERED : KA_NO_ANSWER;
}
