/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Record and replay: see record-replay.h.
 *
 * QEMU has no function for plugins that says so. The option is
 * "-icount shift=auto,rr=replay,rrfile=FILE"; several -icount are joined.
 */
#include "kalloc-tracer/plugin/record-replay.h"

#include <glib.h>
#include <stdbool.h>
#include <string.h>

/* (static, nullable) Return the mode that a value of -icount names. */
static const char *mode_of(const char *value)
{
    g_auto(GStrv) part = g_strsplit(value, ",", -1);
    const char *mode = NULL;

    for (unsigned i = 0; part[i]; i++) {
        if (!strcmp(part[i], "rr=record")) {
            mode = "record";
        } else if (!strcmp(part[i], "rr=replay")) {
            mode = "replay";
        }
    }
    return mode;
}

const char *kt_record_replay_in(const char *args, size_t len)
{
    const char *end = args + len, *mode = NULL;
    bool is_value = false;

    while (args < end && memchr(args, 0, end - args)) {
        const char *found = is_value ? mode_of(args) : NULL;

        mode = found ? found : mode;
        is_value = !strcmp(args, "-icount") || !strcmp(args, "--icount");
        args += strlen(args) + 1;
    }
    return mode;
}

const char *kt_record_replay(void)
{
    g_autofree char *args = NULL;
    gsize len;

    return g_file_get_contents("/proc/self/cmdline", &args, &len, NULL) ?
               kt_record_replay_in(args, len) : NULL;
}
