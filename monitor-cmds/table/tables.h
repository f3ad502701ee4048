/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tables that make commands, options and output fields (commands.def,
 * options.def, fields.def). Parser, formatters, help, completion and manual
 * iterate them; nothing else lists a command, an option or a field.
 */
#ifndef MC_TABLES_H
#define MC_TABLES_H

#include <inttypes.h>

#include "monitor-cmds/mc.h"

#define MC_ERROR mc_error_quark()
GQuark mc_error_quark(void);

typedef enum McErrorCode {
    MC_ERROR_SYNTAX,        /* what was typed is wrong */
    MC_ERROR_UNKNOWN,       /* a name that nothing has */
    MC_ERROR_CLOSED,        /* nobody reads the output any more */
} McErrorCode;

typedef struct McArgs McArgs;
typedef struct McOut McOut;
typedef struct McRow McRow;
typedef struct McValue McValue;

/* ---- options ------------------------------------------------------------- */

typedef enum McOptionId {
#define MC_OPTION(id, ...) MC_OPT_##id,
#include "monitor-cmds/table/options.def"
    MC_OPT__COUNT
} McOptionId;

/**
 * struct McOption - one row of options.def
 * @spelling: as typed; @alt: a second spelling, or NULL
 * @arg: name of its value, NULL for a flag
 * @set: reads the value; NULL for a flag
 */
typedef struct McOption {
    const char *spelling;
    const char *alt;
    const char *arg;
    bool (*set)(McArgs *args, const char *value, GError **errp);
    const char *help;
} McOption;
extern const McOption mc_options[MC_OPT__COUNT];

/* ---- commands ------------------------------------------------------------ */

typedef enum McCommandId {
#define MC_COMMAND(id, ...) MC_CMD_##id,
#include "monitor-cmds/commands/commands.def"
    MC_CMD__COUNT
} McCommandId;

/**
 * McRunFn - what a command does
 *
 * Bad input found only now sets @errp before anything is printed; a closed
 * sink is no error here (@out remembers it).
 */
typedef bool McRunFn(McOut *out, const McArgs *args, GError **errp);

/** struct McCommand - one row of commands.def; @options: a bit an option. */
typedef struct McCommand {
    const char *word;
    const char *topic;
    const char *args;
    const char *params;
    uint32_t options;
    McRunFn *run;
    const char *help;
    const char *detail;
} McCommand;
extern const McCommand mc_commands[MC_CMD__COUNT];

/** mc_command_find() - (borrowed) the command that the first @used (out) of
 *  @n words are, or NULL. */
const McCommand *mc_command_find(char *const *words, unsigned n,
                                 unsigned *used);
/** mc_command_begins() - are @n words the first ones of the command?
 *  @rest: (out, borrowed) those that are left */
bool mc_command_begins(const McCommand *c, char *const *words, unsigned n,
                       const char **rest);
/** mc_command_group() - (owned, nullable) second words of the commands that
 *  begin with @word: "scan, clear". */
char *mc_command_group(const char *word);
/** mc_command_near() - (borrowed) the command word that @word may be a
 *  misspelling of, or NULL. */
const char *mc_command_near(const char *word);
/** mc_command_usage() - (owned) "ka show <va>". */
char *mc_command_usage(const McCommand *c);
/** mc_command_options() - (owned) "-s -j -n N", as @c takes them. */
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
    MC_TYPE_TAIL,           /* likewise, a space before each */
    MC_TYPE_WORD,           /* a name; no spaces left in text */
    MC_TYPE_NAME,           /* a name in a column, 5 wide */
    MC_TYPE_HEX,
    MC_TYPE_NUMBER,         /* decimal */
    MC_TYPE__COUNT
} McFieldType;

typedef enum McFieldGroup {
    MC_GROUP_PLACE,
    MC_GROUP_REG,
    MC_GROUP_WORD,
    MC_GROUP_HIT,
    MC_GROUP_CORE,
    MC_GROUP_RCU,
    MC_GROUP_FREE,
    MC_GROUP_ERROR,
    MC_GROUP_AWAY,          /* of errors that are not at the block's start */
    MC_GROUP_SIZED,         /* of errors in the size that was passed */
    MC_GROUP_SAME,          /* of lines that stand for several blocks */
    MC_GROUP_LEAK,
    MC_GROUP_REF,
    MC_GROUP_V,
    MC_GROUP_V_FREE,
    MC_GROUP_V_ERROR,
    MC_GROUP_V_LEAK,
    MC_GROUP__COUNT
} McFieldGroup;

/**
 * struct McField - one row of fields.def
 * @get: the value for a row; false: not known
 */
typedef struct McField {
    const char *key;
    McFieldType type;
    McFieldGroup group;
    const char *before;
    const char *after;
    bool (*get)(KtTracer *t, const McRow *row, McValue *v);
    const char *help;
} McField;
extern const McField mc_fields[MC_FIELD__COUNT];

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

#endif /* MC_TABLES_H */
