/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parser: from a command line to McArgs, by the tables of options and
 * commands. The line is split at blanks; a word in quotes ('a b' or "a b") may
 * have blanks. Options may be anywhere. The first
 * other word is a command if a command has this name, else an address.
 *
 * Called by mc_run() on the thread of the command; no locks; writes only the
 * McArgs.
 */
#include "monitor-cmds/parse/parse.h"

#include <string.h>

#include "monitor-cmds/table/near.h"

#define BLANKS " \t\r\n"

void mc_args_init(McArgs *args, const McContext *ctx)
{
    *args = (McArgs) {
        .ctx = ctx,
        .limit = UINT64_MAX,
        .va = { 0, UINT64_MAX },
        .level = 7,
        .pcs = g_array_new(FALSE, FALSE, sizeof(McCode)),
        .words = g_ptr_array_new_with_free_func(g_free),
    };
    mc_filter_init(&args->filter);
}

void mc_args_deinit(McArgs *args)
{
    mc_filter_deinit(&args->filter);
    g_clear_pointer(&args->pcs, g_array_unref);
    g_clear_pointer(&args->words, g_ptr_array_unref);
    g_clear_pointer(&args->name, g_free);
    mc_free_options(args);
}

/* ---- words of commands --------------------------------------------------- */

static bool read_range(McArgs *args, const char *word, GError **errp)
{
    args->has_va = true;
    return mc_parse_range(args->ctx, word, &args->va, errp);
}

static bool read_address(McArgs *args, const char *word, GError **errp)
{
    args->has_va = true;
    if (!mc_parse_address(args->ctx, word, &args->va.lo, errp)) {
        return false;
    }
    args->va.hi = args->va.lo;
    return true;
}

static bool read_name(McArgs *args, const char *word, GError **errp)
{
    g_free(args->name);
    args->name = g_strdup(word);
    return true;
}

/* The command reads args->words itself. */
static bool read_word(McArgs *args, const char *word, GError **errp)
{
    return true;
}

static bool read_topic(McArgs *args, const char *word, GError **errp)
{
    g_autofree char *group = mc_command_group(word);
    g_autofree char *quoted = NULL;
    const char *near;

    for (unsigned i = 0; i < MC_CMD__COUNT; i++) {
        if (!strcmp(mc_commands[i].topic, word)) {
            args->topic = &mc_commands[i];
            return true;
        }
    }
    if (group) {
        args->group = g_ptr_array_index(args->words, 1);
        return true;
    }
    quoted = mc_quote(word);
    near = mc_command_near(word);
    return mc_fail_unknown(errp, "%s: no such command%s%s; ka help lists them",
                           quoted, near ? "; near: " : "", near ? near : "");
}

/* A kind of argument, by its name in the column args of commands.def. @pair:
 * two words, if several commands begin with the first. */
typedef struct ArgKind {
    const char *name;
    bool (*read)(McArgs *args, const char *word, GError **errp);
    bool pair;
} ArgKind;

/* clang-format off */
static const ArgKind arg_kinds[] = {
    { "range", read_range },
    { "address", read_address },
    { "code", mc_set_code },
    { "sizes", mc_set_size },
    { "name", read_name },
    { "topic", read_topic, .pair = true },
    { "word", read_word },
};
/* clang-format on */

static const ArgKind *find_kind(const char *name, size_t len)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(arg_kinds); i++) {
        if (strlen(arg_kinds[i].name) == len &&
            !strncmp(arg_kinds[i].name, name, len)) {
            return &arg_kinds[i];
        }
    }
    g_return_val_if_reached(NULL);
}

static bool fail_usage(const McArgs *args, const char *word, const char *what,
                       GError **errp)
{
    g_autofree char *usage = mc_command_usage(args->command);
    g_autofree char *quoted = word ? mc_quote(word) : g_strdup("");

    return mc_fail_syntax(errp, "%s%s%s; usage: %s", quoted, word ? ": " : "",
                          what, usage);
}

