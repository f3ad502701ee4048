/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Values of options that only some commands have: --format, --level, --module,
 * --after, --cpu and those of ka calls and ka struct.
 *
 * Called by the parser. No locks.
 */
#include "monitor-cmds/parse/parse.h"

#include <string.h>

/* ---- forms --------------------------------------------------------------- */

static const char *const form_names[MC_FORM__COUNT] = {
    [MC_FORM_KA] = "ka", [MC_FORM_KMEMLEAK] = "kmemleak",
    [MC_FORM_KASAN] = "kasan",
    [MC_FORM_TEXT] = "text", [MC_FORM_FTRACE] = "ftrace",
    [MC_FORM_CHROME] = "chrome", [MC_FORM_PAHOLE] = "pahole",
    [MC_FORM_LINE] = "line",
};

#define FORMS_OF_CALLS \
    (1u << MC_FORM_TEXT | 1u << MC_FORM_FTRACE | 1u << MC_FORM_CHROME)

/* The forms of a command: all but those of leaks are named here. */
static const struct {
    McCommandId command;
    unsigned forms;
} forms_of[] = {
    { MC_CMD_ERROR, 1u << MC_FORM_KA | 1u << MC_FORM_KASAN },
    { MC_CMD_CALLS, FORMS_OF_CALLS },
    { MC_CMD_CALLS_LIST, FORMS_OF_CALLS },
    { MC_CMD_LOG, 1u << MC_FORM_TEXT | 1u << MC_FORM_FTRACE },
    { MC_CMD_STRUCT, 1u << MC_FORM_TEXT | 1u << MC_FORM_PAHOLE },
    { MC_CMD_CACHE, 1u << MC_FORM_KA | 1u << MC_FORM_LINE },
    { MC_CMD_SLAB, 1u << MC_FORM_KA | 1u << MC_FORM_LINE },
};
#define FORMS_OF_LEAKS (1u << MC_FORM_KA | 1u << MC_FORM_KMEMLEAK)

const char *mc_form_name(McForm form)
{
    return form_names[form];
}

static unsigned forms(const McCommand *c)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(forms_of); i++) {
        if (c == &mc_commands[forms_of[i].command]) {
            return forms_of[i].forms;
        }
    }
    return FORMS_OF_LEAKS;
}

bool mc_form_applies(const McCommand *c, McForm form)
{
    return !c || forms(c) & 1u << form;
}

bool mc_set_format(McArgs *args, const char *value, GError **errp)
{
    g_free(args->form_word);
    args->form_word = g_strdup(value);
    return true;
}

static bool fail_form(const McArgs *args, GError **errp)
{
    g_autofree char *quoted = mc_quote(args->form_word);
    g_autoptr(GString) list = g_string_new(NULL);

    for (unsigned i = 0; i < MC_FORM__COUNT; i++) {
        if (mc_form_applies(args->command, i)) {
            g_string_append_printf(list, "%s%s", list->len ? " or " : "",
                                   form_names[i]);
        }
    }
    g_set_error(errp, MC_ERROR, MC_ERROR_SYNTAX,
                "--format %s: a format is %s", quoted, list->str);
    return false;
}

bool mc_check_form(McArgs *args, GError **errp)
{
    unsigned i = __builtin_ctz(forms(args->command));

    if (args->form_word) {
        i = 0;
        while (i < MC_FORM__COUNT &&
               (!mc_form_applies(args->command, i) ||
                strcmp(form_names[i], args->form_word))) {
            i++;
        }
        if (i == MC_FORM__COUNT) {
            return fail_form(args, errp);
        }
    }
    args->form = i;
    args->kmemleak = i == MC_FORM_KMEMLEAK;
    return true;
}

/* ---- order --------------------------------------------------------------- */

static const char *const task_sorts[MC_TASK_BY__COUNT] = {
    [MC_TASK_BY_PID] = "pid", [MC_TASK_BY_TGID] = "tgid",
    [MC_TASK_BY_PPID] = "ppid", [MC_TASK_BY_UID] = "uid",
    [MC_TASK_BY_CPU] = "cpu", [MC_TASK_BY_LIVE] = "live",
    [MC_TASK_BY_BLOCKS] = "blocks", [MC_TASK_BY_ALLOCS] = "allocs",
    [MC_TASK_BY_BORN] = "born",
};

const char *mc_task_sort_name(unsigned i)
{
    return task_sorts[i];
}

static const char *top_sort_name(unsigned i)
{
    return mc_top_columns[i].key;
}

bool mc_sorts_sums(const McCommand *c)
{
    return c == &mc_commands[MC_CMD_TOP] || c == &mc_commands[MC_CMD_DIFF];
}

