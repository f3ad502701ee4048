/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Call condition: which calls of a function does a request mean? It is what
 * `ka calls add` and `ka fault add` have in common: the expression (--if), the
 * rules about stacks and tasks, and the calls that were counted by stack.
 *
 *     compiled once:  text, names of arguments --> code, rules, patterns
 *     for each call:  KtCallFacts --> KtCallValues --> true, false, not known
 *
 * Values of a call are fetched when they are first needed. QEMU-free: the
 * caller's operations read registers, guest memory and stack.
 *
 * The code has variables of these numbers:
 *
 *     KtCallVariable                       a row of call-variables.def
 *     KT_CALL_STACK_RULE + i               rule i of the stack rules
 *     KT_CALL_TASK_NAME + i                pattern i of the task filter
 *     KT_CALL_TASK_CHILD + i               process i of the task filter
 *     KT_CALL_CACHE + i                    pattern i of the caches
 *     KT_CALL_NAMED_ARG + i                name i of an argument
 *
 * Threads: a condition is compiled before its first use. Then it does not
 * change, except for what has a lock. vCPU threads evaluate it.
 */
#ifndef KT_CALL_CONDITION_H
#define KT_CALL_CONDITION_H

#include "kalloc-tracer/api/kt-calls.h"
#include "kalloc-tracer/api/kt-tracer.h"
#include "kalloc-tracer/conditions/condition.h"
#include "kalloc-tracer/conditions/constants.h"
#include "kalloc-tracer/conditions/stack-rules.h"
#include "kalloc-tracer/conditions/task-filter.h"

typedef enum KtCallVariable {
#define KT_CALL_VARIABLE(id, ...) KT_CALL_VAR_##id,
#include "kalloc-tracer/conditions/call-variables.def"
    KT_CALL_VAR__COUNT
} KtCallVariable;

#define KT_CALL_STACK_RULE  0x100u
#define KT_CALL_TASK_NAME   0x200u
#define KT_CALL_TASK_CHILD  0x300u
#define KT_CALL_CACHE       0x400u
#define KT_CALL_NAMED_ARG   0x500u
/* Patterns of caches, and names of arguments, at most. */
#define KT_CALL_NAMES_MAX   16

/** Where a condition is evaluated. */
typedef enum KtCallWhen {
    KT_CALL_AT_FAULT,           /* at the entry, for ka fault */
    KT_CALL_AT_RETURN,          /* at the return, or at the entry if it needs
                                 * no result, for ka calls */
} KtCallWhen;

/* ---- a condition --------------------------------------------------------- */

/**
 * struct KtCallFunctions - functions that a request names
 * @protos: (owned) GsPrototype of those that have one
 * @pending: a kernel or a module is missing, so there may be more functions
 * @why_not: (static, nullable) why a function has no prototype
 * @kernel: (borrowed, nullable) has the functions that stack() and caller()
 *          may name; NULL: any name is accepted
 */
typedef struct KtCallFunctions {
    GPtrArray *protos;
    bool pending;
    const char *why_not;
    const GsKernel *kernel;
} KtCallFunctions;

/** struct KtCallName - a name of an argument. @var: the variable of that name,
 *  -1: there is none */
typedef struct KtCallName {
    char *name;
    int var;
} KtCallName;

/**
 * struct KtCallCondition - a condition, all owned
 * @code: NULL: true for each call
 * @stacks, @tasks: the rules; the user of the condition may have more
 * @caches: patterns of names
 * @names: KtCallName of arguments whose place differs between functions
 * @counts: calls by the hash of their stack; begins with a KtCallCount
 * @at_return: the condition needs the result
 * @has_stack: the condition asks about the stack
 */
typedef struct KtCallCondition {
    KtCondition *code;
    KtStackRules *stacks;
    KtTaskFilter *tasks;
    GPtrArray *caches;
    GArray *names;
    KtStackTable counts;
    bool at_return, has_stack;
} KtCallCondition;

typedef struct KtCallCount {
    uint64_t hash, calls;
} KtCallCount;

/** kt_call_condition_new() - (owned) Make a condition that is true. @budget:
 *  (borrowed, nullable) is charged as @part; @bytes: of an entry of counts. */
KtCallCondition *kt_call_condition_new(KtBudget *budget, KtMemoryPart part,
                                       size_t bytes);
void kt_call_condition_free(KtCallCondition *c);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtCallCondition, kt_call_condition_free)
/**
 * kt_call_condition_compile() - Set the expression
 * @gfp: the kernel's GFP flags
 * @f: whose arguments the expression may name. At a fault there is one at most,
 *     and a name is a place
 * @errp: one line, as kt_condition_new()
 *
 * Call once. Returns: false on error.
 */
