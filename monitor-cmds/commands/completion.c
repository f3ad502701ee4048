/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tables as functions of a shell, for the completion of the program `ka`.
 *
 * Each function has one switch, with an arm for each key that sets (bash, zsh)
 * or prints (fish) the words that can follow, and fails for any other key:
 *
 *   ka_words     key "": commands; "leak": second words of its commands
 *   ka_options   key "leak scan": options of the command; "": of the listing;
 *                "-": options of the program, before the command
 *   ka_choices   key "COMMAND OPTION": what the option's value can be, and
 *                "@file" if it is a path. It fails if there is no value
 *
 * The functions that use these are in program/complete.bash and so on. Called
 * by ka-docs and tests. Reads only the tables; any thread.
 */
#include <string.h>

#include "monitor-cmds/commands/commands.h"
#include "monitor-cmds/parse/parse.h"

/* Longest text beside a word; a first part shorter than the least says too
 * little. */
#define TEXT_LEAST 15
#define TEXT_MOST  70

/**
 * struct Shell - the syntax of a shell
 * @function: around a function's name; @arm: around the key of an arm; @any:
 *            around the end of a key
 * @texts: words have a text beside them
 * @fish: items are printed
 */
typedef struct Shell {
    const char *name;
    const char *function[2], *function_end;
    const char *arm[2], *any[2];
    const char *items_begin, *items_end;
    bool texts;
    bool fish;
} Shell;

#define SH(name_, texts_) { \
    .name = name_, .texts = texts_, \
    .function = { "\n_", "() {\n    case $1 in\n" }, \
    .function_end = "    *) return 1 ;;\n    esac\n}\n", \
    .arm = { "    '", "')\n" }, .any = { "    *' ", "')\n" }, \
    .items_begin = "        items=(", .items_end = ") ;;\n", \
}

static const Shell shells[] = {
    SH("bash", false),
    SH("zsh", true),
    {
        .name = "fish", .texts = true, .fish = true,
        .function = { "\nfunction __", "\n    switch \"$argv[1]\"\n" },
        .function_end = "        case '*'\n            return 1\n"
                        "    end\n    return 0\nend\n",
        .arm = { "        case '", "'\n" },
        .any = { "        case '* ", "'\n" },
        .items_begin = "", .items_end = "",
    },
};

typedef struct Script {
    const Shell *shell;
    GString *s;
} Script;

/* ---- items --------------------------------------------------------------- */

/* Is this the end of the first part of a text? */
static bool is_end(const char *at)
{
    return !*at || !strncmp(at, " (", 2) ||
           (strchr(":;.", *at) && (!at[1] || at[1] == ' '));
}

/* Return the length of the first part of a text. */
static size_t first_part(const char *text)
{
    size_t len = 0;

    while (text[len] && (len < TEXT_LEAST || !is_end(text + len))) {
        len++;
    }
    if (len <= TEXT_MOST) {
        return len;
    }
    for (len = TEXT_MOST; len && text[len] != ' '; len--) {
    }
    return len;
}

/* Append the inside of a string in single quotes. */
static void put_quoted(const Script *to, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (to->shell->fish && (text[i] == '\'' || text[i] == '\\')) {
            g_string_append_c(to->s, '\\');
        } else if (text[i] == '\'') {
            g_string_append(to->s, "'\\'");
        }
        g_string_append_c(to->s, text[i]);
    }
}

/* Append a word with its text; @text: (nullable). */
static void put_item(const Script *to, const char *word, const char *text)
{
    text = text && to->shell->texts ? text : "";
    g_string_append(to->s, to->shell->fish ? "            printf '%s\\t%s\\n' '"
                                           : "\n            '");
    put_quoted(to, word, strlen(word));
    if (to->shell->fish) {
        g_string_append(to->s, "' '");
    } else if (*text) {
        g_string_append_c(to->s, ':');
    }
    put_quoted(to, text, first_part(text));
    g_string_append(to->s, to->shell->fish ? "'\n" : "'");
}

static void put_around(const Script *to, const char *const pair[2],
                       const char *word)
{
    g_string_append_printf(to->s, "%s%s%s", pair[0], word, pair[1]);
}

static void begin_arm(const Script *to, const char *const pair[2],
                      const char *key)
{
    put_around(to, pair, key);
    g_string_append(to->s, to->shell->items_begin);
}

static void end_arm(const Script *to)
{
    g_string_append(to->s, to->shell->items_end);
}

/* ---- words --------------------------------------------------------------- */

/* Put the words that can follow @n words. */
static void put_words(const Script *to, char *const *words, unsigned n)
{
    g_autofree char *before = NULL;

    begin_arm(to, to->shell->arm, n ? words[0] : "");
    for (unsigned i = 0; i < MC_CMD__COUNT; i++) {
        const McCommand *c = &mc_commands[i];
        g_autofree char *word = NULL;
        const char *rest;

        if (!mc_command_begins(c, words, n, &rest) || !*rest) {
            continue;
        }
        word = g_strndup(rest, strcspn(rest, " "));
        if (g_strcmp0(word, before)) {
            put_item(to, word, c->help);
        }
        g_free(before);
        before = g_steal_pointer(&word);
    }
    end_arm(to);
}

/* Put the formats of ka export, which follow the command. */
static void put_formats(const Script *to)
{
    begin_arm(to, to->shell->arm, mc_commands[MC_CMD_EXPORT].word);
    for (unsigned i = 0; i < MC_EXPORT__COUNT; i++) {
        put_item(to, mc_export_formats[i].name, mc_export_formats[i].help);
    }
    end_arm(to);
}

