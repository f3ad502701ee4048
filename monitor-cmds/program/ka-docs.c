/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Print what is made from the tables: the manual ("ka-docs man" or "ka-docs
 * markdown"), for scripts/gen-docs; and the completion of a shell ("ka-docs
 * bash FILE"), for the build: FILE, in which the tables replace the line
 * "# @tables@".
 */
#include <stdio.h>
#include <string.h>

#include "monitor-cmds/mc.h"

#define PLACE "# @tables@\n"

/* Return (owned) the completion, NULL after an error, which is printed. */
static char *render_completion(const char *shell, const char *path)
{
    g_autofree char *tables = mc_render_completion(shell);
    g_autofree char *file = NULL;
    g_autoptr(GError) err = NULL;
    const char *at;

    if (!tables || !g_file_get_contents(path, &file, NULL, &err)) {
        fprintf(stderr, "ka-docs: %s\n", err ? err->message :
                "the shells are bash, zsh and fish");
        return NULL;
    }
    at = strstr(file, PLACE);
    if (!at) {
        fprintf(stderr, "ka-docs: %s: no line " PLACE, path);
        return NULL;
    }
    return g_strdup_printf("%.*s%s%s", (int)(at - file), file, tables,
                           at + strlen(PLACE));
}

int main(int argc, char **argv)
{
    g_autofree char *text = NULL;

    if (argc == 2 && !strcmp(argv[1], "man")) {
        text = mc_render_man();
    } else if (argc == 2 && !strcmp(argv[1], "markdown")) {
        text = mc_render_markdown();
    } else if (argc == 3) {
        text = render_completion(argv[1], argv[2]);
    } else {
        fprintf(stderr, "usage: ka-docs man|markdown\n"
                        "       ka-docs bash|zsh|fish FILE\n");
    }
    return !text ? 2 : fputs(text, stdout) < 0 || fflush(stdout) ? 1 : 0;
}
