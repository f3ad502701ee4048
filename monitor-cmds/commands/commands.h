/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The functions that commands.def names. Each runs on the thread that called
 * mc_run(), holding no lock of ours.
 */
#ifndef MC_COMMANDS_H
#define MC_COMMANDS_H

#include "monitor-cmds/output/format.h"
#include "monitor-cmds/parse/parse.h"

McRunFn mc_cmd_rundown;
McRunFn mc_cmd_blocks;
McRunFn mc_cmd_show;
McRunFn mc_cmd_alloc;
McRunFn mc_cmd_free;
McRunFn mc_cmd_error;
McRunFn mc_cmd_events;
McRunFn mc_cmd_leak_module;
McRunFn mc_cmd_regs;
McRunFn mc_cmd_stack;
McRunFn mc_cmd_top;
McRunFn mc_cmd_mark;
McRunFn mc_cmd_diff;
McRunFn mc_cmd_leak_scan;
McRunFn mc_cmd_leak_list;
McRunFn mc_cmd_leak_clear;
McRunFn mc_cmd_leak_dump;
McRunFn mc_cmd_refs;
McRunFn mc_cmd_stat;
McRunFn mc_cmd_whatis;
McRunFn mc_cmd_on;
McRunFn mc_cmd_off;
McRunFn mc_cmd_clear;
McRunFn mc_cmd_check;
McRunFn mc_cmd_help;

/** mc_vm() - (borrowed) the VM that the command @word looks at, or NULL with
 *  the reason why there is none. */
const KtVm *mc_vm(const McOut *out, const char *word, GError **errp);

/** mc_read_guest() - the guest's memory, as some vCPU maps it; false where
 *  there is none. */
bool mc_read_guest(const McOut *out, uint64_t va, void *buf, size_t len);

/** struct McProgress - a search that takes long says how far it is, unless it
 *  is to be @quiet; @told_at: when it did so last, or began */
typedef struct McProgress {
    McOut *out;
    bool quiet;
    gint64 told_at;
} McProgress;
#define MC_PROGRESS_US (2 * G_USEC_PER_SEC)
/** mc_on_progress() - KtLeakPlan.progress of an McProgress. False: nobody
 *  reads any more, as far as what was printed told. */
bool mc_on_progress(void *opaque, uint64_t bytes);

/** mc_help_command() - print the page of one command (help.c). */
void mc_help_command(McOut *out, const McCommand *c);

/* Rows copied under the tracer's lock at a time, and rows looked at. */
#define MC_BATCH_ROWS 4096
#define MC_BATCH_VISITS 65536

/**
 * mc_print_history() - past lives of @va, newest first, in batches
 * @filter: (nullable) which of them
 * @limit: at most so many; what is cut is added to *@more
 */
uint64_t mc_print_history(McOut *out, uint64_t va, const McFilter *filter,
                          uint64_t limit, uint64_t *more);

/** mc_takes_only() - are no other options given than those of @options
 *  (1 << MC_OPT_*)? Else @errp says @why, and which to leave out. */
bool mc_takes_only(const McArgs *args, uint32_t options, const char *why,
                   GError **errp);

/** mc_why_nothing() - (owned) why no event was ever recorded, for the end of
 *  a "no blocks" line; empty when events were recorded. */
char *mc_why_nothing(McOut *out);

/** mc_range_text() - (owned) " at <va>" or " in <va>-<va>". */
char *mc_range_text(const McRange *r);

#endif /* MC_COMMANDS_H */
