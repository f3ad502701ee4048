/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Values of the options of ka fault. Called by the parser. No locks. */
#include "monitor-cmds/parse/parse.h"

static bool set_word(char **word, const char *value)
{
    g_free(*word);
    *word = g_strdup(value);
    return true;
}

bool mc_set_value(McArgs *args, const char *value, GError **errp)
{
    return set_word(&args->value, value);
}

bool mc_set_times(McArgs *args, const char *value, GError **errp)
{
    if (!mc_parse_decimal(value, "", &args->times, errp)) {
        return false;
    }
    if (args->times) {
        return true;
    }
    g_set_error(errp, MC_ERROR, MC_ERROR_SYNTAX,
                "0: use 1 or more, or leave the option out");
    return false;
}

bool mc_set_action(McArgs *args, const char *value, GError **errp)
{
    g_autofree char *quoted = NULL;

    if (kt_fault_action_parse(value, &args->action)) {
        return true;
    }
    quoted = mc_quote(value);
    g_set_error(errp, MC_ERROR, MC_ERROR_SYNTAX,
                "%s: what a rule can do is fail, log, stop", quoted);
    return false;
}
