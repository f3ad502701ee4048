/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tables of commands and options, and functions over the rows of commands.
 *
 * Called by the parser, help, completion and the manual. Read-only; any thread.
 * The functions of the rows are in the rooms above: commands/commands.c runs
 * commands, parse/values.c parses values of options.
 */
#include "monitor-cmds/table/tables.h"

#include <string.h>

#include "monitor-cmds/table/near.h"

#define OPT(id) (1ull << MC_OPT_##id)
#define OPTS_LINES \
    (OPT(SYMBOLS) | OPT(JSON) | OPT(LIMIT) | OPT(VERBOSE) | OPT(HELP))
#define OPTS_ROWS (OPTS_LINES | OPT(LONG) | OPT(PC))
#define OPTS_FILTER \
    (OPT(SINCE) | OPT(UNTIL) | OPT(TASK) | OPT(CACHE) | OPT(LAYER) | \
     OPT(STATE))

#define OPTS_CALLS \
    (OPT(SYMBOLS) | OPT(JSON) | OPT(LIMIT) | OPT(SINCE) | OPT(UNTIL) | \
     OPT(TASK) | OPT(CPU) | OPT(FUNC) | OPT(MODULE) | OPT(FORMAT) | \
     OPT(AFTER) | OPT(HELP))

/* Commands that print frames have both forms of them. */
#define WITH_NAMES(options_) \
    ((options_) | ((options_) & OPT(SYMBOLS) ? OPT(HEX) | OPT(WIDE) : 0))

G_STATIC_ASSERT(MC_OPT__COUNT <= 64);

const McCommand mc_commands[MC_CMD__COUNT] = {
#define MC_COMMAND(id, word_, topic_, args_, params_, options_, run_, \
                   objects_, help_, detail_) \
    [MC_CMD_##id] = { \
        .word = word_, .topic = topic_, .args = args_, .params = params_, \
        .options = WITH_NAMES(options_), .help = help_, .detail = detail_, \
    },
#include "monitor-cmds/table/commands.def"
};

const McOption mc_options[MC_OPT__COUNT] = {
#define MC_OPTION(id, spelling_, alt_, arg_, set_, help_) \
    [MC_OPT_##id] = { \
        .spelling = spelling_, .alt = alt_, .arg = arg_, .help = help_, \
    },
#include "monitor-cmds/table/options.def"
};

const McQuestion mc_questions[] = {
#define MC_QUESTION(text_) { .text = text_ },
#define MC_SHOWN(id) { .command = MC_CMD_##id, .shown = true },
#define MC_ALSO(id) { .command = MC_CMD_##id },
#include "monitor-cmds/table/questions.def"
};
const unsigned mc_n_questions = G_N_ELEMENTS(mc_questions);

const McRenamed mc_renamed[] = {
#define MC_RENAMED(old, now) { old, now },
#include "monitor-cmds/table/renamed.def"
};
const unsigned mc_n_renamed = G_N_ELEMENTS(mc_renamed);
G_STATIC_ASSERT(G_N_ELEMENTS(mc_renamed) <= 64);

const McExportFormat mc_export_formats[MC_EXPORT__COUNT] = {
#define MC_EXPORT(id, name_, suffix_, kind_, needs_, write_, help_) \
    [MC_EXPORT_##id] = { \
        .name = name_, .suffix = suffix_, .kind = MC_EXPORT_IS_##kind_, \
        .needs = MC_NEEDS_##needs_, .help = help_, \
    },
#include "monitor-cmds/table/export-formats.def"
};

const char *mc_frames_name(McFrames frames)
{
    static const char *const names[MC_FRAMES__COUNT] = {
        [MC_FRAMES_FUNCTION] = "function", [MC_FRAMES_LINE] = "line",
        [MC_FRAMES_OFFSET] = "offset",
    };

    return names[frames];
}

G_DEFINE_QUARK(mc-error, mc_error)

bool mc_fail_syntax(GError **errp, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    g_propagate_error(errp, g_error_new_valist(MC_ERROR, MC_ERROR_SYNTAX,
                                               format, args));
    va_end(args);
    return false;
}

bool mc_fail_unknown(GError **errp, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    g_propagate_error(errp, g_error_new_valist(MC_ERROR, MC_ERROR_UNKNOWN,
                                               format, args));
    va_end(args);
    return false;
}

bool mc_command_begins(const McCommand *c, char *const *words, unsigned n,
                       const char **rest)
{
    const char *p = c->word;

    for (unsigned i = 0; p && i < n; i++) {
        size_t len = strcspn(p, " ");

        if (!len || strlen(words[i]) != len || strncmp(p, words[i], len)) {
            return false;
        }
        p += len;
        p += *p == ' ';
    }
    *rest = p;
    return p != NULL;
}

const McCommand *mc_command_find(char *const *words, unsigned n,
                                 unsigned *used)
{
    const char *rest;

    for (*used = MIN(n, 2); *used; *used -= 1) {
        for (unsigned i = 0; i < MC_CMD__COUNT; i++) {
            if (mc_command_begins(&mc_commands[i], words, *used, &rest) &&
                !*rest) {
                return &mc_commands[i];
            }
        }
    }
    return NULL;
}

char *mc_command_group(const char *word)
{
    g_autoptr(GString) s = g_string_new(NULL);
    char *words[] = { (char *)word };
    const char *rest;

    for (unsigned i = 0; i < MC_CMD__COUNT; i++) {
        if (mc_command_begins(&mc_commands[i], words, 1, &rest) && *rest) {
            g_string_append_printf(s, "%s%s", s->len ? ", " : "", rest);
        }
    }
    return s->len ? g_string_free(g_steal_pointer(&s), FALSE) : NULL;
}

const char *mc_command_near(const char *word)
{
    g_auto(McNear) near = { .word = word };
    const char *best = NULL;

    for (unsigned i = 0; i < MC_CMD__COUNT; i++) {
        const char *w = mc_commands[i].word;
        g_autofree char *first = w ? g_strndup(w, strcspn(w, " ")) : NULL;
        unsigned before = near.best ? near.edits : UINT_MAX;

        if (w) {
            mc_near_try(&near, first);
            best = near.best && near.edits < before ? w : best;
        }
    }
    return best;
}

char *mc_command_usage(const McCommand *c)
{
    return g_strconcat("ka", c->word ? " " : "", c->word ? c->word : "",
                       *c->params ? " " : "", c->params, NULL);
}

char *mc_command_options(const McCommand *c)
{
    GString *s = g_string_new(NULL);

    for (unsigned i = 0; i < MC_OPT__COUNT; i++) {
        const McOption *o = &mc_options[i];

        if (c->options & (1ull << i)) {
            g_string_append_printf(s, "%s%s%s%s", s->len ? " " : "",
                                   o->spelling, o->arg ? " " : "",
                                   o->arg ? o->arg : "");
        }
    }
    return g_string_free(s, FALSE);
}
