/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Completion of the last word: commands, the command's options, and the names
 * that an option's value can have. Addresses are not completed.
 *
 * Called by the monitor through mc_complete(). Reads only the tables and the
 * line; any thread.
 */
#include <string.h>

#include "monitor-cmds/parse/parse.h"

/** struct Completion - @last: the word to complete; @command: NULL if it is not
 *  known yet */
typedef struct Completion {
    const char *last;
    const McCommand *command;
    GPtrArray *out;
} Completion;

static void offer(Completion *c, const char *word)
{
    if (word && g_str_has_prefix(word, c->last)) {
        g_ptr_array_add(c->out, g_strdup(word));
    }
}

/* Return the option whose value is the last word, NULL if there is none. */
static const McOption *value_of(char **words, unsigned n)
{
    for (unsigned i = 0; n > 1 && i < MC_OPT__COUNT; i++) {
        if (mc_options[i].arg &&
            !strcmp(mc_options[i].spelling, words[n - 2])) {
            return &mc_options[i];
        }
    }
    return NULL;
}

static void offer_values(Completion *c, const McOption *o)
{
    const char *name;

    for (unsigned i = 0;
         (name = mc_option_choice(c->command, o - mc_options, i)); i++) {
        offer(c, name);
    }
}

static void offer_options(Completion *c, const McCommand *cmd)
{
    for (unsigned i = 0; i < MC_OPT__COUNT; i++) {
        if (cmd->options & (1ull << i)) {
            offer(c, mc_options[i].spelling);
            offer(c, mc_options[i].alt);
        }
    }
}

/* Offer the command words that can follow @n words. */
static void offer_commands(Completion *c, char *const *words, unsigned n)
{
    g_autofree char *before = NULL;

    for (unsigned i = 0; i < MC_CMD__COUNT; i++) {
        g_autofree char *word = NULL;
        const char *rest;

        if (!mc_command_begins(&mc_commands[i], words, n, &rest) || !*rest) {
            continue;
        }
        word = g_strndup(rest, strcspn(rest, " "));
        if (g_strcmp0(word, before)) {
            offer(c, word);
        }
        g_free(before);
        before = g_steal_pointer(&word);
    }
}

/* Offer the formats of ka export. */
static void offer_formats(Completion *c)
{
    if (c->command != &mc_commands[MC_CMD_EXPORT]) {
        return;
    }
    for (unsigned i = 0; i < MC_EXPORT__COUNT; i++) {
        offer(c, mc_export_formats[i].name);
    }
}

/* Return (owned) the words before the last one that are neither options nor
 * their values. */
static GPtrArray *plain_words(char **words, unsigned n)
{
    /* GPtrArray's pdata is NULL if its capacity is 0 */
    GPtrArray *plain = g_ptr_array_sized_new(n + 1);

    for (unsigned i = 0; i + 1 < n; i++) {
        if (words[i][0] != '-' && !value_of(words, i + 1)) {
            g_ptr_array_add(plain, words[i]);
        }
    }
    return plain;
}

static void complete(Completion *c, char **words, unsigned n)
{
    const McOption *o = value_of(words, n);
    g_autoptr(GPtrArray) plain = plain_words(words, n);
    char **first = (char **)plain->pdata;
    unsigned used;
    const McCommand *cmd = mc_command_find(first, plain->len, &used);
    unsigned skip = cmd == &mc_commands[MC_CMD_HELP];

    c->command = cmd;
    if (o) {
        offer_values(c, o);
    } else if (c->last[0] == '-') {
        offer_options(c, cmd ? cmd : &mc_commands[MC_CMD_BLOCKS]);
    } else {
        offer_commands(c, first + skip, plain->len - skip);
        offer_formats(c);
    }
}

char **mc_complete(const McContext *ctx, const char *line)
{
    g_auto(GStrv) split = NULL;
    g_autoptr(GPtrArray) words = g_ptr_array_new();
    Completion c = { .last = "", .out = g_ptr_array_new() };

    if (line && strlen(line) <= MC_LINE_MAX) {
        split = g_strsplit_set(line, " \t", -1);
        for (unsigned i = 0; split[i]; i++) {
            /* keep an empty last word: it is the one to complete */
            if (*split[i] || !split[i + 1]) {
                g_ptr_array_add(words, split[i]);
            }
        }
        if (words->len) {
            c.last = g_ptr_array_index(words, words->len - 1);
        }
        complete(&c, (char **)words->pdata, words->len);
    }
    g_ptr_array_add(c.out, NULL);
    return (char **)g_ptr_array_free(c.out, FALSE);
}
