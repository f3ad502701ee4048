/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka help, and the option -h of a command: pages that need neither a journal
 * nor a VM. Called by main() of the program `ka`, on its only thread.
 */
#include <errno.h>
#include <stdio.h>

#include "monitor-cmds/mc.h"
#include "monitor-cmds/program/ka.h"

bool ka_asks_for_help(char **word)
{
    const char *const *words = (const char *const *)word;

    return !g_strcmp0(words[0], "help") ||
           (words[0] && (g_strv_contains(words, "-h") ||
                         g_strv_contains(words, "--help")));
}

static bool print(void *opaque, const char *text)
{
    int *error = opaque;

    if (fputs(text, stdout) >= 0) {
        return true;
    }
    *error = errno;
    return false;
}

int ka_print_help(char **word)
{
    g_autofree char *line = ka_join_words(word);
    int error = 0;
    const McContext ctx = { .puts = print, .puts_opaque = &error };
    int rc = mc_run(&ctx, line);

    return !ka_flush(error) ? KA_NO_ANSWER :
           rc == 1 ? KA_BAD_LINE : KA_ANSWERED;
}
