/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Splits a command line into words. No locks, any thread. */
#include <string.h>

#include "monitor-cmds/parse/parse.h"

#define BLANKS " \t\r\n"

/* Return the end of the word at @from, NULL if its quote is not closed. */
static const char *end_of_word(const char *from)
{
    const char *end;

    if (*from != '\'' && *from != '"') {
        return from + strcspn(from, BLANKS);
    }
    for (end = strchr(from + 1, *from); end; end = strchr(end + 1, *from)) {
        if (!end[1] || strchr(BLANKS, end[1])) {
            return end + 1;
        }
    }
    return NULL;
}

char **mc_split_words(const char *line, GError **errp)
{
    g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(g_free);
    const char *end;

    for (line += strspn(line, BLANKS); *line;
         line = end + strspn(end, BLANKS)) {
        bool quoted = *line == '\'' || *line == '"';

        end = end_of_word(line);
        if (!end) {
            g_set_error(errp, MC_ERROR, MC_ERROR_SYNTAX,
                        "the quote %c is not closed", *line);
            return NULL;
        }
        g_ptr_array_add(words, g_strndup(line + quoted,
                                         end - line - 2 * quoted));
    }
    g_ptr_array_add(words, NULL);
    return (char **)g_ptr_array_free(g_steal_pointer(&words), FALSE);
}
