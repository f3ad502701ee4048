/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which tasks the word of a command means: a pid, a name, or an address. Used
 * by ka task and ka files, on their thread; no locks.
 */
#ifndef MC_TASK_CHOICE_H
#define MC_TASK_CHOICE_H

#include "monitor-cmds/commands/commands.h"

/** mc_task_is_thread() - is it a thread that is not the first one of its
 *  process? */
bool mc_task_is_thread(const KtTask *t);
/** mc_task_has_pid() - return false also if its pid is not known. */
bool mc_task_has_pid(const KtTask *t, uint64_t pid);

/**
 * mc_tasks_choose() - append (borrowed) tasks to @chosen
 * @word: a decimal pid; a name, a pattern; or an address in a task_struct.
 *        NULL: all
 * @threads: threads, too, not only the first task of each process
 * @one: (out) the word means one task
 *
 * Returns: false if there is none.
 */
bool mc_tasks_choose(const McContext *ctx, const KtTasks *tasks,
                     const char *word, bool threads, GPtrArray *chosen,
                     bool *one);
/** mc_tasks_none() - set the error that no task is meant by @word; return
 *  false. */
bool mc_tasks_none(const McContext *ctx, const KtTasks *tasks,
                   const char *word, GError **errp);

#endif /* MC_TASK_CHOICE_H */
