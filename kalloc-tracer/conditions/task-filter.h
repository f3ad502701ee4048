/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Task filter: which tasks a condition is about.
 *
 *     task("ins*")    the name of the task matches the pattern
 *     child(123)      the task belongs to process 123, or to a descendant
 *
 * A descendant stays one if its parents exit and the kernel gives it to init.
 * For that, tasks are marked: when a marked task forks
 * (kt_task_filter_forked()), and when the way over real_parent leads to the
 * process or to a marked task. The second finds those that were forked before
 * the filter was made.
 *
 *     sh (123) ---- make ---- cc       real_parent leads to 123: marked
 *                     '- daemon        marked at its fork; later its parent is
 *                                      init
 *
 * Threads: patterns and processes are added before the first use. Then any
 * vCPU thread may ask; marks have a lock.
 */
#ifndef KT_TASK_FILTER_H
#define KT_TASK_FILTER_H

#include "kalloc-tracer/api/kt-types.h"

#define KT_TASK_FILTER_MAX 16
/* Marked tasks, at most. */
#define KT_TASK_MARKS_MAX (1u << 16)

typedef struct KtTaskFilter KtTaskFilter;

KtTaskFilter *kt_task_filter_new(void);
void kt_task_filter_free(KtTaskFilter *f);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtTaskFilter, kt_task_filter_free)

/** kt_task_filter_add_name() - Add a pattern with "*" and "?" for the name.
 *  Returns: its number, -1: there are too many. */
int kt_task_filter_add_name(KtTaskFilter *f, const char *pattern);
/** kt_task_filter_add_process() - Add a process by its pid (tgid). Returns: its
 *  number, -1: there are too many. */
int kt_task_filter_add_process(KtTaskFilter *f, uint32_t pid);
/** kt_task_filter_has_processes() - Return true if forks matter. */
bool kt_task_filter_has_processes(const KtTaskFilter *f);

/** kt_task_filter_name() - Return true if @comm matches pattern @i. */
bool kt_task_filter_name(const KtTaskFilter *f, unsigned i, const char *comm);

/**
 * struct KtTaskLayout - offsets in task_struct; UINT32_MAX: not known
 * @start: start_time, which differs if an address is used again
 */
typedef struct KtTaskLayout {
    uint32_t tgid, real_parent, start;
} KtTaskLayout;

/** kt_task_layout_find() - Find the offsets in the types of a kernel. */
KtTaskLayout kt_task_layout_find(const GsKernel *k);

/** struct KtTaskReader - reads tasks. @read: copy guest memory, false if it is
 *  no RAM */
typedef struct KtTaskReader {
    const KtTaskLayout *at;
    bool (*read)(void *opaque, uint64_t va, void *buf, size_t len);
    void *opaque;
} KtTaskReader;

/** kt_task_filter_child() - Return whether the task at @va belongs to process
 *  number @i or to a descendant; KT_UNKNOWN: it cannot be read. */
KtAnswer kt_task_filter_child(KtTaskFilter *f, unsigned i,
                              const KtTaskReader *r, uint64_t va);
/** kt_task_filter_forked() - Mark the new task at @child if the one at
 *  @parent, which forks, is a descendant. */
void kt_task_filter_forked(KtTaskFilter *f, const KtTaskReader *r,
                           uint64_t parent, uint64_t child);
/** kt_task_filter_n_marks() - Return the number of marked tasks. */
unsigned kt_task_filter_n_marks(KtTaskFilter *f);

#endif /* KT_TASK_FILTER_H */
