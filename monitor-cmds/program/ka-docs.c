/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Print the manual: "ka-docs man" or "ka-docs markdown". Only scripts/gen-docs
 * runs this program.
 */
#include <stdio.h>
#include <string.h>

#include "monitor-cmds/mc.h"

int main(int argc, char **argv)
{
    g_autofree char *text = NULL;

    if (argc == 2 && !strcmp(argv[1], "man")) {
        text = mc_render_man();
    } else if (argc == 2 && !strcmp(argv[1], "markdown")) {
        text = mc_render_markdown();
    } else {
        fprintf(stderr, "usage: ka-docs man|markdown\n");
        return 2;
    }
    return fputs(text, stdout) < 0 || fflush(stdout) ? 1 : 0;
}