/* Return (owned) the words of an argument of @kind. */
static char *join_words(const McArgs *args, const ArgKind *kind, unsigned *i)
{
    const char *first = g_ptr_array_index(args->words, *i);
    g_autofree char *group = kind->pair ? mc_command_group(first) : NULL;

    *i += 1;
    if (!group || *i == args->words->len) {
        return g_strdup(first);
    }
    *i += 1;
    return g_strconcat(first, " ", g_ptr_array_index(args->words, *i - 1),
                       NULL);
}

/* Parse the arguments from word @i on, as the command's column args says. */
static bool read_words(McArgs *args, unsigned i, GError **errp)
{
    const char *p = args->command->args;

    while (*p) {
        size_t len = strcspn(p, " ?");
        const ArgKind *kind = find_kind(p, len);
        bool optional = p[len] == '?';
        g_autofree char *word = NULL;

        if (i == args->words->len) {
            return optional ||
                   fail_usage(args, NULL, "a word is missing", errp);
        }
        word = join_words(args, kind, &i);
        if (!kind->read(args, word, errp)) {
            return false;
        }
        p += len + optional;
        p += *p == ' ';
    }
    if (i < args->words->len) {
        return fail_usage(args, g_ptr_array_index(args->words, i),
                          "one word too many", errp);
    }
    return true;
}

/* ---- options ------------------------------------------------------------- */

static bool option_is(McOptionId id, const char *word)
{
    const McOption *o = &mc_options[id];

    return !strcmp(o->spelling, word) || (o->alt && !strcmp(o->alt, word));
}

McOptionId mc_option_find(const char *word)
{
    unsigned id = 0;

    while (id < MC_OPT__COUNT && !option_is(id, word)) {
        id++;
    }
    return id;
}

/* Parse several flags of one letter, such as "-sv". If one is unknown, none is
 * set. */
static bool parse_flags(McArgs *args, const char *word)
{
    uint64_t bits = 0;

    if (word[1] == '-' || !word[1]) {
        return false;
    }
    for (const char *p = word + 1; *p; p++) {
        char flag[3] = { '-', *p, 0 };
        McOptionId id = mc_option_find(flag);

        if (id == MC_OPT__COUNT || mc_options[id].arg) {
            return false;
        }
        bits |= 1ull << id;
    }
    args->given |= bits;
    return true;
}

/* Return the command whose name is in the words before @rest, or in @rest.
 * NULL: @group (owned by the caller) has the second words of the commands that
 * begin so. */
static const McCommand *command_of(const McArgs *args, char **rest,
                                   char **group)
{
    g_autoptr(GPtrArray) words = g_ptr_array_new();
    const McCommand *c = NULL;
    unsigned used;

    g_ptr_array_extend(words, args->words, NULL, NULL);
    for (; *rest; rest++) {
        if (**rest != '-') {
            g_ptr_array_add(words, *rest);
        }
    }
    if (words->len) {
        c = mc_command_find((char **)words->pdata, words->len, &used);
        *group = c ? NULL : mc_command_group(words->pdata[0]);
    }
    return c || *group ? c : &mc_commands[MC_CMD_BLOCKS];
}

/* Set the error that lists the options of @c, and names the one whose
 * misspelling @word may be. Return false. */
static bool fail_options(const McCommand *c, const char *word, GError **errp)
{
    g_autofree char *usage = mc_command_usage(c);
    g_autofree char *options = mc_command_options(c);
    g_autofree char *quoted = mc_quote(word);
    g_auto(McNear) near = { .word = word };

    bool misspelt = g_str_has_prefix(word, "--") &&
                    mc_option_find(word) == MC_OPT__COUNT;

    for (unsigned i = 0; misspelt && i < MC_OPT__COUNT; i++) {
        if (c->options & 1ull << i) {
            mc_near_try(&near, mc_options[i].spelling);
        }
    }
    return mc_fail_syntax(errp, "%s: not an option of \"%s\", which takes %s"
                          "%s%s", quoted, usage, options,
                          near.best ? "; near: " : "",
                          near.best ? near.best : "");
}

