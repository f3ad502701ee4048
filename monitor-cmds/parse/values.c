/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Values of options: what options.def says of each is a row of a table here,
 * and one function parses them all. --format and --sort are checked once the
 * command is known.
 *
 * Called by the parser. No locks.
 */
#include "monitor-cmds/parse/parse.h"

#include <string.h>

#define DEPTH_MAX 16
#define COUNT_MAX 1024
/* The kinds that access checks find. */
#define FIRST_KIND KT_ERR_USE_AFTER_FREE
#define END_KIND   (KT_ERR_FREE_SLOT + 1)

typedef const char *NameFn(unsigned i);
typedef bool SetFn(McArgs *args, const char *value, GError **errp);

/**
 * struct Value - what the value of an option is
 * @at: offset of the member of McArgs
 * @before: RANGE: text of the error before @end; CHOICE: what the names are;
 *          NUMBER: the unit
 * @after: RANGE: text of the error after @end
 * @name, @first, @end: the names; RANGE: the numbers from @first to @end
 * @set: OTHER: parses it
 */
typedef struct Value {
    enum { FLAG, WORD, NUMBER, RANGE, CHOICE, OTHER } kind;
    uint16_t at;
    const char *before, *after;
    NameFn *name;
    unsigned first, end;
    SetFn *set;
} Value;

static SetFn set_limit, set_task, set_state, set_cpu, set_times, set_action,
             set_level, set_after, set_derefs, set_only, set_export_value;

/* ---- names --------------------------------------------------------------- */

static const char *const level_names[] = {
    "emerg", "alert", "crit", "err", "warn", "notice", "info", "debug",
};
#define LEVELS G_N_ELEMENTS(level_names)

static const char *level_name(unsigned i)
{
    return level_names[i];
}

static const char *state_name(unsigned i)
{
    return i ? "F" : "A";
}

static const char *top_name(unsigned i)
{
    return mc_top_columns[i].key;
}

static const char *format_name(unsigned i)
{
    return mc_export_formats[i].name;
}

/* ---- the table ----------------------------------------------------------- */

#define AT(member) .at = offsetof(McArgs, member)
#define WORD(member) { .kind = WORD, AT(member) }
#define NUMBER(member, unit) { .kind = NUMBER, AT(member), .before = unit }
#define RANGE(member, least, most, before_, after_) \
    { .kind = RANGE, AT(member), .first = least, .end = most, \
      .before = before_, .after = after_ }
#define CHOICE(member, what, name_, first_, end_) \
    { .kind = CHOICE, AT(member), .before = what, \
      .name = (NameFn *)name_, .first = first_, .end = end_ }
#define OTHER(...) OTHER_OF(__VA_ARGS__, NULL, 0, 0)
#define OTHER_OF(set_, name_, first_, end_, ...) \
    { .kind = OTHER, .set = set_, .name = (NameFn *)name_, .first = first_, \
      .end = end_ }
#define NONE { .kind = FLAG }

static const Value values[MC_OPT__COUNT] = {
#define MC_OPTION(id, spelling, alt, arg, set, help) [MC_OPT_##id] = set,
#include "monitor-cmds/table/options.def"
};

static bool find_name(NameFn *name, unsigned first, unsigned end,
                      const char *word, unsigned *out)
{
    for (*out = first; *out < end && strcmp(word, name(*out));) {
        *out += 1;
    }
    return *out < end;
}

/* Set the error that lists the names; return false. */
static bool fail_choice(const char *value, const char *what, NameFn *name,
                        unsigned first, unsigned end, GError **errp)
{
    g_autoptr(GString) list = g_string_new(NULL);
    g_autofree char *quoted = mc_quote(value);

    for (unsigned i = first; i < end; i++) {
        g_string_append_printf(list, "%s%s", list->len ? ", " : "", name(i));
    }
    return mc_fail_syntax(errp, "%s: the %s are %s", quoted, what, list->str);
}

static bool set_word(char **word, const char *value)
{
    g_free(*word);
    *word = g_strdup(value);
    return true;
}

static bool set_range(const Value *v, uint64_t *out, const char *value,
                      GError **errp)
{
    g_autofree char *quoted = mc_quote(value);

    if (!mc_parse_decimal(value, "", out, errp)) {
        return false;
    }
    return (*out >= v->first && *out <= v->end) ||
           mc_fail_syntax(errp, "%s: %s%u%s", quoted, v->before, v->end,
                          v->after);
}

