/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tables of commands, options and output fields (commands.def, options.def,
 * fields.def, objects.def, export-formats.def). Parser, formatters, help,
 * completion and manual iterate over them; no other file lists commands,
 * options or fields.
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

/* ---- options ------------------------------------------------------------- */

typedef enum McOptionId {
#define MC_OPTION(id, ...) MC_OPT_##id,
#include "monitor-cmds/table/options.def"
    MC_OPT__COUNT
} McOptionId;

/**
 * struct McOption - one row of options.def
 * @spelling: as typed; @alt: a second spelling, or NULL
 * @arg: name of the value, NULL for a flag. parse.c has the function that
 *       parses it
 */
typedef struct McOption {
    const char *spelling;
    const char *alt;
    const char *arg;
    const char *help;
} McOption;
extern const McOption mc_options[MC_OPT__COUNT];

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

/* ---- fields -------------------------------------------------------------- */

typedef enum McFieldId {
#define MC_FIELD(key, ...) MC_FIELD_##key,
#include "monitor-cmds/table/fields.def"
    MC_FIELD__COUNT
} McFieldId;

typedef enum McFieldType {
    MC_TYPE_MARGIN,         /* hex offset, printed before the line */
    MC_TYPE_LETTER,
    MC_TYPE_ADDR,           /* 16 hex digits */
    MC_TYPE_SIZE,           /* hex, 5 columns */
    MC_TYPE_US,             /* decimal microseconds */
    MC_TYPE_STACK,          /* program counters, a space between */
    MC_TYPE_TAIL,           /* the same, a space before each */
    MC_TYPE_WORD,           /* a name; blanks in it are escaped in text */
    MC_TYPE_TEXT,           /* words; blanks are kept */
    MC_TYPE_NAME,           /* a name in a column, 5 wide */
    MC_TYPE_LABEL,          /* the same, 8 wide */
    MC_TYPE_HEX,
    MC_TYPE_NUMBER,         /* decimal */
    MC_TYPE_INDEX,          /* decimal, 4 columns */
    MC_TYPE_LIST,           /* several texts, in text "; " between */
    MC_TYPE__COUNT
} McFieldType;

typedef enum McFieldGroup {
    MC_GROUP_PLACE,
    MC_GROUP_REG,
    MC_GROUP_WORD,
    MC_GROUP_OBJECT,
    MC_GROUP_HIT,
    MC_GROUP_SLOT,          /* lines of ka slab */
    MC_GROUP_CORE,
    MC_GROUP_BLOCK,         /* all but slots without a block */
    MC_GROUP_UNSEEN,        /* slots without a block */
    MC_GROUP_LISTED,        /* slots on a list of free objects */
    MC_GROUP_RCU,
    MC_GROUP_FREE,
    MC_GROUP_ERROR,
    MC_GROUP_AWAY,          /* errors whose address is not the block's start */
    MC_GROUP_CODED,         /* errors whose address is an error pointer */
    MC_GROUP_SIZED,         /* errors in the size of a free */
    MC_GROUP_ORDER,         /* errors in the order of a free of pages */
    MC_GROUP_LEFT,          /* errors of objects left in a cache */
    MC_GROUP_ACCESS,        /* errors of accesses */
    MC_GROUP_INSTRUCTION,   /* those that are not by a whole function */
    MC_GROUP_REPEATS,       /* those that were made more than once */
    MC_GROUP_BESIDE,        /* those with a live block beside */
    MC_GROUP_FRONT,         /* in front */
    MC_GROUP_BEHIND,
    MC_GROUP_SAME,          /* lines that stand for several blocks */
    MC_GROUP_LEAK,
    MC_GROUP_KEPT,
    MC_GROUP_HELD,          /* lines that stand for what they hold, too */
    MC_GROUP_REF,
    MC_GROUP_V,
    MC_GROUP_V_FREE,
    MC_GROUP_V_ERROR,
    MC_GROUP_V_LEFT,        /* with -v, and errors of objects left */
    MC_GROUP_V_LEAK,
    MC_GROUP_V_BESIDE,
    MC_GROUP_V_IDENTITY,    /* errors and leaks */
    MC_GROUP__COUNT
} McFieldGroup;

/* ---- JSON objects -------------------------------------------------------- */

typedef enum McObjectId {
#define MC_OBJECT(id, ...) MC_OBJ_##id,
#include "monitor-cmds/table/objects.def"
    MC_OBJ__COUNT
} McObjectId;

/** struct McObject - one row of objects.def */
typedef struct McObject {
    const char *type;
    const char *help;
} McObject;
extern const McObject mc_objects[MC_OBJ__COUNT];

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
