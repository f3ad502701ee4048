/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * KtTaskWitnesses: learns where the current task is, and where struct
 * task_struct has pid and comm. The members can be anywhere (RANDSTRUCT).
 *
 *     current task   __switch_to(prev, next): prev is the current task. It is
 *                    a per-CPU variable on x86-64; arm64 and riscv64 have it in
 *                    a register
 *     comm           __set_task_comm(task, name): task has the name afterwards;
 *                    kernel_thread(fn, arg, name, flags), since 6.4: the task
 *                    that it wakes has the name
 *     pid            kernel_clone() calls wake_up_new_task(task), and returns
 *                    the task's pid
 *
 * Guest memory is read through the view only, with fixed bounds. The caller has
 * the lock.
 */
#ifndef KT_TASK_WITNESSES_H
#define KT_TASK_WITNESSES_H

#include "kalloc-tracer/kernel/guest.h"
#include "kalloc-tracer/kernel/votes.h"

#define KT_TASK_BYTES   16384   /* of a task_struct that are searched */
#define KT_PERCPU_BYTES (1u << 20)
#define KT_NEW_TASKS    4
#define KT_NEW_NAMES    8

/**
 * struct KtNewTask - a task that is about to run for the first time
 * @sp: the stack pointer of wake_up_new_task() after its return
 * @bytes: the task_struct, as it was then
 */
typedef struct KtNewTask {
    uint64_t sp;
    uint8_t bytes[KT_TASK_BYTES];
} KtNewTask;

/** struct KtNewName - a call of kernel_thread() that has not made its task yet;
 *  @sp: the stack pointer after its return, 0: none */
typedef struct KtNewName {
    uint64_t sp;
    char name[16];
} KtNewName;

/**
 * struct KtTaskWitnesses
 * @percpu_start: link address of the per-CPU variables
 * @current, @comm, @pid: votes; offsets of @current are from the start of the
 *                    per-CPU variables
 * @switches, @names, @pids: witnesses that differ from the one before
 * @last_task, @last_name, @last_pid: the one before
 * @new_task: the last new tasks, @n_new counts all
 * @new_name: the last named threads, @n_names counts all
 * @from_start: the task with pid 1 was seen, so no thread is older
 * @pid_open: @pid has two offsets, pid and tgid, which only threads tell apart
 * @learned_current, @learned_comm, @learned_pid: KT_NO_MEMBER until they are
 *                    known
 */
typedef struct KtTaskWitnesses {
    KtView view;
    uint64_t percpu_start;
    KtVotes current, comm, pid;
    unsigned switches, names, pids;
    uint64_t last_task;
    char last_name[16];
    uint32_t last_pid;
    KtNewTask new_task[KT_NEW_TASKS];
    unsigned n_new;
    KtNewName new_name[KT_NEW_NAMES];
    unsigned n_names;
    bool from_start, pid_open;
    uint32_t learned_current, learned_comm, learned_pid;
} KtTaskWitnesses;

/** kt_task_witnesses_init() - @percpu_start: link address of the per-CPU
 *  variables; 0 on x86-64 before 6.15, where it is the offset 0 */
void kt_task_witnesses_init(KtTaskWitnesses *w, KtView view,
                            uint64_t percpu_start);
/** kt_task_witnesses_switch() - __switch_to() is entered. @base: the per-CPU
 *  base; @prev: its first argument */
void kt_task_witnesses_switch(KtTaskWitnesses *w, uint64_t base,
                              uint64_t prev);
/** kt_task_witnesses_named() - __set_task_comm() returns. @name: address of its
 *  second argument */
void kt_task_witnesses_named(KtTaskWitnesses *w, uint64_t task, uint64_t name);
/** kt_task_witnesses_thread() - kernel_thread() is entered. @sp: the stack
 *  pointer after its return; @name: its third argument */
void kt_task_witnesses_thread(KtTaskWitnesses *w, uint64_t sp, uint64_t name);
/** kt_task_witnesses_want_pid() - return true if calls of kernel_clone() can
 *  still say where pid is. */
static inline bool kt_task_witnesses_want_pid(const KtTaskWitnesses *w)
{
    return w->learned_pid == KT_NO_MEMBER || w->pid_open;
}
/** kt_task_witnesses_want_new() - return true if new tasks can still say where
 *  a member is. */
static inline bool kt_task_witnesses_want_new(const KtTaskWitnesses *w)
{
    return w->learned_comm == KT_NO_MEMBER || kt_task_witnesses_want_pid(w);
}
/** kt_task_witnesses_new_task() - wake_up_new_task() is entered. @sp: the stack
 *  pointer after its return; @current: the task that calls it, 0: unknown */
void kt_task_witnesses_new_task(KtTaskWitnesses *w, uint64_t sp, uint64_t task,
                                uint64_t current);
/** kt_task_witnesses_cloned() - kernel_clone() returns. @sp: the stack pointer
 *  after its return; @result: the new task's pid, or an error */
void kt_task_witnesses_cloned(KtTaskWitnesses *w, uint64_t sp, int64_t result);

/** kt_task_witnesses_resume_pid() - use the candidates in @pid, which were
 *  enough before. */
void kt_task_witnesses_resume_pid(KtTaskWitnesses *w);

#endif /* KT_TASK_WITNESSES_H */
