/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where a kernel has the facts about a task, and how one task is read. Used by
 * task-list.c and file.c, on any thread; no locks. All values are untrusted.
 */
#ifndef KT_TASK_H
#define KT_TASK_H

#include "kalloc-tracer/api/kt-tasks.h"

#define KT_TASK_UNKNOWN UINT32_MAX

/**
 * struct KtTaskLayout - offsets, KT_TASK_UNKNOWN if the kernel does not say
 * @at, @bytes: of each fact that is a member of task_struct
 * @comm, @comm_bytes: of the name
 * @end: bytes from the begin of task_struct to the end of the last of these
 * @uid: in struct cred
 * @tasks, @node: in task_struct: links of the lists of processes and threads
 * @signal_head: in signal_struct: the head of the list of threads
 * @types: (static) see KtTasks
 */
typedef struct KtTaskLayout {
    uint32_t at[KT_TASK__COUNT], bytes[KT_TASK__COUNT];
    uint32_t comm, comm_bytes;
    uint32_t end;
    uint32_t uid;
    uint32_t tasks, node, signal_head;
    const char *types;
} KtTaskLayout;

/** kt_task_layout_init() - find the offsets by the kernel's types; without
 *  them by what was learned from calls. */
void kt_task_layout_init(KtTaskLayout *at, const KtObjects *o);
/** kt_task_layout_unknown() - return one bit for each fact whose place is not
 *  known. */
uint32_t kt_task_layout_unknown(const KtTaskLayout *at);
/** kt_task_read() - read the facts of the task at @t->va into @t, except those
 *  that other objects have. What is unreadable stays unknown. */
void kt_task_read(const KtObjects *o, const KtTaskLayout *at, KtTask *t);
/** kt_task_read_others() - the same for what the parent and the credentials
 *  have: ppid and uid. */
void kt_task_read_others(const KtObjects *o, const KtTaskLayout *at,
                         KtTask *t);

/** kt_task_set() - set a fact. */
static inline void kt_task_set(KtTask *t, KtTaskFact fact, uint64_t value)
{
    t->known |= 1u << fact;
    t->fact[fact] = value;
}

#endif /* KT_TASK_H */
