/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tables of commands and options (commands.def, options.def,
 * export-formats.def). Parser, help, completion and manual iterate over them;
 * no other file lists commands or options.
 */
#ifndef MC_TABLES_H
#define MC_TABLES_H

#include <inttypes.h>

#include "monitor-cmds/mc.h"

#define MC_ERROR mc_error_quark()
GQuark mc_error_quark(void);

typedef enum McErrorCode {
    MC_ERROR_SYNTAX,        /* the line is wrong */
    MC_ERROR_UNKNOWN,       /* the name is unknown */
    MC_ERROR_CLOSED,        /* nobody reads the output any more */
} McErrorCode;

/** mc_fail_syntax() - set the error that the line is wrong, and return false;
 *  mc_fail_unknown(): that something is not known, or not there */
bool mc_fail_syntax(GError **errp, const char *format, ...)
    G_GNUC_PRINTF(2, 3);
bool mc_fail_unknown(GError **errp, const char *format, ...)
    G_GNUC_PRINTF(2, 3);

/* ---- options ------------------------------------------------------------- */

typedef enum McOptionId {
#define MC_OPTION(id, ...) MC_OPT_##id,
#include "monitor-cmds/table/options.def"
    MC_OPT__COUNT
} McOptionId;

/**
 * struct McOption - one row of options.def
 * @spelling: as typed; @alt: a second spelling, or NULL
 * @arg: name of the value, NULL for a flag. parse/values.c parses it
 */
typedef struct McOption {
    const char *spelling;
    const char *alt;
    const char *arg;
    const char *help;
} McOption;
extern const McOption mc_options[MC_OPT__COUNT];

/** Options that every command accepts: one that prints nothing that depends on
 *  them ignores them. */
#define MC_OPTS_EVERYWHERE \
    (1ull << MC_OPT_SYMBOLS | 1ull << MC_OPT_JSON | 1ull << MC_OPT_LIMIT | \
     1ull << MC_OPT_LONG | 1ull << MC_OPT_HEX | 1ull << MC_OPT_WIDE)

/* ---- commands ------------------------------------------------------------ */

typedef enum McCommandId {
#define MC_COMMAND(id, ...) MC_CMD_##id,
#include "monitor-cmds/table/commands.def"
    MC_CMD__COUNT
} McCommandId;

/** struct McCommand - one row of commands.def; @options: one bit for each
 *  option. commands/commands.c has the function that runs it. */
typedef struct McCommand {
    const char *word;
    const char *topic;
    const char *args;
    const char *params;
    uint64_t options;
    const char *help;
    const char *detail;
} McCommand;
extern const McCommand mc_commands[MC_CMD__COUNT];

/** mc_command_find() - return (borrowed) the command of the first words, NULL
 *  if there is none; @used: (out) number of words, of @n, that are its name */
const McCommand *mc_command_find(char *const *words, unsigned n,
                                 unsigned *used);
/** mc_command_begins() - return true if the command's name begins with @n
 *  words; @rest: (out, borrowed) the rest of the name */
bool mc_command_begins(const McCommand *c, char *const *words, unsigned n,
                       const char **rest);
/** mc_command_group() - return (owned, nullable) the second words of the
 *  commands that begin with @word: "scan, clear" */
char *mc_command_group(const char *word);
/** mc_command_near() - return (borrowed) a command whose misspelling @word may
 *  be, or NULL */
const char *mc_command_near(const char *word);
/** mc_command_usage() - return (owned) "ka show <va>" */
char *mc_command_usage(const McCommand *c);
/** mc_command_options() - return (owned) the options of @c: "-s -j -n N" */
char *mc_command_options(const McCommand *c);

/* ---- questions ----------------------------------------------------------- */

/**
 * struct McQuestion - one row of questions.def
 * @text: a question; NULL: @command is one that answers it
 * @shown: the command has a line of its own
 */
typedef struct McQuestion {
    const char *text;
    McCommandId command;
    bool shown;
} McQuestion;
extern const McQuestion mc_questions[];
extern const unsigned mc_n_questions;

/* ---- old words ----------------------------------------------------------- */

/** struct McRenamed - one row of renamed.def. At most 64 rows. */
typedef struct McRenamed {
    const char *old;
    const char *now;
} McRenamed;
extern const McRenamed mc_renamed[];
extern const unsigned mc_n_renamed;

/* ---- formats of ka export ------------------------------------------------ */

typedef enum McExportId {
#define MC_EXPORT(id, ...) MC_EXPORT_##id,
#include "monitor-cmds/table/export-formats.def"
    MC_EXPORT__COUNT
} McExportId;

typedef enum McExportNeeds {
    MC_NEEDS_STACKS,
    MC_NEEDS_CACHES,
    MC_NEEDS_JOURNAL,
    MC_NEEDS_CACHE_JOURNAL,
} McExportNeeds;

typedef enum McExportKind {
    MC_EXPORT_IS_TEXT,
    MC_EXPORT_IS_BINARY,
} McExportKind;

/** struct McExportFormat - one row of export-formats.def; export/export.c has
 *  the function that writes it */
typedef struct McExportFormat {
    const char *name;
    const char *suffix;
    McExportKind kind;
    McExportNeeds needs;
    const char *help;
} McExportFormat;
extern const McExportFormat mc_export_formats[MC_EXPORT__COUNT];
/** mc_export_needs_journal() - return true if the format has events. */
static inline bool mc_export_needs_journal(McExportId id)
{
    return mc_export_formats[id].needs == MC_NEEDS_JOURNAL ||
           mc_export_formats[id].needs == MC_NEEDS_CACHE_JOURNAL;
}
/** mc_export_by_cache() - return true if its sums are those by cache, not by
 *  stack. */
static inline bool mc_export_by_cache(McExportId id)
{
    return mc_export_formats[id].needs == MC_NEEDS_CACHES ||
           mc_export_formats[id].needs == MC_NEEDS_CACHE_JOURNAL;
}

/** How ka export names the frames of stacks: --frames. */
typedef enum McFrames {
    MC_FRAMES_FUNCTION,
    MC_FRAMES_LINE,
    MC_FRAMES_OFFSET,
    MC_FRAMES__COUNT
} McFrames;
/** mc_frames_name() - return (static) "function" and so on. */
const char *mc_frames_name(McFrames frames);

#endif /* MC_TABLES_H */
