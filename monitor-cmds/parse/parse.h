/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parser: from a command line to typed arguments. Called by mc_run(); no
 * locks.
 */
#ifndef MC_PARSE_H
#define MC_PARSE_H

#include "monitor-cmds/parse/filter.h"
#include "monitor-cmds/table/tables.h"
#include "monitor-cmds/table/top-table.h"

/* Limit of a command line, in bytes. */
#define MC_LINE_MAX 4096

/** How a command prints its rows: --format. Each command has some of these, and
 *  the first of them without the option. */
typedef enum McForm {
    MC_FORM_TEXT,
    MC_FORM_KMEMLEAK,
    MC_FORM_KASAN,
    MC_FORM_FTRACE,
    MC_FORM_CHROME,
    MC_FORM_PAHOLE,
    MC_FORM_LINE,
    MC_FORM__COUNT
} McForm;

/** Fields by which ka task sorts: --sort. */
typedef enum McTaskSort {
    MC_TASK_BY_PID,
    MC_TASK_BY_TGID,
    MC_TASK_BY_PPID,
    MC_TASK_BY_UID,
    MC_TASK_BY_CPU,
    MC_TASK_BY_LIVE,
    MC_TASK_BY_BLOCKS,
    MC_TASK_BY_ALLOCS,
    MC_TASK_BY_BORN,
    MC_TASK_BY__COUNT
} McTaskSort;

/**
 * struct McArgs - a parsed command line
 * @ctx: (borrowed) context of the command
 * @command: (borrowed) row of commands.def
 * @given: one bit for each option that was given
 * @limit: value of -n; UINT64_MAX without -n, and for -n 0
 * @around: value of -n for ka show, which prints no neighbours for 0
 * @cpu, @node: values of --cpu and --node; @all_cpus: --cpu all
 * @depth, @count: values of --depth and --count; 0 without them
 * @filter: the filter options and the size range
 * @va: the address range; unset, all addresses, if @has_va is false
 * @pcs: McCode: sorted by start, without overlap; also the value of --alloc
 * @name: (owned, nullable) name of the mark or module
 * @topic: command to explain (ka help), NULL for all
 * @group: (borrowed from @words) first word of several commands to explain
 * @by, @sort: values of --by and --sort; @task_sort: value of --sort for ka
 *       task; @sort_word: (owned, nullable) as it was typed
 * @form: value of --format; @form_word: (owned, nullable) as it was typed
 * @kmemleak: --format kmemleak
 * @level: value of --level; 7, all levels, without it
 * @module: (owned, nullable) value of --module, a pattern
 * @kinds: value of --only, bits by KtErrorKind; 0 without it
 * @after: value of --after, @place: (owned, nullable) its text
 * @condition, @function: (owned, nullable) values of --if and --func
 * @longer_us: value of --longer
 * @value: (owned, nullable) value of --return
 * @times, @action: values of --times and --do
 * @every: value of --every
 * @ring: value of --ring
 * @frames, @export_value: values of --frames and --value
 * @base: (owned, nullable) value of --base
 * @words: (owned strings) the words that are no options
 * @renamed: one bit for each row of renamed.def whose old words are in the line
 */
typedef struct McArgs {
    const McContext *ctx;
    const McCommand *command;
    uint64_t given;
    uint64_t limit;
    uint64_t around;
    uint64_t cpu, node;
    bool all_cpus;
    uint64_t depth, count;
    McFilter filter;
    McRange va;
    bool has_va;
    GArray *pcs;
    char *name;
    const McCommand *topic;
    const char *group;
    McBy by;
    McTopId sort;
    McTaskSort task_sort;
    char *sort_word;
    McForm form;
    char *form_word;
    bool kmemleak;
    unsigned level;
    char *module;
    unsigned kinds;
    uint64_t after;
    char *place;
    char *condition, *derefs, *function;
    uint64_t longer_us;
    char *value;
    uint64_t times;
    KtFaultAction action;
    uint64_t every;
    uint64_t ring;
    McFrames frames;
    McTopId export_value;
    char *base;
    GPtrArray *words;
    uint64_t renamed;
} McArgs;

void mc_args_init(McArgs *args, const McContext *ctx);
void mc_args_deinit(McArgs *args);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(McArgs, mc_args_deinit)

/** mc_form_name() - return (static) the name of a form, as in --format. */
const char *mc_form_name(McForm form);
/** mc_form_applies() - return true if @c has this form; NULL: any command. */
bool mc_form_applies(const McCommand *c, McForm form);
/** mc_option_choice() - return (static) the @i-th name that the value of option
 *  @id of command @c (nullable) can be; NULL behind the last one, or if the
 *  value is no name of a list. */
const char *mc_option_choice(const McCommand *c, McOptionId id, unsigned i);
/** mc_task_sort_name() - return (static) a field, as in --sort of ka task. */
const char *mc_task_sort_name(unsigned i);
/** mc_check_form() - set @args->form, once @args->command is known. Return
 *  false if the command does not have the form. */
bool mc_check_form(McArgs *args, GError **errp);
/** mc_sorts_sums() - return true if --sort of @c is a column of ka top. */
bool mc_sorts_sums(const McCommand *c);
/** mc_check_sort() - set @args->sort or @args->task_sort, once @args->command
 *  is known. Return false if the command does not have the field. */
bool mc_check_sort(McArgs *args, GError **errp);
/** mc_set_option() - parse the value of an option that has one into @args */
bool mc_set_option(McArgs *args, McOptionId id, const char *value,
                   GError **errp);
/** mc_free_options() - free the values of options */
void mc_free_options(McArgs *args);
bool mc_option_has_value(McOptionId id);
/** mc_option_find() - return the option that is spelled @word, MC_OPT__COUNT if
 *  there is none */
McOptionId mc_option_find(const char *word);
/** mc_option_name() - return (static) the @i-th name that the value can be, for
 *  all commands; NULL behind the last one */
const char *mc_option_name(McOptionId id, unsigned i);
/** mc_set_size(), mc_set_code() - parse sizes, and addresses of code */
bool mc_set_size(McArgs *args, const char *value, GError **errp);
bool mc_set_code(McArgs *args, const char *value, GError **errp);

/**
 * mc_parse() - parse a command line
 * @args: initialised by the caller, who deinitialises it also after an error
 * @line: without the leading "ka"; NULL is an empty line
 * @errp: one line: the wrong word in quotes, and what would be right
 */
bool mc_parse(McArgs *args, const char *line, GError **errp);

/** mc_parse_format() - find the format of ka export that is named @word. */
bool mc_parse_format(const char *word, McExportId *id, GError **errp);

/** mc_split_words() - split a line at blanks; a word in quotes may have blanks.
 *  Returns: (owned, g_strfreev) the words, without these quotes; NULL: a quote
 *  is not closed */
char **mc_split_words(const char *line, GError **errp);

/** mc_parse_words() - parse only the options, and collect @args->words; the
 *  same errors */
bool mc_parse_words(McArgs *args, const char *line, GError **errp);

/** mc_rename_words() - replace old words of a line, @words (owned strings), by
 *  those that renamed.def has for them. Return a bit for each row that was
 *  used. (renamed.c) */
uint64_t mc_rename_words(GPtrArray *words);

static inline bool mc_given(const McArgs *args, McOptionId id)
{
    return args->given & (1ull << id);
}

#endif /* MC_PARSE_H */