bool mc_set_sort(McArgs *args, const char *value, GError **errp)
{
    g_free(args->sort_word);
    args->sort_word = g_strdup(value);
    return true;
}

bool mc_check_sort(McArgs *args, GError **errp)
{
    bool of_tasks = args->command == &mc_commands[MC_CMD_TASK];
    const char *(*name)(unsigned i) = of_tasks ? mc_task_sort_name :
                                                 top_sort_name;
    unsigned n = of_tasks ? MC_TASK_BY__COUNT : MC_TOP__COUNT, i = 0;

    if (!of_tasks && !mc_sorts_sums(args->command)) {
        return true;        /* the command knows its columns */
    }
    while (args->sort_word && i < n && strcmp(args->sort_word, name(i))) {
        i++;
    }
    if (args->sort_word && i == n) {
        mc_fail_choice(args->sort_word, "fields", name, 0, n, errp);
        g_prefix_error(errp, "--sort ");
        return false;
    }
    args->task_sort = of_tasks ? i : 0;
    args->sort = of_tasks ? 0 : i;
    return true;
}

/* ---- the log ------------------------------------------------------------- */

static const char *const level_names[] = {
    "emerg", "alert", "crit", "err", "warn", "notice", "info", "debug",
};

const char *mc_level_name(unsigned level)
{
    return level_names[level];
}

bool mc_set_level(McArgs *args, const char *value, GError **errp)
{
    g_autofree char *quoted = NULL;

    for (unsigned i = 0; i < G_N_ELEMENTS(level_names); i++) {
        const char digit[2] = { '0' + i, 0 };

        if (!strcmp(value, level_names[i]) || !strcmp(value, digit)) {
            args->level = i;
            return true;
        }
    }
    quoted = mc_quote(value);
    g_set_error(errp, MC_ERROR, MC_ERROR_SYNTAX,
                "%s: the levels are emerg, alert, crit, err, warn, notice, "
                "info, debug, or 0 to 7", quoted);
    return false;
}

bool mc_set_module(McArgs *args, const char *value, GError **errp)
{
    g_free(args->module);
    args->module = g_strdup(value);
    return true;
}

bool mc_set_after(McArgs *args, const char *value, GError **errp)
{
    g_free(args->place);
    args->place = g_strdup(value);
    return strchr(value, '.') ||
           mc_parse_decimal(value, "", &args->after, errp);
}

/* ---- calls --------------------------------------------------------------- */

bool mc_set_condition(McArgs *args, const char *value, GError **errp)
{
    g_free(args->condition);
    args->condition = g_strdup(value);
    return true;
}

bool mc_set_derefs(McArgs *args, const char *value, GError **errp)
{
    g_autofree char *quoted = mc_quote(value);

    g_free(args->derefs);
    args->derefs = g_strdup(value);
    if (!kt_derefs_check(value, errp)) {
        g_prefix_error(errp, "%s: ", quoted);
        return false;
    }
    return true;
}

bool mc_set_function(McArgs *args, const char *value, GError **errp)
{
    g_free(args->function);
    args->function = g_strdup(value);
    return true;
}

bool mc_set_longer(McArgs *args, const char *value, GError **errp)
{
    return mc_parse_decimal(value, "us", &args->longer_us, errp);
}

/* ---- vCPUs, structs ------------------------------------------------------ */

/* Only ka struct takes all of them. */
bool mc_set_cpu(McArgs *args, const char *value, GError **errp)
{
    args->all_cpus = !strcmp(value, "all");
    return args->all_cpus || mc_parse_decimal(value, "", &args->cpu, errp);
}

#define DEPTH_MAX 16
#define COUNT_MAX 1024

static bool set_small(const char *value, uint64_t max, const char *what,
                      uint64_t *out, GError **errp)
{
    g_autofree char *quoted = mc_quote(value);

    if (!mc_parse_decimal(value, "", out, errp)) {
        return false;
    }
    if (!*out || *out > max) {
        g_set_error(errp, MC_ERROR, MC_ERROR_SYNTAX, "%s: a %s is 1 to %"
                    PRIu64, quoted, what, max);
        return false;
    }
    return true;
}

bool mc_set_depth(McArgs *args, const char *value, GError **errp)
{
    return set_small(value, DEPTH_MAX, "depth", &args->depth, errp);
}

bool mc_set_count(McArgs *args, const char *value, GError **errp)
{
    return set_small(value, COUNT_MAX, "count", &args->count, errp);
}

bool mc_set_node(McArgs *args, const char *value, GError **errp)
{
    return mc_parse_decimal(value, "", &args->node, errp);
}
