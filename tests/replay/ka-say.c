/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Run a script of events (tests/lib/events.h), or of the guest of leak scans
 * (leak-script.h), then each line of standard input as a command. Print the
 * output of the commands.
 *
 * usage: ka-say [--leaks] SCRIPT <COMMANDS
 */
#include <stdio.h>
#include <string.h>

#include "tests/lib/events.h"
#include "tests/replay/leak-script.h"

#define LINE_BYTES 8192

typedef char *RunFn(void *world, const char *line, int *rc);

static char *run_events(void *w, const char *line, int *rc)
{
    return test_world_run(w, line, rc);
}

static char *run_leaks(void *w, const char *line, int *rc)
{
    return leak_script_run(w, line, rc);
}

static void answer(RunFn *run, void *world)
{
    char line[LINE_BYTES];

    while (fgets(line, sizeof(line), stdin)) {
        g_autofree char *printed = NULL;
        int rc;

        g_strchomp(line);
        printed = run(world, line, &rc);
        fputs(printed, stdout);
    }
}

int main(int argc, char **argv)
{
    g_autofree char *script = NULL;
    g_autoptr(GError) err = NULL;
    const bool leaks = argc == 3 && !strcmp(argv[1], "--leaks");

    if (argc != 2 + leaks ||
        !g_file_get_contents(argv[1 + leaks], &script, NULL, &err)) {
        g_printerr("ka-say: %s\n", err ? err->message :
                   "usage: ka-say [--leaks] SCRIPT <COMMANDS");
        return 2;
    }
    if (leaks) {
        g_autoptr(LeakScript) w = leak_script_new();

        leak_script_events(w, script);
        answer(run_leaks, w);
    } else {
        g_autoptr(TestWorld) w = test_world_new(script);

        answer(run_events, w);
    }
    return 0;
}
