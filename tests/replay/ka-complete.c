/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Print what the monitor completes: for each line of standard input a line of
 * words, with a blank between.
 *
 * usage: ka-complete <LINES
 */
#include <stdio.h>

#include "monitor-cmds/mc.h"

#define LINE_BYTES 8192

int main(void)
{
    char line[LINE_BYTES];

    while (fgets(line, sizeof(line), stdin)) {
        g_auto(GStrv) words = NULL;
        g_autofree char *joined = NULL;

        line[strcspn(line, "\n")] = 0;
        words = mc_complete(NULL, line);
        joined = g_strjoinv(" ", words);
        puts(joined);
    }
    return 0;
}
