/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Values of the options of ka export. Called by the parser. No locks. */
#include <string.h>

#include "monitor-cmds/parse/parse.h"

static const char *frames_name(unsigned i)
{
    return mc_frames_name(i);
}

bool mc_set_frames(McArgs *args, const char *value, GError **errp)
{
    args->frames = 0;
    while (args->frames < MC_FRAMES__COUNT &&
           strcmp(value, mc_frames_name(args->frames))) {
        args->frames++;
    }
    return args->frames < MC_FRAMES__COUNT ||
           mc_fail_choice(value, "names of frames", frames_name, 0,
                          MC_FRAMES__COUNT, errp);
}

static const char *column_name(unsigned i)
{
    return mc_top_columns[i].key;
}

bool mc_set_export_value(McArgs *args, const char *value, GError **errp)
{
    g_autofree char *quoted = NULL;
    unsigned i = 0;

    while (i < MC_TOP__COUNT && strcmp(value, mc_top_columns[i].key)) {
        i++;
    }
    if (i == MC_TOP__COUNT) {
        return mc_fail_choice(value, "fields", column_name, 0, MC_TOP__COUNT,
                              errp);
    }
    if (!mc_top_is_sum(i)) {
        quoted = mc_quote(value);
        g_set_error(errp, MC_ERROR, MC_ERROR_SYNTAX,
                    "%s: values of several stacks cannot be added up; use a "
                    "sum, such as live, blocks, allocs or asked", quoted);
        return false;
    }
    args->export_value = i;
    return true;
}

static const char *format_name(unsigned i)
{
    return mc_export_formats[i].name;
}

bool mc_parse_format(const char *word, McExportId *id, GError **errp)
{
    *id = 0;
    while (*id < MC_EXPORT__COUNT && strcmp(word, format_name(*id))) {
        *id += 1;
    }
    return *id < MC_EXPORT__COUNT ||
           mc_fail_choice(word, "formats", format_name, 0, MC_EXPORT__COUNT,
                          errp);
}

bool mc_set_base(McArgs *args, const char *value, GError **errp)
{
    g_free(args->base);
    args->base = g_strdup(value);
    return true;
}