static void put_all_words(const Script *to)
{
    g_autofree char *before = NULL;

    put_around(to, to->shell->function, "ka_words");
    put_words(to, NULL, 0);
    for (unsigned i = 0; i < MC_CMD__COUNT; i++) {
        const char *word = mc_commands[i].word;
        g_autofree char *first = NULL;

        if (!word || !strchr(word, ' ')) {
            continue;
        }
        first = g_strndup(word, strcspn(word, " "));
        if (g_strcmp0(first, before)) {
            put_words(to, &first, 1);
        }
        g_free(before);
        before = g_steal_pointer(&first);
    }
    put_formats(to);
    g_string_append(to->s, to->shell->function_end);
}

/* ---- options ------------------------------------------------------------- */

/* Is the row @commands of program.def for this command? */
static bool has_word(const char *commands, const McCommand *c)
{
    g_autofree char *word = c && c->word ? g_strconcat(c->word, " ", NULL) :
                                           NULL;

    return word && commands && strstr(commands, word);
}

/* Put the program's own options: those of @c, or, if it is NULL, those before
 * the command. */
static void put_program_options(const Script *to, const McCommand *c)
{
#define MC_PROGRAM_OPTION(id, spelling, arg, commands, help) \
    if (c ? has_word(commands, c) : !(commands)) { \
        put_item(to, spelling, help); \
    }
#include "monitor-cmds/table/program.def"
}

static void put_options(const Script *to, const McCommand *c)
{
    begin_arm(to, to->shell->arm, c->word ? c->word : "");
    for (unsigned i = 0; i < MC_OPT__COUNT; i++) {
        const McOption *o = &mc_options[i];

        if (c->options & (1ull << i)) {
            put_item(to, o->spelling, o->help);
            if (o->alt) {
                put_item(to, o->alt, o->help);
            }
        }
    }
    put_program_options(to, c);
    end_arm(to);
}

static void put_all_options(const Script *to)
{
    put_around(to, to->shell->function, "ka_options");
    begin_arm(to, to->shell->arm, "-");
    put_program_options(to, NULL);
    end_arm(to);
    for (unsigned i = 0; i < MC_CMD__COUNT; i++) {
        if (i != MC_CMD_RUNDOWN) {
            put_options(to, &mc_commands[i]);
        }
    }
    g_string_append(to->s, to->shell->function_end);
}

/* ---- values -------------------------------------------------------------- */

/* Put the value of an option that has no choices: a path, or anything. */
static void put_path(const Script *to, const char *spelling, const char *arg)
{
    begin_arm(to, to->shell->any, spelling);
    if (!strcmp(arg, "FILE") || !strcmp(arg, "SOCKET")) {
        put_item(to, "@file", NULL);
    } else if (!strcmp(arg, "WHEN")) {
        put_item(to, "auto", NULL);
        put_item(to, "always", NULL);
        put_item(to, "never", NULL);
    }
    end_arm(to);
}

static void put_names(const Script *to, const McCommand *c, McOptionId id)
{
    const char *name;

    for (unsigned i = 0; (name = mc_option_choice(c, id, i)); i++) {
        put_item(to, name, NULL);
    }
    end_arm(to);
}

/* Put the choices of an option that differ from command to command. */
static void put_by_command(const Script *to, McOptionId id)
{
    for (unsigned i = 0; i < MC_CMD__COUNT; i++) {
        const McCommand *c = &mc_commands[i];
        g_autofree char *key = g_strconcat(c->word ? c->word : "", " ",
                                           mc_options[id].spelling, NULL);

        if (c->options & (1ull << id)) {
            begin_arm(to, to->shell->arm, key);
            put_names(to, c, id);
        }
    }
}

static void put_program_values(const Script *to)
{
#define MC_PROGRAM_OPTION(id, spelling, arg, commands, help) \
    if ((const char *)(arg)) { \
        put_path(to, spelling, arg); \
    }
#include "monitor-cmds/table/program.def"
}

static void put_all_values(const Script *to)
{
    put_around(to, to->shell->function, "ka_choices");
    put_by_command(to, MC_OPT_FORMAT);
    put_by_command(to, MC_OPT_SORT);
    put_by_command(to, MC_OPT_BY);
    for (unsigned i = 0; i < MC_OPT__COUNT; i++) {
        const McOption *o = &mc_options[i];

        if (o->arg && mc_option_choice(NULL, i, 0)) {
            begin_arm(to, to->shell->any, o->spelling);
            put_names(to, &mc_commands[MC_CMD_BLOCKS], i);
        } else if (o->arg) {
            put_path(to, o->spelling, o->arg);
        }
    }
    put_program_values(to);
    g_string_append(to->s, to->shell->function_end);
}

char *mc_render_completion(const char *shell)
{
    Script to = { 0 };

    for (unsigned i = 0; i < G_N_ELEMENTS(shells); i++) {
        if (!strcmp(shells[i].name, shell)) {
            to.shell = &shells[i];
        }
    }
    if (!to.shell) {
        return NULL;
    }
    to.s = g_string_new("# Made from the tables in monitor-cmds/table.\n");
    put_all_words(&to);
    put_all_options(&to);
    put_all_values(&to);
    return g_string_free(to.s, FALSE);
}
