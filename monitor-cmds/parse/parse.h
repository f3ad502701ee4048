/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From a command line to typed arguments.
 */
#ifndef MC_PARSE_H
#define MC_PARSE_H

#include "monitor-cmds/parse/filter.h"
#include "monitor-cmds/table/tables.h"
#include "monitor-cmds/table/top-table.h"

/* Longest command line, in bytes. */
#define MC_LINE_MAX 4096

/**
 * struct McArgs - a parsed command line
 * @ctx: (borrowed) what the line was parsed against
 * @command: (borrowed) its row in the table
 * @given: options that were given, a bit each
 * @limit: of -n, UINT64_MAX without one
 * @cpu: of --cpu
 * @filter: of the filter options and the size range
 * @va: the address range; all addresses when @has_va is not set
 * @pcs: McRange, sorted by start, apart from each other
 * @name: (owned) of what the command is about, NULL for all
 * @topic: what help is asked for, NULL for all
 * @group: (borrowed from @words) first word of commands that it is asked for
 * @by, @sort: of ka top and ka diff
 * @kmemleak: --format kmemleak
 * @every: of --every
 * @words: (owned strings) the words that are no options
 */
struct McArgs {
    const McContext *ctx;
    const McCommand *command;
    uint32_t given;
    uint64_t limit;
    uint64_t cpu;
    McFilter filter;
    McRange va;
    bool has_va;
    GArray *pcs;
    char *name;
    const McCommand *topic;
    const char *group;
    McBy by;
    McTopId sort;
    bool kmemleak;
    uint64_t every;
    GPtrArray *words;
};

void mc_args_init(McArgs *args, const McContext *ctx);
void mc_args_deinit(McArgs *args);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(McArgs, mc_args_deinit)

/**
 * mc_parse() - read a command line
 * @args: initialised; also when it fails to be deinitialised by the caller
 * @line: without the leading "ka"; NULL is an empty one
 * @errp: one line: what is wrong, the word in quotes, what would be right
 */
bool mc_parse(McArgs *args, const char *line, GError **errp);

static inline bool mc_given(const McArgs *args, McOptionId id)
{
    return args->given & (1u << id);
}

#endif /* MC_PARSE_H */