/* Report that @words[0] is no option of any command. */
static bool fail_option(const McArgs *args, char **words, GError **errp)
{
    g_autofree char *quoted = mc_quote(*words);
    g_autofree char *group = NULL;
    const McCommand *c = command_of(args, words, &group);

    for (unsigned i = 0; i < MC_OPT__COUNT; i++) {
        const McOption *o = &mc_options[i];

        if (o->arg && g_str_has_prefix(*words, o->spelling)) {
            return mc_fail_syntax(errp, "%s: no such option; write %s %s with "
                                  "a blank between", quoted, o->spelling,
                                  o->arg);
        }
    }
    return c ? fail_options(c, *words, errp) :
               mc_fail_syntax(errp, "%s: no such option; the command is not "
                              "complete: its first word is followed by one "
                              "of: %s", quoted, group);
}

/* Parse the option words[*i] and its value; set *i to the last word used. */
static bool parse_option(McArgs *args, char **words, unsigned *i,
                         GError **errp)
{
    McOptionId id = mc_option_find(words[*i]);
    const McOption *o;

    if (id == MC_OPT__COUNT) {
        return parse_flags(args, words[*i]) ||
               fail_option(args, words + *i, errp);
    }
    o = &mc_options[id];
    args->given |= 1ull << id;
    if (!mc_option_has_value(id)) {
        return true;                    /* it takes no value */
    }
    if (!words[*i + 1]) {
        return mc_fail_syntax(errp, "\"%s\": its value <%s> is missing",
                              o->spelling, o->arg);
    }
    *i += 1;
    if (!mc_set_option(args, id, words[*i], errp)) {
        g_prefix_error(errp, "%s ", o->spelling);
        return false;
    }
    return true;
}

/* Return false if the command does not have one of the options. */
static bool check_options(const McArgs *args, GError **errp)
{
    uint64_t wrong = args->given & ~args->command->options &
                     ~MC_OPTS_EVERYWHERE;

    return !wrong ||
           fail_options(args->command,
                        mc_options[__builtin_ctzll(wrong)].spelling, errp);
}

static bool check_filter(const McArgs *args, GError **errp)
{
    const KtBlockSpec *f = &args->filter.spec;

    if (f->has_time && f->since > f->until) {
        return mc_fail_syntax(errp, "--until %" G_GUINT64_FORMAT ": is before "
                              "--since %" G_GUINT64_FORMAT, f->until, f->since);
    }
    if (mc_given(args, MC_OPT_HISTORY) && args->va.lo != args->va.hi) {
        return mc_fail_syntax(errp, "\"%s\": needs a single address, not a "
                              "range", mc_options[MC_OPT_HISTORY].spelling);
    }
    return true;
}

/* ---- the line ------------------------------------------------------------ */

/* Return the end of the word at @from, NULL if its quote is not closed. */
static const char *end_of_word(const char *from)
{
    const char *end;

    if (*from != '\'' && *from != '"') {
        return from + strcspn(from, BLANKS);
    }
    for (end = strchr(from + 1, *from); end; end = strchr(end + 1, *from)) {
        if (!end[1] || strchr(BLANKS, end[1])) {
            return end + 1;
        }
    }
    return NULL;
}

/* Return (owned) the words of the line, NULL on error. */
static GPtrArray *split_line(const char *line, GError **errp)
{
    g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(g_free);
    const char *end;

    for (line += strspn(line, BLANKS); *line;
         line = end + strspn(end, BLANKS)) {
        bool quoted = *line == '\'' || *line == '"';

        end = end_of_word(line);
        if (!end) {
            mc_fail_syntax(errp, "the quote %c is not closed", *line);
            return NULL;
        }
        g_ptr_array_add(words, g_strndup(line + quoted,
                                         end - line - 2 * quoted));
    }
    return g_steal_pointer(&words);
}

