/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Old words of a line, and what replaces them: the rows of renamed.def.
 *
 * Example: "-n 3 fault stacks" becomes "-n 3 fault log --by stack". The words
 * of a command may have options between them and before them, as everywhere.
 *
 * Called by the parser. No locks.
 */
#include "monitor-cmds/parse/parse.h"

#include <string.h>

static const char *word_at(const GPtrArray *words, unsigned i)
{
    return g_ptr_array_index(words, i);
}

static void replace_word(GPtrArray *words, unsigned at, const char *now)
{
    g_free(words->pdata[at]);
    words->pdata[at] = g_strdup(now);
}

/* Return the place behind the option at @i and its value. */
static unsigned behind_option(const GPtrArray *words, unsigned i)
{
    McOptionId id = mc_option_find(word_at(words, i));

    return i + 1 + (id != MC_OPT__COUNT && mc_option_has_value(id));
}

/* Return the place of the first word from @i on that is no option. */
static unsigned next_word(const GPtrArray *words, unsigned i)
{
    while (i < words->len && word_at(words, i)[0] == '-') {
        i = behind_option(words, i);
    }
    return MIN(i, words->len);
}

/* Return the place of the first option from @i on. */
static unsigned next_option(const GPtrArray *words, unsigned i)
{
    while (i < words->len && word_at(words, i)[0] != '-') {
        i++;
    }
    return MIN(i, words->len);
}

/* ---- options ------------------------------------------------------------- */

/* Replace the option at @i if it is the old one, with the old value. */
static bool rename_option(GPtrArray *words, unsigned i, char **old, char **now)
{
    if (strcmp(word_at(words, i), old[0])) {
        return false;
    }
    if (old[1]) {
        if (i + 1 == words->len || strcmp(word_at(words, i + 1), old[1])) {
            return false;
        }
        replace_word(words, i + 1, now[1]);
    }
    replace_word(words, i, now[0]);
    return true;
}

static bool rename_options(GPtrArray *words, char **old, char **now)
{
    bool found = false;

    for (unsigned i = next_option(words, 0); i < words->len;
         i = next_option(words, behind_option(words, i))) {
        found |= rename_option(words, i, old, now);
    }
    return found;
}

/* ---- commands ------------------------------------------------------------ */

/* Replace the words of a command. Those of ka help are names of a command, so
 * that the new ones have no options. */
static bool rename_command(GPtrArray *words, char **old, char **now)
{
    unsigned first = next_word(words, 0), second;
    bool help = first < words->len &&
                !strcmp(word_at(words, first), mc_commands[MC_CMD_HELP].word);

    first = help ? next_word(words, first + 1) : first;
    second = first < words->len ? next_word(words, first + 1) : first;
    if (second >= words->len || strcmp(word_at(words, first), old[0]) ||
        strcmp(word_at(words, second), old[1])) {
        return false;
    }
    g_ptr_array_remove_index(words, second);
    replace_word(words, first, now[0]);
    for (unsigned i = 1; now[i] && !(help && now[i][0] == '-'); i++) {
        g_ptr_array_insert(words, (int)(first + i), g_strdup(now[i]));
    }
    return true;
}

uint64_t mc_rename_words(GPtrArray *words)
{
    uint64_t used = 0;

    for (unsigned i = 0; i < mc_n_renamed; i++) {
        g_auto(GStrv) old = g_strsplit(mc_renamed[i].old, " ", -1);
        g_auto(GStrv) now = g_strsplit(mc_renamed[i].now, " ", -1);

        if (old[0][0] == '-' ? rename_options(words, old, now) :
                               rename_command(words, old, now)) {
            used |= 1ull << i;
        }
    }
    return used;
}