bool mc_set_option(McArgs *args, McOptionId id, const char *value,
                   GError **errp)
{
    const Value *v = &values[id];
    void *to = (char *)args + v->at;

    switch (v->kind) {
    case WORD:
        return set_word(to, value);
    case NUMBER:
        return mc_parse_decimal(value, v->before, to, errp);
    case RANGE:
        return set_range(v, to, value, errp);
    case CHOICE:
        return find_name(v->name, v->first, v->end, value, to) ||
               fail_choice(value, v->before, v->name, v->first, v->end, errp);
    default:
        return v->set(args, value, errp);
    }
}

void mc_free_options(McArgs *args)
{
    for (unsigned i = 0; i < MC_OPT__COUNT; i++) {
        if (values[i].kind == WORD) {
            g_clear_pointer((char **)((char *)args + values[i].at), g_free);
        }
    }
    g_clear_pointer(&args->derefs, g_free);
    g_clear_pointer(&args->place, g_free);
}

bool mc_option_has_value(McOptionId id)
{
    return values[id].kind != FLAG;
}

const char *mc_option_name(McOptionId id, unsigned i)
{
    const Value *v = &values[id];

    return v->name && i < v->end - v->first ? v->name(v->first + i) : NULL;
}

/* ---- values that are not in the table ------------------------------------ */

static bool set_limit(McArgs *args, const char *value, GError **errp)
{
    if (!mc_parse_decimal(value, "", &args->around, errp)) {
        return false;
    }
    args->limit = args->around ? args->around : UINT64_MAX;
    return true;
}

static bool set_task(McArgs *args, const char *value, GError **errp)
{
    KtBlockSpec *f = &args->filter.spec;

    f->has_pid = g_ascii_isdigit(value[0]) &&
                 mc_parse_decimal(value, "", &f->pid, NULL);
    g_free((char *)f->task);
    f->task = f->has_pid ? NULL : g_strdup(value);
    return true;
}

static bool set_state(McArgs *args, const char *value, GError **errp)
{
    g_autofree char *quoted = mc_quote(value);
    unsigned i;

    args->filter.spec.state = value[0];
    return find_name(state_name, 0, 2, value, &i) ||
           mc_fail_syntax(errp, "%s: a state is A (allocated) or F (freed)",
                          quoted);
}

static bool set_level(McArgs *args, const char *value, GError **errp)
{
    g_autofree char *quoted = mc_quote(value);

    if (find_name(level_name, 0, LEVELS, value, &args->level)) {
        return true;
    }
    args->level = (unsigned)(*value - '0');
    return (args->level < LEVELS && !value[1]) ||
           mc_fail_syntax(errp, "%s: the levels are emerg, alert, crit, err, "
                          "warn, notice, info, debug, or 0 to 7", quoted);
}

static bool set_after(McArgs *args, const char *value, GError **errp)
{
    set_word(&args->place, value);
    return strchr(value, '.') ||
           mc_parse_decimal(value, "", &args->after, errp);
}

static bool set_derefs(McArgs *args, const char *value, GError **errp)
{
    g_autofree char *quoted = mc_quote(value);

    set_word(&args->derefs, value);
    if (!kt_derefs_check(value, errp)) {
        g_prefix_error(errp, "%s: ", quoted);
        return false;
    }
    return true;
}

/* Only ka struct takes all of them. */
static bool set_cpu(McArgs *args, const char *value, GError **errp)
{
    args->all_cpus = !strcmp(value, "all");
    return args->all_cpus || mc_parse_decimal(value, "", &args->cpu, errp);
}

static bool set_times(McArgs *args, const char *value, GError **errp)
{
    return mc_parse_decimal(value, "", &args->times, errp) &&
           (args->times || mc_fail_syntax(errp, "0: use 1 or more, or leave "
                                          "the option out"));
}

static bool set_action(McArgs *args, const char *value, GError **errp)
{
    g_autofree char *quoted = mc_quote(value);

    return kt_fault_action_parse(value, &args->action) ||
           mc_fail_syntax(errp, "%s: what a rule can do is fail, log, stop",
                          quoted);
}