char **mc_split_words(const char *line, GError **errp)
{
    GPtrArray *words = split_line(line, errp);

    if (!words) {
        return NULL;
    }
    g_ptr_array_add(words, NULL);
    return (char **)g_ptr_array_free(words, FALSE);
}

static bool split_words(McArgs *args, const char *line, GError **errp)
{
    g_autoptr(GPtrArray) split = split_line(line, errp);
    char **words;

    if (!split) {
        return false;
    }
    args->renamed = mc_rename_words(split);
    g_ptr_array_add(split, NULL);
    words = (char **)split->pdata;
    for (unsigned i = 0; words[i]; i++) {
        if (words[i][0] != '-') {
            g_ptr_array_add(args->words, g_strdup(words[i]));
        } else if (!parse_option(args, words, &i, errp)) {
            return false;
        }
    }
    return true;
}

/* Report a first word that is the first one of several commands, and no command
 * by itself. */
static bool fail_group(const McArgs *args, const char *group, GError **errp)
{
    const char *first = g_ptr_array_index(args->words, 0);
    g_autofree char *second = args->words->len < 2 ? NULL :
                              mc_quote(g_ptr_array_index(args->words, 1));

    return mc_fail_syntax(errp, "%s%s; ka %s is followed by one of: %s",
                          second ? second : "a word is missing",
                          second ? ": no such command" : "", first, group);
}

/* Report a first word that is neither command nor address, with a similar
 * command. */
static bool fail_first(const char *word, GError *err, GError **errp)
{
    const char *near = mc_command_near(word);

    if (!g_error_matches(err, MC_ERROR, MC_ERROR_UNKNOWN)) {
        near = NULL;
    }
    g_propagate_prefixed_error(errp, err, "%s%s%s", near ? "no command (" : "",
                               near ? near : "", near ? "?), " : "");
    return false;
}

bool mc_parse_words(McArgs *args, const char *line, GError **errp)
{
    if (line && strlen(line) > MC_LINE_MAX) {
        return mc_fail_syntax(errp, "the line is longer than %d bytes",
                              MC_LINE_MAX);
    }
    if (!split_words(args, line ? line : "", errp)) {
        return false;
    }
    args->filter.spec.has_time = mc_given(args, MC_OPT_SINCE) ||
                                 mc_given(args, MC_OPT_UNTIL);
    args->filter.has_kind = mc_given(args, MC_OPT_KIND);
    return true;
}

bool mc_parse(McArgs *args, const char *line, GError **errp)
{
    g_autofree char *group = NULL;
    const McCommand *c = NULL;
    unsigned used = 0;
    GError *err = NULL;

    args->command = &mc_commands[MC_CMD_RUNDOWN];
    if (!mc_parse_words(args, line, errp)) {
        return false;
    }
    if (args->words->len) {
        c = mc_command_find((char **)args->words->pdata, args->words->len,
                            &used);
        group = c ? NULL : mc_command_group(args->words->pdata[0]);
        if (group) {
            return fail_group(args, group, errp);
        }
        args->command = c ? c : &mc_commands[MC_CMD_BLOCKS];
    } else if (args->given & ~(1ull << MC_OPT_HELP)) {
        args->command = &mc_commands[MC_CMD_BLOCKS];    /* lists all blocks */
    }
    if (!check_options(args, errp) || !mc_check_form(args, errp) ||
        !mc_check_sort(args, errp)) {
        return false;
    }
    if (mc_given(args, MC_OPT_HELP)) {
        return true;
    }
    if (!read_words(args, used, &err)) {
        if (c || !args->words->len) {
            g_propagate_error(errp, err);
            return false;
        }
        return fail_first(g_ptr_array_index(args->words, 0), err, errp);
    }
    return check_filter(args, errp);
}
