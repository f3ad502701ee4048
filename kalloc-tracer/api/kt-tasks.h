/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tasks of the running kernel. Implemented in objects/.
 *
 * A task is a live block of the cache task_struct: the map lists them all, from
 * boot, whatever the kernel's lists contain. The first task, init_task, is part
 * of the kernel's image. The kernel's own list of tasks is walked as a check:
 *
 *     in the map, in the list      the usual case
 *     in the map only              about to begin, or ended and not yet freed
 *     in the list only             the map is incomplete, or the list is wrong
 *
 * All functions may be called on any thread, and take the tracer's lock
 * themselves. The guest may run meanwhile: then facts are of different moments.
 * All values are untrusted.
 */
#ifndef KT_API_TASKS_H
#define KT_API_TASKS_H

#include "kalloc-tracer/api/kt-objects.h"

/** Facts about a task: the rows of task-facts.def. */
typedef enum KtTaskFact {
#define KT_TASK_FACT(id, ...) KT_TASK_##id,
#include "kalloc-tracer/api/task-facts.def"
    KT_TASK__COUNT
} KtTaskFact;

/** kt_task_fact_name() - (static) return the word for a fact: "pid", "mm". */
const char *kt_task_fact_name(KtTaskFact fact);
/** kt_task_fact_is_object() - is the fact the address of an object that belongs
 *  to the task? */
bool kt_task_fact_is_object(KtTaskFact fact);

/**
 * struct KtTask - a task, as it was read
 * @va: of its task_struct
 * @in_map: a live block of the cache task_struct begins at @va: @block
 * @in_list: the kernel's list has it
 * @in_image: the first task, which is part of the kernel's image
 * @known: one bit for each fact that is known
 * @comm: untrusted bytes; empty if it is not known
 * @counted: its pid is known, and the tracer knows which task allocates
 * @blocks, @bytes: if @counted, live blocks that tasks of this pid allocated,
 *                  and their reserved bytes
 * @allocs: their allocations since the boot
 */
typedef struct KtTask {
    uint64_t va;
    bool in_map, in_list, in_image;
    KtBlock block;
    uint32_t known;
    uint64_t fact[KT_TASK__COUNT];
    char comm[17];
    bool counted;
    uint64_t blocks, bytes, allocs;
} KtTask;

/** kt_task_fact() - return a fact in @out; false if it is not known. */
bool kt_task_fact(const KtTask *t, KtTaskFact fact, uint64_t *out);
/** kt_task_state() - return the letter of /proc/PID/stat; '-' if it is not
 *  known. */
char kt_task_state(const KtTask *t);

/**
 * struct KtTasks - all tasks
 * @task: KtTask, by address of the task_struct
 * @types: (static) where offsets are from: "BTF", "file", "learned" or "none"
 * @unknown: one bit for each fact whose place is not known
 * @why_no_list: (static) why the kernel's list was not walked to its end; NULL:
 *               it was
 * @only_map, @only_list: tasks on one side only. The idle tasks of CPUs are on
 *               no list, and are not counted. 0 if @why_no_list is set
 * @cut: there are more tasks than the limit
 */
typedef struct KtTasks {
    GArray *task;
    const char *types;
    uint32_t unknown;
    const char *why_no_list;
    uint64_t only_map, only_list;
    bool cut;
} KtTasks;

/** kt_tasks_new() - list the tasks. Never fails: what is not known stays
 *  unknown. Returns: (owned) the tasks. */
KtTasks *kt_tasks_new(const KtObjects *o);
void kt_tasks_free(KtTasks *t);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtTasks, kt_tasks_free)

/* ---- stacks -------------------------------------------------------------- */

/** kt_task_vcpu() - find the vCPU of a stopped VM that executes the task.
 *  Returns: false if none is known to do so. */
bool kt_task_vcpu(const KtObjects *o, const KtTask *t, unsigned *vcpu);
/**
 * kt_task_saved() - find the registers of a task that no vCPU executes
 * @regs: (out) those that the kernel saved when it switched to another task
 *
 * Returns: NULL, or (static) why they are not known.
 */
const char *kt_task_saved(const KtObjects *o, const KtTask *t, GsRegs *regs);

/**
 * struct KtTaskWait - what a task waits for
 * @kind: (static) "mutex", "rwsem", "semaphore", "completion", "swait queue"
 *        or "wait queue"
 * @va: address of that structure
 * @owner: task_struct of the task that holds the lock; 0: unknown, or none
 */
typedef struct KtTaskWait {
    const char *kind;
    uint64_t va, owner;
} KtTaskWait;

/**
 * kt_task_wait() - find what a sleeping task waits for
 * @sp: of its saved registers
 * @frame: its stack, of @n frames: names of functions say which lock it is
 *
 * The kernel keeps a waiter on the task's stack. It is believed if it names
 * the task, and if the list that it is on is whole.
 *
 * Returns: false if the task waits for nothing, or if this is unknown.
 */
bool kt_task_wait(const KtObjects *o, const KtTask *t, uint64_t sp,
                  const uint64_t *frame, unsigned n, KtTaskWait *out);

#endif /* KT_API_TASKS_H */
