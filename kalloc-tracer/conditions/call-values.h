/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Call values: what conditions ask of a call, fetched when it is first needed.
 * QEMU-free: the caller's operations read registers, guest memory and stack.
 *
 * Threads: on the thread of the vCPU that calls. A KtCallScope does not change
 * while calls use it.
 */
#ifndef KT_CALL_VALUES_H
#define KT_CALL_VALUES_H

#include "kalloc-tracer/conditions/call-names.h"

/** struct KtCallTask - the task that calls; @va: its task_struct; @id: of the
 *  tracer */
typedef struct KtCallTask {
    KtTaskId id;
    uint64_t va;
    uint32_t pid;
    char comm[17];
} KtCallTask;

/**
 * struct KtCallOps - reads what a call is about; each returns false, or
 * KT_UNKNOWN, if it is not known
 * @word: a register at the entry
 * @stack, @task: at most once each for a KtCallValues
 * @read: guest memory
 */
typedef struct KtCallOps {
    bool (*word)(void *call, GsReg reg, uint64_t *out);
    bool (*stack)(void *call, KtCallStack *out);
    bool (*task)(void *call, KtCallTask *out);
    bool (*read)(void *call, uint64_t va, void *buf, size_t len);
    KtAnswer (*irq)(void *call);
} KtCallOps;

/** struct KtCallLayout - what is known of a kernel. @module_state: offset of
 *  module.state, UINT32_MAX: unknown. @text_start, @text_end: code of the
 *  kernel proper */
typedef struct KtCallLayout {
    KtTaskLayout task;
    uint32_t module_state;
    uint64_t text_start, text_end;
} KtCallLayout;

/** kt_call_layout_find() - Find it in the types of a kernel. @k: (nullable) */
KtCallLayout kt_call_layout_find(const GsKernel *k);

/** struct KtCallScope - what a condition was compiled with, all borrowed */
typedef struct KtCallScope {
    KtStackRules *stacks;
    KtTaskFilter *tasks;
    const KtCallLayout *layout;
} KtCallScope;

/**
 * struct KtCallValues - the values of one call
 * @proto: (nullable) of the function
 * @ra, @sp: return address, and stack pointer at the entry
 * @have_...: the value was fetched; @..._known: with success
 */
typedef struct KtCallValues {
    const KtCallOps *ops;
    void *opaque;
    const KtCallScope *scope;
    const GsKernel *kernel;
    const GsPrototype *proto;
    uint64_t ra, sp, us;
    unsigned cpu;
    bool have_stack, stack_known, have_task, task_known;
    KtCallStack stack;
    KtStackFacts facts;
    KtCallTask task;
} KtCallValues;

/** kt_call_need_stack() - Fetch @v->stack and @v->facts. Returns: false if they
 *  are not known. kt_call_need_task() does the same for @v->task. */
bool kt_call_need_stack(KtCallValues *v);
bool kt_call_need_task(KtCallValues *v);
/** kt_call_find_module() - Find the loaded module that the return address @va
 *  is in. Most addresses are in the kernel proper, and take no lock. */
bool kt_call_find_module(const KtCallValues *v, uint64_t va, GsModule *out);
/** kt_call_task_reader() - Return what reads tasks, valid as long as @v. */
KtTaskReader kt_call_task_reader(const KtCallValues *v);
/** kt_call_is_child() - Is the task of process @i of the scope's filter? */
KtAnswer kt_call_is_child(KtCallValues *v, unsigned i);
/** kt_call_word() - Read the register of argument @i. Returns: false if @i is
 *  negative, or there is no such register. */
bool kt_call_word(const KtCallValues *v, int i, uint64_t *out);
/** kt_call_arg() - Read argument @i, by the prototype if there is one. Returns:
 *  false if it is not known, or no number. */
bool kt_call_arg(const KtCallValues *v, unsigned i, int64_t *out);
/** kt_call_value() - Fetch a variable of a condition: all of call-names.h but
 *  caches and those that belong to the result or to a count. Returns: false if
 *  it is not known. */
bool kt_call_value(KtCallValues *v, unsigned var, int64_t *out);

#endif /* KT_CALL_VALUES_H */