bool kt_call_condition_compile(KtCallCondition *c, const char *text,
                               KtCallWhen when, const KtGfp *gfp,
                               const KtCallFunctions *f, GError **errp);

/** kt_call_variable_name() - (static) Return the name of a row;
 *  kt_call_variable_help() its help. */
const char *kt_call_variable_name(KtCallVariable v);
const char *kt_call_variable_help(KtCallVariable v);
/** kt_constant_value() - Evaluate an expression of constants, for example
 *  "-ENOMEM". @errp: one line. Returns: false if it is none. */
bool kt_constant_value(const char *text, const KtGfp *gfp, int64_t *value,
                       GError **errp);

/* ---- a call -------------------------------------------------------------- */

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
 * @us: the guest's time
 * @cache: (nullable) the kmem_cache at @va; wanted if a KtCallRoles has one
 */
typedef struct KtCallOps {
    bool (*word)(void *call, GsReg reg, uint64_t *out);
    bool (*stack)(void *call, KtCallStack *out);
    bool (*task)(void *call, KtCallTask *out);
    bool (*read)(void *call, uint64_t va, void *buf, size_t len);
    KtAnswer (*irq)(void *call);
    uint64_t (*us)(void *call);
    bool (*cache)(void *call, uint64_t va, KtCacheInfo *out);
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

/**
 * struct KtCallFacts - a call, and how more of it is read; all borrowed
 * @proto: (nullable) of the function
 * @call: (nullable) its record; result and duration are valid at the return
 * @ra, @sp: return address, and stack pointer at the entry, 0 at the return
 */
typedef struct KtCallFacts {
    const KtCallOps *ops;
    void *opaque;
    const GsKernel *kernel;
    const KtCallLayout *layout;
    const GsPrototype *proto;
    const KtCall *call;
    uint64_t ra, sp;
    unsigned cpu;
} KtCallFacts;

/** struct KtCallRoles - numbers of the arguments that an allocation has, -1:
 *  none. @slab: flags of kmem_cache_create() */
typedef struct KtCallRoles {
    int8_t size, gfp, order, cap, cache, slab;
} KtCallRoles;

/**
 * struct KtCallValues - the values of one call
 * @c: the condition that asks
 * @roles: (nullable) of the function
 * @times, @seed: of the rule that asks
 * @have_...: the value was fetched; @..._known: with success
 * @n: number of the call among those of its stack; @no_room: no room for that
 */
typedef struct KtCallValues {
    const KtCallFacts *f;
    KtCallCondition *c;
    const KtCallRoles *roles;
    uint64_t times, seed, n;
    bool have_stack, stack_known, have_task, task_known, have_n, no_room;
    KtCallStack stack;
    KtStackFacts facts;
    KtCallTask task;
} KtCallValues;

/** kt_call_condition_eval() - Evaluate the condition @v->c for a call. */
KtTruth kt_call_condition_eval(KtCallValues *v);

/** kt_call_need_stack() - Fetch @v->stack and @v->facts. Returns: false if they
 *  are not known. kt_call_need_task() does the same for @v->task, and
 *  kt_call_need_n() for @v->n, for which it counts the call. */
bool kt_call_need_stack(KtCallValues *v);
bool kt_call_need_task(KtCallValues *v);
bool kt_call_need_n(KtCallValues *v);
/** kt_call_find_module() - Find the loaded module that the return address @va
 *  is in. Most addresses are in the kernel proper, and take no lock. */
bool kt_call_find_module(const KtCallFacts *f, uint64_t va, GsModule *out);
/** kt_call_is_child() - Is the task of process @i of the task filter? */
KtAnswer kt_call_is_child(KtCallValues *v, unsigned i);
/** kt_call_forks() - The call is the start of the new task @child: mark it if
 *  the task that calls is a descendant of a process of the task filter. */
void kt_call_forks(KtCallValues *v, uint64_t child);
/** kt_call_word() - Read the register of argument @i. Returns: false if @i is
 *  negative, or there is no such register. */
bool kt_call_word(const KtCallFacts *f, int i, uint64_t *out);
/** kt_call_u32() - Read the low 32 bits of it. */
bool kt_call_u32(const KtCallFacts *f, int i, int64_t *out);
/** kt_call_size() - Read how many bytes are requested. */
bool kt_call_size(const KtCallValues *v, int64_t *out);
/** kt_call_arg() - Read argument @i, by the prototype if there is one. Returns:
 *  false if it is not known, or no number. */
bool kt_call_arg(const KtCallFacts *f, unsigned i, int64_t *out);

/** kt_call_failed() - Does the result mean an error by its type? Without a
 *  prototype: an error pointer, or a negative error number of 32 or 64
 *  bits. */
bool kt_call_failed(const GsPrototype *proto, uint64_t result);

#endif /* KT_CALL_CONDITION_H */