static bool set_only(McArgs *args, const char *value, GError **errp)
{
    g_auto(GStrv) names = g_strsplit(value, ",", -1);

    args->kinds = 0;
    for (unsigned i = 0; i == 0 || names[i]; i++) {
        const char *name = names[i] ? names[i] : "";
        unsigned kind;

        if (!find_name((NameFn *)kt_error_name, FIRST_KIND, END_KIND, name,
                       &kind)) {
            return fail_choice(name, "kinds", (NameFn *)kt_error_name,
                               FIRST_KIND, END_KIND, errp);
        }
        args->kinds |= 1u << kind;
    }
    return true;
}

bool mc_set_size(McArgs *args, const char *value, GError **errp)
{
    KtBlockSpec *s = &args->filter.spec;
    McRange size = { 0 };

    s->has_size = mc_parse_sizes(value, &size, errp);
    s->size_lo = size.lo;
    s->size_hi = size.hi;
    return s->has_size;
}

bool mc_set_code(McArgs *args, const char *value, GError **errp)
{
    return mc_parse_code(args->ctx, value, args->pcs, errp);
}

static bool set_export_value(McArgs *args, const char *value, GError **errp)
{
    g_autofree char *quoted = mc_quote(value);

    if (!find_name(top_name, 0, MC_TOP__COUNT, value, &args->export_value)) {
        return fail_choice(value, "fields", top_name, 0, MC_TOP__COUNT, errp);
    }
    return mc_top_is_sum(args->export_value) ||
           mc_fail_syntax(errp, "%s: values of several stacks cannot be added "
                          "up; use a sum, such as live, blocks, allocs or "
                          "asked", quoted);
}

bool mc_parse_format(const char *word, McExportId *id, GError **errp)
{
    return find_name(format_name, 0, MC_EXPORT__COUNT, word, id) ||
           fail_choice(word, "formats", format_name, 0, MC_EXPORT__COUNT,
                       errp);
}

/* ---- forms --------------------------------------------------------------- */

static const char *const form_names[MC_FORM__COUNT] = {
    [MC_FORM_TEXT] = "text", [MC_FORM_KMEMLEAK] = "kmemleak",
    [MC_FORM_KASAN] = "kasan",
    [MC_FORM_FTRACE] = "ftrace",
    [MC_FORM_CHROME] = "chrome", [MC_FORM_PAHOLE] = "pahole",
    [MC_FORM_LINE] = "line",
};

/* The forms of a command: all but those of leaks are named here. */
static const struct {
    McCommandId command;
    unsigned forms;
} forms_of[] = {
    { MC_CMD_ERROR, 1u << MC_FORM_TEXT | 1u << MC_FORM_KASAN },
    { MC_CMD_CALLS,
      1u << MC_FORM_TEXT | 1u << MC_FORM_FTRACE | 1u << MC_FORM_CHROME },
    { MC_CMD_LOG, 1u << MC_FORM_TEXT | 1u << MC_FORM_FTRACE },
    { MC_CMD_STRUCT, 1u << MC_FORM_TEXT | 1u << MC_FORM_PAHOLE },
    { MC_CMD_CACHE, 1u << MC_FORM_TEXT | 1u << MC_FORM_LINE },
    { MC_CMD_SLAB, 1u << MC_FORM_TEXT | 1u << MC_FORM_LINE },
};
#define FORMS_OF_LEAKS (1u << MC_FORM_TEXT | 1u << MC_FORM_KMEMLEAK)

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
    return mc_fail_syntax(errp, "--format %s: a format is %s", quoted,
                          list->str);
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

bool mc_sorts_sums(const McCommand *c)
{
    return c == &mc_commands[MC_CMD_TOP] || c == &mc_commands[MC_CMD_DIFF];
}

bool mc_check_sort(McArgs *args, GError **errp)
{
    bool of_tasks = args->command == &mc_commands[MC_CMD_TASK];
    NameFn *name = of_tasks ? mc_task_sort_name : top_name;
    unsigned n = of_tasks ? MC_TASK_BY__COUNT : MC_TOP__COUNT, i = 0;

    if (!of_tasks && !mc_sorts_sums(args->command)) {
        return true;        /* the command knows its columns */
    }
    if (args->sort_word && !find_name(name, 0, n, args->sort_word, &i)) {
        fail_choice(args->sort_word, "fields", name, 0, n, errp);
        g_prefix_error(errp, "--sort ");
        return false;
    }
    args->task_sort = of_tasks ? i : 0;
    args->sort = of_tasks ? 0 : i;
    return true;
}
