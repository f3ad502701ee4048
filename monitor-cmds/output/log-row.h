/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A line of the kernel's log in each form. The text is the guest's: no byte of
 * it can end a line, or the value of a JSON key. Called by the commands, on
 * their thread.
 */
#ifndef MC_LOG_ROW_H
#define MC_LOG_ROW_H

#include "monitor-cmds/output/row.h"

/**
 * struct McLogRow - a line of the kernel's log; all borrowed
 * @text: @line->len bytes of the guest. In text, a byte that is no printable
 *        ASCII character, and a backslash, becomes \xNN, as in /dev/kmsg
 * @has_task, @pid, @comm: the writer
 * @module: NULL: none, or not known
 */
typedef struct McLogRow {
    const KtLogLine *line;
    const char *text;
    bool has_task;
    uint32_t pid;
    const char *comm;
    const char *module;
} McLogRow;

/** mc_log_row() - fill in the writer of @row->line. @comm: holds the name */
void mc_log_row(KtTracer *t, McLogRow *row, char comm[17]);
/** mc_print_log() - print a line; mc_print_log_event(): among events */
void mc_print_log(McOut *o, const McLogRow *row);
void mc_print_log_event(McOut *o, const McLogRow *row);
/** mc_ftrace_log() - print a line as ftrace does */
void mc_ftrace_log(McOut *o, const McLogRow *row);

extern const McObject mc_log_object;

#endif /* MC_LOG_ROW_H */
