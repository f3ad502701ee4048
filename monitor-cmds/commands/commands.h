/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The command functions of commands.def, and functions that several commands
 * share. Each command runs on the thread that called mc_run(). On entry it
 * holds no lock.
 */
#ifndef MC_COMMANDS_H
#define MC_COMMANDS_H

#include "monitor-cmds/output/row.h"
#include "monitor-cmds/parse/parse.h"

/**
 * McRunFn - run a command
 *
 * Errors in the input set @errp before any output. A closed sink is no error;
 * @out->closed is set.
 */
typedef bool McRunFn(McOut *out, const McArgs *args, GError **errp);

/* The functions of the rows, mc_cmd_show() and so on, and the kinds of rows
 * that they print, ended by NULL. */
#define MC_COMMAND(id, word, topic, args, params, options, run, objects, ...) \
    McRunFn run; \
    extern const McObject *const objects[];
#include "monitor-cmds/table/commands.def"
extern McRunFn *const mc_command_functions[MC_CMD__COUNT];
extern const McObject *const *const mc_command_objects[MC_CMD__COUNT];

/** mc_help_command() - print the help page of one command (help.c) */
void mc_help_command(McOut *out, const McCommand *c);

/* Limits of a batch: rows that are copied, and rows that are visited, under one
 * hold of the tracer's lock. */
#define MC_BATCH_ROWS 4096
#define MC_BATCH_VISITS 65536

/** mc_print_history() - print all lives of @va but @shown (nullable), newest
 *  first, in batches */
void mc_print_history(McOut *out, uint64_t va, const KtBlock *shown);

/** mc_has_only() - return true if only options of the set @options were given
 *  (1 << MC_OPT_*). Else set an error: @why, and the option to omit. */
bool mc_has_only(const McArgs *args, uint64_t options, const char *why,
                 GError **errp);

/** mc_why_nothing() - return (owned) the reason why no event was recorded, as
 *  the end of a "no blocks" line; empty if events were recorded */
char *mc_why_nothing(McOut *out);

/** mc_whatis_pointer() - append the first fact of ka whatis about where a
 *  pointer outside of all blocks leads: a symbol, per-CPU memory, a struct page
 *  (whatis.c). Return false if there is none. */
bool mc_whatis_pointer(const KtAddress *w, GString *to);

/** mc_range_text() - return (owned) " at <va>" or " in <va>-<va>" */
char *mc_range_text(const McRange *r);

#endif /* MC_COMMANDS_H */
