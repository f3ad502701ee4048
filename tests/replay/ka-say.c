/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Run a script of events (tests/lib/events.h), then each line of standard
 * input as a command. Print the output of the commands.
 *
 * usage: ka-say SCRIPT <COMMANDS
 */
#include <stdio.h>

#include "tests/lib/events.h"

#define LINE_BYTES 8192

int main(int argc, char **argv)
{
    g_autofree char *script = NULL;
    g_autoptr(TestWorld) w = NULL;
    g_autoptr(GError) err = NULL;
    char line[LINE_BYTES];

    if (argc != 2 || !g_file_get_contents(argv[1], &script, NULL, &err)) {
        g_printerr("ka-say: %s\n", err ? err->message :
                   "usage: ka-say SCRIPT <COMMANDS");
        return 2;
    }
    w = test_world_new(script);
    while (fgets(line, sizeof(line), stdin)) {
        g_autofree char *printed = NULL;
        int rc;

        g_strchomp(line);
        printed = test_world_run(w, line, &rc);
        fputs(printed, stdout);
    }
    return 0;
}
